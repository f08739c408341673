"""Personal-assistant task sets for Orchard."""
