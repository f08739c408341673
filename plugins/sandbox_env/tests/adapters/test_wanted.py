"""What the adapters ask a service for, and how large they are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from orchard_env.adapters.wanted import as_os_errors, enforced, image_of

from orchard_core import Capabilities, FileDenied, FileMissing, IsADirectory, SandboxSpec

from .environments import PLUGIN

ADAPTERS = sorted((PLUGIN / "orchard_env" / "adapters").glob("*.py"))
LINES = 150


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda path: path.name)
def test_an_adapter_stays_small(adapter: Path) -> None:
    counter = runpy.run_path(str(PLUGIN.parents[1] / "tools" / "plugin_lines.py"))
    assert counter["code_lines"](adapter.read_text(encoding="utf-8")) < LINES


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("host", "host"),
        ("python:3.12", "oci:python:3.12"),
        ("registry.example:5000/team/image@sha256:00", "oci:registry.example:5000/team/image@sha256:00"),
        ("rootfs:/srv/debian", "rootfs:/srv/debian"),
        ("oci:busybox", "oci:busybox"),
    ],
)
def test_an_image_is_named_as_people_name_it(name: str, image: str) -> None:
    assert str(image_of(name)) == image


def test_limits_that_nothing_enforces_are_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    wanted = SandboxSpec(cpu=2, memory_mb=512, disk_mb=1024)
    kept = enforced(wanted, Capabilities(limits={"memory": "cgroup-v2"}))
    assert (kept.cpu, kept.memory_mb, kept.disk_mb) == (None, 512, None)
    assert "limits of cpu and disk" in caplog.text
    assert enforced(kept, Capabilities(limits={"memory": "cgroup-v2"})) == kept


@pytest.mark.parametrize(
    ("ours", "pythons"),
    [
        (FileMissing("it is not there"), FileNotFoundError),
        (FileDenied("it is locked"), PermissionError),
        (IsADirectory("it is one"), IsADirectoryError),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_errors_of_files_are_pythons_own_and_name_the_file(ours: Exception, pythons: type[OSError]) -> None:
    with pytest.raises(pythons, match="a/file") as caught, as_os_errors("a/file"):
        raise ours
    assert caught.value.__cause__ is ours
