"""Leading, and the means by which replicas agree on who does."""

from __future__ import annotations

from typing import Protocol


class Leadership(Protocol):
    """Whether this replica is the one."""

    @property
    def leading(self) -> bool:
        """Whether it may act now. False as soon as its term may have run out, by its own clock that never
        steps; so a replica that was stopped for a while does not go on where it was."""

    async def claim(self, item: str) -> bool:
        """Whether this replica, and none that led before or will lead next, may do away with the item now.
        Asked right before each deletion. False whenever that cannot be known."""

    async def start(self) -> None:
        """Stand for election from now on."""

    async def stop(self) -> None:
        """Stand no more, and let another lead at once."""


class Grip(Protocol):
    """Something that one replica holds at a time. Every method may raise SandboxUnavailable."""

    async def grasp(self, holder: str, ttl_s: float) -> int | None:
        """Take hold of it, or keep hold, for `ttl_s` from now; gives the number of the term, which grows with
        each change of holder. None while another holds it."""

    async def let_go(self, holder: str, term: int) -> None:
        """Leave it to another; fine when it is another's by now."""

    async def confirm(self, holder: str, term: int, item: str, ttl_s: float) -> bool:
        """Whether this is still the term, and nobody else's term claimed the item in the last `ttl_s`."""


class Alone:
    """Honours `Leadership` for the only replica there is."""

    leading = True

    async def claim(self, item: str) -> bool:
        """See Leadership."""
        return True

    async def start(self) -> None:
        """See Leadership."""

    async def stop(self) -> None:
        """See Leadership."""
