"""Where keys come in other ways than by the header."""

from __future__ import annotations

OWN_DOORS = frozenset({"/metrics", "/status", "/status/enter", "/status/leave"})
"""Paths whose handlers see to it themselves that nobody reads them who may not."""
