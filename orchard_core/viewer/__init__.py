"""The local web viewer: runs, datasets, one rollout turn by turn."""
