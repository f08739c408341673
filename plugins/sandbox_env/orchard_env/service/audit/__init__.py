"""What was done by whom, kept on disk."""
