"""The plugin system: hook specs, loading each plugin on its own, the catalog, and typed look-ups."""
