"""The sandbox service: any provider over HTTP."""
