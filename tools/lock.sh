#!/bin/sh
# Writes requirements.lock anew: every dependency of every distribution here, all extras and the dev group,
# for every supported Python. The index a package comes from is left out: any mirror serves.
# Left out are the extras that stand for another framework: their tests fetch each into an environment of its own.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
projects="pyproject.toml $(ls plugins/*/pyproject.toml)"
extras=$(.venv/bin/python - $projects <<'PYTHON'
import sys
import tomllib
from pathlib import Path

FRAMEWORKS = {"harbor", "inspect", "openenv"}
found = {name for path in sys.argv[1:] for name in tomllib.loads(Path(path).read_text())["project"].get("optional-dependencies", {})}
print(*(f"--extra {name}" for name in sorted(found - FRAMEWORKS)))
PYTHON
)
# shellcheck disable=SC2086
"$uv" pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --python-version 3.11 \
    --no-emit-package orchard-core $extras --group dev $projects -o requirements.lock
