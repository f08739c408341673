"""What sandboxes cost: prices, and how many fit a node."""
