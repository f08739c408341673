"""The head of a directory's README.md, by which `datasets` finds its files as it finds the published ones."""

from __future__ import annotations

from collections.abc import Iterable


def card(part: str, splits: Iterable[str], content: str) -> str:
    """The text for one part, `swe` or `gui`.

    `content`, a hash of the files, keeps `datasets` from giving rows that it loaded earlier from another
    directory of the same name: it keeps them by that name and by what the card says.
    """
    files = "\n".join(f'  - split: {split}\n    path: "{part}/{split}/*.parquet"' for split in splits)
    return f"""---
configs:
- config_name: {part}
  description: "Files {content}"
  data_files:
{files}
---
Rows in the columns of the published microsoft/Orchard data ({part}), written by `orchard data export`.
"""
