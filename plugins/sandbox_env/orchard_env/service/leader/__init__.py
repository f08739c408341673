"""Which of several replicas does what only one may do."""
