"""Orchard Env: sandboxes as a service."""
