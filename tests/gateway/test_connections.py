"""How model servers are reached: keys, proxies, TLS, connections kept."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from orchard_core import ConfigError, ModelUnavailable
from orchard_core.gateway.app import GatewayApp
from orchard_core.gateway.listener import Listener
from orchard_core.gateway.openai import OpenAIConfig, OpenAIModel
from orchard_core.gateway.pool import Pool
from orchard_core.plugins.lookup import load_model

from .conftest import Open
from .model_server import ModelServer, chunk, streams

Seen = list[bytes]
REPLY = b'{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="needs a key") as raised:
        load_model("openai:gpt-5")
    assert "OPENAI_API_KEY" in raised.value.hint


def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env-secret")
    config = OpenAIConfig(model="m", api_key="sk-given-secret", headers={"X-Team": "hidden-team"})  # type: ignore[arg-type, dict-item]
    auth = {"Authorization": "Bearer sk-given-secret"}
    target = config.endpoint("http://x/v1", "sk-given-secret", auth)._target
    shown = repr(config) + config.model_dump_json() + repr(target)
    assert "secret" not in shown
    assert "hidden" not in shown


def test_a_header_of_the_users_takes_the_place_of_ours_however_it_is_spelled() -> None:
    config = OpenAIConfig(model="m", headers={"aUTHORIZATION": "Token of-mine"})  # type: ignore[dict-item]
    target = config.endpoint("http://x/v1", "k", {"Authorization": "Bearer k"})._target
    assert dict(target.headers) == {"authorization": "Token of-mine"}


@pytest.mark.parametrize("url", ["http://x:99999/v1", "localhost:8000/v1", "ftp://x/v1", "http://"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base URL"):
        OpenAIModel(OpenAIConfig(model="m", base_url=url))


async def test_the_base_url_and_key_come_from_the_environment(
    server: ModelServer, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    model = load_model("openai:some/model:8b")
    assert model.name == "some/model:8b"
    _, client = await open_session(model)
    assert (await client.say("go")).status == 200
    assert server.asked[0].request.headers["Authorization"] == "Bearer sk-env"
    await model.close()


async def test_connections_are_kept_and_used_again(server: ModelServer, open_session: Open) -> None:
    _, client = await open_session()
    for at in range(5):
        await client.say(f"{at}")
    assert len({asked.request.transport for asked in server.asked}) == 1


async def test_a_connection_that_carried_a_stream_is_used_again(
    server: ModelServer, open_session: Open
) -> None:
    server.otherwise = streams(chunk({"content": "x"}, "stop"))
    _, client = await open_session()
    for at in range(5):
        assert (await client.say(f"{at}", stream=True)).events[-1] == "[DONE]"
    assert len({asked.request.transport for asked in server.asked}) == 1


async def test_a_proxy_of_the_environment_is_used(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Seen = []
    port, close = await _listen(_answer(seen))
    monkeypatch.setenv("http_proxy", f"http://user:pa%20ss@127.0.0.1:{port}")
    monkeypatch.delenv("no_proxy", raising=False)
    _, client = await open_session(base_url="http://models.invalid:81/v1", token_ids="off")
    assert (await client.say("go")).message["content"] == "hi"
    head = seen[0].decode()
    assert head.startswith("POST http://models.invalid:81/v1/chat/completions HTTP/1.1\r\n")
    assert "Host: models.invalid:81\r\n" in head
    assert "Proxy-Authorization: Basic dXNlcjpwYSBzcw==\r\n" in head
    close()


async def test_tls_and_a_tunnel_through_a_proxy(
    tmp_path: Path, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, cert = _certificate(tmp_path)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(cert, key)
    seen: Seen = []
    port, close = await _listen(_answer(seen), server_side)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    asked: Seen = []
    proxy, close_proxy = await _listen(_tunnel(asked))
    for base, through in ((f"https://127.0.0.1:{port}/v1", False), (f"https://models.test:{port}/v1", True)):
        if through:
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy}")
        _, client = await open_session(base_url=base, token_ids="off")
        assert (await client.say("go")).message["content"] == "hi"
    assert asked[0].startswith(f"CONNECT models.test:{port} HTTP/1.1\r\n".encode())
    assert b"vendor-secret-key" not in asked[0]
    close()
    close_proxy()


async def test_a_certificate_of_a_stranger_is_refused(tmp_path: Path) -> None:
    key, cert = _certificate(tmp_path)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(cert, key)
    port, close = await _listen(_answer([]), server_side)
    pool = Pool(f"https://127.0.0.1:{port}/v1/chat/completions", {}, connect_timeout_s=5)
    with pytest.raises(ModelUnavailable, match=r"(?i)certificate"):
        async with pool.post(b"{}"):
            pass
    close()


async def test_a_server_that_does_not_accept_is_told_in_time() -> None:
    pool = Pool("http://192.0.2.1:81/v1/chat/completions", {}, connect_timeout_s=0.1)
    with pytest.raises(ModelUnavailable, match=r"could not be reached"):
        async with pool.post(b"{}"):
            pass


def _certificate(folder: Path) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl command")
    key, cert = folder / "key.pem", folder / "cert.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:models.test"
    command = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext {names}"
    subprocess.run([*command.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
    return key, cert


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _listen(serve: Serve, context: ssl.SSLContext | None = None) -> tuple[int, Callable[[], None]]:
    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port: int = listener.sockets[0].getsockname()[1]
    return port, listener.close


def _answer(seen: Seen) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head)
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(REPLY) + REPLY)
        await reader.read()
        writer.close()

    return serve


def _tunnel(seen: Seen) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head)
        port = int(head.split(b" ")[1].rpartition(b":")[2])
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    return serve


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
    except ConnectionError:
        pass
    writer.close()


async def test_no_answer_waits_for_a_delayed_acknowledgement() -> None:
    """Without TCP_NODELAY an answer of two writes takes 40 ms."""
    listener = Listener(GatewayApp(max_body=1 << 20, stall_s=5.0))
    async with listener as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 4")
        [connection] = listener._state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        writer.close()
