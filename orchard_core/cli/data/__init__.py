"""`orchard data`: from runs to a training set."""
