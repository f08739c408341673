"""The dialects that the gateway serves, by path. A new one is one entry here."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from orchard_core.gateway.chat.codec import ChatCodec
from orchard_core.gateway.dialect import DialectCodec
from orchard_core.gateway.messages.codec import MessagesCodec
from orchard_core.gateway.messages.translation import MessagesTranslation
from orchard_core.gateway.responses.codec import ResponsesCodec
from orchard_core.gateway.responses.translation import ResponsesTranslation
from orchard_core.gateway.translating import TranslatingCodec
from orchard_core.types.model import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One dialect as it is served."""

    path: str
    """Where its requests are posted."""
    native: DialectCodec
    """For upstreams that speak it, and for its errors."""
    translated: DialectCodec | None = None
    """For upstreams that speak chat; None: it cannot be put into chat, or is chat."""

    def codec(self, upstream: Set[Dialect]) -> DialectCodec | None:
        """The codec towards an upstream that speaks these dialects; None when there is no way to it."""
        if self.native.dialect in upstream:
            return self.native
        return self.translated if Dialect.CHAT in upstream else None


_chat = ChatCodec()
_responses = ResponsesCodec()
_messages = MessagesCodec()

SPOKEN = (
    Spoken(path="/v1/chat/completions", native=_chat),
    Spoken(
        path="/v1/responses",
        native=_responses,
        translated=TranslatingCodec(_responses, ResponsesTranslation(), _chat),
    ),
    Spoken(
        path="/v1/messages",
        native=_messages,
        translated=TranslatingCodec(_messages, MessagesTranslation(), _chat),
    ),
)
"""All of them, chat first."""

BY_PATH: Mapping[str, Spoken] = {spoken.path: spoken for spoken in SPOKEN}


def speaker(path: str) -> DialectCodec:
    """Whose error shape a client that asks for `path` expects; chat's where nothing tells."""
    for spoken in SPOKEN:
        if path.startswith(spoken.path):
            return spoken.native
    return _chat
