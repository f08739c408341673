"""Pods that were made before anybody asked for them."""
