"""Programs from npm, installed once where every run finds them."""

from __future__ import annotations

import asyncio
import json
import logging
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import ConfigError
from orchard_core.harness.cache import making, program_cache
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.types.sandbox import Mount

_LOG = logging.getLogger("orchard.harness")
_ARCH = {"x86_64": "x64", "aarch64": "arm64"}
_INSTALL_S = 900.0
_TREE_INSIDE, _NODE_INSIDE = "/opt/orchard/npm", "/opt/orchard/node"
_NODE_MAJOR = 20
_GET_NODE = "install Node.js 20 or newer with npm: from nodejs.org, or your system's packages nodejs and npm"


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmTree:
    """Packages in a directory of their own in the user's cache."""

    packages: tuple[str, ...]
    """Each `NAME@VERSION`, exactly."""

    async def path(self) -> Path:
        """The directory; made when it is not there, by one process however many ask.

        No script of any package is run. Raises ConfigError when npm is missing or fails.
        """
        return await asyncio.to_thread(self._path)

    @property
    def place(self) -> Path:
        """Where it is, or will be."""
        return (
            program_cache()
            / "npm"
            / "+".join(package.replace("/", "-").lstrip("@") for package in self.packages)
        )

    def _path(self) -> Path:
        target = self.place
        if target.is_dir():
            return target
        with making(target) as lock:
            if not target.is_dir():
                self._install(target, lock)
        return target

    def _install(self, target: Path, lock: int) -> None:
        _LOG.warning("installing %s into %s, once", " ".join(self.packages), target)
        tree = target.with_name(f"{target.name}.unfinished")
        remove_tree(tree)  # what one left that was killed
        tree.mkdir(mode=0o755)
        try:
            self._run_npm(tree, lock)
            for package in self.packages:
                _check_version(tree, package)
            tree.rename(target)
        finally:
            remove_tree(tree)

    def _run_npm(self, tree: Path, lock: int) -> None:
        """npm holds the lock too: when we are killed, the next one waits for its end."""
        npm = shutil.which("npm")
        if npm is None:
            raise ConfigError(f"{self.packages[0]} is installed by npm, which is not here", hint=_GET_NODE)
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        # The CLIs' binaries are optional dependencies, which some users' settings leave out.
        command = (npm, "install", "--prefix", str(tree), "--include=optional", *quiet, *self.packages)
        try:
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_INSTALL_S,
                check=False,
                stdin=subprocess.DEVNULL,
                pass_fds=(lock,),
            )
        except subprocess.TimeoutExpired as error:
            raise ConfigError(
                f"npm did not install {self.packages[0]} within {_INSTALL_S:g} s",
                hint="see that a registry can be reached, as with `npm ping`",
            ) from error
        if ran.returncode:
            raise ConfigError(
                f"npm could not install {' '.join(self.packages)}: {ran.stderr.strip()[-1000:]}",
                hint="see that a registry can be reached, as with `npm ping`",
            )


def _check_version(tree: Path, package: str) -> None:
    """npm takes an older release, without a word, when one does not fit this Node.js."""
    name, _, version = package.rpartition("@")
    got = json.loads((tree / "node_modules" / name / "package.json").read_text())["version"]
    if got != version:
        raise ConfigError(f"npm installed {name} {got} in place of {version}", hint=_GET_NODE)


def find_program(tree: Path, pattern: str) -> str:
    """A path below a tree: `{arch}` stands for x64 or arm64, `*` for anything, and the last match counts.
    Raises ConfigError when this kind of machine has none."""
    found = sorted(tree.glob(pattern.format(arch=_ARCH.get(platform.machine(), platform.machine()))))
    if not found:
        raise ConfigError(
            f"there is no {pattern} in {tree}",
            hint="its packages are not made for this kind of machine; or remove it to install anew",
        )
    return str(found[-1].relative_to(tree))


def host_node() -> str:
    """The host's own Node.js. Raises ConfigError when there is none, or only an older one."""
    node = shutil.which("node")
    if node is None:
        raise ConfigError("this program runs on Node.js, which is not here", hint=_GET_NODE)
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    release = re.match(r"v(\d+)\.", told)
    if release is None or int(release[1]) < _NODE_MAJOR:
        raise ConfigError(f"{node} is too old: it says {told!r} of its version", hint=_GET_NODE)
    return str(Path(node).resolve())


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmProgram:
    """A program from npm as a sandbox shows it."""

    packages: tuple[str, ...]
    """As in NpmTree; the first is the program's own."""
    path: str
    """The program below the installation, as `find_program` takes it."""
    node: str = ""
    """What runs it: empty: it is a binary; `node`: the host's Node.js; else a program as above."""

    @property
    def version(self) -> str:
        """The program's own."""
        return self.packages[0].rpartition("@")[2]

    @property
    def installed(self) -> bool:
        """It need not be fetched any more."""
        return NpmTree(packages=self.packages).place.is_dir()

    async def mounts(self) -> tuple[Mount, ...]:
        """The installation and, where it is needed, the host's Node.js. Raises ConfigError."""
        node: tuple[Mount, ...] = ()
        if self.node == "node":
            node = (Mount(source=await asyncio.to_thread(host_node), target=_NODE_INSIDE),)
        tree = await NpmTree(packages=self.packages).path()
        return (Mount(source=str(tree), target=_TREE_INSIDE), *node)

    async def command(self) -> tuple[str, ...]:
        """How it is run where it is mounted. Raises ConfigError."""
        tree = await NpmTree(packages=self.packages).path()
        program = f"{_TREE_INSIDE}/{find_program(tree, self.path)}"
        if not self.node:
            return (program,)
        runner = _NODE_INSIDE if self.node == "node" else f"{_TREE_INSIDE}/{find_program(tree, self.node)}"
        return (runner, program)
