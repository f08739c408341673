"""A command that runs in the sandbox while its program talks to it."""

from __future__ import annotations

import codecs
import json
import uuid
from collections.abc import Mapping

from orchard_program.sandbox import Sandbox


class Command:
    """Input goes in and standard output comes out piece by piece."""

    def __init__(
        self, sandbox: Sandbox, script: str, *, cwd: str, env: Mapping[str, str] | None = None
    ) -> None:
        """Start it. Raises SandboxRefused."""
        self._sandbox = sandbox
        self._id = uuid.uuid4().hex
        self._given = 0
        self._cursor = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.ended = False
        """There will be no more output."""
        spec = {
            "id": self._id,
            "script": script,
            "cwd": cwd,
            "stdin": "stream",
            "env": [*(env or {}).items()],
        }
        text = json.dumps(spec).encode()
        sandbox.call("POST", "/v1/exec", body=len(text).to_bytes(4, "big") + text)

    def give(self, text: str, *, end: bool = False) -> None:
        """Add to its input, and end it."""
        data = text.encode("utf-8", "replace")
        self._call("POST", "stdin", {"offset": self._given, "eof": int(end)}, data)
        self._given += len(data)

    def take(self) -> str:
        """What it wrote since the last time; bytes that are not UTF-8 are replaced."""
        if self.ended:
            return ""
        query: dict[str, str | int] = {"stream": "stdout", "cursor": self._cursor, "wait": 0}
        answer = self._sandbox.call("GET", f"/v1/exec/{self._id}/output", query)
        self._cursor = int(answer.headers["X-Orchard-Cursor"]) + len(answer.body)
        self.ended = answer.headers.get("X-Orchard-End") == "1"
        return self._decoder.decode(answer.body, final=self.ended)

    def signal(self, number: int) -> None:
        """Signal its process group."""
        self._call("POST", "signal", {"signal": number, "to": "group"})

    def kill(self) -> None:
        """End it with all that it started."""
        self._call("POST", "signal", {"signal": 9, "to": "tree"})

    def _call(self, method: str, what: str, query: Mapping[str, str | int], body: bytes = b"") -> None:
        self._sandbox.call(method, f"/v1/exec/{self._id}/{what}", query, body)
