"""Commands of v2: one call, in the background, told of as they go."""

from __future__ import annotations

import base64
import signal

import aiohttp
import httpx
import pytest
from orchard_env.service.v2.cut import whole_characters

from ..running import GENEROUS_S, Running


@pytest.fixture
def at(sandbox: str) -> str:
    """The path of the module's sandbox."""
    return f"/v2/sandboxes/{sandbox}"


def events_of(text: str) -> list[dict[str, str]]:
    """Server-sent events, as they were told."""
    return [
        dict(line.split(": ", 1) for line in block.splitlines())
        for block in text.split("\n\n")
        if block and not block.startswith(":")
    ]


def test_one_call_runs_a_command_and_tells_both_outputs(client: httpx.Client, at: str) -> None:
    ran = client.post(f"{at}/exec", json={"command": "echo out; echo err >&2; exit 3"}).json()
    assert (ran["state"], ran["exit_code"], ran["timed_out"]) == ("exited", 3, False)
    assert (ran["stdout"]["data"], ran["stderr"]["data"]) == ("out\n", "err\n")


def test_argv_environment_directory_and_input_reach_the_command_as_they_are(
    client: httpx.Client, at: str
) -> None:
    asked = {
        "command": ["sh", "-c", 'pwd; printf "%s\\n" "$1" "$ODD"; cat', "sh", "a  b"],
        "env": {"ODD": "$(no)\n'\""},
        "cwd": "/tmp",
        "stdin": "typed",
    }
    ran = client.post(f"{at}/exec", json=asked).json()
    assert ran["stdout"]["data"] == "/tmp\na  b\n$(no)\n'\"\ntyped"


def test_bytes_that_are_no_text_are_told_exactly_when_asked_for(client: httpx.Client, at: str) -> None:
    raw = bytes(range(256))
    asked = {"command": "cat", "stdin": base64.b64encode(raw).decode(), "encoding": "base64"}
    ran = client.post(f"{at}/exec", json=asked).json()
    assert base64.b64decode(ran["stdout"]["data"]) == raw


def test_the_same_id_attaches_to_the_same_run_and_another_command_is_refused(
    client: httpx.Client, at: str
) -> None:
    asked = {"id": "once-1", "command": "echo ran >> /tmp/once; cat /tmp/once"}
    first, again = (client.post(f"{at}/exec", json=asked).json() for _ in range(2))
    assert first["stdout"] == again["stdout"]
    assert first["stdout"]["data"] == "ran\n"
    other = client.post(f"{at}/exec", json=asked | {"command": "true"})
    assert (other.status_code, other.json()["error"]) == (409, "ExecIdTaken")


def test_a_wait_that_is_over_leaves_the_command_running_and_can_be_repeated(
    client: httpx.Client, at: str
) -> None:
    asked = {"id": "waited", "command": "read line; echo $line", "stdin_stream": True}
    begun = client.post(f"{at}/exec", params={"wait": 0.1}, json=asked).json()
    assert (begun["state"], begun["stdout"]) == ("running", None)
    client.post(f"{at}/execs/waited/stdin", content=b"go\n").raise_for_status()
    ended = client.get(f"{at}/execs/waited", params={"wait": GENEROUS_S}).json()
    assert (ended["state"], ended["stdout"]["data"]) == ("exited", "go\n")


def test_a_timeout_is_its_own_flag_and_124_is_124(client: httpx.Client, at: str) -> None:
    timed_out = client.post(f"{at}/exec", json={"command": "sleep 60", "timeout_s": 0.2}).json()
    assert (timed_out["timed_out"], timed_out["timeout_s"]) == (True, 0.2)
    itself = client.post(f"{at}/exec", json={"command": "exit 124"}).json()
    assert (itself["timed_out"], itself["exit_code"]) == (False, 124)


@pytest.mark.parametrize(
    ("asked", "status", "error"),
    [
        ({"command": "true", "cwd": "/nowhere"}, 422, "CwdMissing"),
        ({"command": ["/no/such/program"]}, 422, "CommandNotFound"),
        ({"command": "true", "user": "nobody-of-that-name"}, 422, "UserUnknown"),
        ({"command": []}, 422, "ConfigError"),
        ({"command": "true", "timeout_s": -1}, 422, "RequestInvalid"),
        ({"command": "true", "id": "../x"}, 422, "RequestInvalid"),
        ({"command": "cat", "stdin": "x" * (1 << 20 | 1)}, 413, "BodyTooLarge"),
        ({"command": "cat", "stdin": "?", "encoding": "base64"}, 422, "RequestInvalid"),
        ({"command": "nul\0byte"}, 422, None),
        ({"kommand": "true"}, 422, "RequestInvalid"),
    ],
)
def test_what_cannot_run_is_refused_with_its_reason(
    client: httpx.Client, at: str, asked: dict[str, object], status: int, error: str | None
) -> None:
    answer = client.post(f"{at}/exec", json=asked)
    assert answer.status_code == status, answer.text
    assert error in (None, answer.json()["error"])
    assert answer.json()["message"]


def test_a_background_command_is_fed_signalled_and_read_by_cursor(client: httpx.Client, at: str) -> None:
    asked = {
        "id": "bg",
        "command": "trap 'echo bye; exit 7' TERM; while read x; do echo $x; done",
        "stdin_stream": True,
    }
    assert client.post(f"{at}/execs", json=asked).json()["state"] == "running"
    for _ in range(2):  # the same bytes at the same offset are taken once
        assert client.post(f"{at}/execs/bg/stdin", params={"offset": 0}, content=b"one\n").json() == {
            "received": 4
        }
    log = client.get(f"{at}/execs/bg/logs", params={"wait": GENEROUS_S}).json()
    assert (log["data"], log["next"], log["ended"]) == ("one\n", 4, False)
    assert client.post(f"{at}/execs/bg/stdin", params={"offset": 9}, content=b"gap").status_code == 422
    assert client.post(f"{at}/execs/bg/signal", json={"signal": 15}).json() == {"delivered": True}
    ended = client.get(f"{at}/execs/bg", params={"wait": GENEROUS_S}).json()
    assert ended["exit_code"] == 7
    rest = client.get(f"{at}/execs/bg/logs", params={"cursor": 4}).json()
    assert (rest["data"], rest["ended"]) == ("bye\n", True)
    assert "bg" in [each["id"] for each in client.get(f"{at}/execs").json()["execs"]]


def test_the_end_of_input_ends_a_reader(client: httpx.Client, at: str) -> None:
    client.post(f"{at}/execs", json={"id": "cat", "command": "cat", "stdin_stream": True})
    client.post(f"{at}/execs/cat/stdin", params={"eof": True}, content=b"all of it" * 100_000)
    ended = client.get(f"{at}/execs/cat", params={"wait": GENEROUS_S}).json()
    assert ended["stdout"]["size"] == 900_000
    assert client.post(f"{at}/execs/cat/stdin", content=b"more").status_code == 409


def test_an_unknown_command_is_not_found(client: httpx.Client, at: str) -> None:
    for path in ("", "/logs", "/events"):
        assert client.get(f"{at}/execs/never{path}").json()["error"] == "JobUnknown"
    assert client.post(f"{at}/execs/never/signal", json={"signal": 9}).status_code == 404


def test_commands_of_one_lane_take_turns(client: httpx.Client, at: str) -> None:
    asked = {"id": "lane-1", "lane": "a", "command": "read x", "stdin_stream": True}
    client.post(f"{at}/execs", json=asked)
    waits = client.post(f"{at}/execs", json={"id": "lane-2", "lane": "a", "command": "true"}).json()
    assert waits["state"] == "queued"
    client.post(f"{at}/execs/lane-1/stdin", params={"eof": True}, content=b"")
    assert client.get(f"{at}/execs/lane-2", params={"wait": GENEROUS_S}).json()["exit_code"] == 0


def test_events_tell_output_as_it_comes_and_then_the_end(client: httpx.Client, at: str) -> None:
    told = events_of(client.post(f"{at}/exec/stream", json={"command": "echo a; echo b >&2"}).text)
    kinds = [event["event"] for event in told]
    assert kinds[0] == "started"
    assert kinds[-1] == "exit"
    assert sorted(kinds[1:-1]) == ["stderr", "stdout"]
    assert told[-1]["id"] == "2-2"


def test_a_reader_that_comes_back_gets_the_rest_and_nothing_twice(client: httpx.Client, at: str) -> None:
    asked = {"id": "resumed", "command": "printf 12345; printf e >&2"}
    client.post(f"{at}/exec", json=asked)
    url = f"{at}/execs/resumed/events"
    rest = events_of(client.get(url, headers={"Last-Event-ID": "3-1"}).text)
    assert [event["event"] for event in rest] == ["started", "stdout", "exit"]
    assert '"data":"45"' in rest[1]["data"]
    nothing = events_of(client.get(url, headers={"Last-Event-ID": rest[-1]["id"]}).text)
    assert [event["event"] for event in nothing] == ["started", "exit"]
    assert client.get(url, headers={"Last-Event-ID": "nonsense"}).status_code == 422


async def test_over_a_socket_events_come_out_and_input_and_signals_go_in(service: Running, at: str) -> None:
    """A second socket attaches, gets what the first has not had, and ends the command."""
    command = "read line; echo got $line; exec sleep 600"
    async with aiohttp.ClientSession(service.url) as session:
        async with session.ws_connect(f"{at}/exec/stream") as socket:
            await socket.send_json({"id": "talk", "command": command})
            assert (await socket.receive_json())["event"] == "started"
            await socket.send_json({"stdin": "a "})
            await socket.send_json({"stdin": "line\n"})
            told = await socket.receive_json()
            assert (told["event"], told["data"]) == ("stdout", "got a line\n")
        async with session.ws_connect(f"{at}/exec/stream") as socket:
            await socket.send_json({"attach": "talk", "since": "4-0"})
            assert [(await socket.receive_json()).get("data") for _ in range(2)] == [None, "a line\n"]
            await socket.send_json({"signal": int(signal.SIGTERM)})
            ended = await socket.receive_json(timeout=GENEROUS_S)
            assert (ended["event"], ended["exit_code"]) == ("exit", 128 + signal.SIGTERM)
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


def test_no_character_is_torn_where_a_piece_ends(client: httpx.Client, at: str) -> None:
    """The first two bytes of a sign of three come before the wait, the last after it."""
    command = "printf 'a\\342\\202'; read x; printf '\\254b'"
    client.post(f"{at}/execs", json={"id": "torn", "command": command, "stdin_stream": True})
    first = client.get(f"{at}/execs/torn/logs", params={"wait": GENEROUS_S}).json()
    assert (first["data"], first["next"]) == ("a", 1)
    client.post(f"{at}/execs/torn/stdin", params={"eof": True}, content=b"\n")
    client.get(f"{at}/execs/torn", params={"wait": GENEROUS_S})
    assert client.get(f"{at}/execs/torn/logs", params={"cursor": 1}).json()["data"] == "€b"


@pytest.mark.parametrize("text", ["", "a", "ä", "€", "𐍈", "x𐍈", "€€"])
def test_a_cut_keeps_whole_characters_only(text: str) -> None:
    raw = text.encode()
    for end in range(len(raw) + 1):
        kept = raw[: whole_characters(raw[:end])].decode()
        assert text.startswith(kept)
        assert len(text[len(kept) :].encode()) - (len(raw) - end) < 4
    assert whole_characters(b"\xff\x80\x80\x80") == 4
