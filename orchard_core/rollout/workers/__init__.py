"""Several drivers for one run: each takes a share of its tasks, and one collects what they finish."""
