"""Orchard: a plugin-based, harness-agnostic SDK for agentic modeling.

Everything public is importable from here, and nothing is imported until it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchard_core._front import *  # noqa: F403

__version__ = "0.1.0"

_MODULES = {
    "orchard_core.datasets.credit.apply": ("apply_credit",),
    "orchard_core.datasets.credit.assign": ("AssignOptions",),
    "orchard_core.datasets.credit.branch.branches": ("read_branches",),
    "orchard_core.datasets.credit.branch.front": ("measure_credit",),
    "orchard_core.datasets.credit.branch.options": ("BranchOptions",),
    "orchard_core.datasets.credit.estimator": ("CostPlan",),
    "orchard_core.datasets.credit.front": ("assign_credit",),
    "orchard_core.datasets.credit.judge.contract": ("Judge", "Judgement"),
    "orchard_core.datasets.credit.judge.view": ("GoldOutcome", "TrajectoryView", "TurnView"),
    "orchard_core.datasets.credit.rules": ("CreditRules",),
    "orchard_core.datasets.credit.store": ("Credits", "open_credits"),
    "orchard_core.datasets.mix.outcome": ("MixOutcome",),
    "orchard_core.datasets.mix.filters": ("MixFilters", "NearDuplicates"),
    "orchard_core.datasets.mix.recipe": (
        "MixExhausted", "MixLeaks", "MixRecipe", "MixRows", "MixShards", "MixSource", "MixSplits",
        "MixStratum", "MixWhere",
    ),
    "orchard_core.datasets.mix.recipe_file": ("read_mix_recipe",),
    "orchard_core.datasets.mix.run": ("dry_mix", "mix"),
    "orchard_core.datasets.reading": ("read_rows",),
    "orchard_core.datasets.rows": ("rollout_rows",),
    "orchard_core.datasets.leaks.benchmark": ("Benchmark", "read_benchmark"),
    "orchard_core.datasets.leaks.check": ("LeakCheck", "check_leaks"),
    "orchard_core.datasets.leaks.report": ("Leak", "LeakKind", "LeakReport", "LeakSettings"),
    "orchard_core.datasets.similar.actions": ("action_signature", "action_text"),
    "orchard_core.datasets.similar.index": ("NearIndex",),
    "orchard_core.datasets.similar.minhash": ("near_resemblance", "near_signature"),
    "orchard_core.datasets.similar.tasks": ("TaskText", "near_tasks"),
    "orchard_core.datasets.splits": ("Splits", "assign_splits"),
    "orchard_core.datasets.store.manifest": ("FilterReport", "Made", "Manifest", "SourceReport"),
    "orchard_core.datasets.store.reader": ("Dataset", "open_dataset"),
    "orchard_core.datasets.store.writer": ("DatasetWriter", "ShardLimits"),
    "orchard_core.evals.clean": ("clean_line",),
    "orchard_core.evals.compare": ("RunComparison", "compare"),
    "orchard_core.evals.markdown": ("to_markdown",),
    "orchard_core.evals.diff": ("RunDiff", "diff_runs"),
    "orchard_core.evals.matrix": ("build_matrix",),
    "orchard_core.evals.matrix_markdown": ("matrix_markdown",),
    "orchard_core.evals.matrix_report": ("Cell", "MatrixReport"),
    "orchard_core.evals.report": ("Report", "build_report"),
    "orchard_core.formats.contract": ("DatasetFormat", "Exemplary"),
    "orchard_core.gateway.contract": (
        "BeforeCall", "Model", "Renderer", "SessionContext", "Upstream", "UpstreamReply", "UpstreamRequest",
    ),
    "orchard_core.gateway.sample_report": ("build_sample_report",),
    "orchard_core.gateway.samples": ("build_samples",),
    "orchard_core.gateway.server": ("Gateway",),
    "orchard_core.gateway.session": ("Session",),
    "orchard_core.gateway.turns": ("turns",),
    "orchard_core.harness.answered": ("model_error",),
    "orchard_core.harness.chat_client": ("ChatClient",),
    "orchard_core.harness.contract": ("Harness", "ImageChecked", "MountsNeeded", "SettingsRead", "mounts_of"),
    "orchard_core.harness.external.environment": ("ExternalProgram",),
    "orchard_core.harness.external.harness": ("ExternalHarness",),
    "orchard_core.harness.external.interpreter": ("managed_python",),
    "orchard_core.harness.external.run": ("run_external",),
    "orchard_core.harness.inside.instruction": ("instruction_argument",),
    "orchard_core.harness.inside.lines": ("json_events", "json_object"),
    "orchard_core.harness.inside.npm": ("NpmProgram",),
    "orchard_core.harness.inside.program": ("InsideLimits", "InsideProgram", "ProgramEnd", "private_home"),
    "orchard_core.harness.inside.reported": ("reported_stop",),
    "orchard_core.harness.inside.run": ("run_inside",),
    "orchard_core.harness.inside.told": ("Told", "json_at", "json_words"),
    "orchard_core.harness.thread_bridge": ("ThreadBridge",),
    "orchard_core.harness.tool_client": ("McpServer", "ToolClient", "install_tool_client", "mcp_server"),
    "orchard_core.plugins.hookspecs": ("hookimpl",),
    "orchard_core.plugins.lookup": (
        "load_format", "load_harness", "load_model", "load_provider", "load_reward", "load_taskset",
        "load_trainer", "open_sandbox",
    ),
    "orchard_core.reward.contract": (
        "Blobs", "Evidence", "Example", "Examples", "Exemplified", "Grading", "Reward",
    ),
    "orchard_core.reward.script": ("ScriptReward", "VerifierScript"),
    "orchard_core.rollout.attempt": ("run_rollout",),
    "orchard_core.rollout.branching.branch": ("Branch", "BranchMode"),
    "orchard_core.rollout.config": ("Difference", "RunConfig"),
    "orchard_core.rollout.front": ("run_rollouts",),
    "orchard_core.rollout.grading": ("grade", "regrade"),
    "orchard_core.rollout.groups": ("read_groups",),
    "orchard_core.rollout.matrix.caps": ("MatrixCaps",),
    "orchard_core.rollout.matrix.front": ("run_matrix",),
    "orchard_core.rollout.matrix.key": ("CellKey",),
    "orchard_core.rollout.matrix.plan": ("MatrixPart", "MatrixShared"),
    "orchard_core.rollout.matrix.run": ("MatrixOptions",),
    "orchard_core.rollout.matrix.watching": ("MatrixWatcher",),
    "orchard_core.rollout.parts": ("RolloutParts",),
    "orchard_core.rollout.regrading": ("Regraded", "regrade_run"),
    "orchard_core.rollout.retry": ("RetryPolicy",),
    "orchard_core.rollout.sampler": ("Done", "Drop", "FixedSampler", "GroupSampler", "More", "PoolEntry"),
    "orchard_core.rollout.settings": ("PhaseLimits", "RolloutSettings"),
    "orchard_core.rollout.stop": ("Stop",),
    "orchard_core.rollout.store.run": ("Run", "open_run"),
    "orchard_core.rollout.workers.contract": ("HOPELESS", "WorkOrder", "WorkerNews", "Workforce"),
    "orchard_core.rollout.workers.finding": ("load_workforce",),
    "orchard_core.sandbox.agent.changes": ("ChangesApplied",),
    "orchard_core.sandbox.agent.client": ("AgentClient",),
    "orchard_core.sandbox.agent.faults": ("agent_error",),
    "orchard_core.sandbox.agent.link": ("AgentLink",),
    "orchard_core.sandbox.agent.runs": ("RunOutput",),
    "orchard_core.sandbox.agent.terminal": ("AgentTerminal",),
    "orchard_core.sandbox.agent.told": ("RunTold",),
    "orchard_core.sandbox.agent.understood": ("understood",),
    "orchard_core.sandbox.agent.watched": ("CallWatcher", "WatchedCall", "watch_agent_calls"),
    "orchard_core.sandbox.agent_process": ("AgentProcesses",),
    "orchard_core.sandbox.agent_provider": (
        "AdoptingAgentProvider", "AdoptingPlaces", "AgentProvider", "NewPlace", "Places", "SavingPlaces",
        "StandingPlace",
    ),
    "orchard_core.sandbox.agent_sandbox": ("AgentSandbox",),
    "orchard_core.sandbox.place": ("ProlongingPlace", "TellingPlace", "WatchedPlace"),
    "orchard_core.sandbox.agent.binary": ("agent_binary",),
    "orchard_core.sandbox.agent.renewal": ("renew_agent",),
    "orchard_core.sandbox.steps": ("CreationStep", "creation_steps", "note_step"),
    "orchard_core.sandbox.unbroken": ("unbroken",),
    "orchard_core.sandbox.egress.outlet": ("Outlet", "needs_outlet", "outlet_environment"),
    "orchard_core.sandbox.contract": (
        "AdoptingProvider", "Command", "Process", "Sandbox", "SandboxProvider",
    ),
    "orchard_core.tasks.contract": ("TaskSet", "Tool"),
    "orchard_core.tasks.doctor": (
        "Attempt", "Diagnosis", "Quarantine", "Verdict", "attempt", "examine", "quarantine",
        "write_quarantine",
    ),
    "orchard_core.tasks.harbor.config": ("HarborConfig",),
    "orchard_core.tasks.harbor.taskset": ("HarborTaskSet",),
    "orchard_core.tasks.harbor.write": ("TaskFiles", "write_task"),
    "orchard_core.tasks.scratch": ("ScratchDirectory",),
    "orchard_core.tasks.solution": ("split_script",),
    "orchard_core.trainer.contract": (
        "Checkpoint", "Feed", "RolloutFeed", "ScoredSample", "TrainRequest", "Trainer",
    ),
    "orchard_core.types.base": ("Record",),
    "orchard_core.types.content": ("Content", "Image", "Text"),
    "orchard_core.types.credit": ("Credit", "RiseSegment", "ValuePoint"),
    "orchard_core.types.dataset": ("AnswerSpan", "DatasetRow", "RecordedTokens"),
    "orchard_core.types.events": (
        "CallFinished", "Event", "PhaseStarted", "RolloutFinished", "RolloutStarted", "RunFinished",
        "RunStarted",
    ),
    "orchard_core.types.harness": ("HarnessCapabilities", "HarnessResult", "Limits", "StopReason", "ToolUse"),
    "orchard_core.types.model": (
        "CallError", "CallTimings", "Dialect", "Message", "MessageRefs", "ModelCall", "ModelEndpoint",
        "Price", "Retry", "TokenRefs", "UpstreamMode", "Usage", "VersionSpan",
    ),
    "orchard_core.types.plugin": ("API_VERSION", "Descriptor", "PluginKind"),
    "orchard_core.types.reward": ("RewardResult",),
    "orchard_core.types.rollout": (
        "Artifact", "Attribution", "ErrorInfo", "Outcome", "Phase", "PhaseTiming", "Provenance", "Rollout",
        "RolloutGroup",
    ),
    "orchard_core.types.sample": ("SampleLabel", "SampleSet", "TrainingSample", "Untrained", "UntrainedSpan"),
    "orchard_core.types.sample_report": (
        "CallPlace", "Relation", "SampleReport", "ThreadKind", "ThreadPlace",
    ),
    "orchard_core.types.sandbox": (
        "AgentEndpoint", "Capabilities", "ExecResult", "FileEntry", "FileInput", "ImageRef", "LocalAddress",
        "Mount", "Network", "NetworkMode", "PtySize", "SandboxSpec", "Snapshot", "StandingSandbox",
    ),
    "orchard_core.types.task": ("Solution", "SolutionStep", "Task", "VerifyIn"),
    "orchard_core.types.tool": ("ToolCall", "ToolResult", "ToolSpec"),
    "orchard_core.types.training": ("TrainedOn",),
    "orchard_core.types.trajectory": ("Trajectory", "Turn"),
}  # fmt: skip
"""Where each public name lives. Errors come on top: every class of orchard_core.errors is public."""

_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604 - a test holds it equal to _front


def __getattr__(name: str) -> Any:
    module = _HOME.get(name, "orchard_core.errors")
    try:
        value = getattr(import_module(module), name)
    except AttributeError:
        raise AttributeError(f"orchard_core has no public name {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
