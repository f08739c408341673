"""Any image, untouched: users, no shell, nothing at all, read-only; pulled, built, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.progress import ImageProgress
from orchard_sandbox_container.provider import ContainerProvider

from orchard_core import (
    ImagePullFailed,
    NoShell,
    SandboxCreateFailed,
    SandboxSpec,
    SandboxUnavailable,
    SandboxUnsupported,
    creation_steps,
)

if TYPE_CHECKING:
    from .conftest import Podman


def spec(image: str, **fields: Any) -> SandboxSpec:
    return SandboxSpec.model_validate({"image": image, **fields})


async def test_commands_run_as_the_images_own_user(provider: ContainerProvider) -> None:
    async with await provider.create(spec("oci:dev")) as sandbox:
        seen = await sandbox.exec("id -un; pwd; echo $HOME $FROM_IMAGE; : > made; stat -c %U made /workspace")
        assert seen.stdout_text.split() == ["dev", "/workspace", "/home/dev", "yes", "dev", "dev"]
        assert (await sandbox.exec("cat /root/secret || touch /etc/x")).exit_code != 0
        await sandbox.write("/workspace/theirs", b"x")
        assert (await sandbox.exec(["stat", "-c", "%u:%a", "theirs"])).stdout_text == "1000:644\n"


async def test_whoever_measures_is_told_when_the_image_was_there(provider: ContainerProvider) -> None:
    with creation_steps() as steps:
        await (await provider.create(spec("oci:dev"))).close()
    assert list(steps) == ["pulled", "placed", "answered", "furnished"]
    assert list(steps.values()) == sorted(steps.values())


async def test_the_spec_names_another_user(provider: ContainerProvider) -> None:
    async with await provider.create(spec("oci:busybox", user="dev", workdir="/deep/er/work")) as sandbox:
        assert (
            await sandbox.exec("id -un; pwd; touch x && echo mine")
        ).stdout_text == "dev\n/deep/er/work\nmine\n"
        assert (await sandbox.exec("id -u", user="root")).stdout_text == "0\n"


async def test_an_unknown_user_fails_with_the_agents_own_words(provider: ContainerProvider) -> None:
    with pytest.raises(SandboxCreateFailed, match='no user "nobody-here"'):
        await provider.create(spec("oci:busybox", user="nobody-here"))
    assert await provider.standing() == []


async def test_an_image_of_one_static_program_is_enough(
    podman: Podman, provider: ContainerProvider, tmp_path: Path
) -> None:
    rootfs = tmp_path / "scratch"
    rootfs.mkdir()
    shutil.copy(shutil.which("busybox") or "", rootfs / "cat")
    podman.image("scratch", rootfs)
    async with await provider.create(spec("oci:scratch")) as sandbox:
        assert (await sandbox.exec(["/cat"], stdin=b"no shell here")).stdout == b"no shell here"
        with pytest.raises(NoShell):
            await sandbox.exec("echo hi")
        await sandbox.write("/any/where", b"data")
        assert await sandbox.read_bytes("/any/where") == b"data"


async def test_the_images_entry_point_and_healthcheck_do_not_run(
    podman: Podman, provider: ContainerProvider
) -> None:
    build = podman.place / "entry"
    build.mkdir()
    (build / "Dockerfile").write_text('FROM busybox\nENTRYPOINT ["/bin/sh", "-c", "exit 3"]\nENV KEPT=1\n')
    async with await provider.create(spec(f"build:{build}")) as sandbox:
        assert (await sandbox.exec("echo $KEPT; cat /proc/1/cmdline | tr '\\0' ' '")).stdout_text.startswith(
            "1\n/.orchard/agent"
        )


async def test_a_read_only_root_has_places_to_write(podman: Podman, tmp_path: Path) -> None:
    config = ContainerConfig(engine=podman.socket, state_dir=str(tmp_path), read_only_root=True)
    provider = ContainerProvider(config)
    try:
        async with await provider.create(spec("oci:busybox")) as sandbox:
            seen = await sandbox.exec("touch /etc/x || echo refused; touch x /tmp/x $HOME/x && echo written")
            assert seen.stdout_text == "refused\nwritten\n"
            with pytest.raises(SandboxUnsupported):
                await sandbox.snapshot()
    finally:
        await provider.close()


@pytest.mark.slow
async def test_an_image_that_cannot_be_pulled_tells_the_engines_words(podman: Podman, tmp_path: Path) -> None:
    heard: list[ImageProgress] = []
    config = ContainerConfig(engine=podman.socket, state_dir=str(tmp_path))
    provider = ContainerProvider(config, on_progress=heard.append)
    try:
        with pytest.raises(ImagePullFailed, match=r"127\.0\.0\.1:1/none") as caught:
            await provider.create(spec("oci:127.0.0.1:1/none:v1"))
        assert "refused" in caught.value.message
        assert "login" in caught.value.hint
        with pytest.raises(ImagePullFailed):  # a failure is not remembered as the answer
            await provider.create(spec("oci:127.0.0.1:1/none:v1"))
    finally:
        await provider.close()


async def test_an_image_that_may_not_be_pulled_is_not(podman: Podman, tmp_path: Path) -> None:
    provider = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path), pull="never"))
    with pytest.raises(ImagePullFailed, match="pull=never"):
        await provider.create(spec("oci:127.0.0.1:1/none"))
    await provider.close()


@pytest.mark.slow
async def test_a_directory_is_built_once_for_what_it_holds(podman: Podman, tmp_path: Path) -> None:
    heard: list[ImageProgress] = []
    build = tmp_path / "build"
    build.mkdir()
    (build / "Dockerfile").write_text("FROM busybox\nCOPY data /data\n")
    (build / "data").write_text("one")
    config = ContainerConfig(engine=podman.socket, state_dir=str(tmp_path))
    for wanted, steps in (("one", True), ("one", False), ("two", True)):
        (build / "data").write_text(wanted)
        heard.clear()
        provider = ContainerProvider(config, on_progress=heard.append)
        async with await provider.create(spec(f"build:{build}")) as sandbox:
            assert (await sandbox.exec("cat /data")).stdout_text == wanted
        await provider.close()
        assert any("COPY" in progress.words for progress in heard) == steps


async def test_a_build_that_fails_tells_its_last_words(provider: ContainerProvider, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM busybox\nCOPY not-there /data\n")
    with pytest.raises(SandboxCreateFailed, match="not-there"):
        await provider.create(spec(f"build:{tmp_path}"))
    with pytest.raises(SandboxUnsupported, match="no Dockerfile"):
        await provider.create(spec(f"build:{tmp_path}/nowhere"))


async def test_a_task_without_an_image_needs_one_to_stand_for_it(podman: Podman, tmp_path: Path) -> None:
    config = ContainerConfig(engine=podman.socket, state_dir=str(tmp_path))
    bare, chosen = (
        ContainerProvider(config),
        ContainerProvider(config.model_copy(update={"host_image": "busybox"})),
    )
    with pytest.raises(SandboxUnsupported):
        await bare.create(SandboxSpec())
    async with await chosen.create(SandboxSpec()) as sandbox:
        assert (await sandbox.exec("echo hi")).stdout == b"hi\n"
    await bare.close()
    await chosen.close()


async def test_without_an_engine_it_is_said_what_was_tried(tmp_path: Path) -> None:
    provider = ContainerProvider(ContainerConfig(engine=f"unix://{tmp_path}/none", state_dir=str(tmp_path)))
    with pytest.raises(SandboxUnavailable, match="none") as caught:
        await provider.capabilities()
    assert "DOCKER_HOST" in caught.value.hint
    await provider.close()


async def test_limits_that_make_no_sense_are_refused(provider: ContainerProvider) -> None:
    for fields in ({"memory_mb": 0}, {"cpu": -1.0}, {"pids": 0}, {"disk_mb": 0}):
        with pytest.raises(SandboxUnsupported):
            await provider.create(spec("oci:busybox", **fields))
    with pytest.raises(SandboxUnsupported):
        await provider.create(spec("oci:busybox", mounts=[{"source": "/dev/null", "target": "/x"}]))
    with pytest.raises(SandboxUnsupported):
        await provider.create(spec("oci:busybox", mounts=[{"source": "/etc", "target": "/.orchard/x"}]))


async def test_a_mount_is_shown_read_only(provider: ContainerProvider, tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    (tmp_path / "a:b" / "file").write_text("shown")
    mounts = [{"source": str(tmp_path / "a:b"), "target": "/shown"}]
    async with await provider.create(spec("oci:busybox", mounts=mounts)) as sandbox:
        assert (
            await sandbox.exec("cat /shown/file; touch /shown/x || echo refused")
        ).stdout == b"shownrefused\n"
