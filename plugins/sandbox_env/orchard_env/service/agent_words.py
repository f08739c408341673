"""What an agent refuses, in the service's words: bad input of a client is never the service's failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from orchard_core import SandboxError, agent_error
from orchard_env.service.faults import RequestInvalid

_INTERNAL = 500


def agent_refusal(status: int, body: bytes) -> SandboxError | RequestInvalid:
    """The error that an agent's answer stands for; what has no class of its own is the request's fault."""
    error = agent_error(status, body)
    if type(error) is not SandboxError:
        return error
    return RequestInvalid(error.message, hint=error.hint, status=status if status < _INTERNAL else None)


@contextmanager
def agent_words() -> Iterator[None]:
    """The same for calls of the agent's client."""
    try:
        yield
    except SandboxError as error:
        if type(error) is SandboxError:
            raise RequestInvalid(error.message, hint=error.hint) from error
        raise
