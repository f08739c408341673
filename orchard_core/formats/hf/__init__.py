"""Rows of `messages` and `tools`, as `datasets` and TRL read them."""
