"""Families about logs: finding one line among many, and a report over all of them."""

from __future__ import annotations

from collections import Counter
from random import Random

from orchard_core.tasks.workbench.problem import NAMES, Check, Problem, Step


def find_error(random: Random) -> Problem:
    """Where in a tree of logs is the one line with this request and a failure?"""
    wanted = f"req-{random.randint(10000, 99999)}"
    places = [f"logs/{a}/{b}.log" for a in random.sample(NAMES, 3) for b in random.sample(NAMES, 3)]
    hit = random.choice(places)
    files: dict[str, str | bytes] = {}
    answer = ""
    for place in places:
        rows = [f"INFO req-{random.randint(10000, 99999)} done" for _ in range(random.randint(10, 30))]
        rows[random.randrange(len(rows))] = f"INFO {wanted} started"
        if place == hit:
            line = random.randrange(len(rows))
            code = random.randint(100, 999)
            rows[line] = f"ERROR {wanted} failed with code E{code}"
            answer = f"{place}:{line + 1}:E{code}"
        files[place] = "\n".join(rows) + "\n"
    return Problem(
        instruction=(
            f"Somewhere below the directory logs one request failed: {wanted}. Find the line that "
            f"says so, and "
            "write to answer.txt one line of the form path:line:code, where path starts with logs/, "
            "line is the "
            "line's number in that file, counted from 1, and code is the error code, such as E000.\n"
        ),
        files=files,
        expected={"answer.txt": Check(kind="text", value=answer)},
        steps=(
            Step(thought="The failure is an ERROR line.", command=f"grep -rn 'ERROR {wanted}' logs"),
            Step(
                thought="I turn the hit into the form that was asked for.",
                command=f"grep -rn 'ERROR {wanted}' logs | sed 's/:ERROR.* /:/' > answer.txt",
            ),
            Step(thought="I check it.", command="cat answer.txt"),
        ),
    )


def status_report(random: Random) -> Problem:
    """Server errors an hour, only the hours that had some."""
    rows = []
    errors: Counter[str] = Counter()
    for hour in sorted(random.sample(range(24), 8)):
        for minute in sorted(random.sample(range(60), random.randint(3, 8))):
            status = random.choice((200, 200, 301, 404, 500, 503))
            path = random.choice(NAMES)
            rows.append(f"10.0.0.{random.randint(2, 250)} [{hour:02}:{minute:02}] GET /{path} {status}")
            errors[f"{hour:02}"] += status >= 500
    rows.append("10.0.0.1 [23:59] GET /500 200")
    rows.append("10.0.0.1 [23:59] GET /last 502")
    errors["23"] += 1
    table = "".join(f"{hour}\t{count}\n" for hour, count in sorted(errors.items()) if count)
    return Problem(
        instruction=(
            "Each line of access.log ends with the HTTP status of a request and has its time as "
            "[HH:MM]. Count "
            "the requests with a status of 500 or more, by hour. Write errors.tsv: one line for each "
            "hour that "
            "had some, `HH<tab>count`, in the order of the hours.\n"
        ),
        files={"access.log": "\n".join(rows) + "\n"},
        expected={"errors.tsv": Check(kind="lines", value=table)},
        steps=(
            Step(thought="I look at the shape of the lines.", command="tail -n 4 access.log"),
            Step(
                thought="The last field is the status, the second holds the hour.",
                command=(
                    "awk '$NF >= 500 { n[substr($2, 2, 2)]++ } END { for (h in n) print h \"\\t\" n[h] }' "
                    "access.log | sort > errors.tsv"
                ),
            ),
            Step(thought="I check it.", command="cat errors.tsv"),
        ),
    )
