"""The driver-side way out of a sandbox: a proxy that reaches public addresses only."""
