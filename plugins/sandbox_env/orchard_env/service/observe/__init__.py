"""What the service does and costs: metrics, accounts, traces, an overview for people."""
