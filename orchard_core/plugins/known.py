"""Names that distributions of this project offer, so that "not installed" is not "unknown"."""

from __future__ import annotations

from orchard_core.types.plugin import PluginKind

KNOWN: dict[tuple[PluginKind, str], str] = {
    (PluginKind.HARNESS, "react"): "orchard-harness-react",
    (PluginKind.HARNESS, "miniswe"): "orchard-harness-miniswe",
    (PluginKind.HARNESS, "openhands"): "orchard-harness-openhands",
    (PluginKind.HARNESS, "zeroclaw"): "orchard-harness-zeroclaw",
    (PluginKind.HARNESS, "cli"): "orchard-harness-cli",
    (PluginKind.TASKSET, "claw-bench"): "orchard-domain-claw[bench]",
    (PluginKind.SANDBOX, "container"): "orchard-sandbox-container",
    (PluginKind.SANDBOX, "kubernetes"): "orchard-env[kubernetes]",
    (PluginKind.SANDBOX, "remote"): "orchard-env",
    (PluginKind.WORKFORCE, "kubernetes"): "orchard-env[kubernetes]",
}
"""Kind and name to the requirement that brings it."""
