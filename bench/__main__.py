"""Every bench, one after the other: `python -m bench`, or only those named: `python -m bench miniswe`.

Options go to each; 1 when any bound is missed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHES = (
    "startup",
    "agent",
    "local_sandbox",
    "many",
    "fork",
    "gateway",
    "rollout",
    "store",
    "report",
    "view",
    "data_mix",
    "miniswe",
    "harnesses",
    "env_cluster",
    "env_files",
    "env_neighbours",
    "env_scale",
)


def main() -> int:
    codes = []
    given = sys.argv[1:]
    named = [name for name in BENCHES if name in given]
    options = [word for word in given if word not in named]
    for name in named or BENCHES:
        command = [sys.executable, str(HERE / f"{name}.py"), *options]
        codes.append(subprocess.run(command, check=False).returncode)
        print(flush=True)
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
