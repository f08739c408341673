"""What a user sees while a run goes on."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from orchard_core import CallFinished, PhaseStarted, RolloutFinished, RolloutStarted, RunFinished, RunStarted
from orchard_core.cli.display.live import live_view, screen
from orchard_core.cli.display.plain import PlainView
from orchard_core.cli.display.progress import Progress
from orchard_core.cli.display.watcher import Watcher
from orchard_core.types.model import Usage
from orchard_core.types.rollout import Attribution, Outcome, Phase


def started(name: str, at: float, task: str = "json-001") -> RolloutStarted:
    return RolloutStarted(rollout=name, task=task, attempt=0, at=at)


def finished(
    name: str,
    at: float,
    score: float | None = 1.0,
    *,
    will_retry: bool = False,
    outcome: Outcome = Outcome.COMPLETED,
) -> RolloutFinished:
    return RolloutFinished(
        rollout=name, task="json-001", attempt=0, outcome=outcome, attribution=Attribution.AGENT, score=score,
        usage=Usage(), cost_usd=0.0, will_retry=will_retry, at=at,
    )  # fmt: skip


def call(name: str, at: float, output: int, cost: float | None = 0.0) -> CallFinished:
    return CallFinished(rollout=name, index=0, usage=Usage(output=output), cost_usd=cost, at=at)


def progress(*events: object) -> Progress:
    made = Progress()
    for event in events:
        made.handle(event)  # type: ignore[arg-type]
    return made


def test_the_mean_reward_leaves_out_what_has_no_score_and_says_how_many() -> None:
    seen = progress(
        RunStarted(run="r", planned=4, finished=0, at=0),
        finished("a", 1, 1.0), finished("b", 2, 0.0), finished("c", 3, None, outcome=Outcome.VERIFIER_FAILED),
    )  # fmt: skip
    assert seen.mean_reward == 0.5
    assert seen.unscored == 1
    assert seen.finished == 3


def test_a_rollout_that_will_be_retried_is_not_done() -> None:
    seen = progress(
        RunStarted(run="r", planned=1, finished=0, at=0),
        started("a", 0),
        finished("a", 1, None, will_retry=True),
    )
    assert (seen.done, seen.retries, len(seen.running)) == (0, 1, 0)


def test_time_left_counts_only_this_start_of_a_resumed_run() -> None:
    seen = progress(RunStarted(run="r", planned=100, finished=80, at=0), finished("a", 5), finished("b", 10))
    assert seen.eta_s(10.0) == pytest.approx(10 / 2 * 18)


def test_nothing_is_promised_before_the_first_has_finished() -> None:
    assert progress(RunStarted(run="r", planned=3, finished=0, at=0)).eta_s(5) is None


def test_tokens_per_second_are_those_of_the_last_seconds() -> None:
    seen = progress(RunStarted(run="r", planned=1, finished=0, at=0), call("a", 1, 1000), call("a", 99, 150))
    assert seen.tokens_per_s(100.0) == pytest.approx(10.0)


def test_an_unknown_cost_is_never_shown_as_the_whole_cost() -> None:
    from orchard_core.cli.display.words import figures

    known = progress(RunStarted(run="r", planned=1, finished=0, at=0), call("a", 1, 1, 2.5))
    mixed = progress(
        RunStarted(run="r", planned=1, finished=0, at=0), call("a", 1, 1, 2.5), call("a", 2, 1, None)
    )
    unknown = progress(RunStarted(run="r", planned=1, finished=0, at=0), call("a", 1, 1, None))
    assert "$2.50" in figures(known, 3)
    assert ">=$2.50" in figures(mixed, 3)
    assert "cost unknown" in figures(unknown, 3)


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_no_line_of_the_live_screen_is_wider_than_the_terminal(width: int) -> None:
    out = Console(width=width, height=24, file=io.StringIO(), force_terminal=True, color_system=None)
    seen = progress(
        RunStarted(run="r", planned=64, finished=2, at=0),
        *[started(f"r{n}", n, task=f"a-very-long-task-name-that-goes-on-and-on-{n:03d}") for n in range(9)],
        PhaseStarted(rollout="r1", phase=Phase.AGENT, at=3),
        call("r1", 4, 12345, 0.0123), finished("r2", 5, None, outcome=Outcome.SANDBOX_FAILED),
    )  # fmt: skip
    out.print(screen("workbench:64 · react · noisy-oracle · local", seen, 10.0, out))
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert max(len(line) for line in text.splitlines()) <= width
    assert "running 8" in text


def test_the_live_screen_fits_a_low_terminal() -> None:
    out = Console(width=80, height=10, file=io.StringIO(), force_terminal=True, color_system=None)
    seen = progress(
        RunStarted(run="r", planned=64, finished=0, at=0), *[started(f"r{n}", n) for n in range(40)]
    )
    out.print(screen("title", seen, 10.0, out))
    assert len(out.file.getvalue().splitlines()) < 10  # type: ignore[attr-defined]


def test_a_hostile_task_name_cannot_reach_the_terminal() -> None:
    out = Console(width=80, height=24, file=io.StringIO(), force_terminal=True, color_system=None)
    seen = progress(
        RunStarted(run="r", planned=1, finished=0, at=0),
        started("r", 0, task="\x1b]0;owned\x07\x1b[2Jname[red]"),
    )
    out.print(screen("\x1b[2Jtitle", seen, 1.0, out))
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b]0" not in text
    assert "[2J" not in text
    assert "owned" not in text
    assert "name[red]" in text


def test_plain_lines_come_only_when_something_moved() -> None:
    stream = io.StringIO()
    view = PlainView("workbench:4", stream)
    seen = progress(RunStarted(run="r", planned=4, finished=0, at=0))
    view.show(seen, 5.0)
    view.show(seen, 10.0)
    seen.handle(finished("a", 11))
    view.show(seen, 15.0)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "workbench:4: 4 rollouts, 0 of them done before"
    assert [line.split("]")[0] for line in lines[1:]] == ["[0:05", "[0:15"]
    assert "done 1/4" in lines[-1]
    assert "\x1b" not in stream.getvalue()


def test_the_last_plain_lines_name_every_outcome() -> None:
    stream = io.StringIO()
    watcher = Watcher(PlainView("t", stream), now=lambda: 9.0)
    with watcher.showing():
        watcher(RunStarted(run="r", planned=2, finished=0, at=0))
        watcher(finished("a", 1))
        watcher(finished("b", 2, None, outcome=Outcome.MODEL_FAILED))
        watcher(RunFinished(run="r", finished=2, cancelled=False, at=3))
    assert "outcomes: completed 1, model_failed 1" in stream.getvalue()
    assert "ETA" not in stream.getvalue()


def test_the_live_view_leaves_its_last_state_and_gives_the_cursor_back() -> None:
    stream = io.StringIO()
    view = live_view("t", Console(file=stream, width=80, height=24, force_terminal=True, color_system=None))
    watcher = Watcher(view, now=lambda: 2.0)
    with watcher.showing():
        watcher(RunStarted(run="r", planned=1, finished=0, at=0))
        watcher(finished("a", 1))
    text = stream.getvalue()
    assert "done 1/1" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor is shown again"
    assert re.search(r"100%", text)
