"""A family about code: a test fails; mend the function, not the test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from orchard_core.tasks.workbench.problem import Check, Problem, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A function with a fault in one line."""

    name: str
    """The function's name."""
    promise: str
    """What it should do."""
    source: str
    """Its code, with `@@` where the faulty line goes."""
    wrong: str
    """The faulty line."""
    right: str
    """The mended line."""
    cases: tuple[tuple[list[Any], Any], ...]
    """Arguments and the right answer; the first two are in the visible test, all of them are verified."""


BUGS = (
    Bug(
        name="running_maximum",
        promise="For each position, the largest number up to and including it.",
        source="    found = []\n    for number in numbers:\n        @@\n    return found\n",
        wrong="found.append(max(numbers[: len(found)] or [number]))",
        right="found.append(max(numbers[: len(found) + 1]))",
        cases=(
            ([[1, 3, 2]], [1, 3, 3]),
            ([[5]], [5]),
            ([[]], []),
            ([[-4, -9, -1, 7, 0]], [-4, -4, -1, 7, 7]),
            ([[2, 2, 8, 8, 9]], [2, 2, 8, 8, 9]),
        ),
    ),
    Bug(
        name="is_leap_year",
        promise="Whether a year of the Gregorian calendar has 366 days.",
        source="    @@\n",
        wrong="return numbers % 4 == 0 and numbers % 100 != 0",
        right="return numbers % 4 == 0 and (numbers % 100 != 0 or numbers % 400 == 0)",
        cases=(
            ([2000], True),
            ([1900], False),
            ([2024], True),
            ([2023], False),
            ([1600], True),
            ([2100], False),
        ),
    ),
    Bug(
        name="median",
        promise="The middle value, or the mean of the two middle values; None for an empty list.",
        source="    ordered = sorted(numbers)\n    if not ordered:\n        return None\n"
        "    half = len(ordered) // 2\n    if len(ordered) % 2:\n        return ordered[half]\n    @@\n",
        wrong="return (ordered[half] + ordered[half + 1]) / 2 if half else ordered[0]",
        right="return (ordered[half - 1] + ordered[half]) / 2",
        cases=(
            ([[4, 1, 3, 2]], 2.5),
            ([[3, 1, 2]], 2),
            ([[]], None),
            ([[10, 20]], 15.0),
            ([[9, 1, 5, 7, 3, 11]], 6.0),
        ),
    ),
    Bug(
        name="chunks",
        promise="The list in pieces of three; the last piece may be shorter.",
        source="    found = []\n    @@\n        found.append(numbers[start : start + 3])\n    return found\n",
        wrong="for start in range(0, len(numbers) - 2, 3):",
        right="for start in range(0, len(numbers), 3):",
        cases=(
            ([[1, 2, 3, 4]], [[1, 2, 3], [4]]),
            ([[1, 2, 3]], [[1, 2, 3]]),
            ([[]], []),
            ([[7]], [[7]]),
            ([[1, 2, 3, 4, 5, 6, 7, 8]], [[1, 2, 3], [4, 5, 6], [7, 8]]),
        ),
    ),
)


def fix_function(random: Random) -> Problem:
    """One of several functions has a fault; the tests that came with it show it."""
    bug = random.choice(BUGS)
    module = random.choice(("helpers", "numbers_tools", "routines", "toolbox"))
    head = f'def {bug.name}(numbers):\n    """{bug.promise}"""\n'
    broken = head + bug.source.replace("@@", bug.wrong)
    tests = "".join(
        f"        self.assertEqual({module}.{bug.name}(*{args!r}), {result!r})\n"
        for args, result in bug.cases[:2]
    )
    test_file = (
        f"import unittest\n\nimport {module}\n\n\nclass Test(unittest.TestCase):\n"
        f"    def test_{bug.name}(self):\n{tests}\n\nif __name__ == '__main__':\n    unittest.main()\n"
    )
    cases = [[bug.name, args, result] for args, result in bug.cases]
    random.shuffle(cases)
    return Problem(
        instruction=(
            f"`python3 test_{module}.py` fails. Find the fault in {module}.py and mend it there; the "
            f"docstring "
            "says what the function promises. Do not change the test: further tests that you do not see will "
            "be run on your function.\n"
        ),
        files={f"{module}.py": broken, f"test_{module}.py": test_file},
        expected={
            f"{module}.py": Check(kind="python", value=json.loads(json.dumps(cases))),
            f"test_{module}.py": Check(kind="bytes", value=test_file),
        },
        steps=(
            Step(
                thought="I run the test to see how it fails.",
                command=f"python3 test_{module}.py 2>&1 || true",
            ),
            Step(thought="Now I read the function.", command=f"cat {module}.py"),
            Step(
                thought=f"The line `{bug.wrong}` does not do what the docstring promises; I replace it.",
                command=(
                    f"python3 - <<'END'\npath = {module + '.py'!r}\nsource = open(path).read()\n"
                    f"source = source.replace({bug.wrong!r}, {bug.right!r})\nopen(path, "
                    f"'w').write(source)\nEND"
                ),
            ),
            Step(thought="The test should pass now.", command=f"python3 -B test_{module}.py 2>&1"),
        ),
        difficulty="hard",
    )
