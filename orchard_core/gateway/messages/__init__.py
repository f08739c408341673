"""Anthropic messages: for upstreams that speak it, and put into chat for those that do not."""
