"""The border where every error of a command becomes one message on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from orchard_core import errors
from orchard_core.cli.exits import Exit
from orchard_core.evals.clean import clean

USAGE_ERRORS = (
    errors.ConfigError,
    errors.PluginError,
    errors.SandboxUnavailable,
    errors.SandboxUnsupported,
    errors.TaskSetNotFound,
    errors.RunExists,
    errors.RunNotFound,
    errors.RunLocked,
    errors.DatasetNotFound,
    errors.DatasetExists,
    errors.DatasetLocked,
    errors.FormatUnknown,
    errors.FormatUnsupported,
    errors.CreditRefused,
)
"""Errors that are raised before anything starts."""

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EBADF, errno.EDQUOT})
"""What the kernel says of an output that is full or closed."""

_REFUSED = frozenset({
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR, errno.ENOTDIR,
    errno.EIO, errno.EMFILE, errno.ENFILE,
})  # fmt: skip
"""What it says of a path that the user may not use so."""

DEBUG_VARIABLE = "ORCHARD_DEBUG"


_LONGEST = 200
"""Characters of a path that are shown."""


@contextmanager
def error_border() -> Iterator[None]:
    """Turn what a command raises into an exit code; with ORCHARD_DEBUG or --debug, show the traceback too."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        sys.exit(Exit.BROKEN_PIPE)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except errors.OrchardError as error:
        _say(error.message, error.hint)
        sys.exit(Exit.USAGE if isinstance(error, USAGE_ERRORS) else Exit.FAILED)
    except (typer.Exit, typer.Abort):
        raise
    except OSError as error:
        if error.filename is not None and error.errno in _REFUSED:
            _say(
                f"{_name(error.filename)}: {error.strerror}",
                "choose another path, or see who may use this one",
            )
            sys.exit(Exit.FAILED)
        if error.errno not in _UNWRITABLE:
            _bug(error)
        _say(f"the output cannot be written: {error.strerror}", "send it to a place with room")
        _forget_stdout()
        sys.exit(Exit.FAILED)
    except Exception as error:  # the border: plugins' commands may raise anything
        if _is_usage_error(error):
            raise
        _bug(error)


def _bug(error: Exception) -> NoReturn:
    _say(
        f"unexpected {type(error).__name__}: {error}",
        "this is a bug in Orchard or in a plugin; run the command again with --debug for the traceback",
    )
    sys.exit(Exit.BUG)


def _name(path: object) -> str:
    text = os.fsdecode(path) if isinstance(path, str | bytes) else str(path)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _is_usage_error(error: Exception) -> bool:
    """Typer's own errors show themselves; their base class has moved between its releases."""
    return hasattr(error, "exit_code") and hasattr(error, "show")


def _say(message: str, hint: str) -> None:
    if os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"):
        traceback.print_exc()
    typer.secho("error: ", err=True, nl=False, fg="red", bold=True)
    typer.echo(_set_in(message), err=True)
    if hint:
        typer.secho("hint:  ", err=True, nl=False, fg="cyan")
        typer.echo(_set_in(hint), err=True)


def _set_in(text: str) -> str:
    """Further lines begin below the first: a file's name with a line end in it forges no line of ours."""
    return clean(text).replace("\n", "\n       ")


def _forget_stdout() -> None:
    """Nothing can be written any more: keep the interpreter from trying at exit."""
    with open(os.devnull, "w") as nothing:  # noqa: PTH123 - a device, not a path of ours
        os.dup2(nothing.fileno(), sys.stdout.fileno())
