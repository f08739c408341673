"""Where an operator has saved files lie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from orchard_core import ConfigError, Record

_SCHEMES = ("s3", "gs", "az", "file", "s3a", "abfs", "abfss")
_SECRET = re.compile(r"secret|password|sas|token|account_key|access_key|service_account_key", re.IGNORECASE)


class SnapshotConfig(Record):
    """Object storage. Its credentials come from the environment of this process (AWS_*, GOOGLE_*, AZURE_*)
    or from the identity that the cloud gives it, and never reach a sandbox."""

    url: str
    """s3://BUCKET/PREFIX, gs://..., az://CONTAINER/PREFIX, or file:///PATH of a volume that all drivers
    mount."""
    options: Mapping[str, str] = Field(default_factory=dict)
    """Of the storage's client, such as `endpoint` and `region`; no secrets."""
    keep: bool = False
    """Snapshots outlive a provider that is closed; otherwise it takes along those that it saved."""
    chunk_mb: int = Field(default=8, ge=1, le=256)
    """Size of the pieces that are stored, MiB. A save or a restore holds a few of them in memory."""

    @field_validator("url")
    @classmethod
    def _known(cls, given: str) -> str:
        parts = urlsplit(given)
        if parts.scheme not in _SCHEMES:
            raise ConfigError(
                f"snapshots cannot lie at {given!r}", hint=f"give a URL of {', '.join(_SCHEMES[:4])} or file"
            )
        if parts.username or parts.password or parts.query:
            raise ConfigError(
                "the URL of the snapshots holds credentials or options",
                hint="credentials come from the environment; options go into `options`",
            )
        return given

    @field_validator("options")
    @classmethod
    def _harmless(cls, given: Mapping[str, str]) -> Mapping[str, str]:
        for name in given:
            if _SECRET.search(name):
                raise ConfigError(
                    f"the option {name} of the snapshots is a secret", hint="set it in the environment"
                )
        return given
