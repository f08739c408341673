"""What real harnesses say of an answer that they could not act on is known to the filters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchard_core import DatasetRow, dry_mix, mix, open_dataset, read_rows, run_rollouts
from tests.datasets.mix.making import recipe

NO_CALL = {"text": "I think about it."}
UNKNOWN_TOOL = {"text": "I look.", "calls": [{"name": "bsh", "arguments": {"command": "ls"}}]}
GOOD = {"text": "I look.", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]}
SUBMIT = {
    "text": "Done.",
    "calls": [{"name": "bash", "arguments": {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}}],
}


async def run(tmp_path: Path, harness: str, replies: Sequence[object]) -> Path:
    """A run of one rollout, whose model gives these replies."""
    script, out = tmp_path / "replies.jsonl", tmp_path / "run"
    script.write_text("".join(f"{json.dumps(reply)}\n" for reply in replies))
    async for _ in run_rollouts("workbench:1", harness=harness, model=f"scripted:{script}", out=out):
        pass
    return out


def trained(row: DatasetRow) -> list[str]:
    """What the answers that a row trains do: the text of their calls."""
    said = json.loads(row.messages)
    return [json.dumps(message.get("tool_calls")) for message, on in zip(said, row.mask, strict=True) if on]


@pytest.mark.parametrize(
    ("harness", "bad"),
    [
        ("react", NO_CALL),
        ("react", UNKNOWN_TOOL),
        ("miniswe", NO_CALL),
        ("miniswe", UNKNOWN_TOOL),
        pytest.param("openhands", UNKNOWN_TOOL, marks=pytest.mark.slow),
    ],
)
async def test_no_row_with_an_answer_that_a_harness_could_not_act_on_is_kept(
    harness: str, bad: dict[str, object], tmp_path: Path
) -> None:
    out = await run(tmp_path, harness, (bad, GOOD, bad, bad, bad, bad))
    told = dry_mix(recipe(out, filters={"undefined_tools": False, "failed": False}))
    assert told.sources[0].dropped == {"unparsable": len(list(read_rows(out)))}


async def test_a_row_holds_beside_it_what_a_harness_sent_instead_of_its_answer(tmp_path: Path) -> None:
    out = await run(tmp_path, "miniswe", (NO_CALL, GOOD, NO_CALL))
    given_up = [row for row in read_rows(out) if row.provenance["calls"] == [0]]
    assert len(given_up) == 1
    assert "No tool calls found in the response" in json.dumps(given_up[0].metadata["sent_instead"])


async def test_a_conversation_that_went_on_after_answers_were_given_up_is_kept_and_those_are_not(
    tmp_path: Path,
) -> None:
    out = await run(tmp_path, "miniswe", (NO_CALL, GOOD, NO_CALL, GOOD, UNKNOWN_TOOL, GOOD, SUBMIT))
    made = mix(recipe(out, filters={"undefined_tools": False}), tmp_path / "set")
    assert made.made.sources[0].dropped == {"unparsable": 3}
    (kept,) = open_dataset(tmp_path / "set")
    assert kept.messages.count("Tool call error") == 3, "the words stand in it, and are about other answers"
    assert len(trained(kept)) == 4
    assert all('"bash"' in calls for calls in trained(kept))


async def test_a_conversation_that_ends_for_too_many_such_answers_is_dropped(tmp_path: Path) -> None:
    out = await run(tmp_path, "miniswe", (GOOD, NO_CALL, NO_CALL, NO_CALL))
    main = next(row for row in read_rows(out) if "#" not in row.id)
    assert main.provenance["stop"] == "malformed"
    assert "sent_instead" not in main.metadata, "nothing was sent any more"
    told = dry_mix(recipe(out))
    assert (told.rows, told.sources[0].dropped) == (0, {"unparsable": 3})
