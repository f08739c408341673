"""The prefix graph: which call continues which, told by token ids and messages and never by time.

A call continues the earlier one of whose tokens it keeps most: all of prompt and answer (an append), or all
of the prompt while the answer, still an assistant's message, is rendered with other ids (a drift).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchard_core.gateway.echo import same_answer
from orchard_core.gateway.expand import conversations, prompts
from orchard_core.types.model import ModelCall
from orchard_core.types.sample import Untrained
from orchard_core.types.trajectory import Trajectory


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One call whose sampled ids and log-probabilities are known."""

    call: ModelCall
    """The record."""
    prompt: array[int]
    """Ids of its prompt."""
    answer: array[int]
    """Sampled ids."""
    messages: Sequence[str]
    """Content hashes of its request's messages."""
    spelled: bytes = b""
    """Prompt and answer as bytes: prefixes are compared at memory speed."""
    parent: Node | None = None
    """The call it continues."""
    drifted: bool = False
    """It continues the parent with the answer rendered anew."""
    children: list[Node] = field(default_factory=list)
    """Calls that continue it, in order."""
    dropped: Untrained | None = None
    """Why no sample holds its answer."""
    next: Node | None = None
    """The child that its sample goes on with."""
    depth: int = 1
    """Calls on the longest chain that starts here."""

    @property
    def index(self) -> int:
        """Order of arrival."""
        return self.call.index


def graph(trajectory: Trajectory) -> list[Node]:
    """All calls with known tokens, linked, in order. Raises RecordCorrupt."""
    nodes = _nodes(trajectory)
    for place, node in enumerate(nodes):
        _link(trajectory, node, nodes[:place])
    _drop(nodes)
    for node in reversed(nodes):
        _choose_next(node)
    return nodes


def _nodes(trajectory: Trajectory) -> list[Node]:
    messages, asked = conversations(trajectory), prompts(trajectory)
    nodes = []
    for call in trajectory.calls:
        sampled = call.completion_tokens
        if call.index not in asked or not sampled or len(call.logprobs or ()) != len(sampled):
            continue
        prompt, answer = asked[call.index], array("q", sampled)
        spelled = (prompt + answer).tobytes()
        nodes.append(
            Node(call=call, prompt=prompt, answer=answer, messages=messages[call.index], spelled=spelled)
        )
    return nodes


def _link(trajectory: Trajectory, node: Node, earlier: Sequence[Node]) -> None:
    best: tuple[int, bool, bool, int] | None = None
    for other in earlier:
        if _cancelled(other):
            continue
        rank = _rank(trajectory, other, node)
        if rank is not None and (best is None or rank > best):
            best, node.parent, node.drifted = rank, other, not rank[1]
    if node.parent is not None:
        node.parent.children.append(node)


def _rank(trajectory: Trajectory, other: Node, node: Node) -> tuple[int, bool, bool, int] | None:
    """How well `node` continues `other`: tokens kept, whether exactly, whether the answer is sent back."""
    whole = len(other.prompt) + len(other.answer)
    if whole <= len(node.prompt) and node.spelled.startswith(other.spelled):
        return whole, True, True, other.index
    kept = len(other.prompt)
    if kept >= len(node.prompt) or node.prompt[:kept] != other.prompt:
        return None
    count = len(other.messages)
    if not other.messages or not node.messages:
        echoed = node.prompt[kept] == other.answer[0]
        return (kept, False, True, other.index) if echoed else None
    if count >= len(node.messages) or node.messages[:count] != other.messages:
        return None
    echo = trajectory.messages[node.messages[count]]
    if echo.role != "assistant":
        return None
    answer = trajectory.messages.get(other.call.response or "")
    return kept, False, answer is not None and same_answer(answer.raw, echo.raw), other.index


def _drop(nodes: Sequence[Node]) -> None:
    """Say of each answer that no sample will hold why that is so."""
    for node in nodes:
        if _cancelled(node):
            node.dropped = Untrained.CANCELLED
        elif not node.children and (node.call.error is not None or node.call.finish_reason == "length"):
            node.dropped = Untrained.CUT
    same: dict[tuple[bytes, tuple[str, ...]], list[Node]] = {}
    for node in nodes:
        if node.dropped is None:
            same.setdefault((node.prompt.tobytes(), tuple(node.messages)), []).append(node)
    for group in same.values():
        used = [node for node in group if node.children] or group[-1:]
        for node in group:
            if node not in used:
                node.dropped = Untrained.RETRIED


def _choose_next(node: Node) -> None:
    kept = [child for child in node.children if child.dropped is None]
    if kept:
        node.next = max(kept, key=lambda child: (child.depth, not child.drifted, -child.index))
        node.depth = 1 + node.next.depth


def _cancelled(node: Node) -> bool:
    return node.call.error is not None and node.call.error.kind == "Cancelled"
