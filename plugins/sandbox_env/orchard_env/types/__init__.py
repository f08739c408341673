"""What crosses the wire between a service and its clients."""
