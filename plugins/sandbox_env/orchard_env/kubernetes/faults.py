"""What an API server's refusal means, as a typed error that says which right, quota or field is in the way."""

from __future__ import annotations

from orchard_core import SandboxError, SandboxExists


class ObjectExists(SandboxExists):
    """An object of this kind and name stands already, and this call did not make it."""


class ObjectMissing(SandboxError):
    """There is no such object (any more)."""


class ObjectChanged(SandboxError):
    """The object is no longer at the resourceVersion or uid that the call spoke of: read it and think again.

    `unsure`: an earlier try of the same call was lost on its way and may be what changed it.
    """

    def __init__(self, message: str, *, unsure: bool = False, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.unsure = unsure


class HistoryGone(SandboxError):
    """The server no longer knows the resourceVersion asked for (410): list again."""
