"""Credit assignment: value curves, rise segments, per-turn masks, and where they are kept."""
