"""Object storage, with errors that say what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from orchard_core import ConfigError, DiskFull, SandboxUnavailable
from orchard_env.kubernetes.snapshots.config import SnapshotConfig

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_PATIENCE: Any = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}
_FULL = ("No space left", "os error 28", "Disk quota exceeded", "os error 122", "QuotaExceeded", "507")

_NO_PLACE = ("NoSuchBucket", "ContainerNotFound")


class ObjectMissing(Exception):
    """There is no such object."""


class Storage:
    """One place in one storage. Every call raises SandboxUnavailable when the storage cannot be used, and
    DiskFull when it takes no more."""

    def __init__(self, config: SnapshotConfig) -> None:
        """Raises ConfigError without the extra, or for options that the storage does not know."""
        try:
            import obstore
        except ImportError as error:
            raise ConfigError(
                "snapshots need the package obstore", hint="pip install 'orchard-env[snapshots]'"
            ) from error
        self._obstore: Any = obstore
        self._url = config.url
        self._store = _open(config)

    async def put(self, path: str, data: bytes) -> None:
        """Store an object, whole or not at all."""
        with self._told(f"store {path}"):
            await self._obstore.put_async(self._store, path, data, use_multipart=False)

    async def get(self, path: str) -> bytes:
        """An object. Raises ObjectMissing."""
        with self._told(f"read {path}", may_be_gone=True):
            found = await self._obstore.get_async(self._store, path)
            return bytes(await found.bytes_async())

    async def delete(self, paths: Sequence[str]) -> None:
        """Remove objects; fine when they are gone."""
        for path in paths:
            try:
                with self._told(f"remove {path}", may_be_gone=True):
                    await self._obstore.delete_async(self._store, path)
            except ObjectMissing:
                continue

    async def delete_below(self, folder: str) -> None:
        """Remove every object of a folder."""
        async for paths in self.paths(folder):
            await self.delete(paths)

    async def paths(self, folder: str, *, after: str = "") -> AsyncIterator[list[str]]:
        """The paths below a folder, page by page; from `after` on in their order, which is not among them."""
        async for page in self._pages(folder, after):
            yield [str(one["path"]) for one in page]

    async def folders(self, above: str) -> AsyncIterator[tuple[str, float]]:
        """For each object below: the name of its folder, and its age in seconds."""
        async for page in self._pages(above, ""):
            now = datetime.now(UTC)
            for one in page:
                name = str(one["path"]).removeprefix(f"{above}/").partition("/")[0]
                yield name, (now - one["last_modified"]).total_seconds()

    async def _pages(self, folder: str, after: str) -> AsyncIterator[list[Any]]:
        offset = f"{folder}/{after}" if after else None
        with self._told(f"list {folder}"):
            pages = self._obstore.list(self._store, folder, offset=offset, chunk_size=500)
        while True:
            with self._told(f"list {folder}"):
                try:
                    page = await anext(pages)
                except StopAsyncIteration:
                    return
            yield page

    @contextmanager
    def _told(self, what: str, *, may_be_gone: bool = False) -> Iterator[None]:
        errors = self._obstore.exceptions
        try:
            yield
        except (PermissionError, errors.PermissionDeniedError, errors.UnauthenticatedError) as error:
            raise SandboxUnavailable(
                f"the storage of snapshots {self._url} does not let us {what}: {_first_line(error)}",
                hint="set its credentials in this process's environment, and grant reading, writing, listing "
                "and deleting there",
            ) from error
        except (OSError, errors.BaseError) as error:
            words = _first_line(error)
            absent = isinstance(error, FileNotFoundError | errors.NotFoundError)
            if absent and may_be_gone and not any(sign in str(error) for sign in _NO_PLACE):
                raise ObjectMissing(what) from error
            if any(sign in str(error) for sign in _FULL):
                raise DiskFull(
                    f"the storage of snapshots {self._url} is full: {words}", hint="discard snapshots there"
                ) from error
            raise SandboxUnavailable(
                f"the storage of snapshots {self._url} cannot be used, wanted to {what}: {words}",
                hint="see whether it is up, and that its bucket or directory exists",
            ) from error


def _open(config: SnapshotConfig) -> ObjectStore:
    from obstore.exceptions import BaseError
    from obstore.store import LocalStore, from_url

    parts = urlsplit(config.url)
    try:
        if parts.scheme == "file":
            return LocalStore(unquote(parts.path), mkdir=True, automatic_cleanup=True)
        options: dict[str, Any] = dict(config.options)
        allowed = options.pop("allow_http", "false").lower() == "true"
        return from_url(config.url, client_options={"allow_http": allowed}, retry_config=_PATIENCE, **options)
    except (BaseError, OSError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the storage of snapshots {config.url} cannot be opened: {_first_line(error)}",
            hint="see `snapshots.url` and `snapshots.options`",
        ) from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
