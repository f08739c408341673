"""The workforce `kubernetes`: the drivers of a shared run as Jobs of a cluster."""
