"""Sandboxes that handle files wrongly."""

from __future__ import annotations

import builtins
import dataclasses
import os
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

from orchard_core import (
    FileEntry,
    FileMissing,
)
from orchard_core.testing import FakeSandbox
from orchard_core.testing.fakes.files import AS_IT_IS
from tests.testing.faulty.sandbox import Faulty


class TestRangesIgnored(Faulty):
    caught_by = "test_a_range_is_exact"

    class sandbox_type(FakeSandbox):  # noqa: N801
        def read(self, path: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
            return super().read(path)


class TestWritesInPlace(Faulty):
    caught_by = "test_a_failed_write_leaves_the_old_file"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def write(
            self, path: str, data: bytes | AsyncIterable[bytes], *, mode: int = 0o644, user: str | None = None
        ) -> None:
            if isinstance(data, bytes):
                await super().write(path, data, mode=mode)
            else:
                with self._files.host(path).open("wb") as file:
                    async for piece in data:
                        file.write(piece)


class TestWholeFilesInMemory(Faulty):
    caught_by = "test_a_big_file_moves_in_pieces_while_the_agent_answers"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def write(
            self, path: str, data: bytes | AsyncIterable[bytes], *, mode: int = 0o644, user: str | None = None
        ) -> None:
            whole = data if isinstance(data, bytes) else b"".join([piece async for piece in data])
            await super().write(path, whole, mode=mode)


class TestModeBitsIgnored(Faulty):
    caught_by = "test_mode_bits_are_those_asked_for"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def write(
            self, path: str, data: bytes | AsyncIterable[bytes], *, mode: int = 0o644, user: str | None = None
        ) -> None:
            await super().write(path, data)


class TestABrokenLinkThatBreaksTheListing(Faulty):
    caught_by = "test_a_broken_link_is_listed_as_broken"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def list(self, path: str) -> builtins.list[FileEntry]:
            entries = await super().list(path)
            if any(entry.broken for entry in entries):
                raise FileMissing(f"{path}: a link leads nowhere")
            return entries


class TestNamesDecodedWithReplacement(Faulty):
    caught_by = "test_an_odd_name_works_everywhere"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def list(self, path: str) -> builtins.list[FileEntry]:
            return [
                dataclasses.replace(entry, name=os.fsencode(entry.name).decode(errors="replace"))
                for entry in await super().list(path)
            ]


class TestRemovingThroughALink(Faulty):
    caught_by = "test_removing_a_link_leaves_its_target"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def remove(self, path: str) -> None:
            shutil.rmtree(self._files.host(path).resolve(), ignore_errors=True)
            await super().remove(path)


class TestArchivesTrusted(Faulty):
    caught_by = "test_an_archive_that_escapes_is_refused"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def write_tree(self, path: str, data: AsyncIterable[bytes]) -> None:
            await _extract(data, self._files.host(path))


class TestDownloadsTrusted(Faulty):
    caught_by = "test_a_download_never_leaves_a_link_that_leads_out"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def download(self, source: str, target: Path) -> None:
            await _extract(self.read_tree(source), target)


class TestAMissingTreeThatIsEmpty(Faulty):
    caught_by = "test_a_missing_tree_is_a_typed_error"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def read_tree(self, path: str) -> AsyncIterator[bytes]:
            await self.mkdir(path)
            async for piece in super().read_tree(path):
                yield piece


async def _extract(data: AsyncIterable[bytes], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile() as spool:
        async for piece in data:
            spool.write(piece)
        spool.seek(0)
        with tarfile.open(fileobj=spool, mode="r:") as archive:
            archive.extractall(target, **AS_IT_IS)
