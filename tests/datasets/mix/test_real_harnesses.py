"""What real harnesses say of an answer that they could not act on is known to the filters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import dry_mix, read_rows, run_rollouts
from tests.datasets.mix.making import recipe

NO_CALL = {"text": "I think about it."}
UNKNOWN_TOOL = {"text": "I look.", "calls": [{"name": "bsh", "arguments": {"command": "ls"}}]}
GOOD = {"text": "I look.", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]}


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
    script = tmp_path / "replies.jsonl"
    script.write_text("".join(f"{json.dumps(reply)}\n" for reply in (bad, GOOD, bad, bad, bad, bad)))
    out = tmp_path / "run"
    async for _ in run_rollouts("workbench:1", harness=harness, model=f"scripted:{script}", out=out):
        pass
    told = dry_mix(recipe(out, filters={"undefined_tools": False, "failed": False}))
    assert told.sources[0].dropped == {"unparsable": len(list(read_rows(out)))}


async def test_a_row_holds_beside_it_what_a_harness_sent_instead_of_its_answer(tmp_path: Path) -> None:
    script = tmp_path / "replies.jsonl"
    script.write_text("".join(f"{json.dumps(reply)}\n" for reply in (NO_CALL, GOOD, NO_CALL)))
    out = tmp_path / "run"
    async for _ in run_rollouts("workbench:1", harness="miniswe", model=f"scripted:{script}", out=out):
        pass
    given_up = [row for row in read_rows(out) if row.provenance["calls"] == [0]]
    assert len(given_up) == 1
    assert "No tool calls found in the response" in json.dumps(given_up[0].metadata["sent_instead"])
