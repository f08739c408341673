"""The server programs, from Debian's source package: no image registry, no download site is needed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from layout import PARTS, VERSION, Layout
from shell import run, say

_GO = "/usr/lib/go-1.19/bin"
_TOOLS = ("golang-1.19-go", "dpkg-dev", "patch", "rsync", "xz-utils", "jq")
_REFLECT = "golang-github-modern-go-reflect2-dev"


def build(layout: Layout) -> None:
    """Fetch, patch and compile; a second call does nothing. Five minutes on two cores. Raises Failed."""
    if layout.built:
        return
    work = layout.root / "build"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    say("installing the compiler")
    _with_sources()
    _apt("install", "-y", "--no-install-recommends", *_TOOLS)
    say("fetching the source")
    tree = _fetch(work)
    say(f"compiling Kubernetes {VERSION}; its words are in {layout.root / 'build.log'}")
    _compile(tree, layout)
    layout.programs.mkdir(exist_ok=True)
    for part in PARTS:
        shutil.copy(tree / "_output/local/go/bin" / part, layout.programs / part)
    shutil.rmtree(work)


def _apt(*words: str, cwd: Path | None = None) -> None:
    quiet = ("-qq", "-o", "DPkg::Lock::Timeout=600")
    run("apt-get", *quiet, *words, cwd=cwd, env={"DEBIAN_FRONTEND": "noninteractive"})


def _with_sources() -> None:
    """Let apt fetch source packages from wherever it has its binary ones."""
    listed = Path("/etc/apt/sources.list.d/debian.sources")
    if listed.exists() and "deb-src" not in (text := listed.read_text()):
        listed.write_text(text.replace("Types: deb\n", "Types: deb deb-src\n"))
    _apt("update")


def _fetch(work: Path) -> Path:
    _apt("source", "--download-only", "kubernetes", cwd=work)
    _apt("download", _REFLECT, cwd=work)
    tree = work / "kubernetes"
    tree.mkdir()
    run("tar", "-xzf", next(work.glob("kubernetes_*.orig.tar.gz")), "-C", tree, "--strip-components=1")
    run("tar", "-xJf", next(work.glob("kubernetes_*.debian.tar.xz")), "-C", tree)
    for name in (tree / "debian/patches/series").read_text().split("\n"):
        if name and not name.startswith("#"):
            run("sh", "-c", f"patch -p1 -s < debian/patches/{name} || true", cwd=tree)
    _renew_reflect(work, tree)
    return tree


def _renew_reflect(work: Path, tree: Path) -> None:
    """The vendored reflect2 crashes when compiled by Go 1.18 and newer; the packaged one does not."""
    run("dpkg", "-x", next(work.glob(f"{_REFLECT}_*.deb")), work / "reflect")
    place = "github.com/modern-go/reflect2"
    new, old = work / "reflect/usr/share/gocode/src" / place, tree / "vendor" / place
    for path in (*old.glob("*.go"), *old.glob("*.s")):
        path.unlink()
    for path in (*new.glob("*.go"), *new.glob("*.s")):
        if not path.name.endswith("_test.go"):
            shutil.copy(path, old)


def _compile(tree: Path, layout: Layout) -> None:
    major, minor, _ = VERSION.removeprefix("v").split(".")
    version = tree.parent / "version"
    version.write_text(
        f"KUBE_GIT_COMMIT=archive\nKUBE_GIT_TREE_STATE=archive\nKUBE_GIT_VERSION={VERSION}\n"
        f"KUBE_GIT_MAJOR={major}\nKUBE_GIT_MINOR={minor}\n"
    )
    home = tree / ".go/src/k8s.io"
    home.mkdir(parents=True)
    (home / "kubernetes").symlink_to("../../..")
    env = {
        "CGO_ENABLED": "0", "GOCACHE": str(tree.parent / "cache"), "GOFLAGS": "-p=2", "GOGC": "300",
        "GOPATH": str(tree / ".go"), "KUBE_GIT_VERSION_FILE": str(version),
        "PATH": f"{_GO}:{os.environ['PATH']}",
    }  # fmt: skip
    what = " ".join(f"cmd/{part}" for part in PARTS)
    run("make", f"WHAT={what}", "GOFLAGS=-p=2", cwd=tree, env=env, log=layout.root / "build.log")
