"""What the replicas of a service know in common: in memory for one, in Redis for several."""
