"""What an operator sets of a service that a team shares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from orchard_core import ConfigError, Record
from orchard_env.service.admission.fair import AdmissionLimits
from orchard_env.service.audit.settings import AuditSettings
from orchard_env.service.state.redis.settings import RedisSettings
from orchard_env.service.tenancy.quota import Quota, Unstated


class TeamSettings(Record):
    """Keys, quotas, queues, the audit log, and what replicas share."""

    keys: Path | None = None
    """File of tenants and keys; None: they are in Redis, or, without Redis, everybody may do everything."""
    redis: RedisSettings | None = None
    """What several replicas share; None: this process is the only one."""
    quota: Quota = Quota()
    """Of each tenant that has none of its own."""
    unstated: Unstated = Unstated()
    """What a sandbox counts as that does not say how much it needs."""
    admission: AdmissionLimits = AdmissionLimits()
    """Queues."""
    audit: AuditSettings | None = None
    """The audit log; None: the access log is enough."""
    leader: Literal["auto", "alone", "redis", "kubernetes"] = "auto"
    """How replicas agree on who destroys sandboxes that fell silent. auto: by a Lease of the cluster with the
    provider kubernetes, else by Redis where there is one, else this replica does."""
    leader_s: float = Field(default=15.0, ge=1)
    """A dead leader is followed after this many seconds."""
    replica: str | None = None
    """This replica's name, unlike any other's; None: made of the host's name and a random part."""
    replica_s: float = Field(default=10.0, gt=0)
    """A replica that gave no sign of life for so long counts as gone, seconds."""

    @property
    def keyed(self) -> bool:
        """Whether callers need keys."""
        return self.keys is not None or self.redis is not None


def team_settings(
    told: object,
    *,
    keys: str | None = None,
    redis: str | None = None,
    redis_password_file: str | None = None,
    audit: str | None = None,
) -> TeamSettings:
    """What the section `team` of a configuration says, under flags and environment. Raises ConfigError."""
    if not isinstance(told, Mapping | None):
        raise ConfigError("`team` is no group of settings", hint=_TAKES)
    fields: dict[str, Any] = dict(told or {})
    if keys is not None:
        fields["keys"] = keys
    if audit is not None:
        fields["audit"] = {**(fields.get("audit") or {}), "path": audit}
    if "redis" not in fields or redis is not None:
        file = None if redis_password_file is None else Path(redis_password_file)
        fields["redis"] = RedisSettings.of(redis, password_file=file)
    try:
        return TeamSettings(**fields)
    except (ValidationError, TypeError) as error:
        # Its words hold what was given, and that may be a password.
        words = (
            "; ".join(
                f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
                for one in error.errors(include_input=False, include_url=False)
            )
            if isinstance(error, ValidationError)
            else "a name is no text"
        )
        raise ConfigError(f"`team` cannot be used: {words}", hint=_TAKES) from None


_TAKES = f"`team` takes {', '.join(TeamSettings.model_fields)}"
