"""Families about data: CSV and JSON."""

from __future__ import annotations

import json
from random import Random

from pydantic import JsonValue

from orchard_core.tasks.workbench.problem import NAMES, Check, Problem, Step


def csv_totals(random: Random) -> Problem:
    """Sum a column by group, leaving out cancelled rows."""
    groups = random.sample(NAMES, 4)
    rows, totals = [], dict.fromkeys(groups, 0)
    for number in range(random.randint(24, 40)):
        group, cents = random.choice(groups), random.randint(5, 900)
        state = random.choice(("paid", "paid", "paid", "cancelled"))
        rows.append(f"{1000 + number},{group},{cents},{state}")
        totals[group] += cents if state == "paid" else 0
    totals = {group: total for group, total in totals.items() if total}
    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    table = "region,total\n" + "".join(f"{group},{total}\n" for group, total in ranked)
    return Problem(
        instruction=(
            "orders.csv has the columns id, region, amount and state. Add up the amounts of all orders whose "
            "state is paid, by region, and write totals.csv with the header `region,total`, the "
            "largest total "
            "first, equal totals by name of the region. Regions without a paid order are left out.\n"
        ),
        files={"orders.csv": "id,region,amount,state\n" + "\n".join(rows) + "\n"},
        expected={"totals.csv": Check(kind="lines", value=table)},
        steps=(
            Step(thought="What do the rows look like?", command="head -n 4 orders.csv"),
            Step(
                thought="awk adds up by region, sort puts the largest first.",
                command=(
                    '{ echo region,total; awk -F, \'$4 == "paid" { sum[$2] += $3 } END { for (r in sum) '
                    'print r "," sum[r] }\' orders.csv | sort -t, -k2,2nr -k1,1; } > totals.csv'
                ),
            ),
            Step(thought="I check the table.", command="cat totals.csv"),
        ),
    )


def json_merge(random: Random) -> Problem:
    """Join two JSON files: active people with the name of their team, grouped."""
    teams = {f"t{index}": name for index, name in enumerate(random.sample(NAMES, 3))}
    people: list[dict[str, JsonValue]] = [
        {
            "name": name.capitalize(),
            "team": random.choice(list(teams)),
            "active": random.random() < 0.7,
            "age": random.randint(20, 60),
        }
        for name in random.sample(NAMES, 10)
    ]
    people[0]["active"] = True
    wanted: dict[str, JsonValue] = {}
    for key, team in teams.items():
        names = sorted(str(person["name"]) for person in people if person["active"] and person["team"] == key)
        if names:
            wanted[team] = list(names)
    return Problem(
        instruction=(
            "people.json lists people with the id of their team; teams.json maps team ids to team "
            "names. Write "
            "active.json: an object that maps the name of each team to the sorted list of names of "
            "its active "
            "people. Teams without active people are left out.\n"
        ),
        files={"people.json": json.dumps(people, indent=1) + "\n", "teams.json": json.dumps(teams) + "\n"},
        expected={"active.json": Check(kind="json", value=wanted)},
        steps=(
            Step(thought="I look at both files.", command="cat teams.json; head -n 14 people.json"),
            Step(
                thought="A few lines of Python join them.",
                command=(
                    "python3 - <<'END'\nimport json\n"
                    'teams = json.load(open("teams.json"))\nfound = {}\n'
                    'for person in json.load(open("people.json")):\n'
                    '    if person["active"]:\n'
                    '        found.setdefault(teams[person["team"]], []).append(person["name"])\n'
                    "found = {team: sorted(names) for team, names in found.items()}\n"
                    'json.dump(found, open("active.json", "w"), indent=1)\nEND'
                ),
            ),
            Step(thought="I check it.", command="cat active.json"),
        ),
        difficulty="medium",
    )
