#!/bin/sh
# Builds the wheel of every distribution into $1, and beside them the versions of all else that they were tested with
# (constraints.txt, for pip install --constraint).
set -eu
out=${1:?usage: tools/wheels.sh DIRECTORY}
cd "$(dirname "$0")/.."
for project in . plugins/*/; do
    [ -f "$project/pyproject.toml" ] || continue
    .venv/bin/uv build --quiet --wheel --out-dir "$out" "$project"
done
sed -n 's/^\([A-Za-z0-9._-]*==[^ ;\\]*\( ;[^\\]*\)\{0,1\}\).*/\1/p' requirements.lock >"$out/constraints.txt"
