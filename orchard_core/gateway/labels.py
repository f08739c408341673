"""What each thread of a rollout is: main, fork or side."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.gateway.kinds import asked_by
from orchard_core.gateway.threads import Node, asks_again, thread_of
from orchard_core.types.sample import SampleLabel
from orchard_core.types.trajectory import Trajectory


def label_threads(trajectory: Trajectory, starts: Sequence[Node]) -> dict[int, SampleLabel]:
    """Labels by the index of each thread's first call; `starts` are those calls, in order.

    The main thread starts from the first request that is not a side call, so that a harness which begins by
    asking for a title does not make that its main thread; and from the next one where a harness asks again
    with more words and without the answer, as some do when they could not understand it.
    """
    roots = [start for start in starts if start.parent is None]
    nodes = [node for start in starts for node in thread_of(start)]
    before = {root.index: [node for node in nodes if node.index < root.index] for root in roots}
    sides = {root.index for root in roots if _is_side(trajectory, root, roots, before[root.index])}
    main = next((root for root in roots if root.index not in sides), None)
    for root in roots:
        if main is not None and root.index not in sides and asks_again(main, root):
            main = root
    if main is None and roots:
        main = max(roots, key=lambda root: (root.call.tools is not None, len(root.prompt), -root.index))
    labels = {}
    for start in starts:
        if start is main:
            labels[start.index] = SampleLabel.MAIN
        elif start.index in sides:
            labels[start.index] = SampleLabel.SIDE
        else:
            labels[start.index] = SampleLabel.FORK
    return labels


def _is_side(trajectory: Trajectory, root: Node, roots: Sequence[Node], earlier: Sequence[Node]) -> bool:
    """One call that nothing follows and that shares no beginning with another thread, nor was asked for
    by one."""
    if any(child.dropped is None for child in root.children) or len(roots) == 1:
        return False
    if any(_share(trajectory, root, other) for other in roots if other is not root):
        return False
    return asked_by(trajectory, root, earlier) is None


def _share(trajectory: Trajectory, one: Node, other: Node) -> bool:
    """Whether two requests begin alike. A system prompt alone is a beginning only with the same tools."""
    if not one.messages or not other.messages:
        return bool(one.prompt and other.prompt and one.prompt[0] == other.prompt[0])
    if one.messages[0] != other.messages[0]:
        return False
    if one.call.tools == other.call.tools or one.messages[1:2] == other.messages[1:2]:
        return True
    return trajectory.messages[one.messages[0]].role not in ("system", "developer")
