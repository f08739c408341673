"""Every harness there is, ready to be driven through whole rollouts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchard_core import (
    Gateway,
    Harness,
    Limits,
    Model,
    PluginNotInstalled,
    Price,
    Rollout,
    SandboxProvider,
    SandboxUnavailable,
    Solution,
    SolutionStep,
    Task,
    Tool,
    load_harness,
    load_provider,
    run_rollout,
)
from orchard_core.gateway.contract import BeforeCall, SessionContext
from orchard_core.gateway.scripted import OracleModel
from orchard_core.gateway.session import OnCall, Session
from orchard_core.reward.blobs import MemoryBlobs
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeTaskSet, skip_without_isolation

ROOT = Path(__file__).parents[2]
STANDIN = ROOT / "plugins/harness_zeroclaw/tests/standin/zeroclaw"
PAGE = ROOT / "docs/how-to/harness-in-any-language.md"
SEEN = "/workspace/seen"
"""What a hostile command found out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """A harness, and what the model behind it calls its shell."""

    name: str
    """Its written form."""
    tool: str = "bash"
    """Its shell."""
    argument: str = "command"
    """The command, as an argument of that."""
    heavy: bool = False
    """It starts slowly or is large: driven by `make nightly` only."""
    inside: bool = False
    """Its program runs inside the sandbox, the session's key with it."""
    options: Mapping[str, object] = field(default_factory=dict)
    """For `load_harness`."""

    def load(self, where: Path) -> Harness:
        """The harness; skips where its program cannot be had."""
        if self.name == "command":
            return load_harness(f"command:{shell_harness(where)}")
        try:
            return load_harness(self.name, **self.options)
        except PluginNotInstalled as error:
            pytest.skip(f"{self.name} is not to be had here: {error}")


def shell_harness(where: Path) -> Path:
    """The page's whole harness in shell; skips where what it needs is missing."""
    if missing := [name for name in ("curl", "jq") if shutil.which(name) is None]:
        pytest.skip(f"needs {' and '.join(missing)}: apt-get install {' '.join(missing)}")
    path = where / "shell-harness.sh"
    path.write_text(PAGE.read_text("utf-8").partition("# file: shell-harness.sh\n")[2].partition("```")[0])
    path.chmod(0o755)
    return path


ZEROCLAW = shutil.which("zeroclaw") or str(STANDIN)
"""Where ZeroClaw itself is not on PATH, its stand-in plays."""
EVERY = (
    Driven(name="react"),
    Driven(name="miniswe"),
    Driven(name="command"),
    Driven(name="zeroclaw", tool="shell", inside=True, options={"binary": ZEROCLAW}),
    Driven(name="cli:pi", inside=True),
    Driven(name="openhands", tool="terminal", heavy=True),
    Driven(name="cli:claude", tool="Bash", heavy=True, inside=True),
    Driven(name="cli:codex", tool="exec_command", argument="cmd", heavy=True, inside=True),
    Driven(name="cli:kimi", tool="Bash", heavy=True, inside=True),
    Driven(name="cli:opencode", heavy=True, inside=True),
)
_NIGHTLY = (
    pytest.mark.nightly,
    pytest.mark.skipif(
        "ORCHARD_NIGHTLY" not in os.environ, reason="a large program: `make nightly` drives it"
    ),
)
each = pytest.mark.parametrize(
    "driven",
    [pytest.param(driven, id=driven.name, marks=_NIGHTLY if driven.heavy else ()) for driven in EVERY],
)
"""Runs a test under every harness."""


class Keeping(Gateway):
    """A gateway that remembers the keys it gave out."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []
        """One a session, in order."""

    async def open_session(
        self,
        model: Model,
        context: SessionContext,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        before_call: BeforeCall | None = None,
        on_call: OnCall | None = None,
        tools: Sequence[Tool] = (),
    ) -> Session:
        session = await super().open_session(
            model, context, limits=limits, before_call=before_call, on_call=on_call, tools=tools
        )
        self.keys.append(session.endpoint.api_key)
        return session


class Priced(OracleModel):
    """An oracle that costs a dollar a token."""

    @property
    def price(self) -> Price:
        """See Model."""
        return Price(input=1_000_000.0, output=1_000_000.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Theatre:
    """Where rollouts are played."""

    harness: Harness
    provider: SandboxProvider
    gateway: Keeping
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)

    async def play(
        self,
        *commands: str,
        task: str = "one",
        model: Model | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        instruction: str = "Do it.",
        timeout_s: float = 240,
    ) -> Rollout:
        """A whole rollout in which the model gives these commands, one a turn."""
        one = Task(
            id=task, taskset="every", instruction=instruction, artifacts=(SEEN,), agent_timeout_s=timeout_s
        )
        steps = tuple(SolutionStep(command=command) for command in commands)
        parts = RolloutParts(
            taskset=FakeTaskSet([one], solutions={task: Solution(steps=steps, answer="the end")}),
            harness=self.harness,
            model=model or OracleModel(),
            provider=self.provider,
            gateway=self.gateway,
            blobs=self.blobs,
            limits=limits,
        )
        return await run_rollout(one, parts)

    async def seen(self, rollout: Rollout) -> str:
        """What a command of the rollout wrote into SEEN."""
        (artifact,) = (item for item in rollout.artifacts if item.path == SEEN)
        return (await self.blobs.read(artifact.sha256)).decode("utf-8", "replace")


@asynccontextmanager
async def theatre(driven: Driven, where: Path) -> AsyncIterator[Theatre]:
    """Skips where the harness or the sandbox cannot be had."""
    harness = driven.load(where)
    provider = load_provider("local")
    try:
        await provider.capabilities()
        async with Keeping() as gateway:
            yield Theatre(harness=harness, provider=provider, gateway=gateway)
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    finally:
        await provider.close()


def script(driven: Driven, commands: Sequence[str]) -> str:
    """Lines for the model `scripted`: each command as a call of this harness's shell, the first one twice for
    harnesses that ask for a title first."""
    calls = [{"name": driven.tool, "arguments": {driven.argument: command}} for command in commands]
    return "".join(json.dumps({"calls": [call]}) + "\n" for call in (calls[0], *calls))
