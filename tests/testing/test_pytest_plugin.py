"""The fixtures that every author of a plugin gets."""

from __future__ import annotations

import json

from orchard_core import Dialect, Sandbox, SandboxSpec, SessionContext, UpstreamRequest
from orchard_core.gateway.server import Gateway
from orchard_core.testing import FakeBlobs, FakeFeed, FakeModel, FakeProvider, FakeTaskSet, chat


async def test_a_fake_sandbox_runs_commands_in_its_own_directory(fake_sandbox: Sandbox) -> None:
    await fake_sandbox.write("/workspace/file", b"content")
    assert (await fake_sandbox.exec("cat file /workspace/file")).stdout == b"contentcontent"


async def test_a_fake_provider_counts_its_sandboxes(fake_provider: FakeProvider) -> None:
    await fake_provider.create(SandboxSpec())
    assert len(fake_provider.created) == 1


async def test_a_local_sandbox_is_isolated(local_sandbox: Sandbox) -> None:
    assert local_sandbox.capabilities.isolated
    assert (await local_sandbox.exec("echo hi")).stdout == b"hi\n"


async def test_a_gateway_records_what_a_model_says(orchard_gateway: Gateway, fake_model: FakeModel) -> None:
    session = await orchard_gateway.open_session(fake_model, SessionContext())
    answer = await chat(session.endpoint, [{"role": "user", "content": "hello"}])
    assert answer["content"] == "done"
    assert len((await session.close()).calls) == 1


async def test_fake_tokens_extend_each_other(fake_model: FakeModel) -> None:
    upstream = fake_model.upstream(SessionContext())
    talk = [{"role": "user", "content": "hello"}]
    first = await upstream.complete(_request(talk))
    talk += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "more"}]
    second = await upstream.complete(_request(talk))
    before = (*(first.prompt_tokens or ()), *(first.completion_tokens or ()))
    assert tuple(second.prompt_tokens or ())[: len(before)] == before


async def test_a_fake_feed_can_be_wound(fake_feed: FakeFeed) -> None:
    whole = [batch async for batch in fake_feed.batches()]
    rest = [batch async for batch in fake_feed.batches(from_step=4)]
    assert whole[4:] == rest


async def test_fake_blobs_give_back_what_was_added(fake_blobs: FakeBlobs) -> None:
    artifact = fake_blobs.file("/workspace/file", b"content")
    assert await fake_blobs.read(artifact.sha256) == b"content"


def test_fake_tasks_have_rewards_and_solutions(fake_taskset: FakeTaskSet) -> None:
    for task in fake_taskset.tasks():
        assert fake_taskset.solution(task) is not None
        assert fake_taskset.reward(task).name == "fake"


def _request(messages: list[dict[str, str]]) -> UpstreamRequest:
    body = json.dumps({"model": "fake", "messages": messages}).encode()
    return UpstreamRequest(dialect=Dialect.CHAT, body=body, index=0, timeout_s=10)
