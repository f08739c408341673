"""Who calls, what it may do, and how much it may have."""
