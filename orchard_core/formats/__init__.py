"""Formats of other projects that datasets are read from and written to."""
