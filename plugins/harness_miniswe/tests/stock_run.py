"""A run of mini-swe-agent as its users run it, beside ours: its own agent, model (litellm) and environment.

    python stock_run.py URL KEY CONFIG CWD TASK OUT

Leaves the trajectory at OUT, and prints the seconds that the agent took, imports left out.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ |= {
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_GLOBAL_CONFIG_DIR": tempfile.mkdtemp(prefix="stock-miniswe-"),
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it would be fetched from the network
}

from minisweagent.agents.default import DefaultAgent
from minisweagent.config import get_config_from_spec
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel


def main() -> None:
    url, key, name, cwd, task, out = sys.argv[1:]
    config = get_config_from_spec(name)
    asked = {**config["model"].pop("model_kwargs", {}), "api_base": url, "api_key": key}
    kind = LitellmTextbasedModel if "textbased" in name else LitellmModel
    model = kind(
        model_name="openai/fake", model_kwargs=asked, cost_tracking="ignore_errors", **config["model"]
    )
    environment = LocalEnvironment(**{**config["environment"], "cwd": cwd})
    agent = DefaultAgent(model, environment, **{**config["agent"], "output_path": Path(out)})
    began = time.perf_counter()
    agent.run(task)
    sys.stdout.write(f"\n{time.perf_counter() - began}\n")  # litellm prints, too


if __name__ == "__main__":
    main()
