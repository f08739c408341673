"""One model of one vendor, through LiteLLM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchard_core.errors import ModelTimeout
from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.gateway.json_text import dumps
from orchard_core.gateway.litellm.arguments import arguments
from orchard_core.gateway.litellm.faults import failure
from orchard_core.gateway.litellm.library import Library
from orchard_core.gateway.litellm.thinking import Thinking
from orchard_core.gateway.openai_faults import Redactor
from orchard_core.types.model import Dialect, UpstreamMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """Whom to call, and how."""

    model: str
    """As LiteLLM names it."""
    where: str
    """What error messages call it."""
    fixed: Mapping[str, Any] = field(repr=False)
    """Arguments of every call: key, address, headers."""
    timeout_s: float
    """For a whole answer, seconds."""


class LiteLLMUpstream:
    """Honours `orchard_core.Upstream`."""

    def __init__(self, library: Library, vendor: Vendor, redact: Redactor) -> None:
        self._library = library
        self._vendor = vendor
        self._redact = redact

    @property
    def mode(self) -> UpstreamMode:
        """Vendors tell no ids."""
        return UpstreamMode.TEXT

    @property
    def dialects(self) -> frozenset[Dialect]:
        """Chat."""
        return frozenset({Dialect.CHAT})

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """The whole answer."""
        limit = self._limit(request)
        try:
            async with asyncio.timeout(limit):
                reply = await self._library.complete(**self._asked(request, limit))
        except TimeoutError:
            raise self._late(limit) from None
        except self._library.errors as error:
            raise failure(error, self._vendor.where, limit, self._redact) from None
        return UpstreamReply(body=dumps(plain(reply.model_dump(warnings=False))))

    async def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """The answer's events."""
        limit = self._limit(request)
        asked = self._asked(request, limit)
        chunks, thinking = None, Thinking()
        try:
            async with asyncio.timeout(limit):
                chunks = await self._library.complete(
                    **asked, stream=True, stream_options={"include_usage": True}
                )
                async for chunk in chunks:
                    yield dumps(plain(thinking.whole(chunk.model_dump(warnings=False))))
        except TimeoutError:
            raise self._late(limit) from None
        except self._library.errors as error:
            raise failure(error, self._vendor.where, limit, self._redact) from None
        finally:
            if chunks is not None:
                await chunks.aclose()

    def _limit(self, request: UpstreamRequest) -> float:
        return min(request.timeout_s, self._vendor.timeout_s)

    def _asked(self, request: UpstreamRequest, limit: float) -> dict[str, Any]:
        return {
            **arguments(request.body),
            **self._vendor.fixed,
            "model": self._vendor.model,
            "timeout": limit,
            "num_retries": 0,
            "max_retries": 0,
        }

    def _late(self, limit_s: float) -> ModelTimeout:
        return ModelTimeout(
            f"{self._vendor.where} did not finish its answer within {limit_s:g} s",
            limit_s=limit_s,
            hint="give the model a longer timeout_s, or ask for fewer tokens",
        )

    async def close(self) -> None:
        """Nothing: connections are LiteLLM's own, one pool for the process."""


def plain(value: object) -> object:
    """An answer of LiteLLM's without the fields that it adds and leaves empty."""
    if isinstance(value, dict):
        said = {key: plain(inner) for key, inner in value.items()}
        return {key: inner for key, inner in said.items() if key in _SHOWN or inner not in _NOTHING}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


_NOTHING: tuple[object, ...] = (None, {}, [])
_SHOWN = frozenset({"content", "choices", "delta", "finish_reason"})
"""Fields that clients expect even when they are empty."""
