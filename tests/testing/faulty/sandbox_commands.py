"""Sandboxes that run commands wrongly."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from orchard_core import (
    Command,
    ExecResult,
)
from orchard_core.testing import FakeProcess, FakeSandbox
from orchard_core.testing.fakes.process import kill_marked
from tests.testing.faulty.sandbox import Changed, Faulty


class TestATimeoutThatKillsOnlyTheShell(Faulty):
    caught_by = "test_a_timeout_kills_the_whole_tree[background]"

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

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout=b"") if result.timed_out else result


class TestExitCode124TakenForATimeout(Faulty):
    caught_by = "test_exit_codes_arrive_as_they_are"

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, timed_out=result.timed_out or result.exit_code == 124)


class TestSignalsAsNegativeCodes(Faulty):
    caught_by = "test_a_signal_is_128_plus_its_number"

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            code = result.exit_code
            return dataclasses.replace(result, exit_code=128 - code if code > 128 else code)


class TestALimitThatIsNotNamed(Faulty):
    caught_by = "test_a_timeout_is_a_flag_that_names_its_limit"

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, limit_s=None)


class TestBackgroundChildrenKilled(Faulty):
    caught_by = "test_a_background_child_lives_on"

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            kill_marked(self.marker)
            return result


class TestOutputDecoded(Faulty):
    caught_by = "test_every_byte_value_arrives_unchanged"

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout=result.stdout.decode(errors="replace").encode())


class TestStreamsMerged(Faulty):
    caught_by = "test_stdout_and_stderr_are_kept_apart"

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout=result.stdout + result.stderr, stderr=b"")


class TestTruncationUntold(Faulty):
    caught_by = "test_huge_output_keeps_head_tail_and_true_size"

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout_truncated=False)


class TestATailThatIsLost(Faulty):
    caught_by = "test_huge_output_keeps_head_tail_and_true_size"

    class sandbox_type(Changed):  # noqa: N801
        def after(self, result: ExecResult) -> ExecResult:
            return dataclasses.replace(result, stdout=result.stdout[: 1 << 20])


class TestAMissingDirectoryThatBecomesTheRoot(Faulty):
    caught_by = "test_a_missing_working_directory_is_a_typed_error"

    class sandbox_type(Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            if (cwd := options.get("cwd")) and not self._files.host(cwd).is_dir():
                options["cwd"] = "/"
            return command


class TestArgumentsJoined(Faulty):
    caught_by = "test_argv_stays_argv"

    class sandbox_type(Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            return command if isinstance(command, str) else " ".join(command)


class TestAMissingCommandAs127(Faulty):
    caught_by = "test_a_missing_command_is_a_typed_error"

    class sandbox_type(Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            return command if isinstance(command, str) else ["/bin/sh", "-c", '"$0" "$@"', *command]


class TestEnvironmentThroughAShell(Faulty):
    caught_by = "test_environment_values_are_byte_equal"

    class sandbox_type(Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            given: Mapping[str, str] = options.pop("env", None) or {}
            if not isinstance(command, str):
                return command
            return "".join(f'export {name}="{value}"\n' for name, value in given.items()) + command


class TestStdinNotEmpty(Faulty):
    caught_by = "test_stdin_is_empty_unless_given"

    class sandbox_type(Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            options.setdefault("stdin", b"of the agent")
            return command


class TestALargeStdinCut(Faulty):
    caught_by = "test_a_large_stdin_is_not_cut"

    class sandbox_type(Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            if isinstance(data := options.get("stdin"), bytes):
                options["stdin"] = data[: 16 << 20]
            return command


class TestCommandsOnArgv(Faulty):
    caught_by = "test_a_command_of_a_mebibyte_runs"

    class sandbox_type(Changed):  # noqa: N801
        def before(self, command: Command, options: dict[str, Any]) -> Command:
            return ["/bin/sh", "-c", command] if isinstance(command, str) else command


class TestTheDriversEnvironmentInherited(Faulty):
    caught_by = "test_the_drivers_environment_is_invisible"

    class sandbox_type(FakeSandbox):  # noqa: N801
        def _env(self, env: Mapping[str, str] | None, marker: str) -> dict[str, str]:
            return {**os.environ, **super()._env(env, marker)}
