"""Tasks, their tools and where they come from."""
