"""What every provider does with a spec besides isolating: check it, name it, and put its files in place."""

from __future__ import annotations

import re
import secrets
from collections.abc import Container

from orchard_core.errors import (
    ConfigError,
    SandboxCreateFailed,
    SandboxError,
    SandboxExists,
    SandboxUnsupported,
)
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.egress.policy import EgressPolicy
from orchard_core.types.sandbox import SandboxSpec

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def name_for(spec: SandboxSpec, provider: str, taken: Container[str]) -> str:
    """The id of a new sandbox: the name asked for, or one of ours. Raises SandboxExists."""
    if spec.name is None:
        return f"{provider}-{secrets.token_hex(6)}"
    if spec.name in taken:
        raise SandboxExists(
            f"a sandbox named {spec.name} stands already",
            hint="close that one first, or take another name",
        )
    return spec.name


def check_spec(spec: SandboxSpec) -> None:
    """What no provider could do. Raises SandboxUnsupported."""
    if spec.name is not None and not _NAME.fullmatch(spec.name):
        raise SandboxUnsupported(
            f"{spec.name!r} cannot name a sandbox",
            hint="use at most 63 small letters, digits and -, and no - at either end",
        )
    for path in (spec.workdir, *(item.path for item in spec.files)):
        if not path.startswith("/") or "\0" in path:
            raise SandboxUnsupported(f"{path!r} is not an absolute path", hint="paths inside begin with /")
    for name, value in (("ttl_s", spec.ttl_s), ("idle_ttl_s", spec.idle_ttl_s)):
        if value is not None and not value > 0:
            raise SandboxUnsupported(
                f"{name}={value:g} leaves a sandbox no life", hint="give a positive number"
            )
    try:
        EgressPolicy(spec.network)
    except ConfigError as error:
        raise SandboxUnsupported(error.message, hint=error.hint) from error


async def furnish(sandbox: AgentSandbox, *, restored: bool = False) -> None:
    """Make the working directory and, unless the sandbox begins with saved files, write the spec's. Raises
    SandboxCreateFailed."""
    try:
        if sandbox.spec.workdir != "/workspace":
            await sandbox.mkdir(sandbox.spec.workdir)
        for item in () if restored else sandbox.spec.files:
            await sandbox.write(item.path, item.content, mode=item.mode)
    except SandboxError as error:
        raise SandboxCreateFailed(f"sandbox {sandbox.id} could not be furnished: {error}") from error
