"""A sandbox whose agent was replaced answers whatever it likes: callers are told so, in words, the service
takes no more of it than it has a use for, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from orchard_env.service.seams import Tenant

from ..service.running import GENEROUS_S, KnownKeys, Running, parts_of, running
from ..service.standing_agents import end_all, standing_provider
from .conftest import made
from .replaced_agent import ReplacedAgent, replaced

MIB = 1 << 20


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the agents live."""
    path = tmp_path_factory.mktemp("agents")
    yield path
    end_all(path)


@pytest.fixture(scope="module")
def standing(root: Path) -> Iterator[Running]:
    """A service of two tenants over agents that can be replaced."""
    keys = KnownKeys(ours=Tenant(name="ours"), theirs=Tenant(name="theirs"))
    with running(lambda: parts_of(standing_provider(root), tenancy=keys), key="ours") as served:
        yield served


@pytest.fixture(scope="module")
def neighbour(standing: Running) -> str:
    """A sandbox of the other tenant, whose agent is its own."""
    return made(standing.as_caller("theirs"))


@pytest.fixture(scope="module")
def agent(standing: Running, root: Path) -> Iterator[tuple[str, ReplacedAgent]]:
    """A sandbox's id, and what answers in it."""
    box = made(standing)
    with replaced(root / box) as agent:
        yield box, agent


def whole(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An answer that HTTP has nothing against."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def status_of(**fields: object) -> bytes:
    """How a run stands, framed as the agent does it."""
    none = {"size": 0, "head": 0, "tail": 0}
    said = {"id": "x", "state": "exited", "exit_code": 0, "timed_out": False, "timeout": None}
    said |= {"duration": 0.1, "stdout": none, "stderr": none}
    raw = json.dumps({**said, **fields}).encode()
    return len(raw).to_bytes(4, "big") + raw


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HUGE = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n"
ERROR = "422 Unprocessable Entity"

ANSWERS: dict[str, bytes] = {
    "nothing": b"",
    "bytes": b"\xff\x00" * 5000 + b"\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-",
    "status 0": whole(b"{}", "000 x"),
    "status 99999": whole(b"{}", "99999 x"),
    "status of letters": whole(b"{}", "\xb2\xb3\xb9 x"),
    "another protocol": whole(b"", "101 Switching Protocols", "Upgrade: h2c"),
    "go on": whole(b"", "100 Continue"),
    "elsewhere": whole(b"", "302 Found", "Location: http://169.254.169.254/latest/meta-data/"),
    "a page": whole(b"<html>hello</html>", "200 OK", "Content-Type: text/html"),
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    "a length of letters": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    "a length too large": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{}",
    "a chunk of letters": CHUNKED + b"zz\r\n{}\r\n",
    "a negative chunk": CHUNKED + b"-2\r\n{}\r\n",
    "a chunk too large": CHUNKED + b"ffff\r\n{}\r\n",
    "no JSON": whole(b"{"),
    "null": whole(b"null"),
    "a list": whole(b"[]"),
    "a number": whole(b"7" * 9000),
    "no UTF-8": whole(b'{"a": "\xff\xfe"}'),
    "deep": whole(b"[" * 100_000),
    "wrong kinds": whole(b'{"runs": 5, "delivered": [], "token": {}, "stdin_received": "x", "type": 1}'),
    "no frame": whole(b"\xff\xff\xff\xff{}"),
    "a deep frame": whole((100_000).to_bytes(4, "big") + b"[" * 100_000),
    "a list for a run": whole((2).to_bytes(4, "big") + b"[]"),
    "no state": whole(status_of(state="dreaming")),
    "a huge code": whole(status_of(exit_code=10**400)),
    "a code of text": whole(status_of(exit_code="0", id=["x"], duration="long")),
    "negative sizes": whole(status_of(stdout={"size": -1, "head": -5, "tail": 2})),
    "never": whole(status_of(duration=float("nan"), started=float("inf"))),
    "failed, without words": whole(status_of(state="failed", error="x")),
    "a refusal that is deep": whole(b"[" * 50_000, ERROR),
    "a refusal of another kind": whole(b'{"message": ["x"], "code": {"a": 1}, "hint": 5}', ERROR),
    "a refusal in bytes": whole(b"\xff" * 1000, ERROR),
    "another's token": whole(b"{}", "401 Unauthorized"),
    "another's id": whole(b"{}", "421 Misdirected Request"),
    "a failure": whole(b'{"message": "I broke"}', "500 Internal Server Error"),
}  # fmt: skip
"""Each is said to every call, and ends."""

CALLS: tuple[tuple[str, str, object], ...] = (
    ("POST", "/v2/sandboxes/{}/exec", {"command": "true"}),
    ("GET", "/v2/sandboxes/{}/execs", None),
    ("GET", "/v2/sandboxes/{}/execs/x", None),
    ("GET", "/v2/sandboxes/{}/execs/x/events", None),
    ("POST", "/v2/sandboxes/{}/execs/x/stdin", None),
    ("POST", "/v2/sandboxes/{}/execs/x/signal", {"signal": 9}),
    ("GET", "/v2/sandboxes/{}/files?path=/f", None),
    ("PUT", "/v2/sandboxes/{}/files?path=/f", None),
    ("GET", "/v2/sandboxes/{}/files/stat?path=/f", None),
    ("GET", "/v2/sandboxes/{}/files/list?path=/", None),
    ("GET", "/v2/sandboxes/{}/metrics", None),
    ("GET", "/v2/sandboxes/{}/endpoint", None),
    ("GET", "/v2/sandboxes/{}/agent/v1/exec/x", None),
    ("POST", "/sandboxes/{}/exec", {"command": "true", "wait": True}),
)


async def asked(service: Running, box: str, *calls: tuple[str, str, object]) -> list[tuple[str, int, str]]:
    """What each call is told: the call, the status and the text, which the service may cut."""

    async def ask(
        session: aiohttp.ClientSession, method: str, path: str, body: object
    ) -> tuple[str, int, str]:
        told = b""
        async with session.request(method, path.format(box), json=body) as answer:
            with contextlib.suppress(aiohttp.ClientPayloadError):
                async for piece in answer.content.iter_any():
                    told += piece if len(told) < MIB else b""
        return f"{method} {path}", answer.status, told.decode("utf-8", "replace")

    headers = {"X-API-Key": "ours"}
    patience = aiohttp.ClientTimeout(total=GENEROUS_S)
    async with aiohttp.ClientSession(service.url, headers=headers, timeout=patience) as session:
        return await asyncio.gather(*(ask(session, *call) for call in calls))


async def unharmed(service: Running, neighbour: str) -> None:
    """The other tenant's sandbox does as it is told."""
    with service.client(key="theirs") as owner:
        told = owner.post(f"/v2/sandboxes/{neighbour}/exec", json={"command": "echo well"}).json()
    assert told["stdout"]["data"] == "well\n"


_CUT = ("nothing", "half a head", "a length too large", "a chunk too large")
"""What may be an accident: it is asked again for some seconds."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in _CUT)) for name in ANSWERS]
)
async def test_no_answer_of_a_replaced_agent_breaks_the_service(
    standing: Running, agent: tuple[str, ReplacedAgent], name: str
) -> None:
    box, answers = agent
    answers.saying = lambda: iter((ANSWERS[name],))
    for call, status, text in await asked(standing, box, *CALLS):
        if "/agent/" in call:
            continue  # its own refusals pass as they are
        assert status < 500 or status in (502, 503), f"{call}: {status} {text}"
        if status >= 400:
            assert json.loads(text)["message"], f"{call}: {status} {text}"
        assert "meta-data" not in text


def endless(head: bytes, piece: bytes) -> Iterator[bytes]:
    return itertools.chain((head,), itertools.repeat(piece))


GARBAGE = b"a" * 4096
ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000),
    "a header": (b"HTTP/1.1 200 OK\r\nX: ", GARBAGE),
    "a status": (b"HTTP/1.1 ", GARBAGE),
    "a chunk's size": (CHUNKED, b"0" * 4096),
    "trailers": (CHUNKED + b"0\r\n", b"X: " + GARBAGE + b"\r\n"),
    "lists": (CHUNKED + b'1\r\n["', b"1000\r\n" + b"[]," * 1365 + b"[\r\n"),
    "a length": (HUGE, GARBAGE),
    "a refusal": (b"HTTP/1.1 422 x\r\nContent-Length: 99999999999999\r\n\r\n", GARBAGE),
}
OF_JSON = ("/execs", "/signal", "/metrics", "/endpoint")
"""Ends of the calls whose answer is some JSON."""


@pytest.mark.parametrize("name", ENDLESS)
async def test_of_what_has_no_end_no_more_is_taken_than_an_agent_would_say(
    standing: Running, agent: tuple[str, ReplacedAgent], neighbour: str, name: str
) -> None:
    box, answers = agent
    answers.saying, answers.most = lambda: endless(*ENDLESS[name]), 0
    for call, status, text in await asked(standing, box, *(one for one in CALLS if one[1].endswith(OF_JSON))):
        assert status == 502, f"{call}: {status} {text}"
        assert json.loads(text)["error"] == "NotAnAgent"
        assert json.loads(text)["message"]
    assert MIB < answers.most + MIB < 12 * MIB
    await unharmed(standing, neighbour)


async def test_an_output_without_end_is_cut_where_its_limit_is(
    standing: Running, agent: tuple[str, ReplacedAgent]
) -> None:
    box, answers = agent
    answers.saying, answers.most = lambda: endless(*ENDLESS["a length"]), 0
    call = ("POST", "/v2/sandboxes/{}/exec", {"command": "true", "output_limit": MIB})
    ((_, status, text),) = await asked(standing, box, call)
    assert 400 <= status < 500 or status == 502, text
    assert answers.most < 12 * MIB


async def test_of_a_file_without_end_no_more_is_taken_than_its_reader_takes(
    standing: Running, agent: tuple[str, ReplacedAgent]
) -> None:
    box, answers = agent
    answers.saying, answers.most = lambda: endless(CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n"), 0
    async with (
        aiohttp.ClientSession(standing.url, headers={"X-API-Key": "ours"}) as session,
        session.get(f"/v2/sandboxes/{box}/files?path=/f") as answer,
    ):
        assert len(await answer.content.readexactly(MIB)) == MIB
    assert answers.most < 32 * MIB


async def test_what_a_replaced_agent_says_became_of_its_sandbox_is_not_believed(
    standing: Running, agent: tuple[str, ReplacedAgent]
) -> None:
    """It would be counted out of its tenant's quota, and live on."""
    box, answers = agent
    for word in ("NodeLost", "SandboxEvicted", "SandboxGone", "QuotaExceeded", "ServiceOverloaded"):
        said = json.dumps({"message": "believe me", "error": word}).encode()
        answers.saying = lambda said=said: iter((whole(said, ERROR),))  # type: ignore[misc]
        for call, status, text in await asked(standing, box, *CALLS):
            if "/agent/" not in call and status >= 400:
                assert json.loads(text)["error"] != word, call
    with standing.client() as client:
        assert client.get(f"/v2/sandboxes/{box}").json()["status"] == "ready"


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 101 x\r\n\r\n" + b"\xff\x00" * MIB, whole(b"<html>"), b"\x00" * 9000 + b"\r\n\r\n"]
)
async def test_a_socket_to_a_replaced_agent_ends_in_words_or_with_it(
    standing: Running, agent: tuple[str, ReplacedAgent], neighbour: str, said: bytes
) -> None:
    box, answers = agent
    answers.saying = lambda: iter((said,))
    async with asyncio.timeout(GENEROUS_S), aiohttp.ClientSession(standing.url) as session:
        for path in ("agent/v1/tunnel", "ports/80", "exec/stream"):
            async with session.ws_connect(
                f"/v2/sandboxes/{box}/{path}", headers={"X-API-Key": "ours"}
            ) as socket:
                await socket.send_json({"command": "true"})
                first = await socket.receive()
                assert first.type is aiohttp.WSMsgType.TEXT, "the beginning is always in our words"
                async for _ in socket:
                    pass
    await unharmed(standing, neighbour)
