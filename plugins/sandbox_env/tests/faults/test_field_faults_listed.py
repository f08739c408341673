"""Each fault of the field that a sandbox service can have has a case in the list beside this."""

from __future__ import annotations

import re
from pathlib import Path

FIRST, LAST = 1, 21


def test_each_fault_has_a_case_that_names_it() -> None:
    cases = [
        int(number)
        for file in Path(__file__).parent.glob("test_field_faults_*.py")
        for number in re.findall(r"^(?:async )?def test_fault_(\d\d)_", file.read_text(), re.MULTILINE)
    ]
    assert sorted(set(cases)) == list(range(FIRST, LAST + 1))
