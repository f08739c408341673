"""The images: the injector's is built; the others' recipes, which need a registry, are read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .helm import CHART, ROOT

IMAGES = ROOT / "deploy" / "images"
pytestmark = pytest.mark.skipif(not CHART.is_dir(), reason="the images' recipes are in the repository")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One instruction."""

    word: str
    """FROM, COPY, ..."""
    rest: str
    """What follows, on one line."""


def steps(image: str) -> list[Step]:
    """A Dockerfile's instructions, comments left out and continued lines joined."""
    text = (IMAGES / image / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines)).splitlines()
    return [Step(word=word, rest=rest) for word, _, rest in (line.partition(" ") for line in joined)]


BUILT_ON = ["orchestrator", "worker"]


@pytest.mark.parametrize("image", BUILT_ON)
def test_it_runs_as_a_number_that_is_not_root_and_is_built_by_a_stage_of_its_own(image: str) -> None:
    every = steps(image)
    stages = [step.rest for step in every if step.word == "FROM"]
    assert [re.search(r" AS (\w+)$", stage) is not None for stage in stages] == [True, False]
    assert stages == ["${BASE} AS build", "${BASE}"]
    (base,) = [step.rest.removeprefix("BASE=") for step in every if step.word == "ARG"]
    assert re.fullmatch(r"[a-z0-9./-]+:[0-9][0-9a-z.-]*", base), "a version, and none that moves on"
    assert not [step for step in every if step.word == "RUN" and re.search(r"\bpython\b", step.rest)]
    last = every[max(n for n, step in enumerate(every) if step.word == "FROM") :]
    assert [step.rest for step in last if step.word == "USER"] == ["65532:65532"]
    assert [step.rest for step in last if step.word == "COPY"] == ["--from=build /opt/orchard /opt/orchard"]
    assert [json.loads(step.rest) for step in last if step.word == "ENTRYPOINT"] == [["orchard"]]
    assert not [step for step in every if step.word in {"ADD", "VOLUME"}]


@pytest.mark.parametrize("image", BUILT_ON)
def test_what_it_runs_leaves_no_caches_and_names_extras_that_there_are(image: str) -> None:
    extras = {
        project["name"]: set(project["optional-dependencies"])
        for folder in (ROOT, ROOT / "plugins" / "sandbox_env")
        for project in [tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]]
    }
    commands = [step.rest for step in steps(image) if step.word == "RUN"]
    for command in commands:
        if "pip install" in command:
            assert "--no-cache-dir --constraint /wheels/constraints.txt" in command, (
                "the versions of the lock"
            )
        if "apt-get install" in command:
            assert "--no-install-recommends" in command
            assert "rm -rf /var/lib/apt/lists/*" in command
        for name, asked in re.findall(r"(orchard-\w+)\[([^]]+)\]", command):
            assert set(asked.split(",")) <= extras[name]
    assert any("orchard-env[" in command and "kubernetes" in command for command in commands)


def test_the_orchestrator_listens_where_the_chart_looks_for_it() -> None:
    told = {step.word: step.rest for step in steps("orchestrator")}
    assert told["EXPOSE"] == "8000"
    assert "containerPort: 8000" in (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8")


@pytest.fixture
def podman() -> Iterator[list[str]]:
    """Podman with storage of its own; skips where it cannot build."""
    program = shutil.which("podman")
    if program is None:
        pytest.skip("no podman on this machine: apt install podman")
    with tempfile.TemporaryDirectory(prefix="podman-", ignore_cleanup_errors=True) as place:  # a short path
        command = [program, "--root", f"{place}/root", "--runroot", f"{place}/run"]
        command += ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
        if subprocess.run([*command, "images"], capture_output=True, check=False).returncode:
            pytest.skip("podman does not work here: be root, or have subordinate ids")
        yield command
        subprocess.run([*command, "rmi", "--all", "--force"], capture_output=True, check=False)


@pytest.mark.slow
def test_the_injector_is_the_agent_alone(podman: list[str], tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    shutil.copy(IMAGES / "injector" / "Dockerfile", context)
    subprocess.run([ROOT / "tools" / "injector.sh", context / "root.tar"], check=True)

    def run(*words: str) -> str:
        done = subprocess.run([*podman, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    run("build", "--quiet", "--network", "none", "--tag", "injector:test", str(context))
    about = json.loads(run("image", "inspect", "injector:test"))[0]
    assert about["Config"]["Entrypoint"] == ["/orchard-agent"]
    run("save", "--output", str(tmp_path / "image.tar"), "injector:test")
    with tarfile.open(tmp_path / "image.tar") as image:
        manifest = json.load(image.extractfile("manifest.json") or pytest.fail("no manifest"))
        (layer,) = manifest[0]["Layers"]
        with tarfile.open(fileobj=image.extractfile(layer)) as files:
            members = files.getmembers()
            (agent,) = [one for one in members if one.isfile()]
            head = (files.extractfile(agent) or pytest.fail("no agent")).read(64)
    assert (agent.name, agent.mode & 0o777, agent.uid, len(members)) == ("orchard-agent", 0o555, 0, 1)
    assert head[:4] == b"\x7fELF"
