"""Several sources become one dataset: read once, selected by a pure plan, written shard by shard."""
