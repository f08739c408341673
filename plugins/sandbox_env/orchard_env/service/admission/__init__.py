"""Back-pressure: what cannot be done now waits its turn, fair between tenants, or is told to come again."""
