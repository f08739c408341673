"""The published HTTP contract; docs/reference/rest-v1.md."""
