"""What a model of LiteLLM's knows of itself, and what loading the package leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchard_core import ConfigError, Price
from orchard_core.gateway.litellm.config import LiteLLMConfig
from orchard_core.gateway.litellm.model import LiteLLMModel
from orchard_core.gateway.litellm.prices import price_of

from . import needs_litellm

pytestmark = needs_litellm


def model(name: str, **options: Any) -> LiteLLMModel:
    """With a key."""
    return LiteLLMModel(LiteLLMConfig.model_validate({"model": name, "api_key": "sk-k", **options}))


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("anthropic/claude-sonnet-4-5", Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)),
        ("openai/gpt-5-mini", Price(input=0.25, output=2.0, cache_read=0.025)),
        ("openai/gpt-nobody-knows", None),
        ("ollama/qwen3", None),
        ("hosted_vllm/anything", None),
    ],
)
def test_a_price_is_litellms_or_unknown(name: str, price: Price | None) -> None:
    assert model(name).price == price


def test_a_price_may_be_given() -> None:
    mine = Price(input=1.0, output=2.0)
    assert model("anthropic/claude-sonnet-4-5", price=mine).price == mine
    free = Price(input=0.0, output=0.0)
    assert model("hosted_vllm/m", price=free).price == free


def test_a_vendors_price_is_not_that_of_ones_own_server() -> None:
    assert model("openai/gpt-5-mini", base_url="http://127.0.0.1:8000/v1").price is None


def test_zero_in_the_table_is_unknown_and_a_bare_name_belongs_to_its_vendor() -> None:
    table = {
        "free": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0, "litellm_provider": "v"},
        "half": {"input_cost_per_token": 1e-6, "litellm_provider": "v"},
        "m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "litellm_provider": "v-text"},
    }
    assert price_of(table, "v/free", "v", "free") is None
    assert price_of(table, "v/half", "v", "half") is None
    assert price_of(table, "v/m", "v", "m") == Price(input=1.0, output=2.0)
    assert price_of(table, "w/m", "w", "m") is None


def test_an_unknown_vendor_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="knows no vendor"):
        model("nobody-makes-this")


def test_a_missing_key_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    config = LiteLLMConfig.model_validate({"model": "anthropic/claude-sonnet-4-5"})
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        LiteLLMModel(config)


@pytest.mark.slow
def test_loading_it_reads_no_dotenv_prints_nothing_and_asks_no_network(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ORCHARD_TEST_STRAY=1\n")
    program = """
import os, sys
asked = []
sys.addaudithook(lambda event, args: asked.append(event) if event.startswith("socket.getaddrinfo") else None)
before = dict(os.environ)
from orchard_core.gateway.litellm.library import load
assert "litellm" not in sys.modules
load()
added = {name for name in os.environ if os.environ[name] != before.get(name)}
assert added == {"LITELLM_OFFLINE_MODE"}, added
assert asked == [], asked
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("LITELLM_")},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
