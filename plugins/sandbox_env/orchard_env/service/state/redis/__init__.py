"""The shared state in a Redis server."""
