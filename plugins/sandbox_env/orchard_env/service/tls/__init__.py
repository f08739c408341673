"""TLS of the service's own listener."""
