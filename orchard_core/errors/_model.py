"""What fails about calls of a model."""

from __future__ import annotations

from orchard_core.errors._root import OrchardError


class ModelError(OrchardError):
    """A model call failed."""


class ModelUnavailable(ModelError):
    """The upstream could not be reached or answered 5xx until the retries ran out.

    `retry_after_s` is the pause the upstream asked for, seconds, None when it did not say.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class ModelRateLimited(ModelError):
    """The upstream answered 429 until the retries ran out; `retry_after_s` as in ModelUnavailable."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class ModelTimeout(ModelError):
    """The upstream did not answer in time (`limit_s`)."""

    def __init__(self, message: str, *, limit_s: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit_s = limit_s


class ModelRejected(ModelError):
    """The upstream refused the request (4xx); `status` is its HTTP status, `body` its own words."""

    def __init__(self, message: str, *, status: int, body: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.body = body


class ContextExceeded(ModelRejected):
    """The conversation no longer fits the model."""


class ModelReplyMalformed(ModelError):
    """The upstream's answer is not what its protocol promises."""


class SessionClosed(ModelError):
    """The session's key was revoked: its rollout has ended."""


class BudgetExceeded(ModelError):
    """A session's budget ran out. `kind`: tokens, calls, cost or wall_clock; `limit` in that unit."""

    def __init__(self, message: str, *, kind: str, limit: float, used: float) -> None:
        super().__init__(message)
        self.kind = kind
        self.limit = limit
        self.used = used
