"""A host that forbids isolation, and a spec that cannot be had: refused with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchard_core.errors import SandboxUnavailable, SandboxUnsupported
from orchard_core.sandbox.local.bubblewrap import OLDEST, find_bwrap, version_of
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.diagnose import unavailable
from orchard_core.sandbox.local.limits import plan_limits
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.sandbox.local.state import prepare_root
from orchard_core.types.sandbox import Mount, Network, NetworkMode, SandboxSpec


def _host(root: Path, name: str, value: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value)
    return root


@pytest.mark.parametrize(
    ("file", "value", "words"),
    [
        (
            "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1\n",
            [
                "AppArmor",
                "apparmor_parser",
                "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
                "/opt/bwrap",
            ],
        ),
        (
            "proc/sys/kernel/unprivileged_userns_clone",
            "0\n",
            ["sudo sysctl kernel.unprivileged_userns_clone=1"],
        ),
        ("proc/sys/user/max_user_namespaces", "0\n", ["sudo sysctl user.max_user_namespaces="]),
        (".dockerenv", "", ["--security-opt seccomp=unconfined", "--privileged"]),
        ("nothing", "", ["without a known reason"]),
    ],
)
def test_each_obstacle_is_named_with_its_way_out(
    tmp_path: Path, file: str, value: str, words: list[str]
) -> None:
    error = unavailable("bwrap: No permissions", bwrap=Path("/opt/bwrap"), root=_host(tmp_path, file, value))
    for word in [*words, "bwrap: No permissions", "--sandbox process"]:
        assert word in str(error)


def _program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


async def test_a_host_that_forbids_namespaces_is_refused_with_bubblewraps_words(tmp_path: Path) -> None:
    refusing = _program(
        tmp_path / "bwrap",
        'test "$1" = --version && echo "bubblewrap 0.11.0" && exit\n'
        "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
    )
    provider = LocalProvider(LocalConfig(bwrap=refusing, state_dir=str(tmp_path / "s")))
    with pytest.raises(SandboxUnavailable, match="setting up uid map: Permission denied"):
        await provider.capabilities()
    with pytest.raises(SandboxUnavailable):
        await provider.create(SandboxSpec())
    assert list((tmp_path / "s/drivers").iterdir()) == []


def test_an_old_bubblewrap_is_named_when_chosen(tmp_path: Path) -> None:
    old = _program(tmp_path / "bwrap", 'echo "bubblewrap 0.8.0"')
    with pytest.raises(SandboxUnavailable, match=r"0\.8\.0"):
        find_bwrap(old)
    with pytest.raises(SandboxUnavailable, match="nothing that runs"):
        find_bwrap(str(tmp_path / "missing"))


def test_an_old_system_bubblewrap_gives_way_to_the_packaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / "bwrap", 'echo "bubblewrap 0.8.0"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = find_bwrap()
    assert found.parent != tmp_path
    assert version_of(found) >= OLDEST


def test_a_new_system_bubblewrap_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path / "bwrap", 'echo "bubblewrap 0.12"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_bwrap() == tmp_path / "bwrap"


def test_a_state_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(SandboxUnavailable, match="ORCHARD_STATE_DIR"):
        prepare_root(tmp_path / "link")


@pytest.mark.parametrize(
    "spec",
    [
        SandboxSpec(workdir="relative"),
        SandboxSpec(user="Odd Name"),
        SandboxSpec(user="99999999999"),
        SandboxSpec(ttl_s=0),
        SandboxSpec(idle_ttl_s=-1),
        SandboxSpec(env={"A=B": "x"}),
        SandboxSpec(mounts=(Mount(source="relative", target="/x"),)),
        SandboxSpec(mounts=(Mount(source="/no/such", target="/x"),)),
        SandboxSpec(mounts=(Mount(source="/dev/null", target="/x"),)),
        SandboxSpec(mounts=(Mount(source="/usr", target="/proc/x"),)),
        SandboxSpec(mounts=(Mount(source="/usr", target="/a/../"),)),
        SandboxSpec(network=Network(mode=NetworkMode.ALLOW_LIST, allow=("https://x.org",))),
    ],
    ids=lambda spec: spec.model_dump_json(exclude_defaults=True)[:60],
)
async def test_what_cannot_be_had_is_refused_and_leaves_nothing(
    provider: LocalProvider, state: Path, spec: SandboxSpec
) -> None:
    with pytest.raises(SandboxUnsupported) as refusal:
        await provider.create(spec)
    assert refusal.value.message
    assert list(state.glob("drivers/*/boxes/*")) == []


async def test_a_mount_that_bubblewrap_cannot_make_says_why(provider: LocalProvider, state: Path) -> None:
    from orchard_core.errors import SandboxCreateFailed

    with pytest.raises(SandboxCreateFailed, match="did not start"):
        await provider.create(SandboxSpec(mounts=(Mount(source="/usr", target="/etc/passwd/x"),)))
    assert list(state.glob("drivers/*/boxes/*")) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory_mb", 2**63 - 1),
        ("memory_mb", 10**400),
        ("disk_mb", 2**63 - 1),
        ("pids", 2**31),
        ("cpu", 1e300),
        ("cpu", 1e-300),
        ("cpu", float("nan")),
        ("cpu", float("inf")),
    ],
)
def test_a_limit_that_the_kernel_would_wrap_or_refuse_is_refused_first(name: str, value: float) -> None:
    spec = SandboxSpec.model_validate({name: value})
    with pytest.raises(SandboxUnsupported, match="makes no sandbox"):
        plan_limits(spec, LocalConfig(), dict.fromkeys(("memory", "cpu", "pids", "disk"), "cgroup-v1"))
