"""The stock tools, with the sandbox for hands. One run a test: OpenHands takes seconds to start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from orchard_harness_openhands.events import ARTIFACT, parse_events, read_events
from orchard_harness_openhands.harness import OpenHands

from orchard_core import RecordCorrupt, Sandbox, StopReason, open_sandbox

from .conftest import Play, heard, play_in


def run(command: str, **more: object) -> tuple[str, dict[str, object]]:
    return "terminal", {"command": command, **more}


def edit(command: str, path: str, **more: object) -> tuple[str, dict[str, object]]:
    return "file_editor", {"command": command, "path": path, **more}


async def test_a_run_leaves_work_an_answer_and_an_event_log(
    play: Play, sandbox: Sandbox, tmp_path: Path
) -> None:
    played = await play(
        run("cd /tmp && export X=seven"),
        run("pwd > /workspace/log; echo $X >> /workspace/log"),
        edit("create", "/workspace/new.txt", file_text="a\nb\n"),
        ("task_tracker", {"command": "plan", "task_list": [{"title": "t", "status": "todo"}]}),
        ("think", {"thought": "hm"}),
    )
    assert (played.result.stop, played.result.answer) == (StopReason.SUBMITTED, "all done")
    assert (played.result.turns, played.result.malformed_calls) == (6, 0)
    assert await sandbox.read_bytes("/workspace/log") == b"/tmp\nseven\n"
    assert await sandbox.read_bytes("/workspace/new.txt") == b"a\nb\n"
    assert json.loads(played.trajectory.calls[0].params)["temperature"] == 0.5
    prompt = "".join(message.raw for message in played.trajectory.messages.values()) + "".join(
        played.trajectory.blobs[call.tools] for call in played.trajectory.calls if call.tools
    )
    assert "orchard-harness-" not in prompt, "no path of this machine is shown to the model"
    assert "Your current working directory is: /workspace" in prompt

    events = parse_events(played.result.artifacts[ARTIFACT].splitlines())
    kinds = [event.kind for event in events]
    assert (kinds.count("ActionEvent"), kinds.count("ObservationEvent")) == (6, 6)
    (tmp_path / "events").mkdir()
    for place, line in enumerate(played.result.artifacts[ARTIFACT].splitlines()):
        (tmp_path / "events" / f"event-{place:05}-{events[place].id}.json").write_bytes(line)
    assert read_events(tmp_path) == events
    (tmp_path / "log.jsonl").write_bytes(played.result.artifacts[ARTIFACT])
    assert read_events(tmp_path / "log.jsonl") == events


@pytest.mark.slow
async def test_the_terminal_is_one_shell_that_can_be_talked_to(play: Play) -> None:
    told = heard(
        await play(
            run("f() { return 3; }; f"),
            run("cat > f.py <<'EOF'\nprint('hi')\nEOF\ncat f.py"),
            run("sleep 100", timeout=1),
            run("echo too early"),
            run("C-c", is_input=True),
            run("read -r word; echo got-$word", timeout=1),
            run("ping", is_input=True),
            run("seq 1 100000"),
            run("printf '\\377\\n'; echo same; echo same"),
            run("exit 4"),
            run("pwd"),
            run("export Y=1; cd /tmp"),
            run("echo y$Y; pwd", reset=True),
        )
    )
    assert "exit code 3" in told[0]
    assert told[1].startswith("print('hi')\n[The command completed with exit code 0.]")
    assert "timed out after 1.0 seconds" in told[2]
    assert "is NOT executed" in told[3]
    assert "exit code 130. CTRL+C was sent" in told[4]
    assert "timed out" in told[5]
    assert "got-ping" in told[6]
    assert "1\n2\n3\n" in told[7]
    assert "99999\n100000\n" in told[7]
    assert len(told[7]) < 31_000
    assert told[8].startswith("\N{REPLACEMENT CHARACTER}\nsame\nsame\n")
    assert "was closed" in told[9]
    assert "has been reset" in told[10]
    assert "/workspace" in told[10]
    assert "y\n/workspace" in told[12]


@pytest.mark.slow
async def test_the_editor_works_on_files_of_the_sandbox(play: Play, sandbox: Sandbox) -> None:
    await sandbox.exec(
        "mkdir -p d/e/f; touch d/x d/e/y d/e/f/z; chmod 755 d/x; ln -s x d/to-x; ln -s d link; "
        "ln -s /nowhere broken; mkfifo pipe; truncate -s 11M big; printf 'caf\\351\\n' > latin"
    )
    told = heard(
        await play(
            edit("create", "/workspace/no/b.txt", file_text="x"),
            edit("create", "/workspace/b.txt", file_text="one\ntwo\nthree\n"),
            edit("create", "/workspace/b.txt", file_text="again"),
            edit("view", "/workspace"),
            edit("view", "/workspace/b.txt", view_range=[2, 3]),
            edit("str_replace", "/workspace/b.txt", old_str="two", new_str="2"),
            edit("insert", "/workspace/b.txt", insert_line=1, new_str="1.5"),
            edit("undo_edit", "/workspace/b.txt"),
            edit("view", "b.txt"),
            edit("view", "/../../../etc/hostname"),
            edit("view", "/workspace/big"),
            edit("view", "/workspace/pipe"),
            edit("str_replace", "/workspace/latin", old_str="caf", new_str="CAF"),
            edit("insert", "/workspace/d/to-x", insert_line=0, new_str="through"),
            edit("view", "/workspace/" + "n" * 300),
        )
    )
    assert "No such file or directory" in told[0]
    assert told[1] == "File created successfully at: /workspace/b.txt"
    assert "File already exists" in told[2]
    assert "/workspace/d/e/\n" in told[3]
    assert "/workspace/d/e/f" not in told[3]
    assert told[4].startswith("Here's the result of running `cat -n` on /workspace/b.txt:\n     2\ttwo")
    assert "Maybe you meant /workspace/b.txt?" in told[8]
    assert "sandbox" in told[9]
    assert "too large" in told[10]
    assert "does not exist" in told[11]
    assert "[An error occurred" in told[14]
    assert not [text for text in told if "orchard-harness-" in text]
    assert await sandbox.read_bytes("/workspace/b.txt") == b"one\n2\nthree\n"
    assert await sandbox.read_bytes("/workspace/latin") == b"CAF\xe9\n"
    assert await sandbox.read_bytes("/workspace/d/x") == b"through\n"
    assert (await sandbox.stat("/workspace/d/x")).mode & 0o777 == 0o755


@pytest.mark.slow
async def test_the_same_answers_make_the_same_requests(openhands: OpenHands) -> None:
    """Which is what `replayable` promises."""
    calls = [
        run("echo one; false"),
        edit("create", "/workspace/f", file_text="x"),
        edit("view", "/workspace"),
    ]
    made = []
    for _ in range(2):
        async with open_sandbox("local") as sandbox:
            played = await play_in(openhands, sandbox, *calls)
        trajectory = played.trajectory
        made.append([(call.messages, call.tools, call.params) for call in trajectory.calls])
        assert len(made[-1]) == 4
    assert made[0] == made[1]


def test_what_is_no_event_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torn.jsonl").write_bytes(b'{"kind": "MessageEvent", "id"')
    with pytest.raises(RecordCorrupt, match="no event log"):
        read_events(tmp_path / "torn.jsonl")
