"""Whole ATIF trajectories: of a row with the further conversations of its rollout, and rows of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.atif.images import put_out
from orchard_core.formats.atif.steps import groups, messages_of, step_of
from orchard_core.formats.atif.token_ids import answer_metrics, tokens_of
from orchard_core.formats.conversation import Fields
from orchard_core.formats.fault import Fault
from orchard_core.formats.imported import CARRIED, carried_facts, imported_row, tool_texts
from orchard_core.formats.text import a_list, a_text, an_object, dumped, parsed
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.sample import SampleLabel

NOTE = "atif"
"""Where a row's metadata keeps what a file says beside the conversation."""
VERSION = "ATIF-v1.8"
"""What is written."""
_KNOWN = re.compile(r"ATIF-v1\.[0-8]")
_SAID = ("step_id", "source", "message", "reasoning_content", "tool_calls", "observation")
"""Members of a step that the messages say."""
_STEP = {
    *_SAID, "timestamp", "model_name", "reasoning_effort", "metrics", "extra", "is_copied_context",
    "llm_call_count",
}  # fmt: skip
_ROOT = {
    "schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics",
    "continued_trajectory_ref", "extra", "subagent_trajectories",
}  # fmt: skip
_AGENT = {"name", "version", "model_name", "tool_definitions", "extra"}


def trajectory_of(
    rows: Sequence[DatasetRow], save: Callable[[str, bytes], str] | None, *, prompts: bool
) -> Fields:
    """The trajectory of a rollout: its first row, the others as subagents' trajectories. Raises
    FormatUnsupported."""
    main = _trajectory(rows[0], save, prompts=prompts)
    if rows[1:]:
        main["subagent_trajectories"] = [_trajectory(row, save, prompts=prompts) for row in rows[1:]]
    return main


def rows_of(root: Any, place: str, *, rollout: str = "") -> Iterator[DatasetRow]:
    """The row of a trajectory, and of each inside it; `rollout` is of what it lies in. Raises Fault."""
    document = an_object(root, "")
    version = a_text(document.get("schema_version"), "schema_version")
    if not _KNOWN.fullmatch(version):
        raise Fault(
            f"{version[:40]!r} is no version that is known (ATIF-v1.0 to v1.8)", field="schema_version"
        )
    row = _row(document, place)
    if rollout and row.label is SampleLabel.MAIN:
        row = row.model_copy(update={"label": SampleLabel.FORK, "rollout": rollout})
    yield row
    inside = document.get("subagent_trajectories")
    for number, below in enumerate(a_list(inside, "subagent_trajectories") if inside is not None else ()):
        try:
            yield from rows_of(below, f"{place}#{number + 1}", rollout=rollout or row.rollout)
        except Fault as fault:
            raise Fault(fault.message, field=f"subagent_trajectories[{number}].{fault.field}") from None


def _trajectory(row: DatasetRow, save: Callable[[str, bytes], str] | None, *, prompts: bool) -> Fields:
    messages = parsed(row.messages)
    if not messages:
        raise FormatUnsupported(f"row {row.id} has no messages, and ATIF no empty trajectory")
    note = parsed(str(row.metadata[NOTE])) if isinstance(row.metadata.get(NOTE), str) else {}
    document: Fields = note.get("document", {})
    steps = _steps(row, messages, note.get("steps", []), prompts=prompts)
    facts = carried_facts(row, tokens=True)
    metadata = {key: value for key, value in row.metadata.items() if key != NOTE}
    facts = {
        **{key: value for key, value in facts.items() if key != "metadata"},
        **({"metadata": metadata} if metadata else {}),
    }
    agent = {
        "name": row.harness or "unknown",
        "version": str(row.provenance.get("harness") or "unknown"),
        **({"model_name": row.model} if row.model else {}),
        **({"tool_definitions": parsed(row.tools)} if row.tools != "[]" else {}),
        **_fitting(document.get("agent", {}), _AGENT),
    }
    if not document:
        return _put_out(
            save,
            row.id,
            {
                "schema_version": VERSION,
                "session_id": row.rollout,
                "trajectory_id": row.id,
                "agent": agent,
                "steps": steps,
                "final_metrics": _totals(row, steps),
                "extra": {CARRIED: facts},
            },
        )
    kept = _fitting({key: value for key, value in document.items() if key != "agent"}, _ROOT)
    theirs = {**kept, "agent": agent, "steps": steps}
    if row.label is not SampleLabel.MAIN:
        theirs.setdefault("trajectory_id", row.id)  # what lies inside another has one
    if not _unchanged(row, theirs, facts):
        theirs["extra"] = {**theirs.get("extra", {}), CARRIED: {**facts, _NOTED: True}}
    return _put_out(save, row.id, theirs)


def _put_out(save: Callable[[str, bytes], str] | None, row: str, document: Fields) -> Fields:
    for step in document["steps"]:
        put_out(step, save, row)
    return document


_NOTED = "noted"
"""Among what is carried: the file says more than we made of it."""


def _unchanged(row: DatasetRow, document: Fields, facts: Fields) -> bool:
    """Whether a file of somebody else's says of itself all that the row does."""
    again = carried_facts(_row(document, ""), tokens=True)
    free = ("id", "rollout", "label", "split", "metadata")
    left = [{key: value for key, value in told.items() if key not in free} for told in (facts, again)]
    return left[0] == left[1] and "metadata" not in facts and not row.split


def _totals(row: DatasetRow, steps: list[Fields]) -> Fields:
    spans = row.tokens.answers if row.tokens is not None else ()
    sampled = {"total_completion_tokens": sum(span.stop - span.start for span in spans)} if spans else {}
    return {"total_steps": len(steps), **sampled}


def _steps(
    row: DatasetRow,
    messages: list[Fields],
    noted: list[Fields],
    *,
    prompts: bool,
) -> list[Fields]:
    told = answer_metrics(row.tokens, prompts=prompts)
    grouped = _as_noted(messages, noted) or list(groups(messages))
    steps = []
    at = 0
    for number, group in enumerate(grouped, 1):
        rest = noted[number - 1] if len(noted) == len(grouped) else {}
        step = _as_given(group, rest) or step_of(group, number)
        if at in told:
            step["metrics"] = told[at]
        steps.append(_merged({"step_id": number, **step}, rest))
        at += len(group)
    return steps


def _as_noted(messages: list[Fields], noted: list[Fields]) -> list[list[Fields]] | None:
    """The groups that a file had, where the messages are as many as it gave."""
    sizes = [step.get("messages", 0) for step in noted]
    if not noted or sum(sizes) != len(messages):
        return None
    grouped, at = [], 0
    for size in sizes:
        grouped.append(messages[at : at + size])
        at += size
    return grouped


_GIVEN = "said"
"""In a note: the members that say the messages, where we would write others."""


def _as_given(group: list[Fields], rest: Fields) -> Fields | None:
    """What the file said, as long as the messages are still the same."""
    given = rest.get(_GIVEN)
    if not isinstance(given, dict) or messages_of(given, "") != group:
        return None
    return parsed(dumped(given))  # type: ignore[no-any-return]


def _merged(step: Fields, rest: Fields) -> Fields:
    """A step with what its file said beside the messages; what ATIF does not know goes under `extra`."""
    kept = {key: value for key, value in rest.items() if key not in ("messages", _GIVEN)}
    extra = {**_fitting(kept, _STEP).get("extra", {}), **step.get("extra", {})}
    merged = {**step, **{key: value for key, value in _fitting(kept, _STEP).items() if key != "extra"}}
    return {**merged, "extra": extra} if extra else merged


def _fitting(members: Fields, known: set[str]) -> Fields:
    """Members that ATIF knows, the others under `extra`; a null says nothing."""
    fitting = {key: value for key, value in members.items() if key in known and value is not None}
    others = {key: value for key, value in members.items() if key not in known}
    return {**fitting, "extra": {**fitting.get("extra", {}), **others}} if others else fitting


def _row(document: Fields, place: str) -> DatasetRow:
    agent = an_object(document.get("agent"), "agent")
    steps = [
        an_object(step, f"steps[{number}]")
        for number, step in enumerate(a_list(document.get("steps"), "steps"))
    ]
    messages: list[Fields] = []
    answers: list[int] = []
    untrained: list[int] = []
    noted: list[Fields] = []
    for number, step in enumerate(steps):
        if step.get("step_id") != number + 1:
            raise Fault(f"{number + 1} was expected here", field=f"steps[{number}].step_id")
        said = messages_of(step, f"steps[{number}]")
        if step.get("source") == "agent":
            answers.append(len(messages))
            if step.get("is_copied_context") is True or step.get("llm_call_count") == 0:
                untrained.append(len(messages))
        rest = {key: value for key, value in step.items() if key not in _SAID and value is not None}
        noted.append({**_without_ours(rest), **_given(step, said), "messages": len(said)})
        messages += said
    extra = document.get("extra")
    carried = extra.get(CARRIED) if isinstance(extra, dict) else None
    theirs = {} if carried is not None else _theirs(document, agent, steps, messages, answers, untrained)
    noted_too = carried is None or (isinstance(carried, dict) and carried.get(_NOTED))
    if isinstance(carried, dict):
        carried = {key: value for key, value in carried.items() if key != _NOTED}
    row = imported_row(
        messages,
        tools=tool_texts(agent.get("tool_definitions"), "agent.tool_definitions"),
        place=place,
        carried=carried,
        **theirs,
    )
    if not noted_too:
        return row
    return row.model_copy(update={"metadata": {**row.metadata, NOTE: _note(document, noted)}})


def _theirs(
    document: Fields,
    agent: Fields,
    steps: list[Fields],
    messages: list[Fields],
    answers: list[int],
    untrained: list[int],
) -> Fields:
    """What a file of somebody else's says of its row."""
    trained = set(answers) - set(untrained)
    known: Fields = {
        "mask": [
            int(place in trained and messages[place]["role"] == "assistant") for place in range(len(messages))
        ],
        "harness": a_text(agent.get("name"), "agent.name"),
        "tokens": tokens_of(steps, answers),
    }
    if isinstance(agent.get("model_name"), str):
        known["model"] = agent["model_name"]
    if isinstance(document.get("session_id"), str):
        known["rollout"] = document["session_id"]
    if known["tokens"] is not None:
        known |= {"token_count": len(known["tokens"].token_ids), "token_count_exact": True}
    return known


def _given(step: Fields, said: list[Fields]) -> Fields:
    """The members that say the messages, unless they are the ones that we would write."""
    given = {key: step[key] for key in _SAID if step.get(key) is not None and key != "step_id"}
    ours = step_of(said, 1) if said else {}
    return {} if {key: ours.get(key) for key in given} == given and "extra" not in ours else {_GIVEN: given}


def _without_ours(step: Fields) -> Fields:
    extra = step.get("extra")
    if not isinstance(extra, dict) or CARRIED not in extra:
        return step
    rest = {key: value for key, value in extra.items() if key != CARRIED}
    return {
        **{key: value for key, value in step.items() if key != "extra"},
        **({"extra": rest} if rest else {}),
    }


def _note(document: Fields, noted: list[Fields]) -> str:
    rest = {key: value for key, value in document.items() if key not in ("steps", "subagent_trajectories")}
    return dumped({"document": _without_ours(rest), "steps": noted})
