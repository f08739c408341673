"""A real single-node Kubernetes on this machine, for the tests that need a cluster (Debian 12, root).

    python tools/cluster build              compile the server programs, once
    python tools/cluster up                 start it, with the images the tests use; prints the KUBECONFIG
    python tools/cluster image ROOT NAME    give the node an image made of a tar or a directory
    python tools/cluster runtime kill       kill -9 of containerd; kill-all: and of what holds its pods
    python tools/cluster runtime start      containerd once more
    python tools/cluster status | env | down

Pods get addresses that this machine reaches directly. Its network does not enforce NetworkPolicy. Everything
lies in one directory (ORCHARD_CLUSTER_DIR); after `down` nothing runs and only the programs stay.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from api import node_ready
from build import build
from images import load_image, load_test_images
from layout import Layout
from services import down, kill_runtime, node, start_runtime, up
from shell import Failed, say

_ROOT = Path(__file__).resolve().parents[2]


def main(words: list[str]) -> int:
    layout = Layout.find()
    match words:
        case ["build"]:
            build(layout)
        case ["up"]:
            up(layout)
            load_test_images(layout, _agent(), _version())
        case ["image", root, name]:
            load_image(layout, Path(root), name)
        case ["node"]:
            node(layout)
        case ["runtime", "kill" | "kill-all" | "start" as what]:
            start_runtime(layout) if what == "start" else kill_runtime(layout, shims=what == "kill-all")
        case ["down"]:
            down(layout)
        case ["env"]:
            print(f"export KUBECONFIG={layout.kubeconfig}")
        case ["status"]:
            up_now = node_ready(layout)
            print(f"up: {layout.kubeconfig}" if up_now else "down")
            return 0 if up_now else 1
        case _:
            print(__doc__)
            return 2
    return 0


def _agent() -> Path | None:
    built = _ROOT / "orchard_core/sandbox/agent/bin/orchard-agent-linux-amd64"
    return built if built.exists() else None


def _version() -> str:
    lines = (_ROOT / "pyproject.toml").read_text().split("\n")
    return next(line for line in lines if line.startswith("version")).split('"')[1]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as failure:
        say(str(failure))
        sys.exit(1)
