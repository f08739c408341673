"""The card that lies in a dataset's directory, for people and for `datasets.load_dataset`."""

from __future__ import annotations

import hashlib

from orchard_core.datasets.store.manifest import DATA, Manifest


def card(manifest: Manifest) -> str:
    """README.md: which files belong to which split, and what is in them."""
    files = "\n".join(
        f'  - split: "{split}"\n    path: "{DATA}/{split}-*.parquet"' for split in manifest.splits
    )
    rows = "\n".join(
        f"| {split} | {totals.rows:,} | {totals.turns:,} | {totals.trained_turns:,} | {totals.tokens:,} |"
        for split, totals in manifest.splits.items()
    )
    return f"""---
configs:
- config_name: default
  description: "Files {_content(manifest)}"
  data_files:
{files}
tags:
- agent
- trajectories
- orchard
---

# A dataset of agent trajectories

Written by orchard-core {manifest.orchard}. One row is one conversation; `messages` and `tools` are JSON
text in the shape of OpenAI chat completions, and `mask` says of each message whether it is trained on.

| split | rows | turns | trained turns | tokens |
| --- | ---: | ---: | ---: | ---: |
{rows}

`manifest.json` tells the sources, the filters and what each of them left out, and the hash of every file.
"""


def _content(manifest: Manifest) -> str:
    # `datasets` keeps what it loaded by a directory's last name and what its card says, not by its files:
    # without this it would give the rows of an earlier dataset of the same name.
    return hashlib.sha256(" ".join(shard.sha256 for shard in manifest.shards).encode()).hexdigest()[:16]
