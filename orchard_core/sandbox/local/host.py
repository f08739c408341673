"""What this host lets the provider do, found out once by doing it."""

from __future__ import annotations

import contextlib
import secrets
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from orchard_core.errors import SandboxCreateFailed, SandboxError, SandboxUnavailable
from orchard_core.sandbox.agent import agent_binary
from orchard_core.sandbox.local.account import ROOT
from orchard_core.sandbox.local.base import build_base
from orchard_core.sandbox.local.bubblewrap import find_bwrap
from orchard_core.sandbox.local.cgroups import CgroupPlan, find_plan, possible_bases
from orchard_core.sandbox.local.command import Plan, environment
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.diagnose import unavailable
from orchard_core.sandbox.local.launch import last_words, launch
from orchard_core.sandbox.local.layers import HostImage, make_layers
from orchard_core.sandbox.local.limits import LimitPlan
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.sandbox.local.seccomp import filter_program
from orchard_core.sandbox.local.state import DriverState, candidate_roots, register_driver
from orchard_core.sandbox.local.veil import Veils
from orchard_core.sandbox.unix_socket import short_name
from orchard_core.types.sandbox import ImageRef

_TRIAL_S = 10.0
_TRIAL_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHost:
    """A host on which a trial sandbox has run."""

    bwrap: Path
    """The bubblewrap program."""
    agent: Path
    """The agent's binary."""
    seccomp: bytes | None
    """The system-call filter; None on a machine whose numbers are not known."""
    state: DriverState
    """This driver's directory and lease."""
    image: HostImage
    """What the host image is made of."""
    overlays: bool
    """The state directory's file system carries overlays."""
    cgroups: CgroupPlan
    """Controllers this driver may use."""

    def close(self) -> None:
        """Remove the driver's cgroups and directory."""
        self.cgroups.remove()
        remove_tree(self.state.path)
        self.state.release()


def open_host(config: LocalConfig) -> LocalHost:
    """Try the places for state, best first, until a sandbox starts there. Blocking, about 0.1 s.

    Raises SandboxUnavailable, which names the cause and each way out.
    """
    bwrap, agent = find_bwrap(config.bwrap), agent_binary()
    seccomp = filter_program(nested_namespaces=config.nested_namespaces)
    failures: list[SandboxError] = []
    for overlays in (True, False):
        for root in candidate_roots(config.state_dir):
            try:
                state = register_driver(root)
            except SandboxUnavailable as error:
                failures.append(error)
                continue
            host = _host_at(state, bwrap, agent, seccomp, overlays=overlays)
            try:
                _trial(host)
            except SandboxCreateFailed as error:
                failures.append(error)
                host.close()
                continue
            return _with_cgroups(host)
    raise _why_not(failures, bwrap)


def _why_not(failures: list[SandboxError], bwrap: Path) -> SandboxUnavailable:
    tried = [error for error in failures if isinstance(error, SandboxCreateFailed)]
    if not tried and failures and isinstance(failures[0], SandboxUnavailable):
        return failures[0]
    return unavailable(tried[-1].message if tried else "", bwrap=bwrap)


def _host_at(
    state: DriverState, bwrap: Path, agent: Path, seccomp: bytes | None, *, overlays: bool
) -> LocalHost:
    shown = build_base(state.base)
    return LocalHost(
        bwrap=bwrap,
        agent=agent,
        seccomp=seccomp,
        state=state,
        image=HostImage(base=state.base, shown=tuple(shown), veils=Veils(state.path / "veils")),
        overlays=overlays,
        cgroups=CgroupPlan(name=f"orchard-{state.id}"),
    )


def _trial(host: LocalHost) -> None:
    """Start an agent and hear it answer. Raises SandboxCreateFailed."""
    box = host.state.box("trial")
    box.mkdir(mode=0o700)
    group = None
    try:
        image = replace(host.image, veils=None)
        layers = make_layers(box, ImageRef(kind="host"), image, ROOT, overlays=host.overlays)
        plan = Plan(
            sandbox_id="trial", layers=layers, mounts=(), account=ROOT, env=environment(ROOT, {}),
            workdir="/", agent=host.agent,
        )  # fmt: skip
        group = host.cgroups.create("trial", {"memory": _TRIAL_BYTES, "cpu": 1, "pids": 1000})
        launched = launch(host.bwrap, plan, box, secrets.token_urlsafe(24), LimitPlan(), group, host.seccomp)
        try:
            _demand_answer(box)
        finally:
            launched.kill()
    finally:
        if group is not None:
            group.remove()
        remove_tree(box)


def _demand_answer(box: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_TRIAL_S)
        with contextlib.suppress(OSError), short_name(box / "agent.sock") as name:
            client.connect(name)
            client.sendall(b"GET /v1/health HTTP/1.0\r\n\r\n")
            if client.recv(1):
                return
    raise SandboxCreateFailed(last_words(box / "agent.log") or "the agent did not answer")


def _with_cgroups(host: LocalHost) -> LocalHost:
    """Use cgroups if a sandbox also starts inside one; hosts that let one make them may still forbid that."""
    name = f"orchard-{host.state.id}"
    host.state.note_cgroups(possible_bases(name))
    plan = find_plan(name)
    with_groups = replace(host, cgroups=plan)
    if not plan.slots:
        return host
    try:
        _trial(with_groups)
    except (SandboxCreateFailed, OSError):
        plan.remove()
        return host
    return with_groups
