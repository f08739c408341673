"""A request and its answer over one connection, at little cost: whole answers in one write, large bodies past
the parser."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

HELD_MAX = 256 << 10
"""Bytes of a body that wait to be taken; with more, nothing is read from the client."""
RAW_MIN = 512 << 10
"""A body whose length is told goes past the parser when so much of it is still to come."""

_CLOSE = (b"connection", b"close")


class Exchange(RequestResponseCycle):
    """A write is a system call that costs more than all the rest of sending a small answer, and each copy of
    a large body costs as much as sending it."""

    _start: Any = None

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._pieces: list[bytes] = []
        self._held = 0

    def put(self, piece: bytes) -> bool:
        """A piece of the body came; True: that is enough for now."""
        self._pieces.append(piece)
        self._held += len(piece)
        self.message_event.set()
        return self._held > HELD_MAX

    async def receive(self) -> Any:
        """As uvicorn's; a piece is given as it came."""
        message = await super().receive()
        if message["type"] == "http.request":
            pieces, self._pieces, self._held = self._pieces, [], 0
            message["body"] = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return message

    async def send(self, message: Any) -> None:
        """The head of an answer that tells its length is held until its body, which ASGI allows."""
        start, self._start = self._start, None
        if start is None:
            if message["type"] == "http.response.start" and _tells_length(message["headers"]):
                self._start = message
            else:
                await super().send(message)
        elif message.get("more_body") or self.flow.write_paused or self.disconnected:
            await super().send(start)
            await super().send(message)
        else:
            self._send_whole(start, message.get("body", b"") if self.scope["method"] != "HEAD" else b"")

    def _send_whole(self, start: Any, body: bytes) -> None:
        """What uvicorn does for the two messages one after the other."""
        parts = [STATUS_LINE[start["status"]]]
        for name, value in start["headers"]:
            if b"\n" in value or b"\r" in value:
                raise RuntimeError("a header's value has more than one line")
            parts.append(b"%b: %b\r\n" % (name, value))
            self.keep_alive = self.keep_alive and (name, value) != _CLOSE
        if not self.keep_alive and _CLOSE not in start["headers"]:
            parts.append(b"connection: close\r\n")
        self.response_started = self.response_complete = True
        self.transport.write(b"".join((*parts, b"\r\n", body)))
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class ExchangeProtocol(HttpToolsProtocol):
    """uvicorn's, with exchanges of ours."""

    cycle: Exchange
    _left = 0
    """Bytes of a body of known length that are still to come."""
    _raw = False
    """They do not go through the parser."""

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._raw:
            data = self._past_the_parser(data)
            if not data:
                return
        super().data_received(data)
        self._raw = self._left >= RAW_MIN

    def _past_the_parser(self, data: bytes) -> bytes:
        """What is left of it after the body."""
        left = self._left
        if len(data) < left:
            self.on_body(data)
            return b""
        self.on_body(data[:left])
        self._raw = False
        self.parser = httptools.HttpRequestParser(self)  # the one before still waits for that body
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.on_message_complete()
        return data[left:]

    def on_headers_complete(self) -> None:
        """As uvicorn does it, with an exchange of ours."""
        if self.parser.should_upgrade() and self._should_upgrade():
            super().on_headers_complete()
            return
        self._left = _length(self.headers)
        version, url, scope = self.parser.get_http_version(), httptools.parse_url(self.url), self.scope
        path = url.path.decode("ascii")
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        scope["raw_path"] = self.root_path.encode("ascii") + url.path
        scope["query_string"] = url.query or b""
        earlier = self.cycle
        self.cycle = self._exchange(keep_alive=version != "1.0" and self.parser.should_keep_alive())
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:  # the client did not wait for the answer before
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _exchange(self, *, keep_alive: bool) -> Exchange:
        return Exchange(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )

    def on_body(self, body: bytes) -> None:
        """A piece of it came."""
        self._left -= len(body)
        if (self.parser.should_upgrade() and self._should_upgrade()) or self.cycle.response_complete:
            return
        if self.cycle.put(body):
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """The body is whole."""
        self._left = 0
        super().on_message_complete()


def _tells_length(headers: Any) -> bool:
    return any(name == b"content-length" for name, _ in headers)


def _length(headers: list[tuple[bytes, bytes]]) -> int:
    """As the one Content-Length says; 0 without one, and for a body in pieces. The parser has refused
    requests that tell it in two ways."""
    told = [value for name, value in headers if name == b"content-length"]
    pieces = any(name == b"transfer-encoding" for name, _ in headers)
    return int(told[0]) if len(told) == 1 and told[0].isdigit() and not pieces else 0
