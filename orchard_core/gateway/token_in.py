"""Prompts as token ids: what was sampled is sent back as it was sampled, never tokenised again."""

from __future__ import annotations

from array import array

from orchard_core.gateway.contract import Renderer
from orchard_core.gateway.conversation import Head
from orchard_core.gateway.dialect import Request
from orchard_core.gateway.echo import same_answer


def prompt_ids(request: Request, renderer: Renderer) -> array[int]:
    """Stored ids of the call that the request continues plus its rendered suffix, else the whole rendered."""
    head = _continued(request)
    if head is None or head.tokens is None:
        return array("q", renderer.render(request.body))
    suffix = array("q", renderer.render_suffix(request.body, len(head.sent) + 1))
    last = head.tokens[-1] if head.tokens else None
    if suffix and suffix[0] == last and last in renderer.stop_ids:
        # The answer was sampled up to its stop id, which is also where the suffix begins.
        return head.tokens + suffix[1:]
    return head.tokens + suffix


def _continued(request: Request) -> Head | None:
    """The longest earlier call whose request and answer stand at the front of this request."""
    heard = request.heard
    for head in heard.full:
        if len(head.sent) >= len(heard.sent) or head.tokens is None or head.answer is None:
            continue
        if (
            head.complete
            and len(head.tokens) > head.prompt
            and same_answer(head.answer, heard.sent[len(head.sent)])
        ):
            return head
    return None
