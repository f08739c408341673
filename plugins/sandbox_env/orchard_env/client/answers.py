"""What a service answers, as the published programs read it."""

from __future__ import annotations

from typing import Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field, field_validator

from orchard_core import SandboxGone


class JobResult(BaseModel):
    """One command: how it stands, or how it ended."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    job_id: str
    """The service's name for it."""
    sandbox_id: str = ""
    """Where it runs."""
    command: str | list[str] = ""
    """What was asked for."""
    status: Literal["queued", "running", "succeeded", "failed"]
    """`failed` is an exit code that is not 0, a time-out, or an `error`."""
    stdout: str = ""
    """Standard output, decoded with replacement."""
    stderr: str = ""
    """Standard error, likewise."""
    exit_code: int | None = None
    """None until it ended; 124 with an `error` when its time ran out."""
    created_at: float = 0.0
    """When it was asked for, seconds since the epoch."""
    started_at: float | None = None
    """When it began."""
    completed_at: float | None = None
    """When it ended."""
    error: str | None = None
    """What kept it from ending by itself."""
    stdout_truncated: bool = False
    """`stdout` lacks its middle; only a service of ours says so."""
    stderr_truncated: bool = False
    """`stderr` lacks its middle; likewise."""

    @field_validator("stdout", "stderr", "command", mode="before")
    @classmethod
    def _none_yet(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("stdout_truncated", "stderr_truncated", mode="before")
    @classmethod
    def _untold(cls, value: object) -> object:
        return bool(value)

    @property
    def succeeded(self) -> bool:
        """It ended with exit code 0."""
        return self.status == "succeeded"

    @property
    def failed(self) -> bool:
        """It ended otherwise."""
        return self.status == "failed"

    @property
    def is_complete(self) -> bool:
        """It ended."""
        return self.status in ("succeeded", "failed")


class SandboxAnswer(BaseModel):
    """A sandbox as the published contract tells it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    sandbox_id: str
    """Its id."""
    namespace: str | None = None
    """Where in the cluster."""
    image: str | None = None
    """What it runs."""
    block_network: bool | None = None
    """It reaches nothing outside."""
    cpu: str | float | None = None
    """Cores."""
    memory: str | None = None
    """Memory."""
    timeout: float | None = None
    """Seconds to readiness."""
    status: str = "pending"
    """pending, ready or failed."""
    error: str | None = None
    """Why it failed, where the service says so."""
    message: str | None = None
    """Likewise."""
    warnings: list[str] = Field(default_factory=list)
    """What is not as it was asked for."""


class FileInfo(TypedDict):
    """One entry of a directory."""

    name: str
    type: Literal["file", "directory"]
    size: int
    modified: str


class Uploaded(TypedDict):
    """What became of a file."""

    success: bool
    path: str
    size: int


class PatchResult(TypedDict):
    """What became of a patch."""

    success: bool
    stdout: str
    stderr: str
    exit_code: int | None
    error: str | None


class SandboxDeleted(SandboxGone, RuntimeError):
    """This object's sandbox was deleted through it."""
