"""Runs the suite of one subject in this process and prints a Finding a line.

`python -m orchard_core.testing.check SUBJECT`, the subject as JSON. No configuration or plugin of the user's
own test runs takes part.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TextIO

import pytest

from orchard_core.types.check import Finding, Subject, title

PAGE = "docs/reference/contract-suites.md"
"""Where each test is explained."""
_MODULE = """\
import pytest

pytest.register_assert_rewrite("orchard_core.testing.suites")  # so that it is told what differed

from orchard_core.testing.check.suites import suite_of
from orchard_core.types.check import Subject

TestSubject = suite_of(Subject.model_validate_json({subject!r}))
"""
_SEEN = 600
"""Characters of an error that are told."""


class Reporter:
    """Prints what pytest tells."""

    def __init__(self, subject: Subject, stream: TextIO) -> None:
        self._kind = subject.kind.value
        self._only = subject.only.replace(" ", "_")
        self._stream = stream
        self._rules: dict[str, str] = {}
        self._said: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what was asked for, and learn each test's rule from its docstring."""
        items[:] = [item for item in items if self._only in item.name]
        for item in items:
            doc = getattr(getattr(item, "function", None), "__doc__", "") or ""
            self._rules[item.nodeid] = " ".join(doc.split())

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._tell(Finding(test=_name(nodeid), state="started"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, the test itself, or tear-down ended."""
        if report.failed:
            self._end(report, Finding(test=_name(report.nodeid), state="failed", seen=_crash(report)))
        elif report.skipped:
            self._end(report, Finding(test=_name(report.nodeid), state="skipped", seen=_reason(report)))
        elif report.when == "teardown":
            self._end(report, Finding(test=_name(report.nodeid), state="passed"))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """The suite could not even be put together."""
        if report.failed:
            self._tell(Finding(test="collect", state="failed", seen=str(report.longrepr)[-_SEEN:]))

    def _end(self, report: pytest.TestReport, finding: Finding) -> None:
        """Once a test: a failure in its tear-down counts only when the test itself said nothing."""
        if report.nodeid in self._said:
            return
        self._said.add(report.nodeid)
        rule, where = self._rules.get(report.nodeid, ""), _link(self._kind, finding.test)
        self._tell(finding.model_copy(update={"rule": rule, "link": where}))

    def _tell(self, finding: Finding) -> None:
        self._stream.write(finding.model_dump_json() + "\n")
        self._stream.flush()


def _name(nodeid: str) -> str:
    return nodeid.rpartition("::")[2]


def _link(kind: str, test: str) -> str:
    """The heading of this test in the reference."""
    return f"{PAGE}#{kind}-{title(test).replace(' ', '-')}"


def _crash(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return text[:_SEEN]


def _reason(report: pytest.TestReport) -> str:
    longrepr = report.longrepr
    return longrepr[2].removeprefix("Skipped: ") if isinstance(longrepr, tuple) else str(longrepr)


def main() -> int:
    """0: every rule holds; 1: some do not."""
    subject = Subject.model_validate_json(sys.argv[1])
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_ADDOPTS", None)
    # Whatever a plugin prints must not pass for a finding.
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(prefix="orchard-check-") as home:
        place = Path(home)
        (place / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        module = place / "test_subject.py"
        module.write_text(_MODULE.format(subject=subject.model_dump_json()), encoding="utf-8")
        options = ["-c", str(place / "pytest.ini"), "--rootdir", home, "-p", "no:terminal"]
        options += ["-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin"]
        options += ["-p", "orchard_core.testing.pytest_plugin", "--basetemp", str(place / "tmp")]
        code = pytest.main([*options, str(module)], plugins=[Reporter(subject, stream)])
    return 0 if code == pytest.ExitCode.OK else 1


if __name__ == "__main__":
    sys.exit(main())
