"""Agent harnesses: the contract."""
