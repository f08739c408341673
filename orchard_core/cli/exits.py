"""What the exit code of `orchard` means. docs/reference/cli.md says the same; a test compares them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes."""

    OK = 0
    """The command did what was asked, and the answer is good."""
    UNSOUND = 1
    """The command did what was asked, and the answer is not good: rollouts without a score, tasks that
    the doctor rejects, plugins that are broken."""
    USAGE = 2
    """A flag, a recipe, a name or a path is wrong, or this host cannot do it. Nothing was started."""
    FAILED = 3
    """Something failed while it worked: a sandbox, a model, a verifier, the store."""
    BUG = 70
    """An error that Orchard did not foresee: a bug in it or in a plugin."""
    HUNG_UP = 129
    """The terminal was closed (SIGHUP). Finished rollouts are kept."""
    INTERRUPTED = 130
    """Ctrl-C (SIGINT). Finished rollouts are kept."""
    BROKEN_PIPE = 141
    """Whoever read the output went away, as `head` does."""
    TERMINATED = 143
    """SIGTERM. Finished rollouts are kept."""
