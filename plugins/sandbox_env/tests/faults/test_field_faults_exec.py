"""The faults of the field, 1 to 13: commands. Each asked of both contracts of a service over local boxes."""

from __future__ import annotations

import asyncio
import hashlib
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx
import pytest

from .field import (
    CONTRACTS,
    V1,
    V2,
    Contract,
    busybox_image,
    scratch_image,
)
from .orchestrators import Orchestrator
from .terminals import TERMINALS, Terminal

Opener = Callable[[str], AbstractAsyncContextManager[Terminal]]


@pytest.fixture(scope="module")
def scratch(service: Orchestrator, folder: Path) -> str:
    """A sandbox without a shell."""
    return V1(service.client).make(scratch_image(folder))


@pytest.fixture(scope="module")
def small(service: Orchestrator, folder: Path) -> str:
    """A sandbox with BusyBox alone."""
    return V1(service.client).make(busybox_image(folder))


@pytest.fixture(params=CONTRACTS)
def on(request: pytest.FixtureRequest, service: Orchestrator) -> Contract:
    """The contract that the case is asked of."""
    return CONTRACTS[request.param](service.client)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Status and class; there are always words with them."""
    told = answer.json()
    assert told["message"], told
    return answer.status_code, told["error"]


COUNT = "grep -ls '[4]7%s' /proc/[0-9]*/cmdline | wc -l"
"""How many live that have 47 and these digits in an argument; grep's own has a bracket there."""


def test_fault_01_a_timeout_ends_the_whole_tree_and_keeps_the_output_and_the_next_command_works(
    on: Contract, box: str
) -> None:
    script = "setsid sleep 471100 & sleep 471101 & echo before; sleep 471102"
    ran = on.run(box, script, timeout=0.7)
    assert (ran.stdout, ran.limit_s) == (b"before\n", 0.7)
    assert on.run(box, COUNT % 11).stdout == b"0\n"


def test_fault_02_a_background_child_that_holds_the_output_delays_nothing_and_lives_on(
    on: Contract, box: str
) -> None:
    ran = on.run(box, "sleep 472200 & echo $! > child; echo hi")
    assert (ran.exit_code, ran.stdout) == (0, b"hi\n")
    assert on.run(box, COUNT % 22).stdout == b"1\n"
    assert on.run(box, "kill $(cat child) && echo lived").stdout == b"lived\n"


def test_fault_03_a_command_sent_again_after_a_dropped_connection_attaches_and_runs_once(
    on: Contract, box: str
) -> None:
    mark = on.at.strip("/").replace("/", "-")
    order = {"id": f"again-{mark}"}
    script = f"echo ran >> log-{mark}; until [ -e go-{mark} ]; do sleep 0.02; done; echo done"
    whole = on.client.timeout
    on.client.timeout = httpx.Timeout(0.7)
    try:
        with pytest.raises(httpx.ReadTimeout):
            on.send(box, script, **order)
    finally:
        on.client.timeout = whole
    on.write(box, f"/workspace/go-{mark}", b"").raise_for_status()
    for _ in range(2):
        assert on.run(box, script, **order).stdout == b"done\n"
    assert on.ran(on.end(box, order["id"])).stdout == b"done\n"
    assert on.read(box, f"/workspace/log-{mark}") == b"ran\n"


def test_fault_03_an_id_is_never_lent_to_another_command(on: Contract, box: str) -> None:
    taken = f"taken-{on.at.count('/')}"
    assert on.run(box, "echo one", id=taken).stdout == b"one\n"
    for send in (on.send, on.start):
        answer = send(box, "echo two", id=taken)
        assert refusal(answer) == (409, "ExecIdTaken")
        assert taken in answer.json()["message"]
        assert answer.json()["hint"]
    assert on.ran(on.end(box, taken)).stdout == b"one\n"


def test_fault_04_bytes_that_are_no_text_are_neither_lost_nor_torn(on: Contract, box: str) -> None:
    ran = on.run(box, r"printf 'a\377b\303'; sleep 0.2; printf '\251c'")
    exact = b"a\xffb\xc3\xa9c"
    assert ran.size == len(exact)
    # Text has the one byte that is none replaced, and the character that came in two pieces whole.
    assert ran.stdout == (exact if isinstance(on, V2) else exact.decode("utf-8", "replace").encode())


def test_fault_04_of_fifty_megabytes_head_and_tail_are_kept_and_the_true_size_told(
    on: Contract, box: str
) -> None:
    ran = on.run(box, "echo head; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo tail")
    assert (ran.exit_code, ran.truncated, ran.size) == (0, True, 50_000_011)
    assert ran.stdout.startswith(b"head\nxxx")
    assert ran.stdout.endswith(b"xxx\ntail\n")
    assert len(ran.stdout) < 20_000_000


def test_fault_05_a_command_of_a_megabyte_arrives_whole(on: Contract, box: str) -> None:
    text = "".join(f"{number:07}\n" for number in range(130_000))
    ran = on.run(box, f"md5sum <<'END'\n{text}END\n")
    assert ran.stdout.split()[0].decode() == hashlib.md5(text.encode()).hexdigest()


def test_fault_05_an_argument_that_is_too_long_for_the_kernel_is_refused_and_not_cut(
    on: Contract, box: str
) -> None:
    assert refusal(on.send(box, ["echo", "x" * 200_000])) == (422, "ExecError")


def test_fault_05_a_large_input_is_streamed_whole(service: Orchestrator, box: str) -> None:
    data = bytes(range(256)) * 20_000
    client = service.client
    order = {"command": "md5sum", "id": "input", "stdin_stream": True}
    client.post(f"/v2/sandboxes/{box}/execs", json=order).raise_for_status()
    sent = client.post(f"/v2/sandboxes/{box}/execs/input/stdin", params={"eof": True}, content=data)
    assert sent.json() == {"received": len(data)}
    ran = V2(client).ran(V2(client).end(box, "input"))
    assert ran.stdout.split()[0].decode() == hashlib.md5(data).hexdigest()


def test_fault_06_a_missing_cwd_is_a_typed_error_and_nothing_runs(on: Contract, box: str) -> None:
    answer = on.send(box, "touch /workspace/strayed; pwd", cwd="/no/such/place")
    assert refusal(answer) == (422, "CwdMissing")
    assert "/no/such/place" in answer.json()["message"]
    assert b"strayed" not in on.list(box, "/workspace")


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 124", 124), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("exit 137", 137), ("exit 3", 3)],
)
def test_fault_07_an_exit_or_a_signal_is_not_taken_for_a_timeout(
    on: Contract, box: str, command: str, code: int
) -> None:
    ran = on.run(box, command, timeout=60)
    assert (ran.exit_code, ran.limit_s) == (code, None)


def test_fault_07_a_timeout_is_told_with_the_limit_that_fired(on: Contract, box: str) -> None:
    assert on.run(box, "trap '' TERM; sleep 473300", timeout=0.4).limit_s == 0.4


def test_fault_08_argv_stays_argv(on: Contract, box: str) -> None:
    argv = ["printf", "[%s]", "a b", "$HOME", "", "c'\"d", "*", "e\nf", "`id`"]
    assert on.run(box, argv).stdout == "".join(f"[{one}]" for one in argv[2:]).encode()


def test_fault_09_values_of_the_environment_are_byte_equal(on: Contract, box: str) -> None:
    value = "line\nquote' \" $(touch /workspace/ran) `id` \\ é ;&|"
    program = "import os; os.write(1, os.environb[b'VALUE'])"
    assert on.run(box, ["python3", "-c", program], env={"VALUE": value}).stdout == value.encode()
    assert b"ran" not in on.list(box, "/workspace")


def test_fault_10_input_is_empty_unless_given(on: Contract, box: str) -> None:
    ran = on.run(box, "cat; readlink /proc/self/fd/0")
    assert (ran.exit_code, ran.stdout) == (0, b"/dev/null\n")


def test_fault_11_argv_and_files_work_in_an_image_with_nothing_but_one_program(
    on: Contract, scratch: str
) -> None:
    ran = on.run(scratch, ["/program", "-version"])
    assert (ran.exit_code, ran.stdout.strip().isdigit()) == (0, True)
    on.write(scratch, "/workspace/f", b"kept").raise_for_status()
    assert on.read(scratch, "/workspace/f") == b"kept"
    assert b"f" in on.list(scratch, "/workspace")


def test_fault_11_a_missing_shell_is_a_typed_error_that_says_what_to_do(on: Contract, scratch: str) -> None:
    answer = on.send(scratch, "echo hi")
    assert refusal(answer) == (422, "NoShell")
    assert "shell" in answer.json()["message"]
    assert "argv" in answer.json()["message"] + answer.json()["hint"]


@pytest.mark.parametrize("login", [False, True])
def test_fault_11_nor_does_v1_find_a_shell_for_a_login_or_a_patch(
    service: Orchestrator, scratch: str, login: bool
) -> None:
    client = service.client
    order = {"command": ["/program", "-version"], "login_shell": login, "wait": True}
    answer = client.post(f"/sandboxes/{scratch}/exec", json=order)
    assert answer.status_code == (422 if login else 200)
    assert not login or refusal(answer) == (422, "NoShell")
    patch = client.post(f"/sandboxes/{scratch}/apply_patch", json={"patch": "--- a/f\n+++ b/f\n"})
    assert refusal(patch) == (422, "NoShell")
    assert not [name for name in V1(client).list(scratch, "/tmp") if b"patch" in name]


def test_fault_11_scripts_run_without_bash_and_coreutils(on: Contract, small: str) -> None:
    ran = on.run(small, "x=$(echo hi); echo $x there; echo err >&2; exit 3", timeout=60)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"hi there\n", b"err\n")
    assert on.run(small, "sleep 474400 & sleep 474401", timeout=0.5).limit_s == 0.5
    assert on.run(small, COUNT % 44).stdout == b"0\n"


def test_fault_11_a_login_shell_works_without_bash(service: Orchestrator, small: str) -> None:
    V1(service.client).write(small, "/etc/profile", b"export MARK=read\n").raise_for_status()
    order = {"command": "echo $MARK", "login_shell": True, "wait": True}
    answer = service.client.post(f"/sandboxes/{small}/exec", json=order)
    assert V1(service.client).ran(answer).stdout == b"read\n"


def test_fault_11_a_user_that_is_not_root_has_all_of_it(on: Contract, service: Orchestrator) -> None:
    box = V2(service.client).make(user="1234:1234")
    try:
        ran = on.run(box, "id -u; echo x > ~/f; cat ~/f; cat > g < ~/f; cat g")
        assert (ran.exit_code, ran.stdout) == (0, b"1234\nx\nx\n")
        on.write(box, "/workspace/h", b"written").raise_for_status()
        assert on.run(box, ["stat", "-c", "%u", "/workspace/h"]).stdout == b"1234\n"
    finally:
        on.delete(box).raise_for_status()


def test_fault_12_no_zombies_pile_up(on: Contract, box: str) -> None:
    on.run(box, "for i in $(seq 60); do (true &) ; done; setsid sh -c 'true & true &'")
    zombies = "grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l"
    script = f"for i in $(seq 500); do [ $({zombies}) = 0 ] && break; sleep 0.02; done; {zombies}"
    assert on.run(box, script).stdout == b"0\n"


@pytest.fixture(params=TERMINALS)
def on_terminal(request: pytest.FixtureRequest, service: Orchestrator, box: str) -> Opener:
    """Opens a terminal in the shared sandbox, by either contract."""
    return lambda script: TERMINALS[request.param](service.url, box, ["sh", "-c", script])


async def test_fault_13_a_terminal_shows_the_tail_of_what_was_said_at_its_end(on_terminal: Opener) -> None:
    async with on_terminal("seq 1 30000; exit 7") as terminal:
        shown = await terminal.shown()
        assert (shown.split(), await terminal.code()) == ([b"%d" % n for n in range(1, 30001)], 7)


async def test_fault_13_a_large_paste_arrives_whole(on_terminal: Opener) -> None:
    pasted = bytes(32 + byte % 90 for byte in range(1_000_000))
    async with on_terminal(f"stty raw -echo; echo up; head -c {len(pasted)} | md5sum") as terminal:
        await terminal.shown(b"up")
        for at in range(0, len(pasted), 20_000):
            await terminal.type(pasted[at : at + 20_000])
        assert hashlib.md5(pasted).hexdigest().encode() in await terminal.shown()


async def test_fault_13_a_paste_that_nobody_reads_keeps_no_signal_from_the_program(
    on_terminal: Opener,
) -> None:
    async with on_terminal("stty raw -echo; echo up; sleep 474301") as terminal:
        await terminal.shown(b"up")
        for _ in range(100):
            await terminal.type(b"x" * 20_000)
        await terminal.signal(signal.SIGKILL)
        await terminal.shown()
        assert await terminal.code() == 137


@pytest.mark.parametrize("pasted", [0, 12_000_000], ids=["with nothing to read", "before a paste is read"])
async def test_fault_13_the_program_and_its_children_end_when_the_client_leaves(
    on_terminal: Opener, service: Orchestrator, box: str, pasted: int
) -> None:
    async with on_terminal("stty raw -echo; sleep 473301 & echo up; sleep 473302") as terminal:
        await terminal.shown(b"up")
        typing = asyncio.ensure_future(type_all(terminal, pasted))
        await asyncio.wait([typing], timeout=0.5)  # for ever, where nobody reads
        terminal.leave()
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)
        script = f"until [ $({COUNT % 33}) = 0 ]; do sleep 0.05; done"
        left = await asyncio.to_thread(V2(service.client).run, box, script, timeout=30)
    assert (left.exit_code, left.limit_s) == (0, None)


async def type_all(terminal: Terminal, size: int) -> None:
    """A paste of that size."""
    for _ in range(size // 20_000):
        await terminal.type(b"x" * 20_000)
