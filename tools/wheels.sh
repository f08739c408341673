#!/bin/sh
# Builds the wheel of every distribution into $1.
set -eu
out=${1:?usage: tools/wheels.sh DIRECTORY}
cd "$(dirname "$0")/.."
for project in . plugins/*/; do
    [ -f "$project/pyproject.toml" ] || continue
    .venv/bin/uv build --quiet --wheel --out-dir "$out" "$project"
done
