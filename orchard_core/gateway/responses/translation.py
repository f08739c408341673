"""The responses API in terms of chat completions."""

from __future__ import annotations

from collections.abc import Mapping

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import EventTranslator, Translated
from orchard_core.gateway.responses.answer import answer
from orchard_core.gateway.responses.asking import ask_chat
from orchard_core.gateway.responses.events import ResponseEvents


class ResponsesTranslation:
    """Honours `Translation`. Keeps nothing: what a chat message has beyond its items travels with them."""

    def request(self, body: bytes, conversation: Conversation) -> Translated:
        """Raises JsonFault."""
        return ask_chat(body)

    def reply(self, body: bytes, notes: Mapping[str, object]) -> bytes:
        """Raises ModelReplyMalformed."""
        return answer(body, notes)

    def events(self, notes: Mapping[str, object]) -> EventTranslator:
        """For one streamed answer."""
        return ResponseEvents(notes)
