"""The contract suite of sandbox providers, one kind of behaviour a file."""
