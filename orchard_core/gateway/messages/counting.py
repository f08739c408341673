"""How many tokens a messages request has: asked of a server that counts, else estimated.

Harnesses ask before they shorten a conversation. It is no model call: it costs nothing, is not recorded and
counts against no budget.
"""

from __future__ import annotations

import math
from typing import Any

from orchard_core.errors import ModelRejected
from orchard_core.gateway import attempt
from orchard_core.gateway.contract import TokenCounter, UpstreamRequest
from orchard_core.gateway.deadline import Deadline
from orchard_core.gateway.dialect import Request
from orchard_core.gateway.json_text import dumps, loads
from orchard_core.gateway.messages.codec import MessagesCodec
from orchard_core.gateway.session import Session
from orchard_core.gateway.sizes import BYTES_PER_TOKEN, IMAGE_TOKENS
from orchard_core.types.model import Dialect

COUNT = "/v1/messages/count_tokens"
"""Where it is asked."""


async def counted(session: Session, body: bytes, headers: dict[str, str]) -> bytes:
    """The answer's body. Raises JsonFault, ModelError."""
    request = MessagesCodec().request(body, session.conversation)
    if request.model != session.endpoint.model:
        raise ModelRejected(f"this key serves the model {session.endpoint.model!r} only", status=404)
    upstream = session.upstream
    if isinstance(upstream, TokenCounter) and Dialect.MESSAGES in session.dialects:
        own = await _asked(upstream, session, request, headers)
        if own is not None:
            return own
    return dumps({"input_tokens": estimate(loads(request.body))})


async def _asked(
    upstream: TokenCounter, session: Session, request: Request, headers: dict[str, str]
) -> bytes | None:
    asked = UpstreamRequest(
        dialect=Dialect.MESSAGES,
        body=request.body,
        index=session.budget.calls,
        timeout_s=session.call_timeout_s,
        headers=headers,
    )
    try:
        with attempt.PluginBorder(asked.timeout_s), Deadline(asked.timeout_s):
            return await upstream.count_tokens(asked)
    except ModelRejected as error:
        if error.status in _NOT_THERE:
            return None
        raise


_NOT_THERE = frozenset({404, 405, 501})
"""How a server says that it does not count."""


def estimate(request: dict[str, Any]) -> int:
    """Tokens of a request's conversation and tools, by their size."""
    told = [request.get("system"), request.get("messages"), request.get("tools")]
    texts, images = _weighed(told)
    return math.ceil(texts / BYTES_PER_TOKEN) + images * IMAGE_TOKENS


def _weighed(told: object) -> tuple[int, int]:
    """Bytes of all that is said, and how many images and documents there are."""
    size, images = 0, 0
    left = [told]
    while left:
        value = left.pop()
        if isinstance(value, dict) and value.get("type") in ("image", "document"):
            images += 1
        elif isinstance(value, dict):
            left += value.values()
            size += sum(map(len, value))
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str):
            size += len(value.encode("utf-8", "surrogatepass"))
        else:
            size += len(str(value))
    return size, images
