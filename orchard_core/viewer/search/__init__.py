"""Full-text search over messages: an index in the user's cache, made by a process of its own."""
