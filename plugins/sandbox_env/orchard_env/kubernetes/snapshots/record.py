"""What is written down of one snapshot."""

from __future__ import annotations

import hashlib
import re

from pydantic import Field, ValidationError

from orchard_core import Record, SandboxSpec, SandboxUnsupported, SnapshotMissing

TENANT_LABEL = "orchard.dev/tenant"
_ID = re.compile(r"snapshot-[0-9a-f]{64}")


class SnapshotDamaged(SnapshotMissing):
    """What is stored is not what was saved: it was changed, cut, or is gone in part."""


class Chunk(Record):
    """One piece of the archive, stored as an object of its own."""

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the object, in hex."""
    stored: int = Field(ge=0)
    """Bytes of the object."""
    size: int = Field(ge=0, le=1 << 30)
    """Bytes of the piece."""
    packed: bool
    """The object is compressed by zstd."""


class SnapshotRecord(Record):
    """Stored under its own digest, which is the snapshot's id: who has the id knows every byte."""

    version: int = 1
    """Of this format."""
    place: str = Field(pattern=r"^[0-9a-f]{32}$")
    """Directory of its pieces."""
    image: str
    """The files make sense above this image only."""
    user: str | None
    """As in the spec: whose the files are."""
    spec: str
    """SHA-256 of the spec it was saved under, in hex."""
    created: float
    """Seconds since the epoch by the saver's clock."""
    tenant: str
    """The owner of the sandbox; empty where there are none."""
    chunks: tuple[Chunk, ...]
    """In order; joined they are the agent's archive of changes."""

    @property
    def size(self) -> int:
        """Bytes it takes in storage."""
        return sum(chunk.stored for chunk in self.chunks)

    def bytes(self) -> bytes:
        """As it is stored."""
        return self.model_dump_json().encode()

    def path_of(self, index: int) -> str:
        """Where one of its pieces lies."""
        return f"{folder_of(self.place)}/{index:06d}-{self.chunks[index].digest}"


def folder_of(place: str) -> str:
    """Where the pieces of a snapshot lie."""
    return f"data/{place}"


def id_of(stored: bytes) -> str:
    """The id of a snapshot by its record."""
    return f"snapshot-{hashlib.sha256(stored).hexdigest()}"


def path_of(snapshot_id: str) -> str:
    """Where its record lies. Raises SnapshotMissing for what is no id."""
    if not _ID.fullmatch(snapshot_id):
        raise missing(snapshot_id)
    return f"snapshots/{snapshot_id}"


def read_record(snapshot_id: str, stored: bytes) -> SnapshotRecord:
    """Raises SnapshotDamaged for a record that is not that snapshot's."""
    if id_of(stored) == snapshot_id:
        try:
            return SnapshotRecord.model_validate_json(stored)
        except ValidationError:
            pass  # saved by a version to come
    raise SnapshotDamaged(
        f"the record of {snapshot_id} is not what was saved, or of a later version",
        hint="restore another snapshot; somebody may have changed the storage",
    )


def spec_digest(spec: SandboxSpec) -> str:
    """Of a spec, without the content of its files."""
    bare = spec.model_copy(update={"files": ()})
    return hashlib.sha256(bare.model_dump_json().encode()).hexdigest()


def check_fits(record: SnapshotRecord, snapshot_id: str, spec: SandboxSpec) -> None:
    """Raises SandboxUnsupported when a spec cannot begin with these files."""
    for what, now, then in (("image", str(spec.image), record.image), ("user", spec.user, record.user)):
        if now != then:
            raise SandboxUnsupported(
                f"the snapshot {snapshot_id[:21]} was saved under another {what}: {then}",
                hint=f"give the {what} it was saved under; all else in the spec may differ",
            )


def missing(snapshot_id: str) -> SnapshotMissing:
    """Nothing of that id is there."""
    return SnapshotMissing(
        f"there is no snapshot {snapshot_id[:80]}",
        hint="it was discarded, or lies in another storage, or ended with the provider that saved it",
    )
