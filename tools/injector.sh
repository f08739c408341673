#!/bin/sh
# Makes the root file system of the image orchard/injector, the agent alone, as a tar: tools/injector.sh OUT.tar [ARCH]
# ARCH is amd64 or arm64; this machine's by default. The agent is built when it is missing or older than its sources.
# deploy/images/injector/Dockerfile makes the same image where there is an image builder.
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: tools/injector.sh OUT.tar [ARCH]}
agent=$(.venv/bin/python -c '
import sys, pathlib, hatch_build
architecture = sys.argv[1] if len(sys.argv) > 1 else hatch_build.host_architecture()
print(hatch_build.build_agent(pathlib.Path.cwd(), (architecture,))[0])' ${2:+"$2"})
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
install -m 0555 "$agent" "$root/orchard-agent"
tar --create --file "$out" --directory "$root" --owner 0 --group 0 --numeric-owner --sort name --mtime @0 orchard-agent
