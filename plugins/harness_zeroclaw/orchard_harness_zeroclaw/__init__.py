"""ZeroClaw, the real binary inside the sandbox, as a harness."""

__version__ = "0.1.0"
