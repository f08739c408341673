"""Conversations as hypothesis draws them: awkward texts, odd arguments, calls side by side, pictures."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import strategies as st

from orchard_core import DatasetRow
from orchard_core.types.rollout import Outcome

Fields = dict[str, Any]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PICTURE = {
    "type": "image_url",
    "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"},
}

AWKWARD = st.sampled_from([
    "", " ", "\x00", "\ud83d", "\udc00\ud83d", "\u2028\u2029\x85\ufeff", "\r\n", "<image>", "\\ud800",
    "\U0001f600", "e\u0301", '{"a": 1}', "</think>", "null",
])  # fmt: skip
texts = st.one_of(AWKWARD, st.text(st.characters(), max_size=12), st.lists(AWKWARD, max_size=4).map("".join))
"""Any text, halves of surrogate pairs among it."""
clean_texts = st.one_of(
    AWKWARD.filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
"""Texts that UTF-8 can carry."""
numbers = st.one_of(
    st.integers(),
    st.sampled_from([2**63, -(2**64), 10**40]),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(texts, below, max_size=3)),
    max_leaves=6,
)


@st.composite
def argument_texts(draw: st.DrawFn) -> str:
    """JSON as one or another writer makes it, and what models write in its place."""
    value = draw(st.dictionaries(texts, values, max_size=3))
    return draw(
        st.sampled_from(
            [
                json.dumps(value),
                json.dumps(value, separators=(",", ":")),
                json.dumps(value, indent=1),
                json.dumps([value]),
                json.dumps(value)[:-1],
                "{not json",
                "",
                '{"a": 1, "a": 2}',
                '{"a":1.0e2}',
            ]
        )
    )


calls = st.fixed_dictionaries({
    "id": st.sampled_from(["c1", "c2", ""]),
    "type": st.just("function"),
    "function": st.fixed_dictionaries(
        {"name": st.sampled_from(["bash", "", "ü"]), "arguments": argument_texts()}
    ),
})  # fmt: skip


def _parts(text: st.SearchStrategy[str], *, pictures: bool) -> st.SearchStrategy[Any]:
    text_part = text.map(lambda words: {"type": "text", "text": words})
    part = st.one_of(text_part, st.just(PICTURE)) if pictures else text_part
    return st.one_of(text, st.none(), st.lists(part, min_size=1, max_size=3))


def messages(
    text: st.SearchStrategy[str] = texts, *, pictures: bool = True, with_calls: bool = True
) -> st.SearchStrategy[list[Fields]]:
    """Conversations in which anybody may speak after anybody."""
    content = _parts(text, pictures=pictures)
    said = st.builds(
        lambda role, words: {"role": role, "content": words},
        st.sampled_from(["system", "user", "developer"]),
        content,
    )
    answer = st.builds(
        lambda words, thought, made: {
            "role": "assistant",
            "content": words,
            **({"reasoning_content": thought} if thought is not None else {}),
            **({"tool_calls": made} if made else {}),
        },
        content,
        st.one_of(st.none(), text),
        st.lists(calls, max_size=3) if with_calls else st.just([]),
    )
    result = st.builds(
        lambda words, call: {
            "role": "tool",
            "content": words,
            **({"tool_call_id": call} if call is not None else {}),
        },
        content,
        st.sampled_from(["c1", "c2", "other", None]),
    )
    one = st.one_of(said, answer, result) if with_calls else st.one_of(said, answer)
    return st.lists(one, min_size=1, max_size=6)


@st.composite
def rows(draw: st.DrawFn, talk: st.SearchStrategy[list[Fields]], *, masked: bool = True) -> DatasetRow:
    """A row of a drawn conversation, with everything beside it that travels."""
    said = draw(talk)
    answers = [message["role"] == "assistant" for message in said]
    mask = [int(answer and (not masked or draw(st.booleans()))) for answer in answers]
    count = sum(answers)
    values_ = draw(st.sampled_from([(), tuple([0.5] * (count + 1))]))
    name = f"row-{draw(st.integers(0, 10**6))}"
    return DatasetRow(
        id=name,
        rollout=name,
        messages=json.dumps(said, separators=(",", ":")),
        tools=draw(
            st.sampled_from(["[]", '[{"type":"function","function":{"name":"bash","parameters":{}}}]'])
        ),
        mask=tuple(mask),
        weights=draw(st.sampled_from([(), tuple([1.0] * len(said))])) if masked else (),
        values=values_,
        credit="judge" if values_ else "",
        token_count=draw(st.integers(0, 10**9)),
        turns=count,
        harness=draw(st.sampled_from(["", "react"])),
        model="oracle",
        task=draw(clean_texts),
        task_text=draw(clean_texts),
        tags=("a", "b"),
        outcome=draw(st.sampled_from([None, *Outcome])),
        reward=draw(st.sampled_from([None, 0.0, 0.25, 1.0])),
        split=draw(st.sampled_from(["", "train", "held-out"])),
        provenance={"run": "first", "calls": [1, 2]},
        metadata={"mine": {"deep": [1, None, "x"]}},
    )


def same(row: DatasetRow) -> DatasetRow:
    """The row with its texts in one spelling: JSON has several for one value."""
    return row.model_copy(update={"messages": spelled(row.messages), "tools": spelled(row.tools)})


def spelled(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)
