"""Families about files: sorting them away, finding damaged ones."""

from __future__ import annotations

import hashlib
from random import Random

from orchard_core.tasks.workbench.problem import NAMES, Check, Problem, Step


def tidy_files(random: Random) -> Problem:
    """Move `DATE_name.ext` files into directories by year, under new names."""
    kinds = random.sample(["txt", "log", "csv", "md"], 3)
    files: dict[str, str | bytes] = {}
    expected: dict[str, Check] = {}
    for name in random.sample(NAMES, 7):
        year, month, day = random.randint(2019, 2023), random.randint(1, 12), random.randint(1, 28)
        kind = random.choice(kinds)
        old = f"inbox/{year}{month:02}{day:02}_{name}.{kind}"
        body = f"{name} {random.randint(1000, 9999)}\n"
        files[old] = body
        expected[f"archive/{year}/{month:02}-{day:02}-{name}.{kind}"] = Check(kind="bytes", value=body)
        expected[old] = Check(kind="absent")
    return Problem(
        instruction=(
            "The directory inbox holds files named YYYYMMDD_name.ext. Move each of them to "
            "archive/YYYY/MM-DD-name.ext (for example inbox/20200131_moon.txt becomes "
            "archive/2020/01-31-moon.txt). Their content must not change, and nothing may stay in inbox.\n"
        ),
        files=files,
        expected=expected,
        steps=(
            Step(thought="I look at what there is to move.", command="ls inbox"),
            Step(
                thought="Year, month and day are at fixed places in each name, so a loop can move them all.",
                command=(
                    "for path in inbox/*_*; do\n"
                    '  file=$(basename "$path")\n'
                    '  year=$(echo "$file" | cut -c1-4); month=$(echo "$file" | cut -c5-6)\n'
                    '  day=$(echo "$file" | cut -c7-8); name=$(echo "$file" | cut -c10-)\n'
                    '  mkdir -p "archive/$year"\n'
                    '  mv "$path" "archive/$year/$month-$day-$name"\n'
                    "done"
                ),
            ),
            Step(thought="I check the result.", command="find inbox archive -type f | sort"),
        ),
    )


def damaged_files(random: Random) -> Problem:
    """Compare files with a list of SHA-256 sums and name those that differ or are missing."""
    names = [f"part-{index:02}.bin" for index in range(random.randint(8, 12))]
    bad = sorted(random.sample(names, random.randint(2, 3)))
    gone = bad[-1]
    files: dict[str, str | bytes] = {}
    sums = []
    for name in names:
        body = random.randbytes(random.randint(40, 400))
        sums.append(f"{hashlib.sha256(body).hexdigest()}  {name}")
        if name != gone:
            files[f"data/{name}"] = body[:-1] + bytes([body[-1] ^ 1]) if name in bad else body
    files["data/SHA256SUMS"] = "\n".join(sums) + "\n"
    return Problem(
        instruction=(
            "data/SHA256SUMS lists the SHA-256 sum of every file that belongs into the directory data. Some "
            "files were damaged and some are missing. Write the names of all damaged or missing "
            "files, sorted "
            "by name, one on a line and without the directory, to damaged.txt.\n"
        ),
        files=files,
        expected={"damaged.txt": Check(kind="lines", value="\n".join(bad))},
        steps=(
            Step(
                thought="I let sha256sum compare.", command="cd data && sha256sum -c SHA256SUMS 2>&1 || true"
            ),
            Step(
                thought="Every line that does not end in OK names a damaged or missing file.",
                command=(
                    "(cd data && sha256sum -c SHA256SUMS 2>/dev/null) | grep -v ': OK$' | cut -d: -f1 | sort "
                    "> damaged.txt"
                ),
            ),
            Step(thought="I read it once more.", command="cat damaged.txt"),
        ),
        difficulty="medium",
    )
