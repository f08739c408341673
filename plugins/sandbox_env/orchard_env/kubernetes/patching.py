"""Patches of a pod, put on before it is sent: strategic merge, and JSON Patch (RFC 6902)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchard_core import ConfigError
from orchard_env.kubernetes.resources import Manifest

_MERGE_KEYS: Final = {
    "containers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists of a pod whose elements are merged by a key, as the API server's own patch strategy says; every other
list is replaced."""
_DIRECTIVE: Final = "$patch"


def patched(manifest: Manifest, patch: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Manifest:
    """A changed copy. Raises ConfigError for a patch that cannot be put on."""
    if isinstance(patch, Mapping):
        return _merged(manifest, patch)
    changed = copy.deepcopy(manifest)
    for operation in patch:
        _operate(changed, operation)
    return changed


def _merged(old: Manifest, patch: Mapping[str, Any]) -> Manifest:
    if patch.get(_DIRECTIVE) == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    merged = copy.deepcopy(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = _merged(below if isinstance(below, dict) else {}, value)
        elif key in _MERGE_KEYS and isinstance(value, list | tuple):
            merged[key] = _merged_list(merged.get(key) or [], value, _MERGE_KEYS[key])
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _merged_list(old: Sequence[Any], patch: Sequence[Any], by: str) -> list[Any]:
    merged = list(old)
    for item in patch:
        if not isinstance(item, Mapping) or by not in item:
            raise ConfigError(
                f"the pod patch has an element without {by!r}, by which it would be merged: {item}",
                hint=f"give each element its {by}",
            )
        at = next((i for i, one in enumerate(merged) if one.get(by) == item[by]), None)
        if item.get(_DIRECTIVE) == "delete":
            merged = [one for one in merged if one.get(by) != item[by]]
        elif at is None:
            merged.append(copy.deepcopy(dict(item)))
        else:
            merged[at] = _merged(merged[at], item)
    return merged


def _operate(document: Manifest, operation: Mapping[str, Any]) -> None:
    try:
        action, path = operation["op"], operation["path"]
        *above, last = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        place: Any = document
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place[part]
        _change(place, last, action, operation)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise ConfigError(
            f"the pod patch {dict(operation)} cannot be put on: {error!r}",
            hint="operations are {op: add|replace|remove|test, path: /spec/..., value: ...} on what is there",
        ) from error


def _change(place: Any, last: str, action: str, operation: Mapping[str, Any]) -> None:
    key: Any = last
    if isinstance(place, list):
        key = len(place) if last == "-" else int(last)
    if action == "add" and isinstance(place, list):
        place.insert(key, operation["value"])
    elif action == "add":
        place[key] = operation["value"]
    elif action == "replace":
        place[key], _ = operation["value"], place[key]
    elif action == "remove":
        del place[key]
    elif action == "test" and place[key] == operation["value"]:
        return
    else:
        raise ValueError(f"{action} of {last}")
