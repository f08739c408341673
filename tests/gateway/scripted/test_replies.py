"""`scripted` answers from a list, a callable or a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import (
    ConfigError,
    Dialect,
    Model,
    ModelRejected,
    ModelTimeout,
    SessionContext,
    Task,
    Upstream,
    UpstreamMode,
    UpstreamRequest,
)
from orchard_core.gateway.scripted import (
    Conversation,
    OracleModel,
    Reply,
    ReplyCall,
    ScriptedConfig,
    ScriptedModel,
    from_file,
)
from orchard_core.gateway.scripted.conversation import text_of

from .conversations import BASH, calls, context, request, say

HELLO = [{"role": "user", "content": "hello"}]


def test_the_scripted_models_honour_the_contracts() -> None:
    for model in (ScriptedModel(["a"]), OracleModel()):
        assert isinstance(model, Model)
        assert isinstance(model.upstream(SessionContext()), Upstream)


async def test_call_i_gets_reply_i_however_often_it_is_repeated() -> None:
    model = ScriptedModel(["one", Reply(calls=(ReplyCall(name="bash", arguments={"command": "ls"}),))])
    assert (await say(model, HELLO, index=0))["content"] == "one"
    assert calls(await say(model, HELLO, index=1)) == [("bash", {"command": "ls"})]
    assert (await say(model, HELLO, index=0))["content"] == "one"


async def test_a_call_beyond_the_script_is_refused_and_says_how_long_it_is() -> None:
    with pytest.raises(ModelRejected, match="2 replies, and call 3"):
        await say(ScriptedModel(["a", "b"]), HELLO, index=2)


async def test_an_error_in_the_script_is_raised() -> None:
    with pytest.raises(ModelTimeout):
        await say(ScriptedModel([ModelTimeout("slow", limit_s=1)]), HELLO)


async def test_a_callable_sees_the_conversation() -> None:
    def echo(conversation: Conversation) -> str:
        return text_of(conversation.messages[-1]).upper()

    assert (await say(ScriptedModel(echo), HELLO))["content"] == "HELLO"


async def test_a_stream_adds_up_to_the_whole_answer() -> None:
    reply = Reply(
        text="A long text, " * 9,
        reasoning="Thinking.",
        calls=(
            ReplyCall(name="bash", arguments={"command": "echo 'a b' | wc -c; seq 1 2000 > numbers"}),
            ReplyCall(name="bash", arguments='{"command": "cut'),
        ),
    )
    upstream = ScriptedModel([reply]).upstream(context())
    whole = json.loads((await upstream.complete(request(HELLO, tools=[BASH]))).body)
    asked = request(HELLO, tools=[BASH], stream=True, stream_options={"include_usage": True})
    chunks = [json.loads(chunk) async for chunk in upstream.stream(asked)]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    message = whole["choices"][0]["message"]
    assert "".join(delta.get("content") or "" for delta in deltas) == message["content"]
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "Thinking."
    for place, call in enumerate(message["tool_calls"]):
        parts = [part for delta in deltas for part in delta.get("tool_calls", ()) if part["index"] == place]
        assert "".join(part["function"]["arguments"] for part in parts) == call["function"]["arguments"]
        assert parts[0]["id"] == call["id"]
    assert len(deltas) > 10
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_stream_tells_the_same_ids_as_the_whole_answer() -> None:
    """Piece by piece, under vLLM's names, with log-probabilities."""
    told = {"prompt_tokens": (5, 6), "completion_tokens": tuple(range(7)), "logprobs": (-0.5,) * 7}
    reply = Reply(text="word " * 20, **told)  # type: ignore[arg-type]
    asked = request(HELLO, stream=True)
    stream = ScriptedModel([reply]).upstream(context()).stream(asked)
    chunks = [json.loads(chunk) async for chunk in stream]
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [chunk.get("prompt_token_ids") for chunk in chunks[:2]] == [[5, 6], None]
    assert [token for choice in choices for token in choice["token_ids"]] == list(range(7))
    assert len([choice for choice in choices if choice["token_ids"]]) > 1
    assert all(len(choice["logprobs"]["content"]) == len(choice["token_ids"]) for choice in choices)


async def test_usage_comes_in_a_stream_only_when_asked_for() -> None:
    upstream = ScriptedModel(["hi"]).upstream(context())
    chunks = [json.loads(chunk) async for chunk in upstream.stream(request(HELLO, stream=True))]
    assert all(chunk["choices"] for chunk in chunks)


async def test_a_lone_surrogate_survives_both_ways() -> None:
    model = ScriptedModel(lambda conversation: "\ud800 " + conversation.messages[-1]["content"])
    message = await say(model, [{"role": "user", "content": "\udfff"}])
    assert message["content"] == "\ud800 \udfff"


async def test_token_ids_in_a_script_reach_the_gateway() -> None:
    reply = Reply(text="a", prompt_tokens=(1, 2), completion_tokens=(3,), logprobs=(-0.5,))
    upstream = ScriptedModel([reply], mode=UpstreamMode.CHAT).upstream(context())
    answer = await upstream.complete(request(HELLO))
    assert upstream.mode is UpstreamMode.CHAT
    assert (answer.prompt_tokens, answer.completion_tokens, answer.logprobs) == ((1, 2), (3,), (-0.5,))


@pytest.mark.parametrize("body", [b"nonsense", b"[]", b'{"messages": 3}', b"[" * 200_000])
async def test_a_request_that_is_none_is_refused(body: bytes) -> None:
    bad = UpstreamRequest(dialect=Dialect.CHAT, body=body, index=0, timeout_s=1)
    with pytest.raises(ModelRejected):
        await ScriptedModel(["a"]).upstream(context()).complete(bad)


async def test_a_file_holds_one_reply_a_line_some_for_one_task_only(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text(
        '{"text": "for a", "task": "a"}\n\n'
        '{"text": "for b", "task": "b"}\n'
        '{"calls": [{"name": "submit", "arguments": {"answer": "1"}}, {"name": "x", "arguments": "{"}]}\n'
    )
    model = from_file(ScriptedConfig(path=path))
    within = SessionContext(task=Task(id="b", taskset="t", instruction="."))
    assert (await say(model, HELLO, within=within, index=0))["content"] == "for b"
    assert calls(await say(model, HELLO, within=within, index=1)) == [("submit", {"answer": "1"}), ("x", "{")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}\nnonsense\n", ":2: "),
        ('{"txt": "a"}\n', "txt"),
        ('{"calls": [{"name": "a"}]}\n', "arguments"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        from_file(ScriptedConfig(path=path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.jsonl"):
        from_file(ScriptedConfig(path=tmp_path / "none.jsonl"))
