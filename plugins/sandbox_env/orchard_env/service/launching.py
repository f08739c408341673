"""What `orchard serve` was told, as a service that runs."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml
from pydantic import ValidationError

from orchard_core import ConfigError, load_provider
from orchard_env.service.observe.settings import ObserveSettings, observe_settings
from orchard_env.service.settings import ServiceSettings
from orchard_env.service.team_settings import TeamSettings, team_settings

_SECTIONS = "`service`, `provider`, `team` and `observe`"
_LEVELS = ("debug", "info", "warning", "error")
_NEEDED = ("fastapi", "uvicorn", "httptools", "websockets", "prometheus_client")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The flags of the command."""

    provider: str
    """Name of the provider."""
    options: tuple[str, ...] = ()
    """`NAME=VALUE` for the provider."""
    config: str | None = None
    """A YAML file with `service`, `provider`, `team` and `observe`."""
    image_fallback: bool = False
    """See ServiceSettings."""
    host: str = "127.0.0.1"
    """Address to bind."""
    port: int = 8000
    """Port to bind."""
    certificate: str | None = None
    """PEM file."""
    certificate_key: str | None = None
    """PEM file."""
    keys: str | None = None
    """File of API keys."""
    redis: str | None = None
    """URL of the Redis that replicas share."""
    redis_password_file: str | None = None
    """File with its password."""
    audit: str | None = None
    """File of the audit log."""
    client_ca: str | None = None
    """PEM file."""
    open_to_all: bool = False
    """No keys, although other machines are served."""
    log_level: str = "info"
    """Of the JSON lines."""
    as_json: bool = False
    """How the address is told."""


def run(launch: Launch) -> None:
    """Serve until the process is told to end. Raises ConfigError before it starts, SandboxUnavailable."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"`orchard serve` needs {', '.join(missing)}", hint="pip install 'orchard-env[serve]'"
        )
    from orchard_env.service.log import log_to_stderr

    _check(launch)
    settings, options = _settings(launch)
    shared = team_settings(
        _read(launch.config).get("team"),
        keys=launch.keys,
        redis=launch.redis,
        redis_password_file=launch.redis_password_file,
        audit=launch.audit,
    )
    settings = _check_open(launch, settings, shared)
    observe = observe_settings(_read(launch.config).get("observe"))
    log_to_stderr(launch.log_level)
    asyncio.run(_serve(launch, settings, options, shared, observe))


async def _serve(
    launch: Launch,
    settings: ServiceSettings,
    options: dict[str, Any],
    shared: TeamSettings,
    observe: ObserveSettings,
) -> None:
    from orchard_env.service.assembly import assembled
    from orchard_env.service.serving import Address, serve

    address = Address(
        host=launch.host,
        port=launch.port,
        certificate=launch.certificate,
        key=launch.certificate_key,
        client_ca=launch.client_ca,
    )
    provider = load_provider(launch.provider, **options)
    async with assembled(provider, settings, shared=shared, observe=observe) as services:
        await serve(services, address, ready=lambda url: _tell(launch, url))


def _tell(launch: Launch, url: str) -> None:
    """On standard output, at once: a script waits for it."""
    told = orjson.dumps({"url": url, "provider": launch.provider}).decode()
    text = told if launch.as_json else f"serving {launch.provider} sandboxes at {url}"
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _check(launch: Launch) -> None:
    if launch.log_level not in _LEVELS:
        raise ConfigError(f"--log-level {launch.log_level!r}", hint=f"one of {', '.join(_LEVELS)}")
    if (launch.certificate is None) != (launch.certificate_key is None):
        raise ConfigError("--tls-cert and --tls-key go together", hint="give both, or neither")
    if launch.client_ca is not None and launch.certificate is None:
        raise ConfigError("--tls-client-ca needs TLS", hint="give --tls-cert and --tls-key too")
    for name in (launch.certificate, launch.certificate_key, launch.client_ca, launch.keys):
        if name is not None and not Path(name).is_file():
            raise ConfigError(f"there is no file {name}", hint="`orchard env keys` makes a file of keys")


def _check_open(launch: Launch, settings: ServiceSettings, shared: TeamSettings) -> ServiceSettings:
    """Without keys, for this machine's own programs only. Raises ConfigError."""
    from orchard_env.service.hosts import LOOPBACK
    from orchard_env.service.serving import is_loopback

    if shared.keyed or launch.open_to_all:
        return settings
    if not is_loopback(launch.host):
        raise ConfigError(
            f"{launch.host} can be reached by others, who would run commands here without a key",
            hint="give --keys or --redis, or --host 127.0.0.1, or --no-auth if something else keeps them out",
        )
    hosts = settings.allowed_hosts or (*LOOPBACK, launch.host)
    return settings.model_copy(update={"allowed_hosts": hosts})


def _settings(launch: Launch) -> tuple[ServiceSettings, dict[str, Any]]:
    """The file's settings under the flags', and the provider's options."""
    told = _read(launch.config)
    fields: dict[str, Any] = dict(told.get("service") or {})
    if launch.image_fallback:
        fields["image_fallback"] = True
    options = dict(told.get("provider") or {}) | dict(map(_pair, launch.options))
    try:
        return ServiceSettings(**fields), options
    except (ValidationError, TypeError) as error:
        raise ConfigError(
            f"{launch.config or 'the flags'}: {error}",
            hint=f"`service` takes {', '.join(ServiceSettings.model_fields)}",
        ) from error


def _read(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        told = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint=f"write YAML with {_SECTIONS}") from error
    odd = set(told) - {"service", "provider", "team", "observe"} if isinstance(told, dict) else {"its shape"}
    if odd:
        raise ConfigError(
            f"{path}: {', '.join(sorted(map(str, odd)))} means nothing",
            hint=f"it takes {_SECTIONS}",
        )
    return told


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"--provider-option {text!r} is not NAME=VALUE", hint="write NAME=VALUE")
    try:
        return name, yaml.safe_load(value) if value else ""
    except yaml.YAMLError:
        return name, value
