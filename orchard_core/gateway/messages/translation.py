"""The messages dialect in terms of chat completions."""

from __future__ import annotations

from collections.abc import Mapping

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import EventTranslator, Translated
from orchard_core.gateway.messages.answering import answer_of
from orchard_core.gateway.messages.asking import ask_chat
from orchard_core.gateway.messages.streaming import MessagesEvents


class MessagesTranslation:
    """Honours `Translation`."""

    def request(self, body: bytes, conversation: Conversation) -> Translated:
        """A request as chat. Raises JsonFault."""
        return ask_chat(body, conversation)

    def reply(self, body: bytes, notes: Mapping[str, object]) -> bytes:
        """A whole completion as a whole answer."""
        return answer_of(body, notes)

    def events(self, notes: Mapping[str, object]) -> EventTranslator:
        """For one streamed answer."""
        return MessagesEvents(notes)
