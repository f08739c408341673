"""The parts of mini-swe-agent that we build on. Its import would greet, make a directory in the user's home
and read process-wide limits from the environment: it is told not to, and the environment is put back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_READ = ("SILENT_STARTUP", "GLOBAL_CONFIG_DIR", "GLOBAL_COST_LIMIT", "GLOBAL_CALL_LIMIT")


@contextmanager
def _left_alone() -> Iterator[None]:
    names = [f"MSWEA_{name}" for name in _READ]
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="orchard-miniswe-") as place:
        os.environ |= {"MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": place}
        try:
            yield
        finally:
            for name in names:
                os.environ.pop(name, None)
            os.environ |= before


with _left_alone():
    from minisweagent import __version__ as __version__
    from minisweagent.agents import get_agent_class as get_agent_class
    from minisweagent.agents.default import DefaultAgent as DefaultAgent
    from minisweagent.config import get_config_from_spec as get_config_from_spec
    from minisweagent.environments import local as local
    from minisweagent.models import openrouter_model as openrouter_model
    from minisweagent.models import openrouter_textbased_model as openrouter_textbased_model
    from minisweagent.models.utils.actions_toolcall import BASH_TOOL as BASH_TOOL
    from minisweagent.utils.serialize import recursive_merge as recursive_merge
