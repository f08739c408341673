"""A run of mini-swe-agent as its users run it, beside ours: its own agent, model (litellm) and environment.

    python stock_run.py URL KEY CONFIG CWD TASK OUT [litellm|requests]

Leaves the trajectory at OUT, and prints the seconds that the agent took, imports left out. With `requests`,
its OpenRouter model asks in place of litellm.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ |= {
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_GLOBAL_CONFIG_DIR": tempfile.mkdtemp(prefix="stock-miniswe-"),
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it would be fetched from the network
}

from minisweagent.agents.default import DefaultAgent
from minisweagent.config import get_config_from_spec
from minisweagent.environments.local import LocalEnvironment


def main() -> None:
    url, key, name, cwd, task, out, *way = sys.argv[1:]
    config = get_config_from_spec(name)
    model = (
        through_requests(url, key, config) if way == ["requests"] else through_litellm(url, key, config, name)
    )
    environment = LocalEnvironment(**{**config["environment"], "cwd": cwd})
    agent = DefaultAgent(model, environment, **{**config["agent"], "output_path": Path(out)})
    began = time.perf_counter()
    agent.run(task)
    sys.stdout.write(f"\n{time.perf_counter() - began}\n")  # litellm prints, too


def through_litellm(url: str, key: str, config: dict[str, Any], name: str) -> Any:
    """The default."""
    from minisweagent.models.litellm_model import LitellmModel
    from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

    asked = {**config["model"].pop("model_kwargs", {}), "api_base": url, "api_key": key}
    kind = LitellmTextbasedModel if "textbased" in name else LitellmModel
    return kind(
        model_name="openai/fake", model_kwargs=asked, cost_tracking="ignore_errors", **config["model"]
    )


def through_requests(url: str, key: str, config: dict[str, Any]) -> Any:
    """The lightest model that it ships."""
    from minisweagent.models.openrouter_model import OpenRouterModel

    options = {**config["model"], "model_kwargs": {}}
    kind: Any = OpenRouterModel
    model = kind(model_name="fake", cost_tracking="ignore_errors", **options)
    model._api_url, model._api_key = f"{url}/chat/completions", key
    return model


if __name__ == "__main__":
    main()
