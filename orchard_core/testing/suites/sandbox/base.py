"""What every part of the sandbox suite needs: a provider, a sandbox, a place for files."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.types.sandbox import Capabilities, ImageRef, SandboxSpec

PATIENCE_S = 30.0
"""How long the suite waits for what must happen; nothing is asserted about being faster."""


class SandboxSuiteBase:
    """Subclasses give `make_provider` and, where they differ, the class attributes."""

    image: ClassVar[ImageRef] = ImageRef(kind="host")
    """The image of every sandbox the suite makes."""
    has_shell: ClassVar[bool] = True
    """The image has a POSIX shell and the usual small tools; without one only the argv tests run."""
    has_agent: ClassVar[bool] = True
    """`endpoint()` leads to an Orchard agent."""
    ttl_s: ClassVar[float] = 1.0
    """A life span that is over soon after creation."""
    echo: ClassVar[tuple[str, ...]] = ("printf", "%s\\n")
    """argv of a program that prints each of its arguments on a line."""

    async def make_provider(self) -> SandboxProvider:
        """The provider under test, anew. It may call `pytest.skip`."""
        raise NotImplementedError("override make_provider, which gives your SandboxProvider")

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def provider(cls) -> AsyncIterator[SandboxProvider]:
        """One for the whole class, because probing a host takes time; all its tests share one event loop."""
        provider = await cls().make_provider()
        yield provider
        await provider.close()

    @pytest_asyncio.fixture(loop_scope="class")
    async def able(self, provider: SandboxProvider) -> Capabilities:
        """What the provider claims."""
        return await provider.capabilities()

    @pytest.fixture
    def spec(self) -> SandboxSpec:
        """The spec of `sandbox`."""
        return SandboxSpec(image=self.image)

    @pytest_asyncio.fixture(loop_scope="class")
    async def sandbox(self, provider: SandboxProvider, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """A fresh sandbox."""
        async with await provider.create(spec) as made:
            yield made

    @pytest_asyncio.fixture(loop_scope="class")
    async def place(self, sandbox: Sandbox) -> str:
        """The absolute path, as seen inside, of the directory where commands start."""
        return await self.where(sandbox)

    async def where(self, sandbox: Sandbox) -> str:
        """The working directory as commands see it."""
        if not self.has_shell:
            return sandbox.spec.workdir
        return (await sandbox.exec("pwd -P")).stdout_text.removesuffix("\n")

    def with_spec(self, **fields: Any) -> SandboxSpec:
        """A spec for the suite's image."""
        return SandboxSpec(image=self.image, **fields)

    @pytest.fixture(autouse=True)
    def _fits(self, request: pytest.FixtureRequest) -> None:
        """Skip what the image or the provider cannot do; the class that defines a test says what it needs."""
        name = request.function.__name__
        home = next(cls for cls in type(self).__mro__ if name in vars(cls))
        if getattr(home, "needs_shell", False) and not self.has_shell:
            pytest.skip("the image has no shell")
        if getattr(home, "needs_agent", False):
            self.need_agent()

    def need_agent(self) -> None:
        """Skip where no agent answers."""
        if not self.has_agent:
            pytest.skip("this provider runs no agent")


class ShellSuiteBase(SandboxSuiteBase):
    """Tests that need a shell inside."""

    needs_shell: ClassVar[bool] = True
    """Read by `_fits` on the class that defines a test."""


def need_isolation(able: Capabilities) -> None:
    """Skip where the provider says that it does not isolate."""
    if not able.isolated:
        pytest.skip("the provider does not isolate, and says so")


async def eventually(holds: Callable[[], Awaitable[bool]], *, within_s: float = PATIENCE_S) -> bool:
    """Whether `holds` becomes true."""
    deadline = asyncio.get_running_loop().time() + within_s
    while not await holds():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


async def runs(sandbox: Sandbox, pid_file: str) -> bool:
    """Whether the process whose id stands in a file is there and no zombie."""
    look = f"pid=$(cat {shlex.quote(pid_file)}) && kill -0 $pid && ! grep -q '^State:.Z' /proc/$pid/status"
    return (await sandbox.exec(look, timeout=PATIENCE_S)).ok


async def written(sandbox: Sandbox, path: str) -> bool:
    """Whether a file has content."""
    return (await sandbox.exec(f"test -s {shlex.quote(path)}", timeout=PATIENCE_S)).ok
