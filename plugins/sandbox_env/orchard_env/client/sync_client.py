"""The synchronous face of the client: it waits for the asynchronous one, which runs in a thread."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from orchard_env.client.client import AsyncSandboxClient
from orchard_env.client.loop import background_loop
from orchard_env.client.sync_instance import SandboxInstance

_PARENTS: list[AsyncSandboxClient] = []
"""Clients that a fork()ed child inherited: collecting them would close what is their parent's."""


class SandboxClient:
    """Creates and finds sandboxes; see AsyncSandboxClient, which does it. Any thread may call any method,
    inside of a running loop too. As a context manager it deletes what it created."""

    def __init__(
        self,
        base_url: str | None = None,
        timeout: float = 1200,
        auto_cleanup: bool = True,
        api_key: str | None = None,
        prefix: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """See AsyncSandboxClient."""
        self._made = (base_url, timeout, auto_cleanup, api_key, prefix, ca_file)
        self._pid = os.getpid()
        self._client = AsyncSandboxClient(*self._made)

    @property
    def inner(self) -> AsyncSandboxClient:
        """The one of this process, to be used on the background loop."""
        if self._pid != os.getpid():
            _PARENTS.append(self._client)
            self._client, self._pid = AsyncSandboxClient(*self._made), os.getpid()
        return self._client

    @property
    def base_url(self) -> str:
        """See AsyncSandboxClient."""
        return self._client.base_url

    @property
    def timeout(self) -> float:
        """See AsyncSandboxClient."""
        return self._client.timeout

    @property
    def prefix(self) -> str:
        """See AsyncSandboxClient."""
        return self._client.prefix

    def create_sandbox(
        self,
        image: str,
        block_network: bool = True,
        sandbox_id: str | None = None,
        cpu: str | float | None = None,
        memory: str | None = None,
        timeout: float | None = None,
        wait_ready: bool = True,
        poll_interval: float = 1.0,
    ) -> SandboxInstance:
        """See AsyncSandboxClient."""
        work = self.inner.create_sandbox(
            image, block_network, sandbox_id, cpu, memory, timeout, wait_ready, poll_interval
        )
        made = background_loop().run(work)
        return SandboxInstance(self, made.answer, made)

    def get_sandbox(self, sandbox_id: str) -> SandboxInstance:
        """See AsyncSandboxClient."""
        found = background_loop().run(self.inner.get_sandbox(sandbox_id))
        return SandboxInstance(self, found.answer, found)

    def delete_sandbox(self, sandbox_id: str) -> None:
        """See AsyncSandboxClient."""
        background_loop().run(self.inner.delete_sandbox(sandbox_id))

    def cleanup_all(self) -> None:
        """See AsyncSandboxClient."""
        background_loop().run(self.inner.cleanup_all())

    def health(self) -> dict[str, Any]:
        """See AsyncSandboxClient."""
        return background_loop().run(self.inner.health())

    def close(self) -> None:
        """See AsyncSandboxClient."""
        background_loop().run(self.inner.close())

    def __enter__(self) -> SandboxClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
