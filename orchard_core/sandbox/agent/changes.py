"""What has changed in a sandbox since its agent began, as a tar stream, and back into another sandbox."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass

from orchard_core.sandbox.agent.link import JSON_MAX, AgentLink
from orchard_core.sandbox.agent.understood import understood

_APPLY_S = 600.0
_FIRST_S = 120.0
"""Seconds until the first byte: the agent may have to walk over a large tree before it comes to a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesApplied:
    """What was made of an archive."""

    entries: int
    """Files, directories, links and pipes that it brought."""
    removed: int
    """Paths that it took away."""
    bytes: int
    """Content of its files."""
    unowned: int
    """Entries whose owner the agent had no right to give them; they have the agent's own."""


class AgentChanges:
    """The calls for snapshots where the provider has no layers. They need the root token."""

    def __init__(self, link: AgentLink) -> None:
        self._link = link

    async def changes(self, *, exclude: Sequence[str] = ()) -> AsyncGenerator[bytes, None]:
        """An uncompressed tar of all that changed, with owners, modes, links and attributes.

        What was deleted is in it when the agent was started with a baseline. `exclude` are absolute paths
        that are left out with all below them. Stop what runs before: a file that is written meanwhile may be
        torn. Never unpack it by any other way than `apply_changes`.
        """
        query = {"exclude": tuple(exclude)}
        async with self._link.open("GET", "/v1/changes", query, patience=_FIRST_S) as answer:
            async for piece in answer.pieces():
                yield piece

    async def apply_changes(self, data: AsyncIterable[bytes]) -> ChangesApplied:
        """Make the changes of another sandbox of the same image here, before anything runs.

        Raises ArchiveEscape for an archive that touches what is not the sandbox's own, FileDenied for what
        the agent may not write; the sandbox is then of no use.
        """
        async with self._link.open("PUT", "/v1/changes", None, data, patience=_APPLY_S) as answer:
            said = await answer.read(JSON_MAX)
        with understood():
            return ChangesApplied(**json.loads(said))
