"""A matrix report as one HTML file that needs no network, and a page for each rollout beside it."""
