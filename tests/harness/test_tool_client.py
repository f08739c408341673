"""The command-line client, the real one, inside real sandboxes without network."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from pydantic import JsonValue

from orchard_core import (
    Gateway,
    Image,
    Sandbox,
    SandboxSpec,
    Session,
    SessionContext,
    Task,
    Text,
    Tool,
    ToolClient,
    ToolResult,
    install_tool_client,
    load_provider,
    mcp_server,
)
from orchard_core.testing import FakeModel, FakeProvider, FakeTool

TASK = Task(id="t", taskset="s", instruction="Use the tools.", digest="d")
PIXEL = bytes(range(256))
SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"words": {"type": "string"}, "count": {"type": "integer"}, "loud": {"type": "boolean"}},
    "required": ["words"],
}


@pytest.fixture
def note() -> FakeTool:
    return FakeTool("note", lambda args: ToolResult.text(f"noted {args.get('words')}"), parameters=SCHEMA)


@pytest.fixture
def tools(note: FakeTool) -> Sequence[Tool]:
    picture = ToolResult(content=(Text(text="a picture"), Image(data=PIXEL)))
    return [
        note,
        FakeTool("shot", lambda args: picture),
        FakeTool("wrong", lambda args: ToolResult.text("no such page", is_error=True)),
        FakeTool("list", lambda args: ToolResult.text("bread, milk")),
    ]


@pytest.fixture
async def session(tools: Sequence[Tool]) -> AsyncIterator[Session]:
    async with Gateway() as gateway:
        context = SessionContext(rollout="r", task=TASK, solution=lambda: None)
        yield await gateway.open_session(FakeModel(), context, tools=tools)


@pytest.fixture(params=["local", "process"])
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[Sandbox]:
    """One that shows the agent inside, and one whose paths are the host's own."""
    provider = load_provider(request.param)
    async with await provider.create(SandboxSpec()) as made:
        yield made
    await provider.close()


@pytest.fixture
async def client(sandbox: Sandbox, session: Session, tools: Sequence[Tool]) -> ToolClient:
    return await install_tool_client(sandbox, await sandbox.expose_model(session.endpoint), tools)


async def test_a_call_reaches_the_tool_and_prints_what_it_gave(
    sandbox: Sandbox, client: ToolClient, note: FakeTool
) -> None:
    odd = {"words": 'it\'s "quoted" $HOME ünï\n', "count": 3}
    done = await sandbox.exec(f"{client.path} note {shlex.quote(json.dumps(odd))}")
    assert (done.exit_code, done.stdout_text, done.stderr) == (0, f"noted {odd['words']}", b"")
    flags = await sandbox.exec([client.path, "note", "--words", "by flag", "--count=2", "--loud"])
    assert flags.stdout == b"noted by flag\n"
    piped = await sandbox.exec([client.path, "note", "-"], stdin=b'{"words": "piped"}')
    assert piped.stdout == b"noted piped\n"
    assert note.calls == [odd, {"words": "by flag", "count": 2, "loud": True}, {"words": "piped"}]


async def test_a_picture_is_saved_whole_and_its_path_printed(sandbox: Sandbox, client: ToolClient) -> None:
    done = await sandbox.exec([client.path, "shot"])
    said, path = done.stdout_text.splitlines()
    assert said == "a picture"
    name = path.removeprefix("[image/png: ").removesuffix("]")
    assert await sandbox.read_bytes(name) == PIXEL
    await sandbox.remove(name)


async def test_failures_go_to_standard_error_with_their_code(sandbox: Sandbox, client: ToolClient) -> None:
    for words, code, said in [
        (["wrong"], 1, "no such page"),
        (["sing"], 2, "there is no tool 'sing'"),
        (["note", "[]"], 2, "one JSON object"),
        (["note", "--volume", "9"], 2, "takes no --volume"),
        ([], 2, "usage"),
    ]:
        done = await sandbox.exec([client.path, *words])
        assert (done.exit_code, done.stdout) == (code, b"")
        assert said in done.stderr_text


async def test_it_says_what_there_is(sandbox: Sandbox, client: ToolClient) -> None:
    listed = await sandbox.exec([client.path, "list"])
    assert [line.partition("\t")[0] for line in listed.stdout_text.splitlines()] == [
        "note", "shot", "wrong", "list",
    ]  # fmt: skip
    assert "--words  string, required" in (await sandbox.exec([client.path, "note", "--help"])).text
    assert (await sandbox.exec([client.path, "call", "list"])).stdout == b"bread, milk\n"


async def test_the_instructions_tell_each_tools_command_and_schema(client: ToolClient) -> None:
    assert f"{client.path} note 'ARGUMENTS'" in client.instructions
    assert json.dumps(SCHEMA) in client.instructions
    assert f"{client.path} call list 'ARGUMENTS'" in client.instructions


async def test_the_command_carries_its_key_and_no_other_user_reads_it(
    sandbox: Sandbox, client: ToolClient, session: Session
) -> None:
    bare = await sandbox.exec(f"env -i {client.path} note '{{}}'")
    assert bare.stdout == b"noted None\n"
    assert (await sandbox.stat(client.path)).mode & 0o077 == 0
    assert session.endpoint.api_key not in client.instructions
    assert session.endpoint.api_key not in client.path


async def test_when_the_session_is_over_the_client_says_so(
    sandbox: Sandbox, client: ToolClient, session: Session
) -> None:
    await session.close()
    done = await sandbox.exec([client.path, "note"])
    assert (done.exit_code, done.stdout) == (1, b"")
    assert "not one of a running rollout" in done.stderr_text


async def test_where_no_agent_is_shown_it_is_written(session: Session, tools: Sequence[Tool]) -> None:
    provider = FakeProvider()
    async with await provider.create(SandboxSpec()) as sandbox:
        client = await install_tool_client(sandbox, session.endpoint, tools)
        done = await sandbox.exec(f"{client.path} note --words written")
        assert done.stdout == b"noted written\n"
    await provider.close()


async def test_without_tools_nothing_is_installed(sandbox: Sandbox, session: Session) -> None:
    client = await install_tool_client(sandbox, await sandbox.expose_model(session.endpoint), [])
    assert client.instructions == ""
    assert (await sandbox.exec(["test", "-e", client.path])).exit_code == 1


async def test_the_server_for_mcp_clients_is_the_same_listener(sandbox: Sandbox, session: Session) -> None:
    server = mcp_server(await sandbox.expose_model(session.endpoint))
    assert server.url.endswith("/tools/mcp")
    assert server.headers == {"Authorization": f"Bearer {session.endpoint.api_key}"}
