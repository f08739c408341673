"""Requests recorded from the real harnesses, and what their calls are taken for."""

from __future__ import annotations

import aiohttp
import pytest

from orchard_core import Gateway, Relation, SampleReport, build_sample_report
from orchard_core.gateway.scripted import OracleModel

from .golden.replay import HERE, context, load


async def report_of(name: str) -> SampleReport:
    """The report of a recording that is sent through a gateway again."""
    async with Gateway() as gateway, aiohttp.ClientSession() as client:
        session = await gateway.open_session(OracleModel(), context())
        key = session.endpoint.api_key
        headers = {"Authorization": f"Bearer {key}", "x-api-key": key, "anthropic-version": "2023-06-01"}
        for sent in load(HERE / f"{name}.json"):
            url = session.endpoint.root_url + sent.path
            async with client.request(sent.method, url, json=sent.request, headers=headers) as answer:
                await answer.read()
        return build_sample_report(await session.close())


async def test_opencode_s_request_for_a_title_is_a_side_call() -> None:
    report = await report_of("opencode")
    assert [(thread.kind.value, len(thread.calls)) for thread in report.threads] == [("main", 2), ("side", 1)]
    (title,) = report.threads[1].calls
    assert report.calls[title].relation is Relation.SIDE


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("claude", Relation.APPENDED),
        ("codex", Relation.APPENDED),
        ("kimi", Relation.REALIGNED),  # it writes the arguments of a call anew, without blanks
        ("miniswe", Relation.APPENDED),
        ("pi", Relation.REALIGNED),  # likewise
    ],
)
async def test_every_other_harness_keeps_to_one_thread(name: str, relation: Relation) -> None:
    report = await report_of(name)
    (main,) = report.threads
    assert main.calls == tuple(call.call for call in report.calls)
    assert len(report.calls) >= 2
    assert [call.relation for call in report.calls[1:]] == [relation] * (len(report.calls) - 1)
