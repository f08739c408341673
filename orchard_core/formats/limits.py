"""What a file of somebody else's may cost: bounds on sizes, so that none can eat the memory."""

from __future__ import annotations

MIB = 1 << 20

ROW_BYTES = 128 * MIB
"""A row, unpacked."""
FIELD_BYTES = 64 * MIB
"""One field of it: a conversation with pictures is a few tens of MiB."""
DEPTH = 200
"""Nested lists and objects."""
UNPACKED_RATIO = 500
"""A file that unpacks to more than this many times its size is a bomb: text gives 10 to 100."""
UNPACKED_FREE = 256 * MIB
"""What any file may unpack to, however well it was packed."""
