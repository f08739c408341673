"""The labels and annotations that make a pod a sandbox of ours: all that anybody knows of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from orchard_core import SandboxSpec, SandboxUnsupported, StandingSandbox
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import PREFIX as PREFIX
from orchard_env.kubernetes.resources import Manifest, Selector

MANAGED_BY: Final = f"{PREFIX}managed-by"
"""Label of every object of ours."""
MANAGER: Final = "orchard-env"
"""Its value."""
SANDBOX: Final = f"{PREFIX}sandbox"
"""Label: the sandbox's id."""
DRIVER: Final = f"{PREFIX}driver"
"""Label: whose lease keeps it alive."""
ROLE: Final = f"{PREFIX}role"
"""Label of pods that may reach agents."""
ROLES: Final = ("driver", "orchestrator")
"""Its values."""
SPEC: Final = f"{PREFIX}spec"
"""Annotation: the spec as JSON, without the content of files."""
CREATED: Final = f"{PREFIX}created"
"""Annotation: seconds since the epoch by the creator's clock; of a claimed pod, the claim by the server's."""
PORT: Final = f"{PREFIX}agent-port"
"""Annotation: where its agent listens."""
GENERATION: Final = f"{PREFIX}generation"
"""Annotation: how often its agent was started anew."""
POOL: Final = f"{PREFIX}pool"
"""Label of pods that were made before they were asked for: the digest of their shape."""
MISSED: Final = f"{PREFIX}missed-pool"
"""Label of a sandbox's own pod where a pool had none ready: the shape that would have served."""
GIVEN: Final = f"label.{PREFIX}"
"""Before the name of a spec's label on its pod. As they are given, labels could steer what reads those of
pods: a Service would send its traffic here, a webhook put a cloud's token in."""
_OURS: Final = frozenset({MANAGED_BY, SANDBOX, DRIVER, ROLE, POOL, MISSED})

SANDBOXES: Final = Selector.of({MANAGED_BY: MANAGER})
"""Every sandbox of a namespace."""

ENDED: Final = frozenset({"Succeeded", "Failed"})
_ANNOTATIONS_MAX: Final = 200 * 1024
_NAME = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def label_key_fault(key: str) -> str | None:
    """Why a text cannot be a label's key, or None."""
    prefix, slash, name = key.rpartition("/")
    if slash and not _PREFIX.fullmatch(prefix):
        return "its prefix is no DNS name"
    return None if name and _NAME.fullmatch(name) else "its name is empty, too long or has odd characters"


def label_value_fault(value: str) -> str | None:
    """Why a text cannot be a label's value, or None."""
    return None if _NAME.fullmatch(value) else "its value is too long or has odd characters"


def spec_labels(spec: SandboxSpec) -> dict[str, str]:
    """Those of a spec's labels that Kubernetes can take, under names of our own; the annotation has all of
    them. Raises SandboxUnsupported for one that would change whose the pod is."""
    for key in spec.labels:
        if key in _OURS:
            raise SandboxUnsupported(
                f"the label {key} says whose a pod is, and cannot be given", hint="choose another name"
            )
    named = {k if k.startswith(PREFIX) else GIVEN + k: v for k, v in spec.labels.items()}
    return {k: v for k, v in named.items() if not (label_key_fault(k) or label_value_fault(v))}


def spec_annotation(spec: SandboxSpec) -> str:
    """The spec as it is kept. Raises SandboxUnsupported when it is too large for an annotation."""
    text = spec.model_copy(update={"files": ()}).model_dump_json(exclude_defaults=True)
    if len(text.encode()) > _ANNOTATIONS_MAX:
        raise SandboxUnsupported(
            f"the spec is {len(text)} characters long, and a pod's annotations hold 200 KiB",
            hint="give large content as `files`, not in labels or the environment",
        )
    return text


def owned_by(manifest: Manifest) -> Manifest:
    """What makes a manifest one sandbox's pod."""
    about = manifest.get("metadata") or {}
    told = {**(about.get("labels") or {}), **(about.get("annotations") or {})}
    return {"name": about.get("name")} | {k: v for k, v in told.items() if k.startswith(PREFIX)}


def is_ours(pod: PodView) -> bool:
    """Whether a pod is a sandbox that this package made."""
    return (
        pod.labels.get(MANAGED_BY) == MANAGER
        and SANDBOX in pod.labels
        and (pod.labels[SANDBOX] == pod.name or POOL in pod.labels)
        and SPEC in pod.annotations
    )


def is_waiting(pod: PodView) -> bool:
    """Whether a pod is a pool's, and nobody's sandbox yet."""
    return pod.labels.get(MANAGED_BY) == MANAGER and POOL in pod.labels and SANDBOX not in pod.labels


def sandbox_id(pod: PodView) -> str:
    """The id of the sandbox that a pod is: its name, unless it was claimed from a pool."""
    return pod.labels.get(SANDBOX, pod.name)


def began(pod: PodView) -> float:
    """When it became a sandbox, seconds since the epoch by the server's clock."""
    if POOL in pod.labels:
        try:
            return float(pod.annotations.get(CREATED, ""))
        except ValueError:
            return pod.created
    return pod.created


def agent_url(pod: PodView, port: int) -> str:
    """Where its agent is; empty before it has an address. `port` is that of a pod that does not say it."""
    ip = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    return f"http://{ip}:{pod.annotations.get(PORT) or port}" if ip else ""


def stands(pod: PodView) -> bool:
    """Whether it is a sandbox of ours that has not ended, nor is about to."""
    return is_ours(pod) and pod.deleting is None and pod.phase not in ENDED


def standing(pod: PodView) -> StandingSandbox | None:
    """What a pod's annotations say of it; None for one that cannot be read, which is nobody's to touch."""
    try:
        spec = SandboxSpec.model_validate_json(pod.annotations[SPEC])
        return StandingSandbox(id=sandbox_id(pod), spec=spec, created=began(pod))
    except (KeyError, ValidationError):
        return None


def generation(annotations: Mapping[str, str]) -> int:
    """How often the agent was started anew."""
    text = annotations.get(GENERATION, "0")
    return int(text) if text.isdigit() else 0
