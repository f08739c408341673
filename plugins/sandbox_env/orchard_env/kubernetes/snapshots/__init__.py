"""Saved files of sandboxes, in object storage."""
