"""Every error Orchard raises, in one tree.

    OrchardError
    |- ConfigError                  what the user asked for cannot be: mend the command or the recipe
    |- PluginError                  UnknownPlugin, PluginNotInstalled, PluginImportFailed, PluginApiMismatch,
    |                               DuplicatePlugin
    |- SandboxError                 attributed to infrastructure unless said otherwise
    |  |- SandboxUnsupported        a provider lacks a capability; raised before anything starts
    |  |- SandboxExists             the name asked for is taken
    |  |- SandboxUnavailable        this host cannot give the isolation asked for
    |  |  `- ServiceOverloaded      a sandbox service or cluster has no room now, and says when to come again
    |  |- SandboxCreateFailed       creation was tried and failed
    |  |                            CreateTimedOut, ImagePullFailed, QuotaExceeded, Unschedulable, SpecRefused
    |  |- SandboxGone               the sandbox, or the agent inside it, is dead
    |  |                            SandboxOutOfMemory, SandboxEvicted, SandboxPreempted, NodeLost,
    |  |                            SandboxExpired
    |  |- SnapshotMissing           the provider has no such snapshot: discarded, or another driver's
    |  |- SandboxConnectionLost     the agent could not be reached; what was running may still run
    |  |                            NotAnAgent: what answers in its place says what no agent says
    |  |- AgentRefused              wrong token, wrong sandbox id, or a scope that does not suffice
    |  |- PortRefused               nothing listens on a port inside
    |  |- ExecError                 CwdMissing, CommandNotFound, NoShell, UserUnknown, ExecIdTaken,
    |  |                            ExecForgotten, StdinClosed
    |  `- FileError                 FileMissing, FileExists, FileDenied, NotADirectory, IsADirectory,
    |                               RangeRefused, ArchiveEscape, DiskFull
    |- ModelError                   ModelUnavailable, ModelRateLimited, ModelTimeout, ModelRejected,
    |  |                            ModelReplyMalformed, SessionClosed
    |  |- ContextExceeded           the conversation no longer fits the model; a ModelRejected
    |  `- BudgetExceeded            a session's tokens, calls, cost or wall clock ran out (`kind` says which)
    |- HarnessError                 the harness itself broke (not the agent's mistakes, which are data)
    |                               HarnessCrashed, HarnessHung, HarnessFlooded, HarnessHomeLost
    |- RewardError                  VerifierFailed, VerifierTimedOut, RewardMissing, RegradeRefused
    |- BlobTooLarge                 an artifact is larger than its cap
    |- TaskError                    TaskSetNotFound, TaskInvalid
    |- RunFutile                    rollouts of a run failed alike until no other was worth starting
    |- WorkersFailed                a driver of a shared run died again and again
    |- DeadlineExceeded             a named phase ran past its own limit
    |- StoreError                   RunExists, RunNotFound, RunLocked, RecordCorrupt
    `- DatasetError                 DatasetNotFound, DatasetExists, DatasetLocked, DatasetCorrupt (names file,
                                    row and field), FormatUnknown, FormatUnsupported, CreditRefused,
                                    MixRefused

A message says what happened, where, and what to do next; the last part travels as `hint` so that a
terminal can set it apart. Catch the narrowest class you can name, at a border that is named in the docs.
"""

# ruff: noqa: F403, I001 - all of them are public, in the order of the tree
from __future__ import annotations

from orchard_core.errors._root import *
from orchard_core.errors._sandbox import *
from orchard_core.errors._model import *
from orchard_core.errors._rollout import *
from orchard_core.errors._dataset import *
