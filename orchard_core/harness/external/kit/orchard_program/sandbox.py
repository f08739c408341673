"""The sandbox, by its agent's protocol over plain HTTP. docs/reference/agent-protocol.md has the protocol."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

_PATIENCE_S = 90.0


class SandboxRefused(Exception):
    """The agent refused a call; `code` is the protocol's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file, as a stat or a listing shows it."""

    name: str
    """Base name; bytes that are not UTF-8 are replaced."""
    kind: str
    """`file`, `directory`, `symlink` or another."""
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the agent answered."""

    headers: Mapping[str, str]
    """Its headers."""
    body: bytes
    """The whole body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """One sandbox. Every call has a connection of its own, so threads may share it.

    Each method raises SandboxRefused, and OSError when the agent cannot be reached.
    """

    url: str
    """Address of the agent."""
    socket_path: str
    """Its Unix socket; empty: TCP."""
    token: str = field(repr=False)
    """Bearer token."""
    sandbox_id: str
    """Named in every call."""

    @classmethod
    def given(cls) -> Sandbox:
        """The one that the environment names."""
        return cls(
            url=os.environ["ORCHARD_SANDBOX_URL"],
            socket_path=os.environ["ORCHARD_SANDBOX_SOCKET"],
            token=os.environ["ORCHARD_SANDBOX_TOKEN"],
            sandbox_id=os.environ["ORCHARD_SANDBOX_ID"],
        )

    def stat(self, path: str) -> Entry | None:
        """What is there, links followed; None when nothing is."""
        try:
            return _entry(json.loads(self.call("GET", "/v1/files/stat", {"path": path, "follow": 1}).body))
        except SandboxRefused as refused:
            if refused.code in {"path_not_found", "not_a_directory"}:
                return None
            raise

    def list(self, path: str) -> list[Entry]:
        """Entries of a directory, by name."""
        lines = self.call("GET", "/v1/files/list", {"path": path}).body.splitlines()
        return sorted((_entry(json.loads(line)) for line in lines), key=lambda entry: entry.name)

    def read(self, path: str) -> bytes:
        """A whole file."""
        return self.call("GET", "/v1/files", {"path": path}).body

    def write(self, path: str, data: bytes) -> None:
        """A whole file; one that is there keeps its mode."""
        self.call("PUT", "/v1/files", {"path": path}, data)

    def call(
        self, method: str, path: str, query: Mapping[str, str | int] | None = None, body: bytes = b""
    ) -> Answer:
        """One call of the protocol."""
        headers = {"Authorization": f"Bearer {self.token}", "X-Orchard-Sandbox": self.sandbox_id}
        asked = {name: str(value).encode("utf-8", "surrogateescape") for name, value in (query or {}).items()}
        connection = self._connection()
        try:
            connection.request(method, f"{path}?{urlencode(asked, quote_via=quote)}", body, headers)
            answer = connection.getresponse()
            data = answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"the sandbox's agent broke off: {error}") from error
        finally:
            connection.close()
        if answer.status >= 400:
            said = json.loads(data)
            raise SandboxRefused(said["code"], said["message"])
        return Answer(headers=dict(answer.headers), body=data)

    def _connection(self) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        host = address.hostname or "localhost"
        connection = http.client.HTTPConnection(host, address.port, timeout=_PATIENCE_S)
        if self.socket_path:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(_PATIENCE_S)
            connection.sock.connect(self.socket_path)
        return connection


def _entry(said: Mapping[str, Any]) -> Entry:
    name = said["name"]
    text = name if isinstance(name, str) else "\N{REPLACEMENT CHARACTER}"
    return Entry(name=text, kind=said["type"], size=said.get("size", 0))
