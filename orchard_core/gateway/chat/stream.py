"""Putting a streamed chat completion together while it passes."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from orchard_core.errors import ModelReplyMalformed, ModelUnavailable
from orchard_core.gateway.chat.tokens import TokenTally
from orchard_core.gateway.dialect import Answer
from orchard_core.gateway.faults import Fault, openai_body
from orchard_core.gateway.json_text import JsonFault, ascii_text, dumps, dumps_ascii, loads
from orchard_core.gateway.sse import framed
from orchard_core.gateway.usage import chat_usage
from orchard_core.types.model import Usage

DONE = framed(b"[DONE]")


class ChatAssembler:
    """One streamed answer. Text is gathered in lists: a long answer costs no quadratic joining."""

    def __init__(self, asked: Set[str], *, usage_wanted: bool) -> None:
        self._asked = asked
        self._usage_wanted = usage_wanted
        self._texts: dict[str, list[str]] = {}
        self._others: dict[str, object] = {}
        self._calls: dict[int, _Call] = {}
        self._tokens = TokenTally()
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._started = False

    def feed(self, payload: bytes) -> bytes | None:
        """One event: gather from it, and hand on what the harness asked for."""
        passed = self.take(payload)
        return None if passed is None else framed(passed)

    def end(self) -> bytes:
        """The mark that nothing more comes."""
        return DONE

    def failed(self, fault: Fault) -> bytes:
        """OpenAI's error as the last event."""
        return framed(openai_body(fault))

    def take(self, payload: bytes) -> bytes | None:
        """The same as `feed`, with the data of the event as it is."""
        try:
            chunk = loads(payload)
            if not isinstance(chunk, dict):
                raise JsonFault("an event's data must be an object")
            if chunk.get("error"):
                raise ModelUnavailable(
                    f"the model server reported an error in mid-stream: {_words(chunk['error'])}"
                )
            return self._take(chunk, payload)
        except (JsonFault, TypeError, LookupError, AttributeError, ValueError) as fault:
            raise ModelReplyMalformed(
                f"an event of the model server's stream is not a completion chunk: {fault}",
                hint="the stream was cut or changed on its way: try again, or call without stream",
            ) from None

    def _take(self, chunk: dict[str, Any], payload: bytes) -> bytes | None:
        changed = self._tokens.take(chunk, self._asked)
        usage = chat_usage(chunk.get("usage"))
        if usage is not None:
            self._usage = usage
        choices = chunk.get("choices")
        if choices:
            self._choice(choices[0])
        elif "usage" in chunk and not self._usage_wanted:
            return None
        return dumps(chunk) if changed else payload

    def _choice(self, choice: dict[str, Any]) -> None:
        self._started = True
        if choice.get("finish_reason"):
            self._finish = ascii_text(str(choice["finish_reason"]))
        for key, value in (choice.get("delta") or {}).items():
            if key == "tool_calls":
                for call in value or ():
                    self._calls.setdefault(int(call.get("index") or 0), _Call()).take(call)
            elif key != "role" and isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
            elif isinstance(value, list) and isinstance(held := self._others.get(key), list):
                held.extend(value)
            elif value is not None:
                self._others[key] = value

    def answer(self) -> Answer:
        """What has come so far."""
        prompt, completion, logprobs = self._tokens.settled()
        return Answer(
            message=self._message() if self._started else None,
            finish_reason=self._finish,
            usage=self._usage,
            prompt=prompt,
            completion=completion,
            logprobs=logprobs,
        )

    def _message(self) -> str:
        message: dict[str, object] = {"role": "assistant", "content": None}
        message |= self._others
        message |= {key: "".join(parts) for key, parts in self._texts.items()}
        if self._calls:
            message["tool_calls"] = [self._calls[index].whole() for index in sorted(self._calls)]
        return dumps_ascii(message)


class _Call:
    """One tool call in pieces."""

    def __init__(self) -> None:
        self.fields: dict[str, object] = {"type": "function"}
        self.function: dict[str, object] = {}
        self.arguments: list[str] = []

    def take(self, piece: dict[str, Any]) -> None:
        """Ids and names come once; arguments come in pieces."""
        for key, value in piece.items():
            if key == "id":
                self.fields[key] = _text(value) or self.fields.get(key, "")
            elif key not in ("index", "function") and value is not None and value != "":
                self.fields[key] = value
        for key, value in (piece.get("function") or {}).items():
            if key == "arguments":
                self.arguments.append(_text(value))
            elif value is not None and value != "":
                self.function[key] = value

    def whole(self) -> dict[str, object]:
        """The call as an unstreamed answer would show it."""
        function = {**self.function, "arguments": "".join(self.arguments)}
        ordered = {"id": self.fields.get("id", ""), **self.fields}
        return {**ordered, "function": function}


def _text(piece: object) -> str:
    if piece is not None and not isinstance(piece, str):
        raise TypeError(f"a piece of a call is {type(piece).__name__}, not text")
    return piece or ""


def _words(error: object) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)[:500]
