"""Every bench, one after the other: `python -m bench`. Options go to each; 1 when any bound is missed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHES = ("startup", "agent", "local_sandbox", "gateway", "rollout", "store", "report")


def main() -> int:
    codes = []
    for name in BENCHES:
        command = [sys.executable, str(HERE / f"{name}.py"), *sys.argv[1:]]
        codes.append(subprocess.run(command, check=False).returncode)
        print(flush=True)
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
