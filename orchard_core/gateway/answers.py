"""From an upstream's whole reply to what is recorded of it."""

from __future__ import annotations

from array import array
from dataclasses import replace

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.contract import Renderer, UpstreamReply, UpstreamRequest
from orchard_core.gateway.dialect import Answer, DialectCodec
from orchard_core.types.model import Usage


def read_reply(codec: DialectCodec, reply: UpstreamReply) -> Answer:
    """What an upstream tells beside the body wins over the body. Raises ModelReplyMalformed."""
    answer = codec.reply(reply.body)
    if reply.usage is not None:
        answer.usage = reply.usage
    try:
        if reply.prompt_tokens is not None:
            answer.prompt = array("q", reply.prompt_tokens)
        if reply.completion_tokens is not None:
            answer.completion = array("q", reply.completion_tokens)
            answer.logprobs = None if reply.logprobs is None else array("d", reply.logprobs)
    except (TypeError, OverflowError) as error:
        raise ModelReplyMalformed(f"the model server's token ids are not numbers: {error}") from None
    if answer.logprobs is not None and len(answer.logprobs) != len(answer.completion or ()):
        raise ModelReplyMalformed(
            f"the model server reports {len(answer.completion or ())} sampled tokens but "
            f"{len(answer.logprobs)} log-probabilities",
            hint="such an answer cannot be trained on: set token_ids=off to use it as text",
        )
    return answer


def wrapped(
    reply: UpstreamReply, request: UpstreamRequest, renderer: Renderer, codec: DialectCodec, model: str
) -> UpstreamReply:
    """A token-in reply with what the gateway knows filled in: the prompt, the counts, the body."""
    prompt = reply.prompt_tokens if reply.prompt_tokens is not None else request.prompt_tokens or ()
    sampled = reply.completion_tokens
    if sampled is None:
        raise ModelReplyMalformed(
            "a token-in upstream answered without token ids",
            hint="this is a fault of the model plugin: report it to its authors",
        )
    usage = reply.usage or Usage(input=len(prompt), output=len(sampled))
    body = reply.body
    if not body:
        message = renderer.parse(sampled).decode()
        finish = _finish(message, ended=bool(sampled) and sampled[-1] in renderer.stop_ids)
        body = codec.from_message(message, model=model, finish_reason=finish, usage=usage)
    return replace(reply, body=body, prompt_tokens=prompt, usage=usage)


def _finish(message: str, *, ended: bool) -> str:
    if not ended:
        return "length"
    return "tool_calls" if '"tool_calls":' in message.replace(" ", "") else "stop"
