"""The contract suite of harnesses."""
