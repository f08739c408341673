"""What we write is held against Harbor's validator; what Harbor's models write is given back."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchard_core import (
    AnswerSpan,
    DatasetCorrupt,
    DatasetRow,
    FormatUnsupported,
    RecordedTokens,
    load_format,
)
from orchard_core.testing.suites.format_rows import awkward_rows, plain_rows, row, talk
from orchard_core.types.sample import SampleLabel

from .environments import python_with, run
from .talks import PICTURE, PNG, Fields, messages, rows, same

VALIDATE = """
import json, pathlib, sys
from harbor.utils.trajectory_validator import TrajectoryValidator
faults = {}
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.json")):
    validator = TrajectoryValidator()
    if not validator.validate(path):
        faults[str(path)] = validator.get_errors()
print(json.dumps(faults))
"""
EXAMPLE = """
import json, sys
from harbor.models.trajectories import (
    Agent, ContentPart, FinalMetrics, ImageSource, Metrics, Observation, ObservationResult, Step,
    SubagentTrajectoryRef, ToolCall, Trajectory,
)
below = Trajectory(
    trajectory_id="below", agent=Agent(name="helper", version="1"),
    steps=[Step(step_id=1, source="user", message="look"), Step(step_id=2, source="agent", message="seen")],
)
whole = Trajectory(
    schema_version=sys.argv[2], session_id="s", agent=Agent(
        name="terminus", version="2.0", model_name="m",
        tool_definitions=[{"type": "function", "function": {"name": "f"}}],
        extra={"mode": "json"},
    ),
    notes="made by hand", continued_trajectory_ref="next.json", extra={"reward": 1.0},
    final_metrics=FinalMetrics(total_cost_usd=0.5, total_prompt_tokens=7),
    subagent_trajectories=[below],
    steps=[
        Step(step_id=1, source="system", message="be good", timestamp="2026-01-01T00:00:00Z"),
        Step(step_id=2, source="user", message=[
            ContentPart(type="text", text="what is this?"),
            ContentPart(type="image", source=ImageSource(media_type="image/png", path="images/a.png")),
        ]),
        Step(
            step_id=3, source="agent", model_name="other", message="I look", reasoning_content="hm",
            reasoning_effort="high",
            tool_calls=[
                ToolCall(tool_call_id="c1", function_name="f", arguments={"x": [1, 2.5, None]},
                         extra={"timeout": 3}),
                ToolCall(tool_call_id="c2", function_name="f", arguments={}),
            ],
            observation=Observation(results=[
                ObservationResult(source_call_id="c1", content="one", extra={"score": 1}),
                ObservationResult(source_call_id="c2", content=None, subagent_trajectory_ref=[
                    SubagentTrajectoryRef(trajectory_id="below"),
                ]),
            ]),
            metrics=Metrics(
                prompt_tokens=3, completion_tokens=2, cost_usd=0.25, prompt_token_ids=[1, 2, 3],
                completion_token_ids=[4, 5], logprobs=[-0.5, -0.25],
            ),
            llm_call_count=1, extra={"a": 1},
        ),
        Step(step_id=4, source="agent", message="", llm_call_count=0,
             observation=Observation(results=[ObservationResult(content="out")])),
        Step(step_id=5, source="agent", message="done", is_copied_context=True),
    ],
)
print(json.dumps(whole.to_json_dict()))
"""


@pytest.fixture(scope="session")
def harbor() -> Path:
    """The interpreter that has Harbor's models."""
    return python_with("harbor", "3.12")


def faults(harbor: Path, folder: Path) -> dict[str, list[str]]:
    """What Harbor says of every file below."""
    found: dict[str, list[str]] = json.loads(run(harbor, VALIDATE, str(folder)))
    return found


def tokens() -> RecordedTokens:
    return RecordedTokens(
        token_ids=(1, 2, 3, 4, 5, 6, 7),
        mask=(0, 0, 1, 1, 0, 1, 1),
        logprobs=(0.0, 0.0, -0.5, -1.5, 0.0, -0.25, -2.0),
        answers=(AnswerSpan(message=2, start=2, stop=4), AnswerSpan(message=4, start=5, stop=7)),
    )


def test_every_file_that_is_written_is_valid(harbor: Path, tmp_path: Path) -> None:
    pictured: list[Fields] = [
        {"role": "user", "content": [{"type": "text", "text": "see"}, PICTURE]},
        *talk()[2:],
    ]
    fork = row(9, talk("fork"), id="row-9#1", rollout="row-9", label=SampleLabel.FORK)
    given_rows = [
        *plain_rows(),
        *awkward_rows(),
        row(8, pictured),
        row(9, talk()),
        fork,
        row(10, talk(), tokens=tokens()),
    ]
    atif = load_format("atif")
    assert atif.write(given_rows, tmp_path / "out") == len(given_rows)
    assert faults(harbor, tmp_path / "out") == {}
    assert len(list((tmp_path / "out").rglob("*.atif.json"))) == len(given_rows) - 1
    assert [same(item) for item in atif.read(tmp_path / "out")] == [same(item) for item in given_rows]


@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(rows(messages()), min_size=150, max_size=150))
def test_whatever_was_said_is_valid(harbor: Path, tmp_path: Path, drawn: list[DatasetRow]) -> None:
    out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    load_format("atif").write(drawn, out)
    assert faults(harbor, out) == {}


def test_the_validator_is_heard(harbor: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text('{"schema_version": "ATIF-v1.8", "steps": []}')
    assert len(faults(harbor, tmp_path)) == 1


def test_pictures_lie_beside_the_trajectory(tmp_path: Path) -> None:
    said: list[Fields] = [
        {"role": "user", "content": [PICTURE, PICTURE]},
        {"role": "assistant", "content": "a dot"},
    ]
    load_format("atif").write([row(0, said)], tmp_path / "out")
    assert [path.read_bytes() for path in (tmp_path / "out" / "images").iterdir()] == [PNG]
    assert b"base64" not in (tmp_path / "out" / "00000" / "000.atif.json").read_bytes()


def test_one_file_has_no_place_for_pictures(tmp_path: Path) -> None:
    said: list[Fields] = [{"role": "user", "content": [PICTURE]}, {"role": "assistant", "content": "a dot"}]
    with pytest.raises(FormatUnsupported, match="to a directory"):
        load_format("atif").write([row(0, said)], tmp_path / "one.json")
    assert list(tmp_path.iterdir()) == []


def test_a_picture_outside_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(PNG)
    folder = tmp_path / "given"
    folder.mkdir()
    for number, path in enumerate(("../secret.png", str(tmp_path / "secret.png"))):
        part = {"type": "image", "source": {"media_type": "image/png", "path": path}}
        document = {
            "schema_version": "ATIF-v1.8",
            "agent": {"name": "a", "version": "1"},
            "steps": [{"step_id": 1, "source": "user", "message": [part]}],
        }
        (folder / f"{number}.json").write_text(json.dumps(document))
    assert all(
        base64.b64encode(PNG).decode() not in item.messages for item in load_format("atif").read(folder)
    )


def test_token_ids_stand_with_their_steps(tmp_path: Path) -> None:
    load_format("atif", prompt_ids=True).write([row(0, talk(), tokens=tokens())], tmp_path / "one.json")
    steps = json.loads((tmp_path / "one.json").read_text())["steps"]
    told = [step["metrics"] for step in steps if step["source"] == "agent"]
    assert [metrics["completion_token_ids"] for metrics in told] == [[3, 4], [6, 7]]
    assert [metrics["logprobs"] for metrics in told] == [[-0.5, -1.5], [-0.25, -2.0]]
    assert [metrics["prompt_token_ids"] for metrics in told] == [[1, 2], [1, 2, 3, 4, 5]]


VERSIONS = [f"ATIF-v1.{minor}" for minor in range(9)]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_harbor_writes_is_given_back(harbor: Path, tmp_path: Path, version: str) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(PNG)
    text = run(harbor, EXAMPLE, "", version)
    (tmp_path / "trajectory.json").write_text(text)
    atif = load_format("atif")
    main, below = atif.read(tmp_path)
    assert (main.harness, main.model, below.harness, below.label) == (
        "terminus",
        "m",
        "helper",
        SampleLabel.FORK,
    )
    said = json.loads(main.messages)
    assert [message["role"] for message in said] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert said[1]["content"][1] == PICTURE
    assert main.mask == (0, 0, 1, 0, 0, 0, 0, 0), "no inference, and a copy: neither is trained"
    atif.write([main, below], tmp_path / "again")
    (written,) = (tmp_path / "again").rglob("*.atif.json")
    assert faults(harbor, tmp_path / "again") == {}
    again = json.loads(written.read_text())
    (image,) = (tmp_path / "again" / "images").iterdir()
    assert again["steps"][1]["message"][1]["source"]["path"] == f"../images/{image.name}"
    again["steps"][1]["message"][1]["source"]["path"] = "images/a.png"
    assert again == json.loads(text)


def test_the_ids_of_all_steps_become_the_rows(tmp_path: Path) -> None:
    load_format("atif", prompt_ids=True).write([row(0, talk(), tokens=tokens())], tmp_path / "one.json")
    document = json.loads((tmp_path / "one.json").read_text())
    del document["extra"]
    (tmp_path / "theirs.json").write_text(json.dumps(document))
    (read,) = load_format("atif").read(tmp_path / "theirs.json")
    assert read.tokens == tokens()
    assert (read.token_count, read.token_count_exact) == (7, True)


def test_members_that_atif_does_not_know_go_under_extra(harbor: Path, tmp_path: Path) -> None:
    document = {
        "schema_version": "ATIF-v1.6",
        "session_id": "s",
        "agent": {"name": "a", "version": "1", "mood": "good"},
        "steps": [{"step_id": 1, "source": "user", "message": "hi", "colour": "red"}],
        "invented": [1],
    }
    (tmp_path / "trajectory.json").write_text(json.dumps(document))
    load_format("atif").write(load_format("atif").read(tmp_path), tmp_path / "again")
    (written,) = (tmp_path / "again").rglob("*.json")
    assert faults(harbor, tmp_path / "again") == {}
    again = json.loads(written.read_text())
    assert again["extra"] == {"invented": [1]}
    assert again["agent"]["extra"] == {"mood": "good"}
    assert again["steps"][0]["extra"] == {"colour": "red"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schema_version": "ATIF-v2.0"}, "schema_version"),
        ({"schema_version": 1}, "schema_version"),
        ({"agent": None}, "agent"),
        ({"agent": {"name": 3, "version": "1"}}, "agent.name"),
        ({"steps": "none"}, "steps"),
        ({"steps": [{"step_id": 2, "source": "user", "message": "x"}]}, "steps[0].step_id"),
        ({"steps": [{"step_id": 1, "source": "robot", "message": "x"}]}, "steps[0].source"),
        ({"steps": [{"step_id": 1, "source": "user", "message": 5}]}, "steps[0].message"),
        (
            {"steps": [{"step_id": 1, "source": "agent", "message": "", "tool_calls": [{"id": "c"}]}]},
            "steps[0].tool_calls[0].arguments",
        ),
        ({"subagent_trajectories": [{"schema_version": "x"}]}, "subagent_trajectories[0].schema_version"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_field_is_named(tmp_path: Path, change: dict[str, object], field: str) -> None:
    sound = {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "a", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "x"}],
    }
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps({**sound, **change}))
    with pytest.raises(DatasetCorrupt) as fault:
        list(load_format("atif").read(path))
    assert (fault.value.path, fault.value.row, fault.value.field) == (str(path), 0, field)
