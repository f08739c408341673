"""A provider of fake sandboxes."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import weakref
from pathlib import Path

from orchard_core.errors import OrchardError, SandboxUnsupported, SnapshotMissing
from orchard_core.sandbox.furnish import check_spec, name_for
from orchard_core.testing.fakes.process import kill_marked
from orchard_core.testing.fakes.sandbox import Copier, FakeSandbox
from orchard_core.types.sandbox import Capabilities, ImageRef, NetworkMode, SandboxSpec, Snapshot

FAKE_CAPABILITIES = Capabilities(
    images=frozenset({"host"}),
    networks=frozenset({NetworkMode.NONE, NetworkMode.HOST}),
    isolated=False,
    snapshot=True,
    fork=True,
)
"""Not isolated, so that the network policy is accepted and not enforced."""


class FakeProvider:
    """Honours `orchard_core.SandboxProvider`; `fail` makes the next creations raise, in order."""

    def __init__(
        self,
        *,
        capabilities: Capabilities = FAKE_CAPABILITIES,
        fail: list[OrchardError] | None = None,
        output_limit: int = 8 << 20,
        sandbox_type: type[FakeSandbox] = FakeSandbox,
    ) -> None:
        self._capabilities = capabilities
        self._fail = fail or []
        self._output_limit = output_limit
        self._sandbox_type = sandbox_type
        self._home = Path(tempfile.mkdtemp(prefix="orchard-fake-"))
        weakref.finalize(self, shutil.rmtree, self._home, ignore_errors=True)
        self._images: dict[str, ImageRef] = {}
        self.created: list[FakeSandbox] = []
        """Every sandbox made so far, closed ones included."""

    @property
    def name(self) -> str:
        """See SandboxProvider."""
        return "fake"

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider."""
        return self._capabilities

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> FakeSandbox:
        """See SandboxProvider."""
        check_spec(spec)
        self._refuse(spec)
        sandbox_id = name_for(spec, "sandbox", {path.name for path in self._home.glob("sandboxes/*")})
        saved = None if restore is None else self._saved(spec, restore)
        if self._fail:
            raise self._fail.pop(0)
        base = self._home / "sandboxes" / sandbox_id
        for name in ("root", "home", "tmp", "runs"):
            (base / name).mkdir(parents=True)
        copier = Copier(self._save, self.create, self.discard)
        if saved is not None:
            shutil.copytree(saved, base / "root", symlinks=True, dirs_exist_ok=True)
        sandbox = self._sandbox_type(
            base, spec, self._capabilities, copier=copier, output_limit=self._output_limit
        )
        self.created.append(sandbox)
        await sandbox.mkdir(spec.workdir)
        for file in () if restore is not None else spec.files:
            await sandbox.write(file.path, file.content, mode=file.mode)
        return sandbox

    async def discard(self, snapshot: Snapshot) -> None:
        """See SandboxProvider."""
        if self._images.pop(snapshot.id, None) is not None:
            shutil.rmtree(self._home / snapshot.id, ignore_errors=True)

    async def close(self) -> None:
        """See SandboxProvider."""
        self._images.clear()
        for sandbox in self.created:
            await sandbox.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def abandon(self) -> None:
        """Do what `close` does when the event loop is gone: for fixtures that are not asynchronous."""
        for sandbox in self.created:
            kill_marked(sandbox.marker)
        shutil.rmtree(self._home, ignore_errors=True)

    def _refuse(self, spec: SandboxSpec) -> None:
        able = self._capabilities
        if spec.image.kind not in able.images:
            raise SandboxUnsupported(
                f"the fake provider takes no {spec.image.kind!r} images", hint="use image='host'"
            )
        if spec.network.mode not in able.networks:
            raise SandboxUnsupported(
                f"the fake provider has no network mode {spec.network.mode.value!r}",
                hint=f"use one of: {', '.join(sorted(able.networks))}",
            )
        if spec.user is not None:
            raise SandboxUnsupported("the fake provider cannot switch users", hint="leave `user` out")
        if spec.mounts:
            raise SandboxUnsupported("the fake provider has no mounts", hint="write files instead")

    async def _save(self, sandbox: FakeSandbox) -> Snapshot:
        if not self._capabilities.snapshot:
            raise SandboxUnsupported("this provider takes no snapshots", hint="see capabilities()")
        name = f"snapshot-{uuid.uuid4().hex[:12]}"
        shutil.copytree(sandbox.root, self._home / name, symlinks=True)
        self._images[name] = sandbox.spec.image
        files = [path for path in (self._home / name).rglob("*") if path.is_file()]
        return Snapshot(id=name, provider=self.name, size=sum(path.lstat().st_size for path in files))

    def _saved(self, spec: SandboxSpec, snapshot: Snapshot) -> Path:
        """Where its files are. Raises SnapshotMissing, SandboxUnsupported."""
        image = self._images.get(snapshot.id)
        if snapshot.provider != self.name or image is None:
            raise SnapshotMissing(
                f"there is no snapshot {snapshot.id!r} here", hint="restore with the provider that saved it"
            )
        if image != spec.image:
            raise SandboxUnsupported(
                f"{snapshot.id} was saved from the image {image}", hint="restore it under the same image"
            )
        return self._home / snapshot.id
