#!/bin/sh
# Writes requirements.lock anew: every dependency of every distribution here, all extras and the dev group,
# for every supported Python. The index a package comes from is left out: any mirror serves.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
"$uv" pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --python-version 3.11 \
    --no-emit-package orchard-core --all-extras --group dev \
    $(for plugin in plugins/*/pyproject.toml; do echo "$plugin"; done) pyproject.toml -o requirements.lock
