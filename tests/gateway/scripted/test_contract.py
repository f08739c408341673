"""The scripted models do what every model must."""

from __future__ import annotations

import pytest

from orchard_core import Model
from orchard_core.gateway.scripted import (
    NoisyOracleConfig,
    NoisyOracleModel,
    OracleModel,
    Reply,
    ReplyCall,
    ScriptedModel,
)
from orchard_core.testing import ModelSuite


class TestOracle(ModelSuite):
    """It plays the task's solution."""

    @pytest.fixture
    def model(self) -> Model:
        """The oracle."""
        return OracleModel()


class TestNoisyOracle(ModelSuite):
    """It makes a mistake at every step."""

    @pytest.fixture
    def model(self) -> Model:
        """The oracle with mistakes."""
        return NoisyOracleModel(NoisyOracleConfig(rate=1.0))


class TestScripted(ModelSuite):
    """It says what it is told."""

    @pytest.fixture
    def model(self) -> Model:
        """A text and a call."""
        call = ReplyCall(name="bash", arguments={"command": "true"})
        return ScriptedModel([Reply(text="So.", calls=(call,), reasoning="hm")])
