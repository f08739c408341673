"""Coding CLIs as harnesses, inside the sandbox."""

__version__ = "0.1.0"
