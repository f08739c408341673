"""Container images made of a root file system, without a registry and without Docker."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from layout import PAUSE, Layout
from shell import run

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def load_image(layout: Layout, root: Path, name: str, entry: Sequence[str] = ()) -> None:
    """Give the node an image whose files are those of a tar or a directory. Raises Failed."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        layer = folder / "layer.tar"
        if root.is_dir():
            with tarfile.open(layer, "w") as archive:
                archive.add(root, arcname=".", filter=_as_root)
        else:
            shutil.copy(root, layer)
        packed = _pack(folder, layer, name, entry)
        run("ctr", "-a", layout.socket, "-n", "k8s.io", "images", "import", packed)


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _pack(folder: Path, layer: Path, name: str, entry: Sequence[str]) -> Path:
    """A `docker save` archive: containerd reads it."""
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": [_PATH], "Entrypoint": list(entry) or None},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    packed = folder / "image.tar"
    with tarfile.open(packed, "w") as archive:
        for part in ("manifest.json", "config.json", "layer.tar"):
            archive.add(folder / part, arcname=part)
    return packed


def busybox_root(folder: Path) -> Path:
    """A small root file system: every applet of a static busybox, two users, a writable /tmp."""
    root = folder / "busybox"
    for name in ("bin", "etc", "tmp", "root", "home", "var/tmp", "usr/bin"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "var/tmp").chmod(0o1777)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", root / "bin/busybox")
    for applet in run(root / "bin/busybox", "--list").split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    (root / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/sh\n"
    )
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    return root


def load_pause(layout: Layout) -> None:
    """The image that holds a pod's namespaces: busybox, asleep."""
    with tempfile.TemporaryDirectory() as temporary:
        root = busybox_root(Path(temporary))
        load_image(layout, root, PAUSE, ["/bin/sleep", "2147483647"])


def load_test_images(layout: Layout, injector: Path | None, version: str) -> None:
    """What the tests' pods run: `busybox:1.36`, and the injector when an agent was built."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        load_image(layout, busybox_root(folder), "docker.io/library/busybox:1.36", ["/bin/sh"])
        if injector is not None:
            root = folder / "injector"
            root.mkdir()
            shutil.copy(injector, root / "orchard-agent")
            (root / "orchard-agent").chmod(0o555)
            load_image(layout, root, f"docker.io/orchard/injector:{version}", ["/orchard-agent"])
