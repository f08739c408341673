"""`harbor_trial.py TASK TRIALS`: a real trial of Harbor's oracle in an Orchard sandbox."""

from __future__ import annotations

import asyncio
import json
import sys

from harbor.models.trial.config import TrialConfig
from harbor.trial.trial import Trial


async def main(task: str, trials: str) -> None:
    """Run it and say how it went."""
    config = TrialConfig.model_validate({
        "task": {"path": task},
        "trials_dir": trials,
        "agent": {"name": "oracle"},
        "environment": {"import_path": "orchard_env.adapters.harbor:OrchardEnvironment"},
    })  # fmt: skip
    trial = await Trial.create(config)
    result = await trial.run()
    failed = result.exception_info
    verified = result.verifier_result
    said = {
        "failed": failed and failed.exception_message,
        "rewards": verified and verified.rewards,
        "log": (trial.paths.agent_dir / "oracle.txt").read_text(),
    }
    sys.stdout.write(json.dumps(said) + "\n")


asyncio.run(main(*sys.argv[1:]))
