"""What the list of the field's faults stands on: a service as its operators run it, and both its contracts as
one set of words, so that a case says a fault once and is asked of each."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchard_core import SandboxUnavailable, agent_binary, open_sandbox
from orchard_core.testing import skip_without_isolation

from .orchestrators import GENEROUS_S, Orchestrator, orchestrator

Command = str | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A command that has ended, as both contracts tell it."""

    exit_code: int
    """In v1 124 when it ran out of time."""
    stdout: bytes
    """What is told of it."""
    stderr: bytes
    """Likewise."""
    size: int
    """Bytes that it really wrote to its output."""
    truncated: bool
    """The middle of the output is not told."""
    limit_s: float | None
    """The limit that fired."""


class Contract:
    """How one contract says things. `at` begins the paths of sandboxes."""

    at: str

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def send(self, box: str, command: Command, **fields: Any) -> httpx.Response:
        """A command to its end. Fields: cwd, env, timeout, id."""
        raise NotImplementedError

    def start(self, box: str, command: Command, **fields: Any) -> httpx.Response:
        """A command that is left to itself."""
        raise NotImplementedError

    def end(self, box: str, run: str) -> httpx.Response:
        """How a command of that id has ended."""
        raise NotImplementedError

    def ran(self, answer: httpx.Response) -> Ran:
        """What an answer tells."""
        raise NotImplementedError

    def run(self, box: str, command: Command, **fields: Any) -> Ran:
        """Send, and read."""
        return self.ran(self.send(box, command, **fields))

    def make(self, image: str = "host", **fields: Any) -> str:
        """A sandbox that is ready."""
        raise NotImplementedError

    def write(self, box: str, path: str, data: bytes) -> httpx.Response:
        """A file."""
        raise NotImplementedError

    def read(self, box: str, path: str) -> bytes:
        """A file."""
        raise NotImplementedError

    def list(self, box: str, path: str) -> dict[bytes, str]:
        """Names in a directory, exactly, and their types."""
        raise NotImplementedError

    def delete(self, box: str) -> httpx.Response:
        """End it."""
        return self.client.delete(f"{self.at}/{box}")


class V1(Contract):
    """The published one."""

    at = "/sandboxes"

    def send(self, box: str, command: Command, **fields: Any) -> httpx.Response:
        """See Contract."""
        return self.client.post(f"/sandboxes/{box}/exec", json=_v1(command, fields, wait=True))

    def start(self, box: str, command: Command, **fields: Any) -> httpx.Response:
        """See Contract."""
        return self.client.post(f"/sandboxes/{box}/exec", json=_v1(command, fields, wait=False))

    def end(self, box: str, run: str) -> httpx.Response:
        """See Contract."""
        return self.client.get(f"/jobs/{box}.{run}/wait", params={"timeout": GENEROUS_S})

    def ran(self, answer: httpx.Response) -> Ran:
        """See Contract."""
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert told["status"] == ("succeeded" if told["exit_code"] == 0 else "failed"), told
        limit = re.search(r"timed out after ([0-9.]+) s", told["error"] or "")
        assert (limit is not None) == (told["error"] is not None) == told["timed_out"]
        return Ran(
            exit_code=told["exit_code"],
            stdout=told["stdout"].encode(),
            stderr=told["stderr"].encode(),
            size=told["stdout_size"],
            truncated=told["stdout_truncated"],
            limit_s=float(limit[1]) if limit else None,
        )

    def make(self, image: str = "host", **fields: Any) -> str:
        """See Contract."""
        asked = self.client.post("/sandboxes", json={"image": image, **fields})
        box = str(asked.raise_for_status().json()["sandbox_id"])
        told = self.client.get(f"/sandboxes/{box}/wait")
        assert told.json()["status"] == "ready", told.text
        return box

    def write(self, box: str, path: str, data: bytes) -> httpx.Response:
        """See Contract."""
        body = {"path": path, "content": base64.b64encode(data).decode()}
        return self.client.post(f"/sandboxes/{box}/files", json=body)

    def read(self, box: str, path: str) -> bytes:
        """See Contract."""
        told = self.client.get(f"/sandboxes/{box}/files", params={"path": path}).raise_for_status().json()
        return base64.b64decode(told["content"])

    def list(self, box: str, path: str) -> dict[bytes, str]:
        """See Contract."""
        answer = self.client.get(f"/sandboxes/{box}/files/list", params={"path": path})
        files = answer.raise_for_status().json()["files"]
        return {_exact(one["name"], one.get("name_b64")): one["type"] for one in files}


class V2(Contract):
    """The wider one."""

    at = "/v2/sandboxes"

    def send(self, box: str, command: Command, **fields: Any) -> httpx.Response:
        """See Contract."""
        asked = {**_v2(command, fields), "encoding": "base64"}
        return self.client.post(f"/v2/sandboxes/{box}/exec", json=asked)

    def start(self, box: str, command: Command, **fields: Any) -> httpx.Response:
        """See Contract."""
        return self.client.post(f"/v2/sandboxes/{box}/execs", json=_v2(command, fields))

    def end(self, box: str, run: str) -> httpx.Response:
        """See Contract."""
        query: dict[str, str | float] = {"wait": GENEROUS_S, "encoding": "base64"}
        return self.client.get(f"/v2/sandboxes/{box}/execs/{run}", params=query)

    def ran(self, answer: httpx.Response) -> Ran:
        """See Contract."""
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert (told["state"], told["encoding"]) == ("exited", "base64"), told
        assert told["timed_out"] == (told["timeout_s"] is not None)
        return Ran(
            exit_code=told["exit_code"],
            stdout=base64.b64decode(told["stdout"]["data"]),
            stderr=base64.b64decode(told["stderr"]["data"]),
            size=told["stdout"]["size"],
            truncated=told["stdout"]["truncated"],
            limit_s=told["timeout_s"],
        )

    def make(self, image: str = "host", **fields: Any) -> str:
        """See Contract."""
        kind, _, value = image.partition(":")
        spec = {"image": {"kind": kind, "value": value}, **fields}
        made = self.client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={"spec": spec})
        assert made.raise_for_status().json()["status"] == "ready", made.text
        return str(made.json()["id"])

    def write(self, box: str, path: str, data: bytes) -> httpx.Response:
        """See Contract."""
        return self.client.put(f"/v2/sandboxes/{box}/files", params={"path": path}, content=data)

    def read(self, box: str, path: str) -> bytes:
        """See Contract."""
        answer = self.client.get(f"/v2/sandboxes/{box}/files", params={"path": path})
        return answer.raise_for_status().content

    def list(self, box: str, path: str) -> dict[bytes, str]:
        """See Contract."""
        answer = self.client.get(f"/v2/sandboxes/{box}/files/list", params={"path": path})
        entries = answer.raise_for_status().json()["entries"]
        return {_last(one): one["kind"] for one in entries}


def _v1(command: Command, fields: Mapping[str, Any], *, wait: bool) -> dict[str, Any]:
    names = {"timeout": "timeout_seconds", "id": "exec_id"}
    asked = {names.get(name, name): value for name, value in fields.items()}
    return {"command": command, "wait": wait, **asked}


def _v2(command: Command, fields: Mapping[str, Any]) -> dict[str, Any]:
    asked = {"timeout_s" if name == "timeout" else name: value for name, value in fields.items()}
    return {"command": command, **asked}


def _exact(shown: str, exact: str | None) -> bytes:
    return shown.encode() if exact is None else base64.b64decode(exact)


def _last(entry: Mapping[str, Any]) -> bytes:
    exact = entry["path_b64"]
    return str(entry["name"]).encode() if exact is None else base64.b64decode(exact).rpartition(b"/")[2]


CONTRACTS: Mapping[str, type[Contract]] = {"v1": V1, "v2": V2}


def check_isolation() -> None:
    """Skips, with the reason, where local sandboxes cannot be had."""

    async def probe() -> None:
        async with open_sandbox("local"):
            pass

    try:
        asyncio.run(probe())
    except SandboxUnavailable as error:
        skip_without_isolation(error)


@contextmanager
def local_service(folder: Path, *flags: str) -> Iterator[Orchestrator]:
    """`orchard serve --provider local`; clients may have root directories below the folder as images."""
    check_isolation()
    config = folder / "serve.yaml"
    config.write_text(json.dumps({"service": {"drain_s": 5.0, "rootfs_allowed": [str(folder)]}}))
    with orchestrator(folder / "log", "--provider", "local", "--config", str(config), *flags) as serving:
        yield serving


def busybox_image(folder: Path) -> str:
    """A root that has BusyBox, statically linked, and nothing else: neither bash nor coreutils."""
    program = shutil.which("busybox")
    told = program and subprocess.run([program, "--list-full"], capture_output=True, text=True, check=False)
    if not program or not told or "dynamic" in _linking(program):
        pytest.skip("this case's image is made of a static busybox: apt install busybox-static")
    root = folder / "busybox"
    (root / "bin").mkdir(parents=True)
    shutil.copy(program, root / "bin" / "busybox")
    for applet in {name.rpartition("/")[2] for name in told.stdout.split()} - {"busybox"}:
        (root / "bin" / applet).symlink_to("busybox")
    return f"rootfs:{root}"


def _linking(program: str) -> str:
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return "static" if "not a dynamic executable" in told.stdout + told.stderr else "dynamic"


def scratch_image(folder: Path) -> str:
    """A root with one static program, /program, which says a number when asked for its -version."""
    root = folder / "scratch"
    root.mkdir()
    shutil.copy(agent_binary(), root / "program")
    return f"rootfs:{root}"
