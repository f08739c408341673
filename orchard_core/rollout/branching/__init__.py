"""Continuing a recorded rollout from a state on its way, with its recorded answers replayed up to there."""
