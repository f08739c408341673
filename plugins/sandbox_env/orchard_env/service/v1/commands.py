"""A v1 command as the agent runs it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

PROFILE = (
    "[ -r /etc/profile ] && . /etc/profile; "
    'if [ -n "$BASH_VERSION" ] && [ -r ~/.bash_profile ]; then . ~/.bash_profile; '
    'elif [ -n "$BASH_VERSION" ] && [ -r ~/.bash_login ]; then . ~/.bash_login; '
    "elif [ -r ~/.profile ]; then . ~/.profile; fi; "
)
"""What a login shell reads, on the script's own first line, so that its lines keep their numbers. A real
`bash -l -c` would take the script as an argument, which the kernel limits to 128 KiB."""


def command_of(command: str | Sequence[str], *, login_shell: bool) -> str | list[str]:
    """The script or argv to run."""
    if not login_shell:
        return command if isinstance(command, str) else list(command)
    return PROFILE + (command if isinstance(command, str) else f"exec {shlex.join(command)}")
