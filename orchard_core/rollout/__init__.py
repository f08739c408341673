"""Running rollouts: one, groups, the scheduler, and the run store."""
