"""bash and the file tools: exact, bounded, and with errors a model can act upon."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.own_specs import own_spec
from orchard_harness_react.own_tools import OwnToolOffer
from pydantic import JsonValue

from orchard_core import Sandbox, StopReason, ToolResult

from .conftest import REAL, Play
from .model_server import Said, calls

SUBMIT = calls(("submit", {}))


def bash(command: str, **fields: object) -> Said:
    """An answer that runs one command."""
    return calls(("bash", {"command": command, **fields}))


async def seen(play: Play, name: str, args: dict[str, object], **options: object) -> str:
    """What the model sees of one call."""
    ran = await play(calls((name, args)), SUBMIT, **options)
    observation: str = ran.observation()
    return observation


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo out; echo err >&2; exit 3", "out\n[stderr]\nerr\n[exit code 3]"),
        ("true", "(no output)\n[exit code 0]"),
        ("echo err >&2", "[stderr]\nerr\n[exit code 0]"),
        ("kill -9 $$", "(no output)\n[exit code 137]"),
        ("exit 124", "(no output)\n[exit code 124]"),
        ("printf 'a\\377b'", "a\ufffdb\n[exit code 0]"),
        ("cat", "(no output)\n[exit code 0]"),
    ],
)
async def test_a_command_s_output_and_end_are_shown(play: Play, command: str, expected: str) -> None:
    assert await seen(play, "bash", {"command": command}) == expected


@REAL
async def test_each_command_starts_in_the_workdir_with_a_new_shell(play: Play) -> None:
    ran = await play(bash("mkdir d; cd d; x=1; pwd > ../first"), bash("pwd > second; echo [$x]"), bash(
        "test $(cat first) = $(cat second)/d && echo same place"), SUBMIT)  # fmt: skip
    assert ran.observation(1) == "[]\n[exit code 0]"
    assert ran.observation(2) == "same place\n[exit code 0]"
    described = ran.server.requests[0]["tools"][0]["function"]["description"]
    assert "new shell that starts in /workspace" in described


@REAL
async def test_a_command_past_its_limit_is_killed_and_says_so(play: Play) -> None:
    observation = await seen(play, "bash", {"command": "echo begun; sleep 50", "timeout_s": 0.4})
    assert observation == "begun\n[timed out: killed after 0.4 s with everything it had started]"


async def test_the_limit_a_model_asks_for_is_bounded(play: Play) -> None:
    observation = await seen(play, "bash", {"command": "sleep 50", "timeout_s": 9999}, bash_timeout_max_s=0.3)
    assert "killed after 0.3 s" in observation
    assert "must be above 0" in await seen(play, "bash", {"command": "true", "timeout_s": -1})


async def test_long_output_is_cut_to_head_and_tail_with_the_true_size(play: Play) -> None:
    observation = await seen(play, "bash", {"command": "seq 1 20000"}, observation_limit=2000)
    assert len(observation) <= 2000
    assert observation.startswith("1\n2\n3\n")
    assert observation.endswith("\n19999\n20000\n[exit code 0]")
    assert "the middle is cut out: 108,894 bytes in all" in observation


@REAL
async def test_huge_output_is_told_by_its_true_size_though_the_sandbox_kept_only_its_ends(play: Play) -> None:
    observation = await seen(play, "bash", {"command": "echo first; yes | head -c 30000000; echo last"})
    assert len(observation) <= 16_000
    assert observation.startswith("first\n")
    assert "\nlast\n" in observation
    assert "30,000,011 bytes in all" in observation
    assert "redirect it to a file" in observation


async def test_both_streams_share_the_room(play: Play) -> None:
    command = "seq 1 5000; echo oops >&2; seq 5000 9000 >&2"
    observation = await seen(play, "bash", {"command": command}, observation_limit=2000)
    assert len(observation) <= 2000
    for mark in ("1\n2\n", "4999\n5000", "[stderr]\noops", "8999\n9000", "[exit code 0]"):
        assert mark in observation


async def test_a_file_is_shown_whole_or_by_lines(play: Play, sandbox: Sandbox) -> None:
    await sandbox.write("/workspace/f", b"".join(b"line %d\n" % n for n in range(1, 101)))
    whole = await seen(play, "read_file", {"path": "f"})
    assert whole.startswith("line 1\n")
    assert whole.endswith("line 100\n")
    part = await seen(play, "read_file", {"path": "/workspace/f", "first_line": 99, "lines": 1})
    assert part == "line 99\n"
    assert await seen(play, "read_file", {"path": "f", "lines": 2}) == "line 1\nline 2\n"
    assert await seen(play, "read_file", {"path": "f", "first_line": 100.0}) == "line 100\n"
    assert "has no line 101" in await seen(play, "read_file", {"path": "f", "first_line": 101})


@REAL
async def test_a_large_file_is_shown_by_its_ends_with_its_size(play: Play, sandbox: Sandbox) -> None:
    await sandbox.exec(
        "head -c 50000000 /dev/zero | tr '\\0' x > big; echo; printf end >> big", cwd="/workspace"
    )
    whole = await seen(play, "read_file", {"path": "big"}, observation_limit=2000)
    assert len(whole) <= 2000
    assert whole.endswith("xend")
    assert "50,000,003 bytes in all" in whole
    part = await seen(play, "read_file", {"path": "big", "first_line": 1, "lines": 1}, observation_limit=2000)
    assert len(part) <= 2000
    assert "cut off in line 1: ask for fewer lines" in part


@pytest.mark.parametrize(
    ("path", "problem"),
    [("none", "none"), (".", "is a directory"), ("binary", "is not text"), ("pipe", "not a regular file"),
     ("loop", "leads in a circle")],
)  # fmt: skip
async def test_what_cannot_be_shown_is_explained(
    play: Play, sandbox: Sandbox, path: str, problem: str
) -> None:
    await sandbox.exec("printf 'a\\0b' > binary; mkfifo pipe; ln -s loop loop", cwd="/workspace")
    assert problem in await seen(play, "read_file", {"path": path})


async def test_a_file_that_never_ends_is_given_up() -> None:
    async def endless(_: Mapping[str, JsonValue]) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    offer = OwnToolOffer(spec=own_spec("read_file", ReactConfig(), "/w"), act=endless, limit_s=0.1)
    assert await offer.call({}) == ToolResult.text("read_file was given up after 0.1 s.", is_error=True)


@REAL
async def test_a_path_that_is_none_is_a_mistake_of_the_model(play: Play, sandbox: Sandbox) -> None:
    await sandbox.write("/workspace/f", b"x")
    rest: dict[str, dict[str, object]] = {
        "read_file": {},
        "write_file": {"content": ""},
        "edit_file": {"old": "a", "new": "b"},
    }
    paths = ["", "a\0b", "x" * 300, "/" + "y/" * 3000 + "z", "f/below"]
    tried = [(name, {"path": path, **more}) for path in paths for name, more in rest.items()]
    ran = await play(calls(*tried), SUBMIT)
    assert ran.result.stop is StopReason.SUBMITTED
    assert "Wrote" not in "".join(ran.observation(place) for place in range(len(tried)))


@REAL
async def test_odd_commands_are_run_or_refused_and_never_end_the_run(play: Play) -> None:
    ran = await play(
        bash(""),
        bash("echo a\0b"),
        bash("'"),
        bash("x" * 300_000),
        bash("rm -rf /workspace"),
        bash("pwd"),
        SUBMIT,
    )
    assert ran.result.stop is StopReason.SUBMITTED
    assert "[exit code 0]" not in ran.observation(2) + ran.observation(3)


async def test_a_file_is_written_with_its_directories_byte_for_byte(play: Play, sandbox: Sandbox) -> None:
    content = "é\r\n\ttab\n'quotes' \"$HOME\" `x`"
    observation = await seen(play, "write_file", {"path": "a/b c/d", "content": content})
    assert observation == f"Wrote /workspace/a/b c/d: {len(content.encode())} bytes."
    assert await sandbox.read_bytes("/workspace/a/b c/d") == content.encode()


@REAL
async def test_writing_and_editing_keep_permissions_and_links(play: Play, sandbox: Sandbox) -> None:
    await sandbox.write("/workspace/run", b"#!/bin/sh\necho old\n", mode=0o755)
    await sandbox.exec("ln -s run link", cwd="/workspace")
    await seen(play, "edit_file", {"path": "link", "old": "echo old", "new": "echo new"})
    assert (await sandbox.exec("./run", cwd="/workspace")).stdout == b"new\n"
    await seen(play, "write_file", {"path": "link", "content": "#!/bin/sh\necho again\n"})
    assert (await sandbox.exec("./run", cwd="/workspace")).stdout == b"again\n"
    assert (await sandbox.stat("/workspace/link")).kind == "symlink"


@REAL
async def test_an_edit_changes_nothing_else_whatever_the_encoding(play: Play, sandbox: Sandbox) -> None:
    await sandbox.write("/workspace/f", b"\xff\xfe one two\r\nthree\r\n")
    assert "Replaced 1 occurrence" in await seen(
        play, "edit_file", {"path": "f", "old": "two\nthree", "new": "2\n3"}
    )
    assert await sandbox.read_bytes("/workspace/f") == b"\xff\xfe one 2\r\n3\r\n"


async def test_an_edit_that_fits_nowhere_or_twice_says_where(play: Play, sandbox: Sandbox) -> None:
    await sandbox.write("/workspace/f", b"if a:\n    x = 1\nelse:\n    x = 1\n")
    assert "lines 2, 4" in await seen(play, "edit_file", {"path": "f", "old": "x = 1", "new": "x = 2"})
    missing = await seen(play, "edit_file", {"path": "f", "old": "else:\n  x = 1", "new": "y"})
    assert "does not occur" in missing
    assert "line 3: compare blanks" in missing
    everywhere = await seen(play, "edit_file", {"path": "f", "old": "x = 1", "new": "x = 2", "all": True})
    assert "Replaced 2 occurrences" in everywhere
    assert "does not exist" in await seen(play, "edit_file", {"path": "g", "old": "a", "new": "b"})
