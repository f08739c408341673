"""Which of the agent's calls go through the service. What is not here does not: tokens and the agent's end
belong to the service."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchard_env.service.seams import Scope, Work

RUN_ID = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]{1,128}"
"""What a run's id looks like in a path here: nothing that means something else in one."""

RAW = "raw"
"""No call of the agent: a bare connection to it, for programs that hold a token of their own."""

_QUICK_S = 30.0
_POLL_S = 90.0  # the agent waits up to 60 seconds
_SLOW_S = 600.0
_DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """One call of the agent's protocol."""

    method: str
    """HTTP method."""
    path: re.Pattern[str]
    """The whole path as it is sent, percent-encoding and all."""
    scope: Scope = Scope.USE
    """What a key needs for it."""
    work: Work = Work.TRANSFER
    """Which queue it waits in."""
    patience_s: float = _POLL_S
    """How long the answer may take to begin, once the request is sent."""
    repeat: bool = False
    """Sending it twice does no harm."""
    upgrade: str = ""
    """The protocol that the connection becomes, for a call that travels in a WebSocket."""


def _call(
    method: str,
    path: str,
    scope: Scope = Scope.USE,
    work: Work = Work.TRANSFER,
    *,
    patience_s: float = _POLL_S,
    repeat: bool = False,
    upgrade: str = "",
) -> AgentCall:
    return AgentCall(
        method=method,
        path=re.compile(path),
        scope=scope,
        work=work,
        patience_s=patience_s,
        repeat=repeat,
        upgrade=upgrade,
    )


_READ, _USE, _LIGHT, _EXEC = Scope.READ, Scope.USE, Work.LIGHT, Work.EXEC
_RUN = f"/v1/exec/{RUN_ID}"

CALLS: tuple[AgentCall, ...] = (
    _call("GET", "/v1/health", _READ, _LIGHT, patience_s=_QUICK_S),
    _call("GET", "/v1/metrics", _READ, _LIGHT, patience_s=_QUICK_S, repeat=True),
    _call("POST", "/v1/exec", _USE, _EXEC, repeat=True),
    _call("GET", "/v1/exec", _READ, _LIGHT, repeat=True),
    _call("GET", _RUN, _READ, _LIGHT, repeat=True),
    _call("GET", f"{_RUN}/output", _READ, _LIGHT, repeat=True),
    _call("POST", f"{_RUN}/stdin", _USE, _LIGHT, patience_s=_DAY_S, repeat=True),
    _call("POST", f"{_RUN}/signal", _USE, _LIGHT, patience_s=_QUICK_S),
    _call("POST", f"{_RUN}/resize", _USE, _LIGHT, patience_s=_QUICK_S, repeat=True),
    _call("POST", f"{_RUN}/hangup", _USE, _LIGHT, repeat=True),
    _call("GET", "/v1/files", _READ, repeat=True),
    _call("PUT", "/v1/files", _USE, repeat=True),
    _call("DELETE", "/v1/files", _USE, patience_s=_SLOW_S),
    _call("GET", "/v1/files/stat", _READ, _LIGHT, repeat=True),
    _call("GET", "/v1/files/list", _READ, repeat=True),
    _call("POST", "/v1/files/mkdir", _USE, _LIGHT),
    _call("POST", "/v1/files/move", _USE, patience_s=_SLOW_S),
    _call("GET", "/v1/tree", _READ),
    _call("PUT", "/v1/tree", _USE, patience_s=_SLOW_S),
    _call("POST", "/v1/kill", _USE, _LIGHT, repeat=True),
    _call("GET", f"{_RUN}/pty", _USE, upgrade="orchard-pty"),
    _call("GET", "/v1/raw", _USE, upgrade=RAW),
    _call("GET", r"/v1/forward/[0-9]{1,5}", _USE, upgrade="orchard-stream"),
    _call("POST", "/v1/tunnel", _USE, upgrade="orchard-tunnel"),
)


def find_call(method: str, path: str) -> AgentCall | None:
    """The call that a plain request is; None when it is none of those that pass."""
    for call in CALLS:
        if call.method == method and not call.upgrade and call.path.fullmatch(path):
            return call
    return None


def find_upgrade(path: str) -> AgentCall | None:
    """The call that a WebSocket to this path stands for: its method follows from the path."""
    for call in CALLS:
        if call.upgrade and call.path.fullmatch(path):
            return call
    return None


def methods_at(path: str) -> list[str]:
    """The methods that pass at a path, for the answer to another."""
    return sorted({call.method for call in CALLS if not call.upgrade and call.path.fullmatch(path)})
