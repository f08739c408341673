"""Label and field selectors."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchard_env.kubernetes.resources import Manifest

_TERM = re.compile(r"^(?P<not>!?)(?P<name>[^=!]+?)(?:(?P<sign>==|=|!=)(?P<value>.*))?$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A selection, read."""

    namespace: str
    labels: tuple[tuple[str, str, str | None], ...]
    fields: tuple[tuple[str, str, str | None], ...]

    @classmethod
    def read(cls, namespace: str, labels: str, fields: str) -> Wanted:
        """Raises ValueError for what is not understood."""
        return cls(namespace, _terms(labels), _terms(fields))

    def fits(self, manifest: Manifest) -> bool:
        about = manifest["metadata"]
        if self.namespace and about.get("namespace") != self.namespace:
            return False
        bears = about.get("labels") or {}
        return all(_holds(term, bears.get(term[0])) for term in self.labels) and all(
            _holds(term, _field(manifest, term[0])) for term in self.fields
        )


def _terms(text: str) -> tuple[tuple[str, str, str | None], ...]:
    found = []
    for part in filter(None, text.split(",")):
        term = _TERM.match(part.strip())
        if term is None:
            raise ValueError(f"unable to parse requirement: {part}")
        sign = "!=" if term["sign"] == "!=" else "="
        found.append((term["name"], "!" if term["not"] else sign, term["value"]))
    return tuple(found)


def _holds(term: tuple[str, str, str | None], value: str | None) -> bool:
    _, sign, wanted = term
    if sign == "!":
        return value is None
    if wanted is None:
        return value is not None
    return (value == wanted) is (sign == "=")


def _field(manifest: Manifest, path: str) -> str:
    if path == "source":
        path = "source.component"
    value: object = manifest
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)
