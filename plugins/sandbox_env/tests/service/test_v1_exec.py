"""Commands through REST: the faults of the field, each with its right behaviour."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest


def run(client: httpx.Client, sandbox: str, command: str | list[str], **fields: Any) -> dict[str, Any]:
    """A command to its end."""
    answer = client.post(f"/sandboxes/{sandbox}/exec", json={"command": command, "wait": True, **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def start(client: httpx.Client, sandbox: str, command: str | list[str], **fields: Any) -> str:
    """A command that is left to itself; its job's id."""
    answer = client.post(f"/sandboxes/{sandbox}/exec", json={"command": command, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"job_id": answer.json()["job_id"], "status": "queued"}
    return str(answer.json()["job_id"])


def ended(client: httpx.Client, job: str) -> dict[str, Any]:
    """A job at its end."""
    told = client.get(f"/jobs/{job}/wait", params={"timeout": 60}).json()
    assert told["status"] in ("succeeded", "failed"), told
    return dict(told)


def test_a_waited_command_comes_back_as_the_whole_job(client: httpx.Client, sandbox: str) -> None:
    job = run(client, sandbox, "echo out; echo err >&2")
    assert job["status"] == "succeeded"
    assert (job["stdout"], job["stderr"], job["exit_code"], job["error"]) == ("out\n", "err\n", 0, None)
    assert (job["sandbox_id"], job["command"]) == (sandbox, "echo out; echo err >&2")
    assert job["created_at"] <= job["started_at"] <= job["completed_at"]
    assert client.get(f"/jobs/{job['job_id']}").json() == job


def test_a_command_that_is_not_waited_for_is_queued_and_can_be_waited_for(
    client: httpx.Client, sandbox: str
) -> None:
    job = start(client, sandbox, "echo later")
    assert ended(client, job)["stdout"] == "later\n"


def test_a_failed_command_is_failed_with_its_own_exit_code(client: httpx.Client, sandbox: str) -> None:
    job = run(client, sandbox, "exit 3")
    assert (job["status"], job["exit_code"], job["error"]) == ("failed", 3, None)


def test_a_time_out_is_124_with_an_error_that_says_so(client: httpx.Client, sandbox: str) -> None:
    job = run(client, sandbox, "echo before; sleep 300", timeout_seconds=0.5)
    assert (job["status"], job["exit_code"], job["stdout"]) == ("failed", 124, "before\n")
    assert "timed out after 0.5 s" in job["error"]
    assert job["timed_out"]


def test_a_time_out_ends_children_that_left_the_process_group(client: httpx.Client, sandbox: str) -> None:
    run(client, sandbox, "setsid sleep 4711 & sleep 4712", timeout_seconds=0.5)
    left = run(client, sandbox, "ps ax -o args | grep -c '[s]leep 471'")
    assert left["stdout"] == "0\n"


def test_a_command_that_exits_124_by_itself_has_no_such_error(client: httpx.Client, sandbox: str) -> None:
    job = run(client, sandbox, "exit 124", timeout_seconds=30)
    assert (job["status"], job["exit_code"], job["error"], job["timed_out"]) == ("failed", 124, None, False)


def test_a_signal_is_128_plus_its_number(client: httpx.Client, sandbox: str) -> None:
    assert run(client, sandbox, "kill -TERM $$")["exit_code"] == 143


def test_a_background_child_does_not_hold_the_command(client: httpx.Client, sandbox: str) -> None:
    job = run(client, sandbox, "sleep 3000 & echo hi")
    assert job["stdout"] == "hi\n"
    assert job["duration"] < 60
    assert run(client, sandbox, "pkill -x sleep && echo lived")["stdout"] == "lived\n"


def test_the_same_exec_id_attaches_and_runs_once(client: httpx.Client, sandbox: str) -> None:
    body = {"command": "echo x >> once; cat once", "exec_id": "made-by-client", "wait": True}
    first = client.post(f"/sandboxes/{sandbox}/exec", json=body).json()
    again = client.post(f"/sandboxes/{sandbox}/exec", json=body).json()
    assert again == first
    assert run(client, sandbox, "cat once")["stdout"] == "x\n"


def test_the_same_exec_id_with_another_command_is_refused(client: httpx.Client, sandbox: str) -> None:
    start(client, sandbox, "true", exec_id="taken")
    other = client.post(f"/sandboxes/{sandbox}/exec", json={"command": "false", "exec_id": "taken"})
    assert (other.status_code, other.json()["error"]) == (409, "ExecIdTaken")
    assert "taken" in other.json()["detail"]


def test_bytes_that_are_no_text_neither_vanish_nor_break_the_answer(
    client: httpx.Client, sandbox: str
) -> None:
    job = run(client, sandbox, r"printf 'a\377b\303\251'")
    assert job["stdout"] == "a�bé"
    assert job["stdout_size"] == 5


def test_a_flood_of_output_is_cut_in_its_middle_and_its_size_is_told(
    client: httpx.Client, sandbox: str
) -> None:
    job = run(client, sandbox, "echo head; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo tail")
    assert job["stdout_size"] == 50_000_011
    assert job["stdout_truncated"]
    assert job["stdout"].startswith("head\nxxx")
    assert job["stdout"].endswith("xxx\ntail\n")
    assert len(job["stdout"]) < 20_000_000


def test_a_long_command_arrives_whole(client: httpx.Client, sandbox: str) -> None:
    text = "x" * 300_000
    assert run(client, sandbox, f"v={text}; echo ${{#v}}")["stdout"] == "300000\n"


def test_a_missing_cwd_is_a_typed_refusal(client: httpx.Client, sandbox: str) -> None:
    answer = client.post(
        f"/sandboxes/{sandbox}/exec", json={"command": "pwd", "cwd": "/not/there", "wait": True}
    )
    assert answer.status_code == 422
    assert answer.json()["error"] == "CwdMissing"
    assert "/not/there" in answer.json()["detail"]


def test_a_command_that_does_not_exist_is_a_typed_refusal(client: httpx.Client, sandbox: str) -> None:
    answer = client.post(f"/sandboxes/{sandbox}/exec", json={"command": ["no-such-program"], "wait": True})
    assert (answer.status_code, answer.json()["error"]) == (422, "CommandNotFound")


def test_a_list_is_argv_and_meets_no_shell(client: httpx.Client, sandbox: str) -> None:
    job = run(client, sandbox, ["printf", "[%s]", "a b", "$HOME", "", "c'\"d"])
    assert job["stdout"] == "[a b][$HOME][][c'\"d]"
    assert job["command"] == ["printf", "[%s]", "a b", "$HOME", "", "c'\"d"]


def test_environment_values_are_byte_equal(client: httpx.Client, sandbox: str) -> None:
    value = "line\nquote' \" $(echo no) `no` \\ é"
    job = run(client, sandbox, ["python3", "-c", "import os; print(repr(os.environ['V']))"], env={"V": value})
    assert job["stdout"] == repr(value) + "\n"


def test_standard_input_is_empty(client: httpx.Client, sandbox: str) -> None:
    assert run(client, sandbox, "cat; echo done")["stdout"] == "done\n"


def test_a_working_directory_of_ones_own(client: httpx.Client, sandbox: str) -> None:
    assert run(client, sandbox, "pwd", cwd="/tmp")["stdout"] == "/tmp\n"
    assert run(client, sandbox, "pwd")["stdout"] == "/workspace\n"


@pytest.mark.parametrize("command", ["echo $MARK", ["sh", "-c", "echo $MARK"]])
def test_a_login_shell_reads_the_profile(
    client: httpx.Client, sandbox: str, command: str | list[str]
) -> None:
    run(client, sandbox, "echo 'export MARK=from-profile' > ~/.profile")
    assert run(client, sandbox, command)["stdout"] == "\n"
    assert run(client, sandbox, command, login_shell=True)["stdout"] == "from-profile\n"
    run(client, sandbox, "rm ~/.profile")


def test_a_login_shell_keeps_the_numbers_of_lines(client: httpx.Client, sandbox: str) -> None:
    assert run(client, sandbox, "true\necho $LINENO", login_shell=True)["stdout"] == "2\n"


def test_commands_of_one_sandbox_run_one_after_the_other_in_order(client: httpx.Client, sandbox: str) -> None:
    jobs = [start(client, sandbox, f"echo b{n} >> order; sleep 0.05; echo e{n} >> order") for n in range(5)]
    for job in jobs:
        ended(client, job)
    told = run(client, sandbox, "cat order")["stdout"].split()
    assert told == [f"{part}{n}" for n in range(5) for part in "be"]


def test_a_job_that_waits_for_its_turn_is_queued(client: httpx.Client, sandbox: str) -> None:
    first = start(client, sandbox, "until [ -e go ]; do sleep 0.02; done")
    second = start(client, sandbox, "echo second")
    assert client.get(f"/jobs/{second}").json()["status"] == "queued"
    assert client.get(f"/jobs/{first}").json()["status"] == "running"
    client.post(f"/sandboxes/{sandbox}/files", json={"path": "go", "content": ""}).raise_for_status()
    assert ended(client, second)["stdout"] == "second\n"


def test_a_job_whose_turn_fails_to_start_is_failed_with_the_reason(
    client: httpx.Client, sandbox: str
) -> None:
    start(client, sandbox, "until [ -e go2 ]; do sleep 0.02; done")
    late = start(client, sandbox, ["no-such-program"])
    client.post(f"/sandboxes/{sandbox}/files", json={"path": "go2", "content": ""}).raise_for_status()
    told = ended(client, late)
    assert told["status"] == "failed"
    assert "no-such-program" in told["error"]


def test_a_job_can_be_killed_while_it_runs_and_while_it_waits(client: httpx.Client, sandbox: str) -> None:
    first, second = start(client, sandbox, "sleep 3000"), start(client, sandbox, "echo never > never")
    assert client.delete(f"/jobs/{second}").json()["status"] == "failed"
    assert client.delete(f"/jobs/{first}").json()["exit_code"] == 137
    assert run(client, sandbox, "ls never")["exit_code"] != 0


def test_a_client_that_leaves_neither_ends_nor_repeats_its_command(
    client: httpx.Client, sandbox: str
) -> None:
    body = {
        "command": "echo ran >> left; until [ -e go3 ]; do sleep 0.02; done",
        "wait": True,
        "exec_id": "left",
    }
    with pytest.raises(httpx.ReadTimeout):
        client.post(f"/sandboxes/{sandbox}/exec", json=body, timeout=0.5)
    client.post(f"/sandboxes/{sandbox}/files", json={"path": "go3", "content": ""}).raise_for_status()
    assert client.post(f"/sandboxes/{sandbox}/exec", json=body).json()["status"] == "succeeded"
    assert run(client, sandbox, "cat left")["stdout"] == "ran\n"


def test_a_wait_on_the_server_that_runs_out_says_running(client: httpx.Client, sandbox: str) -> None:
    job = start(client, sandbox, "sleep 3000")
    assert client.get(f"/jobs/{job}/wait", params={"timeout": 0.2}).json()["status"] == "running"
    client.delete(f"/jobs/{job}").raise_for_status()


def test_orphans_are_reaped(client: httpx.Client, sandbox: str) -> None:
    run(client, sandbox, "for i in $(seq 50); do (true &) ; done")
    zombies = "ps ax -o stat | grep -c '^Z'"
    script = f"for i in $(seq 500); do [ $({zombies}) = 0 ] && break; sleep 0.02; done; {zombies}"
    waited = run(client, sandbox, script)
    assert waited["stdout"] == "0\n"


def test_a_result_outlives_its_sandbox_and_is_not_taken_for_one_of_its_namesake(client: httpx.Client) -> None:
    asked = {"image": "host", "sandbox_id": "namesake"}
    client.post("/sandboxes", json=asked).raise_for_status()
    assert run(client, "namesake", "echo old", exec_id="same")["stdout"] == "old\n"
    client.delete("/sandboxes/namesake").raise_for_status()
    assert client.get("/jobs/namesake.same").json()["stdout"] == "old\n"
    client.post("/sandboxes", json=asked).raise_for_status()
    assert client.get("/sandboxes/namesake/wait").status_code == 200
    assert client.get("/jobs/namesake.same").status_code == 404
    assert run(client, "namesake", "echo new", exec_id="same")["stdout"] == "new\n"
    assert client.get("/jobs/namesake.same").json()["stdout"] == "new\n"
    client.delete("/sandboxes/namesake").raise_for_status()


def test_whoever_waits_for_a_job_of_a_deleted_sandbox_is_told_at_once(client: httpx.Client) -> None:
    made = client.post("/sandboxes", json={"image": "host"}).json()["sandbox_id"]
    job = start(client, made, "sleep 3000")
    answers: list[httpx.Response] = []
    waiting = threading.Thread(target=lambda: answers.append(client.get(f"/jobs/{job}/wait")))
    waiting.start()
    client.delete(f"/sandboxes/{made}").raise_for_status()
    waiting.join(60)
    assert answers[0].status_code in (404, 410)
    assert made in answers[0].json()["detail"]
