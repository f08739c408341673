"""Families about text: counting words, replacing terms."""

from __future__ import annotations

from collections import Counter
from random import Random

from orchard_core.tasks.workbench.problem import NAMES, Check, Problem, Step


def word_counts(random: Random) -> Problem:
    """The most frequent words of a text, ties in alphabetical order."""
    words = random.sample(NAMES, 12)
    weights = [random.randint(1, 9) for _ in words]
    bag = [word for word, weight in zip(words, weights, strict=True) for _ in range(weight)]
    random.shuffle(bag)
    shown = [random.choice((word, word.capitalize(), word.upper())) for word in bag]
    rows = [" ".join(shown[i : i + 7]) + random.choice((".", "!", ";")) for i in range(0, len(shown), 7)]
    top = random.randint(4, 6)
    ranked = sorted(Counter(bag).items(), key=lambda item: (-item[1], item[0]))[:top]
    return Problem(
        instruction=(
            f"Count the words in story.txt, ignoring case and punctuation. Write the {top} most "
            f"frequent words "
            "to top.txt, one on a line as `word count` with the word in lower case, the most frequent first; "
            "words that are equally frequent are in alphabetical order.\n"
        ),
        files={"story.txt": "\n".join(rows) + "\n"},
        expected={"top.txt": Check(kind="lines", value="\n".join(f"{word} {n}" for word, n in ranked))},
        steps=(
            Step(thought="I look at the text first.", command="head -n 5 story.txt"),
            Step(
                thought="One word a line, lower case, counted, then sorted by count and by word.",
                command=(
                    "tr '[:upper:]' '[:lower:]' < story.txt | tr -cs '[:alpha:]' '\\n' | grep . | "
                    "sort | uniq -c "
                    f"| sort -k1,1nr -k2,2 | head -n {top} | awk '{{print $2, $1}}' > top.txt"
                ),
            ),
            Step(thought="I check the result.", command="cat top.txt"),
        ),
    )


def replace_terms(random: Random) -> Problem:
    """Replace whole words by a glossary, and leave longer words that contain them alone."""
    old = random.sample(NAMES, 3)
    new = [f"{word}{random.randint(10, 99)}" for word in random.sample([n for n in NAMES if n not in old], 3)]
    glossary = dict(zip(old, new, strict=True))
    rows, fixed = [], []
    for _ in range(12):
        row = [
            random.choice((random.choice(old), random.choice(old) + "ish", "the", "and")) for _ in range(8)
        ]
        rows.append(" ".join(row))
        fixed.append(" ".join(glossary.get(word, word) for word in row))
    rows.append(" ".join(old))
    fixed.append(" ".join(new))
    return Problem(
        instruction=(
            "glossary.tsv has two columns separated by a tab: an old term and its new term. Replace "
            "in draft.txt "
            "each old term by its new one, but only where it stands as a whole word. Change "
            "draft.txt in place.\n"
        ),
        files={
            "draft.txt": "\n".join(rows) + "\n",
            "glossary.tsv": "".join(f"{key}\t{value}\n" for key, value in glossary.items()),
        },
        expected={"draft.txt": Check(kind="lines", value="\n".join(fixed))},
        steps=(
            Step(thought="Which terms are there?", command="cat glossary.tsv; head -n 3 draft.txt"),
            Step(
                thought="sed knows word boundaries, so I apply each pair with them.",
                command=(
                    "while IFS=\"$(printf '\\t')\" read -r from to; do\n"
                    '  sed -i "s/\\b$from\\b/$to/g" draft.txt\n'
                    "done < glossary.tsv"
                ),
            ),
            Step(thought="I look at the outcome.", command="cat draft.txt"),
        ),
    )
