"""Which tasks `claw-bench:SELECT` means."""

from __future__ import annotations

import pytest
from orchard_domain_claw.select import select
from orchard_domain_claw.source import ClawTask

from orchard_core import ConfigError


def ids(tasks: list[ClawTask], terms: str) -> list[str]:
    return [task.toml.id for task in select(tasks, terms)]


def test_nothing_means_all_222(claw_tasks: list[ClawTask]) -> None:
    found = ids(claw_tasks, "")
    assert len(found) == len(set(found)) == 222
    assert found == sorted(found)


def test_domains_add_up_and_levels_narrow(claw_tasks: list[ClawTask]) -> None:
    both = select(claw_tasks, "email, calendar")
    assert {task.toml.domain for task in both} == {"email", "calendar"}
    hard = select(claw_tasks, "email,calendar,l4")
    assert {task.toml.level for task in hard} == {"L4"}
    assert {task.toml.id for task in hard} < {task.toml.id for task in both}


def test_ids_and_patterns_add_up(claw_tasks: list[ClawTask]) -> None:
    assert ids(claw_tasks, "mem-00[12],eml-003") == ["eml-003", "mem-001", "mem-002"]


def test_a_number_is_dealt_out_over_the_domains(claw_tasks: list[ClawTask]) -> None:
    assert len({task.toml.domain for task in select(claw_tasks, "14")}) == 14
    assert ids(claw_tasks, "email,3") == ["eml-001", "eml-002", "eml-003"]


@pytest.mark.parametrize(("term", "guess"), [("emial", "email"), ("eml-0001", "eml-001")])
def test_a_wrong_word_is_answered_with_the_nearest(claw_tasks: list[ClawTask], term: str, guess: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean .*{guess}"):
        select(claw_tasks, term)


def test_a_choice_without_tasks_is_refused(claw_tasks: list[ClawTask]) -> None:
    with pytest.raises(ConfigError, match="leaves no task"):
        select(claw_tasks, "L9")
