"""Other frameworks over a service's sandboxes. Each module needs the framework that its name says."""
