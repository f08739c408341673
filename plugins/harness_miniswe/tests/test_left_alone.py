"""This process, its environment and its home are as before; litellm is not in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, json, os, sys

def found():
    return {"environ": dict(os.environ), "home": sorted(os.listdir(os.environ["HOME"]))}

before = found()

from orchard_core import Gateway, Limits, SandboxSpec, SessionContext, Task, load_harness
from orchard_core.testing import FakeModel, FakeProvider, FakeReply

async def main():
    task = Task(id="t", taskset="tests", instruction="Do it.")
    said = FakeReply.call("bash", command="env; echo; echo done")
    end = FakeReply.call("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
    provider = FakeProvider()
    async with Gateway() as gateway:
        session = await gateway.open_session(FakeModel([said, end]), SessionContext(task=task))
        sandbox = await provider.create(SandboxSpec())
        result = await load_harness("miniswe").run(task, sandbox, session.endpoint, [], Limits())
        await session.close()
    await provider.close()
    assert result.stop == "submitted", result
    return result.artifacts["mini-swe-agent.traj.json"].decode()

written = asyncio.run(main())
heavy = [name for name in ("litellm", "openai", "datasets", "textual") if name in sys.modules]
print(json.dumps({"before": before, "after": found(), "heavy": heavy, "written": written}))
"""


def test_environment_home_and_output_stay_as_they_were(tmp_path: Path) -> None:
    own = {"MSWEA_GLOBAL_COST_LIMIT": "0.0000001", "MSWEA_GLOBAL_CONFIG_DIR": str(tmp_path / "never")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "HOME": str(tmp_path), "SECRET_OF_THE_HOST": "s3cret", **own},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)  # and nothing else was printed
    assert told["after"] == told["before"]
    assert told["heavy"] == []
    assert "s3cret" not in told["written"]
    assert "MSWEA_" not in told["written"]
    assert not (tmp_path / "never").exists()
