"""Sandboxes with one fault each."""

from __future__ import annotations

import asyncio
import builtins
import dataclasses
import os
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from orchard_core import (
    Command,
    ExecResult,
    FileEntry,
    FileMissing,
    ModelEndpoint,
    SandboxProvider,
    SandboxSpec,
    Snapshot,
)
from orchard_core.testing import FAKE_CAPABILITIES, FakeProcess, FakeProvider, FakeSandbox, SandboxSuite
from orchard_core.testing.fakes.process import end_marked, kill_marked


class Faulty(SandboxSuite):
    """Runs the suite on a faulty kind of fake sandbox."""

    has_agent = False
    ttl_s = 0.3
    sandbox_type: ClassVar[type[FakeSandbox]] = FakeSandbox
    caught_by: ClassVar[str] = ""

    async def make_provider(self) -> SandboxProvider:
        return _CleaningProvider(sandbox_type=self.sandbox_type)


class _CleaningProvider(FakeProvider):
    """Cleans up after sandboxes that do not."""

    async def close(self) -> None:
        for sandbox in self.created:
            await end_marked(sandbox.marker)
        await super().close()


class _Changed(FakeSandbox):
    """Changes what exec is given or gives."""

    async def exec(self, command: Command, **options: Any) -> ExecResult:
        return self.after(await super().exec(self.before(command, options), **options))

    def before(self, command: Command, options: dict[str, Any]) -> Command:
        return command

    def after(self, result: ExecResult) -> ExecResult:
        return result


class TestATimeoutThatKillsOnlyTheShell(Faulty):
    caught_by = "test_a_timeout_kills_the_whole_tree"

    class sandbox_type(FakeSandbox):  # noqa: N801
        class process_type(FakeProcess):  # noqa: N801
            async def _finish(self) -> ExecResult:
                try:
                    await asyncio.wait_for(self._child.wait(), self._timeout)
                except TimeoutError:
                    self._child.kill()
                    await self._child.wait()
                    return self._result(timed_out=True)
                return self._result(timed_out=False)


class TestATimeoutThatLosesTheOutput(Faulty):
    caught_by = "test_a_timeout_keeps_the_output_until_then"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout=b"") if result.timed_out else result


class TestExitCode124TakenForATimeout(Faulty):
    caught_by = "test_exit_codes_arrive_as_they_are"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, timed_out=result.timed_out or result.exit_code == 124)


class TestSignalsAsNegativeCodes(Faulty):
    caught_by = "test_a_signal_is_128_plus_its_number"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            code = result.exit_code
            return dataclasses.replace(result, exit_code=128 - code if code > 128 else code)


class TestALimitThatIsNotNamed(Faulty):
    caught_by = "test_a_timeout_is_a_flag_that_names_its_limit"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, limit_s=None)


class TestBackgroundChildrenKilled(Faulty):
    caught_by = "test_a_background_child_lives_on"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            kill_marked(self.marker)
            return result


class TestOutputDecoded(Faulty):
    caught_by = "test_every_byte_value_arrives_unchanged"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout=result.stdout.decode(errors="replace").encode())


class TestStreamsMerged(Faulty):
    caught_by = "test_stdout_and_stderr_are_kept_apart"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout=result.stdout + result.stderr, stderr=b"")


class TestTruncationUntold(Faulty):
    caught_by = "test_huge_output_keeps_head_tail_and_true_size"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout_truncated=False)


class TestATailThatIsLost(Faulty):
    caught_by = "test_huge_output_keeps_head_tail_and_true_size"

    class sandbox_type(_Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout=result.stdout[: 1 << 20])


class TestAMissingDirectoryThatBecomesTheRoot(Faulty):
    caught_by = "test_a_missing_working_directory_is_a_typed_error"

    class sandbox_type(_Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            if (cwd := options.get("cwd")) and not self._files.host(cwd).is_dir():
                options["cwd"] = "/"
            return command


class TestArgumentsJoined(Faulty):
    caught_by = "test_argv_stays_argv"

    class sandbox_type(_Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            return command if isinstance(command, str) else " ".join(command)


class TestAMissingCommandAs127(Faulty):
    caught_by = "test_a_missing_command_is_a_typed_error"

    class sandbox_type(_Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            return command if isinstance(command, str) else ["/bin/sh", "-c", '"$0" "$@"', *command]


class TestEnvironmentThroughAShell(Faulty):
    caught_by = "test_environment_values_are_byte_equal"

    class sandbox_type(_Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            given: Mapping[str, str] = options.pop("env", None) or {}
            if not isinstance(command, str):
                return command
            return "".join(f'export {name}="{value}"\n' for name, value in given.items()) + command


class TestStdinNotEmpty(Faulty):
    caught_by = "test_stdin_is_empty_unless_given"

    class sandbox_type(_Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            options.setdefault("stdin", b"of the agent")
            return command


class TestALargeStdinCut(Faulty):
    caught_by = "test_a_large_stdin_is_not_cut"

    class sandbox_type(_Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            if isinstance(data := options.get("stdin"), bytes):
                options["stdin"] = data[: 16 << 20]
            return command


class TestCommandsOnArgv(Faulty):
    caught_by = "test_a_command_of_a_mebibyte_runs"

    class sandbox_type(_Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            return ["/bin/sh", "-c", command] if isinstance(command, str) else command


class TestTheDriversEnvironmentInherited(Faulty):
    caught_by = "test_the_drivers_environment_is_invisible"

    class sandbox_type(FakeSandbox):  # noqa: N801
        def _env(self, env: Mapping[str, str] | None, marker: str) -> dict[str, str]:
            return {**os.environ, **super()._env(env, marker)}


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


class TestFilesShared(Faulty):
    caught_by = "test_two_sandboxes_have_their_own_files"

    class sandbox_type(FakeSandbox):  # noqa: N801
        def __init__(self, base: Path, *args: Any, **options: Any) -> None:
            super().__init__(base, *args, **options)
            self._files.root = base.parent / "shared"
            self._files.root.mkdir(exist_ok=True)


class TestAResetThatKillsNothing(Faulty):
    caught_by = "test_a_reset_kills_everything_and_keeps_the_files"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def reset_processes(self) -> None:
            return None


class TestAResetThatLosesTheFiles(Faulty):
    caught_by = "test_a_reset_kills_everything_and_keeps_the_files"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def reset_processes(self) -> None:
            await super().reset_processes()
            shutil.rmtree(self.root / "workspace")
            await self.mkdir("/workspace")


class TestASecondCloseThatRaises(Faulty):
    caught_by = "test_closing_may_be_repeated_and_ends_everything"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def close(self) -> None:
            if self._closed:
                raise RuntimeError("closed already")
            await super().close()


class TestCloseThatLeavesProcesses(Faulty):
    caught_by = "test_closing_leaves_no_process"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def close(self) -> None:
            self._closed = True
            self._reaper.cancel()


class TestAModelWithoutItsPath(Faulty):
    caught_by = "test_a_model_is_reached_from_inside"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def expose_model(self, endpoint: ModelEndpoint) -> ModelEndpoint:
            return dataclasses.replace(endpoint, base_url=endpoint.base_url.removesuffix("/v1"))


class TestASnapshotThatIsFaked(Faulty):
    caught_by = "test_snapshots_and_forks_are_as_claimed"

    class sandbox_type(FakeSandbox):  # noqa: N801
        async def snapshot(self) -> Snapshot:
            return Snapshot(id="none", provider="fake", size=0)

    async def make_provider(self) -> SandboxProvider:
        able = FAKE_CAPABILITIES.model_copy(update={"snapshot": False, "fork": False})
        return _CleaningProvider(sandbox_type=self.sandbox_type, capabilities=able)


class TestAnyImageAccepted(Faulty):
    caught_by = "test_an_image_kind_that_is_not_claimed_is_refused"

    async def make_provider(self) -> SandboxProvider:
        class Lenient(_CleaningProvider):
            def _refuse(self, spec: SandboxSpec) -> None:
                return None

        return Lenient()


async def _extract(data: AsyncIterable[bytes], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile() as spool:
        async for piece in data:
            spool.write(piece)
        spool.seek(0)
        with tarfile.open(fileobj=spool, mode="r:") as archive:
            archive.extractall(target, filter="fully_trusted")
