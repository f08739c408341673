"""The contract suite of models."""

from __future__ import annotations

import asyncio

import pytest

from orchard_core.gateway.contract import Model, SessionContext, Upstream
from orchard_core.testing.fakes.taskset import FakeTaskSet
from orchard_core.testing.suites.model.assemble import said_by
from orchard_core.testing.suites.model.upstream import MakeUpstream, UpstreamSuite
from orchard_core.types.model import Price


class ModelSuite(UpstreamSuite):
    """Subclasses give the fixture `model`; its upstreams are held to UpstreamSuite as well."""

    @pytest.fixture
    def context(self) -> SessionContext:
        """The session a model is opened for: a task with a solution."""
        taskset = FakeTaskSet.of(1)
        task = taskset.tasks()[0]
        return SessionContext(rollout="r-0", task=task, solution=lambda: taskset.solution(task), seed=1)

    @pytest.fixture
    def make_upstream(self, model: Model, context: SessionContext) -> MakeUpstream:
        """See UpstreamSuite."""
        return lambda: model.upstream(context)

    async def test_a_model_tells_its_name_price_and_bound(self, model: Model) -> None:
        """Names are stored, prices summed and bounds obeyed: an unknown price is None, a free one is 0."""
        assert isinstance(model, Model)
        assert model.name
        assert model.price is None or isinstance(model.price, Price)
        assert model.concurrency is None or model.concurrency >= 1
        await model.close()

    async def test_every_session_gets_an_upstream(self, model: Model, context: SessionContext) -> None:
        """The gateway opens one session a rollout: never return None or a coroutine."""
        for _ in range(2):
            assert isinstance(model.upstream(context), Upstream)
        await model.close()

    async def test_sessions_do_not_share_a_script(self, model: Model, context: SessionContext) -> None:
        """Rollouts run side by side: what one session asked must not change what another hears."""
        if not self.deterministic:
            pytest.skip("its answers vary anyway")
        first = said_by((await model.upstream(context).complete(self.ask())).body)
        both = await asyncio.gather(*(model.upstream(context).complete(self.ask()) for _ in range(2)))
        assert [said_by(reply.body) for reply in both] == [first, first]
        await model.close()

    async def test_a_model_may_be_closed_twice(self, model: Model) -> None:
        """Error paths close twice: the second time does nothing."""
        await model.close()
        await model.close()
