"""MCP clients of one session that said hello, and their calls in flight."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchard_core.gateway.tools.jsonrpc import RequestId
from orchard_core.types.tool import ToolResult

PEERS = 64
"""Clients remembered. A harness may start one for each of its programs; the one longest idle is forgotten,
and says hello again as the protocol has it."""


@dataclass(slots=True, kw_only=True)
class Peer:
    """One client."""

    calls: dict[RequestId, asyncio.Task[ToolResult]] = field(default_factory=dict)
    """Its calls in flight by the request's id, for it to cancel."""

    def cancel(self, request: object) -> None:
        """`notifications/cancelled`: end that call, if it still runs."""
        work = self.calls.get(request) if isinstance(request, str | int) else None
        if work is not None:
            work.cancel()


class Peers:
    """Found by the id each was given."""

    def __init__(self) -> None:
        self._peers: OrderedDict[str, Peer] = OrderedDict()

    @property
    def names(self) -> Sequence[str]:
        """The ids known, the one longest idle first."""
        return list(self._peers)

    def greet(self) -> str:
        """The id of a new one."""
        name = secrets.token_urlsafe(16)
        self._peers[name] = Peer()
        while len(self._peers) > PEERS:
            self._peers.popitem(last=False)
        return name

    def find(self, name: str) -> Peer | None:
        """The one of that id, None when it is unknown or forgotten."""
        peer = self._peers.get(name)
        if peer is not None:
            self._peers.move_to_end(name)
        return peer

    def forget(self, name: str) -> bool:
        """It said good-bye; False for a stranger."""
        return self._peers.pop(name, None) is not None
