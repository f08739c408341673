"""What the service itself refuses. problems.py makes HTTP answers of these and of every other error.

ServiceFault
|- KeyMissing 401, KeyRefused 403, ScopeMissing 403
|- RequestInvalid 422 (400 where it is no JSON), BodyTooLarge 413, RequestTooSlow 408
|- SandboxUnknown 404, JobUnknown 404
|- SandboxBusy 409 (the state of the sandbox does not allow it)
|- WaitEnded 408
`- TooManyRequests 429
"""

from __future__ import annotations

from orchard_core import OrchardError


class ServiceFault(OrchardError):
    """A request that is refused. `status` is its HTTP status, `retry_after_s` when to come again, if ever."""

    status = 400

    def __init__(
        self, message: str, *, hint: str = "", status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status or type(self).status
        self.retry_after_s = retry_after_s


class KeyMissing(ServiceFault):
    """No API key came with the request."""

    status = 401


class KeyRefused(ServiceFault):
    """The key is wrong, revoked or expired."""

    status = 403


class ScopeMissing(ServiceFault):
    """The key is good, but not for this."""

    status = 403


class RequestInvalid(ServiceFault):
    """The request is not what the document of the API says."""

    status = 422


class BodyTooLarge(ServiceFault):
    """The body, or what is asked for in one answer, is over the limit."""

    status = 413


class RequestTooSlow(ServiceFault):
    """The body did not arrive in time."""

    status = 408


class SandboxUnknown(ServiceFault):
    """No such sandbox, or another tenant's: the two are not told apart."""

    status = 404


class JobUnknown(ServiceFault):
    """No such job, or it ended so long ago that its record was dropped."""

    status = 404


class SandboxBusy(ServiceFault):
    """The sandbox stands, and is not in a state for this."""

    status = 409


class WaitEnded(ServiceFault):
    """A wait on the server ran out; what was waited for goes on."""

    status = 408


class TooManyRequests(ServiceFault):
    """The tenant's rate, or its share of the queue, is used up."""

    status = 429
