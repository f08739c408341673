#!/bin/sh
# Vets, formats (check only) and tests the in-sandbox agent with the toolchain of the virtual environment.
set -eu
cd "$(dirname "$0")/.."
go=$(.venv/bin/python -c 'import sysconfig, pathlib; print(pathlib.Path(sysconfig.get_path("purelib"), "go", "bin", "go"))')
[ -x "$go" ] || go=.venv/bin/go
go=$(realpath "$go")
cd agent
CGO_ENABLED=0 "$go" vet ./...
unformatted=$("$(dirname "$go")/gofmt" -l .)
if [ -n "$unformatted" ]; then
    printf 'gofmt would change:\n%s\n' "$unformatted" >&2
    exit 1
fi
CGO_ENABLED=0 "$go" test ./...
