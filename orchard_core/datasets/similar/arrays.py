"""NumPy, or the sentence that says how to get it."""

from __future__ import annotations

from typing import TypeAlias

from orchard_core.errors import ConfigError

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError as cause:
    raise ConfigError(
        "counting rows and comparing their texts needs NumPy", hint="pip install 'orchard-core[data]'"
    ) from cause

Bytes: TypeAlias = NDArray[np.uint8]
Words32: TypeAlias = NDArray[np.uint32]
Words64: TypeAlias = NDArray[np.uint64]
Places: TypeAlias = NDArray[np.intp]

__all__ = ["Bytes", "NDArray", "Places", "Words32", "Words64", "np"]
