"""What is known of a rollout and of its calls, by name and in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from orchard_core.evals.html import words
from orchard_core.types.model import ModelCall
from orchard_core.types.rollout import Rollout
from orchard_core.viewer.trace.parts import ArtifactView

Facts = tuple[tuple[str, str], ...]
_SHOWN_PARAMS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed")
_MOST = 500


def rollout_facts(rollout: Rollout) -> Facts:
    """The head of a rollout's page."""
    usage = rollout.usage
    cached = f", {words.count(usage.cache_read)} from cache" if usage.cache_read else ""
    turns = rollout.result.turns if rollout.result else 0
    found = {
        "score": "none" if rollout.score is None else f"{rollout.score:g}",
        "ended": rollout.outcome.value.replace("_", " "),
        "whose doing": rollout.attribution.value,
        "stopped": rollout.result.stop.value.replace("_", " ") if rollout.result else words.NONE,
        "turns": f"{turns:,}",
        "calls": f"{len(rollout.trajectory.calls):,}",
        "tokens": f"{words.count(usage.total - usage.output)} in{cached}, {words.count(usage.output)} out",
        "cost": words.dollars(rollout.cost_usd),
        "time": words.seconds(rollout.finished_at - rollout.started_at),
    }
    if rollout.tries > 1:
        found["tries"] = str(rollout.tries)
    if rollout.reward is not None and rollout.reward.breakdown:
        parts = list(rollout.reward.breakdown.items())[:12]
        found["breakdown"] = ", ".join(f"{name[:40]} {value:g}" for name, value in parts)
    if rollout.reward is not None and rollout.reward.same_sandbox:
        found["judged in"] = "the agent's own sandbox"
    return tuple(found.items())


def call_facts(call: ModelCall) -> Facts:
    """The foot of a turn."""
    usage, timings = call.usage, call.timings
    found = {
        "in": words.count(usage.total - usage.output),
        "out": words.count(usage.output),
        "time": words.seconds(timings.total_s),
    }
    if usage.cache_read:
        found["cache"] = words.count(usage.cache_read)
    if call.cost_usd:
        found["cost"] = words.dollars(call.cost_usd)
    if timings.first_token_s is not None:
        found["first token"] = words.seconds(timings.first_token_s)
    if timings.waited_s >= 0.05:
        found["waited"] = words.seconds(timings.waited_s)
    if call.finish_reason:
        found["finish"] = call.finish_reason[:40]
    if call.versions:
        found["policy"] = ", ".join(dict.fromkeys(span.version[:40] for span in call.versions[:20]))
    return tuple(found.items())


def problems(call: ModelCall) -> Iterator[str]:
    """Retries and errors of one call."""
    for retry in call.retries[:20]:
        yield f"retried after {retry.waited_s:.1f} s: {retry.reason[:_MOST]}"
    if call.error:
        yield f"{call.error.kind}: {call.error.message[:_MOST]}"


def provenance(rollout: Rollout) -> Facts:
    """Versions, hashes, phases."""
    from_ = rollout.provenance
    started = datetime.fromtimestamp(min(max(rollout.started_at, 0.0), 4e9), UTC)
    found = {
        "id": rollout.id,
        "task": f"{rollout.task.taskset} · {rollout.task.id}",
        "attempt": f"{rollout.attempt}, seed {rollout.seed}",
        "harness": f"{rollout.harness}, version {from_.harness}",
        "model": rollout.model,
        "sampling": _params(rollout),
        "sandbox": from_.provider,
        "image": from_.image + (" (the task names another)" if from_.image_fallback else ""),
        "started": started.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "phases": ", ".join(f"{t.phase.value} {words.seconds(t.duration_s)}" for t in rollout.timings),
        "limits": _limits(rollout),
        "orchard": from_.orchard,
        "first prompt": from_.prompt_digest,
        "config": from_.config_digest,
        "verifier": rollout.reward.version if rollout.reward else "",
        "plugins": ", ".join(f"{name} {version}" for name, version in list(from_.plugins.items())[:40]),
    }
    return tuple((name, value[: 2 * _MOST]) for name, value in found.items() if value)


def artifacts(rollout: Rollout) -> tuple[ArtifactView, ...]:
    """What was kept, the first of it."""
    return tuple(
        ArtifactView(path=item.path[:_MOST], kind=item.kind, size=item.size, number=number)
        for number, item in enumerate(rollout.artifacts[:_MOST])
    )


def _limits(rollout: Rollout) -> str:
    given = rollout.limits.model_dump(exclude_none=True)
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in given.items())


def _params(rollout: Rollout) -> str:
    calls = rollout.trajectory.calls
    try:
        given = json.loads(calls[0].params) if calls and len(calls[0].params) < 100_000 else {}
    except (ValueError, RecursionError):
        return ""
    named = given if isinstance(given, dict) else {}
    return ", ".join(f"{name} {str(named[name])[:40]}" for name in _SHOWN_PARAMS if name in named)
