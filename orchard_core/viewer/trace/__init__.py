"""One conversation made ready to be read: bounded, and the same for a rollout and for a dataset's row."""
