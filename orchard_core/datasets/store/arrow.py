"""Arrow, or the sentence that says how to get it."""

from __future__ import annotations

from orchard_core.errors import ConfigError

try:
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
except ImportError as cause:
    raise ConfigError(
        "reading and writing datasets needs PyArrow", hint="pip install 'orchard-core[data]'"
    ) from cause

FAULTS = (pa.ArrowException, OSError, MemoryError, OverflowError)
"""What Arrow raises for a file that is not as it should be."""

__all__ = ["FAULTS", "np", "pa", "pq"]
