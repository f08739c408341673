"""What every provider does with a spec besides isolating: check it, and put its files in place."""

from __future__ import annotations

from orchard_core.errors import ConfigError, SandboxCreateFailed, SandboxError, SandboxUnsupported
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.egress.policy import EgressPolicy
from orchard_core.types.sandbox import SandboxSpec


def check_spec(spec: SandboxSpec) -> None:
    """What no provider could do. Raises SandboxUnsupported."""
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
