"""Random numbers that depend on what is drawn for, never on the process: a hash of seed and names."""

from __future__ import annotations

from hashlib import blake2b


def drawn(seed: int, *names: str | bytes | int) -> int:
    """A number from -2**63 to 2**63 - 1, as an index can sort it."""
    parts = (
        name if isinstance(name, bytes) else str(name).encode("utf-8", "surrogatepass") for name in names
    )
    digest = blake2b(b"\0".join((str(seed).encode(), *parts)), digest_size=8)
    return int.from_bytes(digest.digest(), "big", signed=True)
