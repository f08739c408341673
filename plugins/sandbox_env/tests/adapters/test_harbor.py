"""Harbor, the real package, in the sandboxes of a real service."""

from __future__ import annotations

from pathlib import Path

import pytest

from .environments import Framework

pytestmark = pytest.mark.slow

TASK = {
    "task.toml": """\
schema_version = "1.4"

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 60.0

[environment]
docker_image = "host"
workdir = "/work"
""",
    "instruction.md": "Write the sum of numbers.txt to sum.txt.\n",
    "environment/numbers.txt": "1\n2\n39\n",
    "solution/solve.sh": """\
#!/bin/bash
set -o pipefail
awk '{ s += $1 } END { print s }' numbers.txt | tee sum.txt
""",
    "tests/test.sh": """\
#!/bin/bash
[ "$(cat /work/sum.txt)" = 42 ]
echo $((1 - $?)) > /logs/verifier/reward.txt
""",
}


def task_in(folder: Path) -> Path:
    """A task of Harbor's format whose image is the service's machine."""
    for name, text in TASK.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_trial_of_the_oracle_earns_the_reward(harbor: Framework) -> None:
    told = harbor.tell(
        "harbor_trial.py", str(task_in(harbor.scratch / "sum")), str(harbor.scratch / "trials")
    )
    assert told == {"failed": None, "rewards": {"reward": 1.0}, "log": "42\n"}
    assert harbor.standing() == []


def test_errors_time_outs_and_files_are_as_harbor_wants_them(harbor: Framework) -> None:
    facts = harbor.tell("harbor_behaviour.py")
    assert facts["place"].startswith("/work\nred big ")
    assert facts["late"] == ["begun\n", "\n[ended after 1 s]", 124]
    assert (facts["user"], facts["root"], facts["nowhere"]) == (126, "fine\n", 126)
    assert facts["files"] == ["ran\nran\nodd.bin\n", True, ["empty", "link", "odd.bin", "run.sh"], True]
    assert facts["cancelled"] is True
    assert facts["stopped"].startswith("ConfigError: no sandbox runs")
    assert "builds no images, such as built/Dockerfile" in facts["refusals"]["dockerfile"]
    assert "asks for several services" in facts["refusals"]["compose"]
    assert "builds no images" in facts["refusals"]["nothing"]
    assert "force no build" in facts["built by force"]
    assert harbor.standing() == []
