"""The prefix graph: which call continues which, told by token ids and messages and never by time.

A call continues the earlier one of whose tokens it keeps most: all of prompt and answer (an append), or all
of the prompt while the answer, still an assistant's message, is rendered with other ids (a drift).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from orchard_core.gateway.expand import conversations, prompts
from orchard_core.gateway.prefixes import Prefixes
from orchard_core.gateway.token_prefixes import TokenPrefixes
from orchard_core.gateway.turns import followed, is_echo
from orchard_core.types.model import ModelCall
from orchard_core.types.sample import Untrained
from orchard_core.types.trajectory import Trajectory


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One call; its ids are empty unless they and their log-probabilities are known."""

    call: ModelCall
    """The record."""
    prompt: array[int]
    """Ids of its prompt."""
    answer: array[int]
    """Sampled ids."""
    messages: Sequence[str]
    """Content hashes of its request's messages."""
    spelled: bytes = b""
    """Prompt and answer as bytes, empty where they are not known."""
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


def graph(trajectory: Trajectory, *, every: bool = False) -> list[Node]:
    """All calls with known tokens, linked, in order. Raises RecordCorrupt.

    With `every`, those without known tokens as well: their messages alone tell what they continue, and so
    they do for a call that continues one of them.
    """
    nodes = _nodes(trajectory, every=every)
    _link_tokens(trajectory, [node for node in nodes if node.spelled])
    _link_messages(trajectory, nodes)
    for node in nodes:
        if node.parent is not None:
            node.parent.children.append(node)
    _drop(nodes)
    for node in reversed(nodes):
        _choose_next(node)
    return nodes


def asks_again(first: Node, other: Node) -> bool:
    """Whether a request is the whole of another, whose answer nothing follows, and more: so some harnesses
    go on from an answer that they could not understand."""
    count = len(first.messages)
    return first.next is None and 0 < count < len(other.messages) and other.messages[:count] == first.messages


def starts_thread(node: Node) -> bool:
    """Whether no other call's sample goes on with it."""
    return node.parent is None or node.parent.next is not node


def thread_of(start: Node) -> Iterator[Node]:
    """The calls of the thread that starts here, in order."""
    node: Node | None = start
    while node is not None:
        yield node
        node = node.next


def _nodes(trajectory: Trajectory, *, every: bool) -> list[Node]:
    messages, asked = conversations(trajectory), prompts(trajectory)
    nodes = []
    for call in trajectory.calls:
        sampled = call.completion_tokens
        said = messages[call.index]
        if call.index in asked and sampled and len(call.logprobs or ()) == len(sampled):
            prompt, answer = asked[call.index], array("q", sampled)
            spelled = (prompt + answer).tobytes()
            nodes.append(Node(call=call, prompt=prompt, answer=answer, messages=said, spelled=spelled))
        elif every:
            nodes.append(Node(call=call, prompt=array("q"), answer=array("q"), messages=said))
    return nodes


def _link_tokens(trajectory: Trajectory, nodes: Sequence[Node]) -> None:
    earlier: TokenPrefixes[tuple[Node, bool]] = TokenPrefixes()
    for node in nodes:
        prompt = memoryview(node.spelled)[: len(node.prompt) * node.prompt.itemsize].tobytes()
        for _, held in earlier.before(prompt):
            ranks = [
                (rank, other) for other, whole in held if (rank := _rank(trajectory, other, node, whole))
            ]
            if ranks:
                best, node.parent = max(ranks, key=lambda ranked: ranked[0])
                node.drifted = not best[0]
                break
        if not _cancelled(node):
            asked, whole = len(node.prompt), len(node.prompt) + len(node.answer)
            earlier.put(node.spelled, [(asked, (node, False)), (whole, (node, True))])


def _rank(trajectory: Trajectory, other: Node, node: Node, whole: bool) -> tuple[bool, bool, int] | None:
    """How well `node` continues `other`, whose whole tokens or else whose prompt stand at its front: whether
    exactly, whether the answer is sent back."""
    if whole:
        return True, True, other.index
    kept = len(other.prompt)
    if kept >= len(node.prompt):
        return None
    count = len(other.messages)
    if not other.messages or not node.messages:
        echoed = node.prompt[kept] == other.answer[0]
        return (False, True, other.index) if echoed else None
    if count >= len(node.messages) or node.messages[:count] != other.messages:
        return None
    echo = trajectory.messages[node.messages[count]]
    return (False, is_echo(trajectory, other.call, echo), other.index) if echo.role == "assistant" else None


def _link_messages(trajectory: Trajectory, nodes: Sequence[Node]) -> None:
    """Link what tokens cannot: where a call, or the one it follows, has none that are known."""
    known = {node.index: node for node in nodes}
    told: Prefixes[ModelCall] = Prefixes()
    untold: Prefixes[ModelCall] = Prefixes()
    for node in nodes:
        if node.parent is None:
            before = followed(trajectory, node.messages, untold if node.spelled else told)
            if before is not None:
                node.parent = known[before]
                echo = trajectory.messages[node.messages[len(node.parent.messages)]]
                node.drifted = not is_echo(trajectory, node.parent.call, echo)
        if node.call.response is not None and not _cancelled(node):
            told.put(node.messages, node.call)
            if not node.spelled:
                untold.put(node.messages, node.call)


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
    kept = [child for child in kept if not any(asks_again(child, other) for other in kept)]
    if kept:
        node.next = max(kept, key=lambda child: (child.depth, not child.drifted, -child.index))
        node.depth = 1 + node.next.depth


def _cancelled(node: Node) -> bool:
    return node.call.error is not None and node.call.error.kind == "Cancelled"
