"""The official client's configuration and transport: credentials, plugins, TLS and proxies are its own."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from orchard_core import ConfigError

if TYPE_CHECKING:
    from types import ModuleType

    from orchard_env.kubernetes.resources import Manifest

_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_RENEW_S = 5.0
"""Credentials that are refused are read anew at most this often."""

log = logging.getLogger(__name__)


class Connection:
    """Where the server is, who we are, and a pool of connections to it."""

    def __init__(self, kubeconfig: str | None, context: str | None, pool: int) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._pool = pool
        self._client: Any = None
        self._renewed = float("-inf")
        self._renewing = asyncio.Lock()
        self.namespace = "default"

    async def open(self) -> None:
        """Read the configuration. Raises ConfigError when there is none, or the extra is missing."""
        self._client = await self._load()

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """The answer, its body unread. Raises what aiohttp raises."""
        client = self._client
        _, url, headers, _, _ = await client.param_serialize(method, path, auth_settings=["BearerToken"])
        headers |= {"Accept": "application/json", "Content-Type": content_type}
        target = URL(f"{url}?{urlencode(query)}" if query else url, encoded=True)
        answer = await client.rest_client.request(
            method, target, headers=headers, body=body, _request_timeout=timeout
        )
        response: aiohttp.ClientResponse = answer.response
        return response

    async def renew(self) -> bool:
        """Read the credentials anew, as a plugin's token may have expired; False: that was just done."""
        async with self._renewing:
            if time.monotonic() - self._renewed < _RENEW_S:
                return False
            fresh, old = await self._load(), self._client
            self._client, self._renewed = fresh, time.monotonic()
        # Calls under way keep their connections until they end.
        asyncio.get_running_loop().call_later(120.0, _close_later, old)
        return True

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _load(self) -> Any:
        # The generated models take more than a second to import, and the loop has other work.
        aio = await asyncio.to_thread(_module, "kubernetes.aio.client")
        config = await asyncio.to_thread(_module, "kubernetes.aio.config")
        settings = aio.Configuration()
        settings.connection_pool_maxsize = self._pool
        try:
            await self._configure(config, settings)
        except (config.ConfigException, OSError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"no cluster is configured: {error}",
                hint="set KUBECONFIG, name a file by the option kubeconfig, or run inside the cluster",
            ) from error
        client = aio.ApiClient(configuration=settings)
        client.user_agent = "orchard-env"
        return client

    async def _configure(self, config: ModuleType, settings: object) -> None:
        file = self._kubeconfig or os.environ.get("KUBECONFIG")
        if file is None and self._context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=settings)
            self.namespace = _POD_NAMESPACE.read_text().strip()
            return
        file = file or str(Path("~/.kube/config").expanduser())
        if not any(Path(part).expanduser().is_file() for part in file.split(os.pathsep) if part):
            raise FileNotFoundError(f"{file} is not a file")
        await config.load_kube_config(
            config_file=file, context=self._context, client_configuration=settings, persist_config=False
        )
        every, current = config.list_kube_config_contexts(config_file=file)
        chosen: Manifest = next((one for one in every if one["name"] == self._context), current)
        self.namespace = chosen["context"].get("namespace") or "default"


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            "the Kubernetes client is not installed", hint="pip install 'orchard-env[kubernetes]'"
        ) from error


_closing: set[asyncio.Task[None]] = set()


def _close_later(client: Any) -> None:
    task = asyncio.ensure_future(client.close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)
