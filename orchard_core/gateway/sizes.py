"""About how many tokens something takes that nobody has counted."""

from __future__ import annotations

BYTES_PER_TOKEN = 4
"""An estimate: English text and code come to about four bytes of JSON a token in the usual vocabularies."""

IMAGE_TOKENS = 1_600
"""About what one image takes, whatever its size in bytes."""
