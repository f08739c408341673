"""The SDK: programs that use a sandbox service over HTTP. Its names are importable from `orchard_env`."""
