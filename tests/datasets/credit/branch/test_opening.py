"""A stored run is opened again with the parts it was made with, or refused with what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchard_core import BranchOptions, CreditRefused, measure_credit, open_run, run_rollouts
from orchard_core.datasets.credit.branch.opening import RunOpener, opened_by_name
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.config import RunConfig
from orchard_core.testing.isolation import provider_or_skip


def config(**fields: object) -> RunConfig:
    named = {"taskset": "workbench:1", "harness": "react", "harness_version": "1", "model": "oracle"}
    return RunConfig.model_validate({**named, "sandbox": "local", **fields})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"taskset": "workbenhc:1"}, "workbenhc"),
        ({"taskset": "harbor:/nowhere/at/all"}, "nowhere"),
        ({"harness": "homegrown"}, "homegrown"),
        ({"model": "scripted:gone.jsonl"}, "gone.jsonl"),
        ({"sandbox": "mine"}, "mine"),
    ],
)
async def test_a_run_whose_parts_cannot_be_had_again_is_refused(
    tmp_path: Path, fields: dict[str, str], said: str
) -> None:
    (tmp_path / "run.json").write_text(config(**fields).model_dump_json())
    async with Gateway() as gateway:
        opener = RunOpener(opened_by_name(gateway))
        with pytest.raises(CreditRefused, match=said) as refusal:
            await opener.run(tmp_path)
        assert "cannot be continued" in refusal.value.message
        await opener.close()


async def test_a_run_is_opened_with_the_options_it_was_made_with(tmp_path: Path) -> None:
    recipe = {"harness": "react", "harness_options": {"stream": True}, "model": "noisy-oracle:0.25"}
    (tmp_path / "run.json").write_text(config(options={"recipe": recipe}).model_dump_json())
    async with Gateway() as gateway:
        opener = RunOpener(opened_by_name(gateway))
        opened = await opener.run(tmp_path)
        assert opened is await opener.run(tmp_path)
        assert opened.parts.model.name == "noisy-oracle"
        assert [*opened.tasks] == ["tidy-files-0"]
        await opener.close()


async def test_a_harness_that_cannot_be_replayed_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(config(harness="command:true").model_dump_json())
    async with Gateway() as gateway:
        opener = RunOpener(opened_by_name(gateway))
        with pytest.raises(CreditRefused, match="harness command cannot be replayed"):
            await opener.run(tmp_path)
        await opener.close()


async def test_a_run_is_measured_from_python(tmp_path: Path) -> None:
    await (await provider_or_skip()).close()
    run = tmp_path / "run"
    made = run_rollouts("workbench:1", harness="react", model="noisy-oracle:0.9", out=run, attempts=2)
    scores = {rollout.id: rollout.score async for rollout in made}
    assert 0.0 in scores.values()
    options = BranchOptions(k=2, max_rollouts=2)
    found = {credit.rollout: credit async for credit in measure_credit(run, branches=options)}
    assert found.keys() == scores.keys() == {entry.id for entry in open_run(run).finished()}
    for name, credit in found.items():
        assert (credit.resolved, credit.error) == (scores[name] == 1.0, "")
        assert credit.rollouts == (0 if credit.resolved else 2)
    assert [credit async for credit in measure_credit(run, branches=options)] == []
