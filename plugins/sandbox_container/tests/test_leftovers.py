"""What a killed driver leaves is removed by the next one; nothing else is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.labels import labels_for
from orchard_sandbox_container.owner import Owner
from orchard_sandbox_container.provider import ContainerProvider

from orchard_core import SandboxGone, SandboxSpec

if TYPE_CHECKING:
    from .conftest import Podman

SPEC = SandboxSpec.model_validate({"image": "oci:busybox"})
DRIVER = """
import asyncio, sys
from orchard_core import SandboxSpec
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.provider import ContainerProvider

async def main(engine, state, then):
    provider = ContainerProvider(ContainerConfig(engine=engine, state_dir=state))
    sandbox = await provider.create(SandboxSpec(image="oci:busybox", labels={"by": "driver"}))
    run = await sandbox.start("while ! test -e go; do sleep 0.05; done; echo went")
    if then == "snapshot":
        await sandbox.snapshot()
    if then == "release":
        await provider.release()
    print(sandbox.id, run.id, flush=True)
    await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def driver(podman: Podman, state: Path, then: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A driver of its own process, and the id of the sandbox it has made."""
    command = [sys.executable, "-c", DRIVER, podman.socket, str(state), then]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[0]
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def boxes(state: Path) -> list[Path]:
    return list((state / "containers/boxes").iterdir())


async def test_the_next_driver_removes_what_a_killed_one_left(podman: Podman, tmp_path: Path) -> None:
    with driver(podman, tmp_path, "snapshot") as (process, left):
        process.send_signal(signal.SIGKILL)
        process.wait()
        provider = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path)))
        assert [one.id for one in await provider.standing()] == [left]
        async with await provider.create(SPEC) as sandbox:
            assert [one.id for one in await provider.standing()] == [sandbox.id]
            assert len(boxes(tmp_path)) == 1
        assert "orchard-snapshot" not in podman.run("images")
        await provider.close()
        assert boxes(tmp_path) == []


@pytest.mark.slow
async def test_a_killed_drivers_sandbox_can_be_adopted_first(podman: Podman, tmp_path: Path) -> None:
    with driver(podman, tmp_path) as (process, left):
        process.send_signal(signal.SIGKILL)
        process.wait()
    provider = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path)))
    sandbox = await provider.adopt(left)
    async with await provider.create(SPEC):
        assert (await sandbox.exec("touch go; echo mine now")).stdout == b"mine now\n"
    await provider.close()
    assert await provider.standing() == []
    await provider.close()


@pytest.mark.slow
async def test_what_a_driver_let_go_of_waits_to_be_adopted(podman: Podman, tmp_path: Path) -> None:
    with driver(podman, tmp_path, "release") as (process, left):
        process.send_signal(signal.SIGKILL)
        process.wait()
    provider = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path)))
    async with await provider.create(SPEC):
        await (await provider.adopt(left)).close()
        with pytest.raises(SandboxGone):
            await provider.adopt(left)
    await provider.close()


@pytest.mark.slow
async def test_a_living_drivers_sandbox_is_left_alone(podman: Podman, tmp_path: Path) -> None:
    with driver(podman, tmp_path) as (process, theirs):
        provider = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path)))
        async with await provider.create(SPEC):
            assert theirs in [one.id for one in await provider.standing()]
        await provider.close()
        process.send_signal(signal.SIGKILL)
        process.wait()
        async with await provider.create(SPEC):
            pass
        await provider.close()


def _as_it_is(owner: Owner) -> Owner:
    return owner


@pytest.mark.parametrize(
    ("change", "age_s", "step_s", "stays"),
    [
        (lambda owner: owner.model_copy(update={"user": owner.user + 1}), 9e6, 0.0, True),
        (lambda owner: owner.model_copy(update={"boot": "another"}), 0.0, 0.0, True),
        (lambda owner: owner.model_copy(update={"namespace": 1}), 0.0, 0.0, True),
        (_as_it_is, 9e6, 0.0, True),
        (lambda owner: owner.model_copy(update={"boot": "another"}), 9e6, 0.0, False),
        (lambda owner: owner.nobody(), 0.0, 0.0, True),
        (lambda owner: owner.nobody(), 9e6, 0.0, False),
        (lambda owner: owner.nobody(), 0.0, 9e6, True),
        (lambda owner: owner.nobody(), 9e6, -9e6, False),
        (lambda owner: owner.model_copy(update={"started": owner.started + 1}), 0.0, 0.0, False),
    ],
    ids=[
        "another user's", "of another boot", "of another namespace", "of a driver that lives",
        "of another boot, expired", "let go of", "let go of, expired", "let go of, the clock stepped forward",
        "let go of, expired, the clock stepped back", "of a process id that came again",
    ],
)  # fmt: skip
async def test_only_what_is_provably_ours_and_dead_goes(
    podman: Podman,
    tmp_path: Path,
    change: Callable[[Owner], Owner],
    age_s: float,
    step_s: float,
    stays: bool,
) -> None:
    labels = labels_for("left", SPEC, change(Owner.me()), "left-1")
    for name, earlier_s in (("created", age_s + step_s), ("since", age_s)):
        labels[f"orchard.dev/{name}"] = f"{float(labels[f'orchard.dev/{name}']) - earlier_s}"
    words = [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
    podman.run("create", "--name", "left", "--network", "none", *words, "busybox", "true")
    podman.run("create", "--name", "stranger", "--network", "none", "busybox", "true")
    try:
        provider = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path)))
        async with await provider.create(SPEC):
            names = {
                name
                for row in json.loads(podman.run("ps", "-a", "--format", "json"))
                for name in row["Names"]
            }
        await provider.close()
        assert ("left" in names) == stays
        assert "stranger" in names
    finally:
        podman.run("rm", "--ignore", "left", "stranger")


def test_a_process_is_known_by_more_than_its_id() -> None:
    me = Owner.me()
    assert me.is_alive()
    assert not me.is_dead()
    child = subprocess.Popen(["sleep", "600"])
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    theirs = me.model_copy(update={"pid": child.pid, "started": int(fields[19])})
    assert not theirs.is_dead()
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert theirs.is_dead(), "a zombie is dead"
    child.wait()
    assert theirs.is_dead()
