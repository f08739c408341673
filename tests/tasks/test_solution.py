"""Cutting a solution into steps keeps its effect; where that is not sure, it is not cut."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from orchard_core import split_script


def effect(commands: list[str]) -> dict[str, str]:
    """What playing these commands, each in a bash of its own, leaves behind; empty when one of them failed
    under `set -e`, which ends a script but not the steps after it."""
    with tempfile.TemporaryDirectory() as place:
        for command in commands:
            done = subprocess.run(
                ["bash", "-c", command], cwd=place, check=False, capture_output=True, timeout=20
            )
            if done.returncode and "set -e" in command:
                return {}
        files = sorted(path for path in Path(place).rglob("*") if path.is_file())
        return {str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def commands(script: str) -> list[str]:
    return [step.command for step in split_script(script)]


FRAGMENTS = (
    "set -euo pipefail\n",
    "OUT=result\n",
    'NAME="$OUT"_x\n',
    'export MODE="fast lane"\n',
    "count=$(ls | wc -l)\n",
    'echo "$count" >> counts.txt\n',
    'mkdir -p "dir/$OUT"\n',
    "# a comment; with 'odd quotes\n",
    (
        "python3 - \"$OUT\" <<'END'\nimport sys, os\n"
        'open("py.txt", "a").write(sys.argv[1] + os.environ.get("MODE", "-"))\nEND\n'
    ),
    'cat > note.txt <<EOF\nvalue $OUT and ${NAME:-none}; if it "is"\nEOF\n',
    "cat <<-'A B' >> tabs.txt\n\tif then\n\tA B\n",
    "for i in 1 2 3; do\n  total=$((${total:-0} + i))\n  echo $i >> loop.txt\ndone\n",
    'echo "${total:-unset}" > total.txt\n',
    "if [ -e note.txt ]; then\n  STATE=found\nelse\n  STATE=none\nfi\n",
    'echo "${STATE:-unset}" >> state.txt\n',
    'say() {\n  local what="$1"\n  echo "$what $OUT" >> said.txt\n  LAST="$what"\n}\n',
    "say hello\n",
    'echo "${LAST:-nobody}" >> last.txt\n',
    "cd dir 2>/dev/null || true\n",
    "pwd | sed 's/.*tmp[^/]*//' >> /dev/null; touch here.txt\n",
    "(cd dir && touch inner.txt) || true\n",
    "false || echo $? >> status.txt\n",
    "true\necho $? >> status.txt\n",
    'case "$OUT" in\n  res*) echo yes >> case.txt ;;\n  (*) echo no >> case.txt ;;\nesac\n',
    "x=5; y=6\n",
    "echo $((x * y)) >> sum.txt\n",
    "((x++)) || true\n",
    "arr=(a 'b c' d)\n",
    'printf "%s\\n" "${arr[@]}" >> arr.txt\n',
    "read -r first < note.txt || true\n",
    'echo "$first" >> first.txt\n',
    "printf 'a\\nb\\n' | while read -r line; do echo \"$line\" >> lines.txt; done\n",
    "echo one \\\n  two >> cont.txt\n",
    "sleep 0 &\nwait\necho after >> wait.txt\n",
    "printf -v made '%03d' 7\n",
    'echo "$made" >> made.txt\n',
    "[[ -n $OUT && $OUT == res* ]] && echo match >> match.txt\n",
    "unset OUT\n",
    'echo "pid $$" | wc -w >> pid.txt\n',
    "diff <(echo a) <(echo b) > diff.txt || true\n",
    'OUT=other python3 -c \'import os; open("env.txt", "a").write(os.environ["OUT"])\'\n',
    "rm -f note.txt\n",
    ": ${fallback:=deep}\n",
    'echo "${fallback:-none}" >> fallback.txt\n',
    "trap 'echo bye > trap.txt' EXIT\n",
    "umask 077\n",
    "OUT=later\n",
    "shopt -s nullglob\n",
    'for f in *.none; do echo "$f" >> glob.txt; done\n',
    "exit 0\n",
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=7).map("".join))
@example("OUT=a\nsay() { echo $OUT >> x; }\nOUT=$(date +%N)\nsay hi\necho $OUT >> x\nrm x\n")
@example("f() { x=1; }\nf\necho ${x:-no} > a\n")
@example("f() { :; }; touch ran\necho > b\n")
@example("a=1\nb=$a$(ls | wc -l)\ntouch more\nc=$b\ntouch most\necho $c > out\n")
def test_playing_the_steps_has_the_effect_of_the_script(script: str) -> None:
    whole = effect([script])
    assume(whole)
    assert effect(commands(script)) == whole


def test_commands_are_cut_apart_and_definitions_carried_on() -> None:
    script = '#!/bin/bash\nset -e\nOUT="/tmp/x"\nUNUSED=1\n\n# Make room.\nmkdir -p "$OUT"\n\nls > all.txt\n'
    first, second = split_script(script)
    assert first.command == 'set -e\nOUT="/tmp/x"\nmkdir -p "$OUT"'
    assert first.thought == "Make room."
    assert second.command == "set -e\nls > all.txt"
    assert second.thought == ""


def test_what_one_command_hands_to_the_next_stays_with_it() -> None:
    script = "echo a > a\nn=$(wc -l < a)\necho $n > b\necho c > c\n"
    assert commands(script) == ["echo a > a", "n=$(wc -l < a)\necho $n > b", "echo c > c"]


@pytest.mark.parametrize(
    "script",
    [
        "echo `date`\necho b\n",
        "select x in a b; do break; done\necho b\n",
        "if true; then\necho b\n",
        "echo 'never closed\necho b\n",
        "cat <<END\nno end\n",
        "echo )\necho b\n",
        "set -a\nX=1\nenv > e\n",
        "echo $(case a in a) echo b;; esac)\necho c\n",
    ],
)
def test_what_is_not_understood_stays_whole(script: str) -> None:
    assert len(split_script(script)) <= 1 or "`" in script


@pytest.mark.parametrize("script", ["", "\n\n", "#!/bin/sh\n", "# only words\n"])
def test_a_script_without_commands_has_no_steps(script: str) -> None:
    assert all("\n" not in step.command for step in split_script(script))


@given(st.text(alphabet="ab $'\"`\\(){}[];&|<>\n#=!EOFifdone ", max_size=60))
def test_no_text_breaks_the_reader_or_loses_a_command(text: str) -> None:
    joined = "\n".join(commands(text))
    for word in ("aa", "bb"):
        assert (word in text) <= (word in joined or "#" in text)
