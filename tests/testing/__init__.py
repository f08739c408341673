"""The suites are worth something only if they fail for what is wrong."""
