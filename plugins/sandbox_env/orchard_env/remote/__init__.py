"""The provider `remote`: sandboxes of a service, for rollouts on this machine."""
