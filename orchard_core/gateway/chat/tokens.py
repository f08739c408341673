"""Token ids and log-probabilities in chat completions, as vLLM and its kin report them.

`return_token_ids` brings `prompt_token_ids` beside the choices and `token_ids` within each choice;
`logprobs` brings one `{"token", "logprob", ...}` per sampled token in `choices[].logprobs.content`.
"""

from __future__ import annotations

from array import array
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

from orchard_core.gateway.tokens import ids

ASK = {"return_token_ids": True, "logprobs": True}
"""Fields that make such a server tell. One that the harness set itself is left as it is."""


@dataclass(slots=True)
class TokenTally:
    """Ids and log-probabilities of one answer, gathered from a whole body or piece by piece."""

    prompt: array[int] | None = None
    """Ids of the prompt."""
    completion: array[int] = field(default_factory=lambda: array("q"))
    """Sampled ids so far."""
    logprobs: array[float] = field(default_factory=lambda: array("d"))
    """Their log-probabilities so far."""
    told: bool = False
    """Ids were reported at all."""
    broken: bool = False
    """Something was not a list of ids or numbers: nothing of it is used."""

    def take(self, body: dict[str, Any], asked: Set[str]) -> bool:
        """Gather from a body, and take out what the harness did not ask for; True when it changed."""
        try:
            self._gather(body)
        except (TypeError, OverflowError, KeyError, AttributeError):
            self.broken = True
        return _strip(body, asked)

    def _gather(self, body: dict[str, Any]) -> None:
        prompt = body.get("prompt_token_ids")
        if prompt and self.prompt is None:
            self.prompt = ids(prompt)
        choices = body.get("choices")
        if not choices:
            return
        choice = choices[0]
        sampled = choice.get("token_ids")
        if sampled is not None:
            self.told = True
            self.completion.extend(ids(sampled))
        logprobs = choice.get("logprobs")
        if logprobs and logprobs.get("content"):
            self.logprobs.extend([entry["logprob"] for entry in logprobs["content"]])

    def settled(self) -> tuple[array[int] | None, array[int] | None, array[float] | None]:
        """Prompt, completion, log-probabilities; None for each that was not told or does not fit."""
        if self.broken or not self.told:
            return (None if self.broken else self.prompt), None, None
        aligned = len(self.logprobs) == len(self.completion)
        return self.prompt, self.completion, self.logprobs if aligned else None


def _strip(body: dict[str, Any], asked: Set[str]) -> bool:
    """Take out of a body what only our own fields brought."""
    changed = False
    ids_asked = "return_token_ids" in asked
    if not ids_asked and "prompt_token_ids" in body:
        del body["prompt_token_ids"]
        changed = True
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        for name, kept in (("token_ids", ids_asked), ("logprobs", "logprobs" in asked)):
            if not kept and choice.get(name) is not None:
                choice.pop(name)
                changed = True
    return changed
