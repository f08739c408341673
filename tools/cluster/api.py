"""Questions to the API server, with the administrator's certificate."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from layout import API, NODE, Layout

_PATIENCE_S = 5.0


def answers(layout: Layout) -> bool:
    """The API server serves."""
    return _ask(layout, "/readyz") is not None


def has_account(layout: Layout) -> bool:
    """Pods of the default namespace can be made: their account is there."""
    return _ask(layout, "/api/v1/namespaces/default/serviceaccounts/default") is not None


def node_ready(layout: Layout) -> bool:
    """The one node takes pods."""
    node = json.loads(_ask(layout, f"/api/v1/nodes/{NODE}") or "{}")
    conditions: list[dict[str, Any]] = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _ask(layout: Layout, path: str) -> bytes | None:
    pki = layout.certificates
    if not (pki / "admin.key").exists():
        return None
    trust = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    trust.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    try:
        with urllib.request.urlopen(API + path, timeout=_PATIENCE_S, context=trust) as answer:  # noqa: S310
            return bytes(answer.read())
    except (OSError, urllib.error.URLError):
        return None
