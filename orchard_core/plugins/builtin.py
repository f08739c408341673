"""What orchard-core itself offers, registered by the same hooks as any plugin."""

from __future__ import annotations

from orchard_core.plugins.hookspecs import hookimpl
from orchard_core.types.plugin import Descriptor


@hookimpl
def orchard_sandbox_providers() -> list[Descriptor]:
    """Providers that need nothing but this machine."""
    return [
        Descriptor(
            name="local",
            summary="namespaces on this machine, by bubblewrap; for root and ordinary users",
            factory="orchard_core.sandbox.local.provider:LocalProvider",
            config="orchard_core.sandbox.local.config:LocalConfig",
        ),
        Descriptor(
            name="process",
            summary="no isolation: commands run on this machine as they are; trusted ones only",
            factory="orchard_core.sandbox.process.provider:open_process",
            config="orchard_core.sandbox.process.config:ProcessConfig",
        ),
    ]


@hookimpl
def orchard_tasksets() -> list[Descriptor]:
    """Task sets from directories, and our own generated ones."""
    return [
        Descriptor(
            name="harbor",
            summary="task directories in the Harbor / Terminal-Bench 2 shape, such as harbor:PATH",
            factory="orchard_core.tasks.harbor.taskset:open_harbor",
            config="orchard_core.tasks.harbor.config:HarborConfig",
            argument="path",
        ),
        Descriptor(
            name="workbench",
            summary="generated tasks for demos and tests, such as workbench:16",
            factory="orchard_core.tasks.workbench.taskset:Workbench",
            config="orchard_core.tasks.workbench.taskset:WorkbenchConfig",
            argument="count",
        ),
    ]


@hookimpl
def orchard_workforces() -> list[Descriptor]:
    """Workers on this machine."""
    return [
        Descriptor(
            name="processes",
            summary="workers of a shared run as processes of this machine",
            factory="orchard_core.rollout.workers.processes:ProcessWorkforce",
        )
    ]


@hookimpl
def orchard_harnesses() -> list[Descriptor]:
    """Any program that keeps the contract for harnesses in any language."""
    external = "orchard_core.harness.external.command"
    return [
        Descriptor(
            name="command",
            summary="any program on this machine, in any language, such as command:./my-harness.sh",
            factory=f"{external}:CommandHarness",
            config=f"{external}:CommandConfig",
            argument="program",
        )
    ]


@hookimpl
def orchard_models() -> list[Descriptor]:
    """Models behind an OpenAI-compatible URL or at any vendor, and models that follow a script."""
    scripted = "orchard_core.gateway.scripted"
    return [
        Descriptor(
            name="openai",
            summary="any OpenAI-compatible URL, such as openai:gpt-5 or a local vLLM or Ollama",
            factory="orchard_core.gateway.openai:OpenAIModel",
            config="orchard_core.gateway.openai:OpenAIConfig",
            argument="model",
        ),
        Descriptor(
            name="anthropic",
            summary="Anthropic's models, such as anthropic:claude-sonnet-4-5",
            factory="orchard_core.gateway.anthropic:AnthropicModel",
            config="orchard_core.gateway.anthropic:AnthropicConfig",
            argument="model",
        ),
        Descriptor(
            name="litellm",
            summary="any vendor through LiteLLM, such as litellm:anthropic/claude-sonnet-4-5",
            factory="orchard_core.gateway.litellm.model:LiteLLMModel",
            config="orchard_core.gateway.litellm.config:LiteLLMConfig",
            argument="model",
            requires=("litellm",),
            extra="orchard-core[litellm]",
        ),
        Descriptor(
            name="oracle",
            summary="plays the task's known solution, one command a turn",
            factory=f"{scripted}:OracleModel",
            config=f"{scripted}:OracleConfig",
        ),
        Descriptor(
            name="noisy-oracle",
            summary="the oracle with mistakes at a given rate, such as noisy-oracle:0.3",
            factory=f"{scripted}:NoisyOracleModel",
            config=f"{scripted}:NoisyOracleConfig",
            argument="rate",
        ),
        Descriptor(
            name="scripted",
            summary="replies from a JSON-lines file",
            factory=f"{scripted}:from_file",
            config=f"{scripted}:ScriptedConfig",
            argument="path",
        ),
    ]


@hookimpl
def orchard_dataset_formats() -> list[Descriptor]:
    """Files of other projects that rows are read from and written to."""
    return [
        Descriptor(
            name="atif",
            summary="Harbor's trajectories, a file or a line each, pictures beside them",
            factory="orchard_core.formats.atif.format:AtifFormat",
            config="orchard_core.formats.atif.format:AtifConfig",
        ),
        Descriptor(
            name="miniswe",
            summary="mini-swe-agent's .traj.json, one file or a tree of them",
            factory="orchard_core.formats.miniswe:MinisweFormat",
        ),
        Descriptor(
            name="openhands",
            summary="OpenHands' event logs; only read",
            factory="orchard_core.formats.openhands.format:OpenHandsFormat",
        ),
        Descriptor(
            name="hf",
            summary="messages and tools rows for datasets and TRL, JSON lines or Parquet, such as hf:turns",
            factory="orchard_core.formats.hf.format:HfFormat",
            config="orchard_core.formats.hf.config:HfConfig",
            argument="shape",
        ),
        Descriptor(
            name="orchard-swe",
            summary="the published microsoft/Orchard columns of its swe part",
            factory="orchard_core.formats.published.swe:SweFormat",
        ),
        Descriptor(
            name="orchard-gui",
            summary="the published microsoft/Orchard columns of its gui part, with pictures",
            factory="orchard_core.formats.published.gui:GuiFormat",
            config="orchard_core.formats.published.gui:GuiConfig",
        ),
    ]
