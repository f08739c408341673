"""Sending a harness's requests to a gateway whose model is scripted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import Field

from orchard_core.gateway.contract import SessionContext
from orchard_core.gateway.expand import conversations
from orchard_core.gateway.scripted import OracleModel
from orchard_core.gateway.server import Gateway
from orchard_core.types.base import Record
from orchard_core.types.model import ModelCall
from orchard_core.types.task import Solution, SolutionStep, Task
from orchard_core.types.trajectory import Trajectory

HERE = Path(__file__).parent
INSTRUCTION = "Write 42 into answer.txt."
SOLUTION = Solution(
    steps=(SolutionStep(command="printf 42 > answer.txt", thought="On with it."),), answer="forty-two"
)
TASK = Task(id="golden", taskset="golden", instruction=INSTRUCTION)


class Exchange(Record):
    """A request as the harness sent it, foreign prose replaced, and what the gateway made of it."""

    method: str
    """HTTP method."""
    path: str
    """Path and query."""
    request: Any = None
    """The JSON body; None: there was none."""
    status: int = 0
    """HTTP status of the answer."""
    answer: str = ""
    """Body of the answer: JSON text or server-sent events."""
    dropped: Mapping[str, int] = Field(default_factory=dict)
    """Fields that the translation left out."""
    heard: tuple[Any, ...] = ()
    """Messages that the model saw; empty for what is no model call."""


def context() -> SessionContext:
    """Of a session whose oracle writes one file and answers."""
    return SessionContext(rollout="golden", task=TASK, solution=lambda: SOLUTION)


async def replay(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The same requests, with what this gateway makes of them."""
    async with Gateway() as gateway, aiohttp.ClientSession() as client:
        session = await gateway.open_session(OracleModel(), context())
        key = session.endpoint.api_key
        headers = {"Authorization": f"Bearer {key}", "x-api-key": key, "anthropic-version": "2023-06-01"}
        answered = []
        for each in exchanges:
            before = len(session.trajectory().calls)
            url = session.endpoint.root_url + each.path
            async with client.request(each.method, url, json=each.request, headers=headers) as answer:
                body = await answer.text()
            made = session.trajectory()
            call = made.calls[-1] if len(made.calls) > before else None
            answered.append(
                each.model_copy(
                    update={
                        "status": answer.status,
                        "answer": body,
                        "dropped": dict(call.dropped) if call else {},
                        "heard": _heard(made, call) if call else (),
                    }
                )
            )
        await session.close()
    return answered


def _heard(made: Trajectory, call: ModelCall) -> tuple[Any, ...]:
    return tuple(json.loads(made.messages[name].raw) for name in conversations(made)[call.index])


def load(path: Path) -> list[Exchange]:
    """The exchanges of one golden file."""
    return [Exchange.model_validate(each) for each in json.loads(path.read_text())]
