"""An image that holds one static program and nothing else: no shell, no libraries, no users."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchard_core import ImageRef, SandboxProvider
from orchard_core.testing import SandboxSuite, provider_or_skip

ECHO = """package main

import "os"

func main() {
	for _, argument := range os.Args[1:] {
		os.Stdout.WriteString(argument + "\\n")
	}
}
"""


def _go() -> str:
    return shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent)) or ""


@pytest.fixture(scope="module")
def rootfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image, its program compiled here."""
    home = tmp_path_factory.mktemp("scratch")
    (home / "root" / "bin").mkdir(parents=True)
    (home / "echo.go").write_text(ECHO)
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    build = [_go(), "build", "-o", str(home / "root" / "bin" / "echo"), str(home / "echo.go")]
    subprocess.run(build, check=True, env=env, cwd=home, timeout=300)
    return home / "root"


@pytest.mark.slow
@pytest.mark.skipif(not _go(), reason="compiling the image's program needs Go")
class TestScratchImage(SandboxSuite):
    has_shell = False
    echo = ("/bin/echo",)

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _image(cls, rootfs: Path) -> None:
        cls.image = ImageRef(kind="rootfs", value=str(rootfs))

    async def make_provider(self) -> SandboxProvider:
        return await provider_or_skip()
