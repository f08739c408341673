"""Families in which one must look before one can act: the answer is not in the instruction."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random

from orchard_core.tasks.workbench.problem import NAMES, Check, Problem, Step


def follow_notes(random: Random) -> Problem:
    """Each note names the next; the last holds a code."""
    rooms = random.sample(NAMES, random.randint(6, 8))
    path = rooms[: random.randint(3, 4)]
    code = f"{random.choice(NAMES)}-{random.randint(1000, 9999)}"
    files: dict[str, str | bytes] = {}
    for here, following in pairwise(path):
        files[f"rooms/{here}/note.txt"] = f"Not here. Look in the room {following}.\n"
    files[f"rooms/{path[-1]}/note.txt"] = f"The code is {code}.\n"
    for room in rooms[len(path) :]:
        files[f"rooms/{room}/note.txt"] = (
            f"The code is {random.choice(NAMES)}-{random.randint(1000, 9999)}.\n"
        )
    files["START"] = f"{path[0]}\n"
    looks = tuple(
        Step(thought=f"The trail leads to {room}.", command=f"cat rooms/{room}/note.txt") for room in path
    )
    return Problem(
        instruction=(
            "The file START names a room, a directory below rooms. The note in it tells where to look next; "
            "follow the trail to its end and write the code that you find there to code.txt. Rooms "
            "off the trail "
            "hold false codes.\n"
        ),
        files=files,
        expected={"code.txt": Check(kind="text", value=code)},
        steps=(
            Step(thought="Where does the trail start?", command="cat START"),
            *looks,
            Step(thought="That is the code.", command=f"echo {code} > code.txt"),
        ),
        difficulty="medium",
    )


def act_on_state(random: Random) -> Problem:
    """What is to be done depends on what a status file says."""
    jobs = random.sample(NAMES, 6)
    states = {job: random.choice(("done", "failed", "stale")) for job in jobs}
    states[jobs[0]], states[jobs[1]] = "failed", "stale"
    attempts = {job: random.randint(1, 4) for job in jobs}
    files: dict[str, str | bytes] = {
        f"jobs/{job}.json": json.dumps({"job": job, "state": states[job], "attempts": attempts[job]}) + "\n"
        for job in jobs
    }
    files["RULES.md"] = (
        "# Rules\n\n- failed: set state to queued and add 1 to attempts\n- stale: remove the file\n"
        "- done: leave the file as it is\n"
    )
    expected = {f"jobs/{job}.json": _after(job, states[job], attempts[job]) for job in jobs}
    return Problem(
        instruction=(
            "RULES.md says what has to be done with each file in the directory jobs, depending on "
            "the state it "
            "holds. Read the rules, then apply them to all jobs.\n"
        ),
        files=files,
        expected=expected,
        steps=(
            Step(thought="The rules first.", command="cat RULES.md"),
            Step(thought="And the jobs.", command="cat jobs/*.json"),
            Step(
                thought="I apply the rules with a small script.",
                command=(
                    "python3 - <<'END'\nimport json, pathlib\n"
                    'for path in pathlib.Path("jobs").glob("*.json"):\n'
                    "    job = json.loads(path.read_text())\n"
                    '    if job["state"] == "failed":\n'
                    '        job.update(state="queued", attempts=job["attempts"] + 1)\n'
                    "        path.write_text(json.dumps(job))\n"
                    '    elif job["state"] == "stale":\n        path.unlink()\nEND'
                ),
            ),
            Step(thought="I check the result.", command="cat jobs/*.json"),
        ),
        difficulty="hard",
    )


def _after(job: str, state: str, attempts: int) -> Check:
    if state == "stale":
        return Check(kind="absent")
    if state == "failed":
        return Check(kind="json", value={"job": job, "state": "queued", "attempts": attempts + 1})
    return Check(kind="json", value={"job": job, "state": "done", "attempts": attempts})
