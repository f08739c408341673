"""How long a conversation is: as its server counted it, else estimated."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.formats.estimate import estimate_tokens
from orchard_core.types.dataset import RecordedTokens
from orchard_core.types.model import ModelCall


def token_count(
    last: ModelCall, tokens: RecordedTokens | None, messages: Sequence[str], tools: str
) -> tuple[int, bool]:
    """Tokens of a conversation whose last call is `last`, and whether its server said so itself: by ids, else
    by that call's usage. The estimate is by the size of the texts (see `formats/estimate`)."""
    if tokens is not None:
        return len(tokens.token_ids), True
    if last.usage.total:
        return last.usage.total, True
    return estimate_tokens(messages, tools), False
