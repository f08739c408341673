"""Sandboxes as pods: the cluster's API, what it tells, and the provider upon it."""
