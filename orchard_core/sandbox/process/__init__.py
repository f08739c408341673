"""The provider without isolation, for trusted commands only; never a fallback."""
