"""The harness `cli:NAME`, as the contract wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchard_core import (
    Harness,
    HarnessCapabilities,
    HarnessResult,
    Limits,
    ModelEndpoint,
    Mount,
    MountsNeeded,
    NpmTree,
    Sandbox,
    Task,
    Told,
    Tool,
    find_program,
    host_node,
    json_object,
    private_home,
    run_inside,
)
from orchard_harness_cli import __version__
from orchard_harness_cli.adapter import Start
from orchard_harness_cli.adapters import find_adapter
from orchard_harness_cli.config import CliConfig

_TREE, _NODE = "/opt/orchard/cli", "/opt/orchard/node"


class Cli(Harness, MountsNeeded):
    """Runs a coding CLI inside the sandbox, unmodified."""

    def __init__(self, config: CliConfig) -> None:
        self._config = config
        self._adapter = find_adapter(config.cli)
        self._tree = NpmTree(packages=self._adapter.packages)

    @property
    def name(self) -> str:
        """As it is written, `cli:pi`."""
        return f"cli:{self._adapter.name}"

    @property
    def version(self) -> str:
        """This package's and the CLI's."""
        return f"{__version__} ({self._adapter.version})"

    @property
    def capabilities(self) -> HarnessCapabilities:
        """As the adapter says."""
        return HarnessCapabilities(tools=self._adapter.tools, turn_limit=self._adapter.turn_limit)

    async def mounts(self) -> Sequence[Mount]:
        """The installation and, for those that run on it, the host's Node.js. Raises ConfigError."""
        tree = Mount(source=str(await self._tree.path()), target=_TREE)
        return (tree, Mount(source=host_node(), target=_NODE)) if self._adapter.node == "node" else (tree,)

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        """Run one task. Raises HarnessError for each way in which a program fails by itself."""
        inside = await sandbox.expose_model(model)
        start = Start(
            model=inside, tools=bool(tools), home=private_home(sandbox), limits=limits, config=self._config
        )
        program = self._adapter.start(start)
        command = (*await self._command(), *program.argv)
        stdin = task.instruction.encode("utf-8", "replace")
        told = Told()

        def read(line: bytes) -> None:
            if (event := json_object(line)) is not None:
                self._adapter.read(event, told)

        program = replace(program, argv=command, cwd=task.workdir, stdin=stdin)
        return told.result(await run_inside(sandbox, program, on_line=read))

    async def _command(self) -> tuple[str, ...]:
        tree, adapter = await self._tree.path(), self._adapter
        program = f"{_TREE}/{find_program(tree, adapter.program)}"
        if not adapter.node:
            return (program,)
        return (_NODE if adapter.node == "node" else f"{_TREE}/{find_program(tree, adapter.node)}", program)
