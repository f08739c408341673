"""What a model was trained on is found where it says so, and stored with the run."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from orchard_core import ConfigError, Rollout, TrainedOn
from orchard_core.rollout.store.run import open_run
from orchard_core.rollout.trained import PROVENANCE_NAME, trained_on
from orchard_core.testing import FakeModel, FakeTaskSet

from .starting import Runs, collected

CHECKPOINT = TrainedOn(harness="react", taskset="workbench:200", base_model="small", step=40)


class Trained(FakeModel):
    """A model whose checkpoint says where it comes from."""

    provenance = CHECKPOINT


def test_a_model_says_it_itself() -> None:
    assert trained_on(Trained(), "fake") == CHECKPOINT


def test_a_local_checkpoint_says_it_beside_its_weights(tmp_path: Path) -> None:
    (tmp_path / PROVENANCE_NAME).write_text(CHECKPOINT.model_dump_json())
    assert trained_on(FakeModel(), f"vllm:{tmp_path}") == CHECKPOINT


@pytest.mark.parametrize("text", ["oracle", "openai:some/model", "openai:\0", "", "x:" + "a" * 5000])
def test_a_model_that_is_no_directory_says_nothing(text: str) -> None:
    assert trained_on(FakeModel(name="fake"), text) is None


def test_a_broken_record_is_named(tmp_path: Path) -> None:
    (tmp_path / PROVENANCE_NAME).write_text('{"harnes": "react"}')
    with pytest.raises(ConfigError, match="is not a provenance record"):
        trained_on(FakeModel(), f"vllm:{tmp_path}")


async def test_it_is_stored_with_the_run(runs: Runs, tmp_path: Path) -> None:
    rollouts: AsyncGenerator[Rollout, None] = runs(FakeTaskSet.of(1), model=Trained())
    await collected(rollouts)
    assert open_run(tmp_path / "run").config.trained == CHECKPOINT
