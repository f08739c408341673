"""Commands of `orchard` that this distribution adds."""
