"""The plugin system: hook specs, loading, and typed look-ups."""
