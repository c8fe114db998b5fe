"""How often verdicts say yes where they should, and where they must not: a table of docs/pages.

    python tests/tools/power.py          measures all and writes the table
    python tests/tools/power.py dial     one experiment, printed

Planted: one, two or four heads that read positions and give a fixed offset 0.11, 0.2 or 0.5 of
their attention, in documents of 64 and of 512 tokens; for `notch` they read waves of 2 to 4 tokens
alone. Null: heads whose direction words alone make, of three kinds (directed.py), three seeds.
"""

import itertools
import re
import sys
from collections import Counter
from pathlib import Path

import directed
from constructed import ALL, FAST

from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry

PAGE = Path(__file__).parents[2] / "docs/pages/numbers.md"
TABLE = re.compile(r"(?<=<!-- power -->\n).*?(?=<!-- end -->)", re.DOTALL)
VERDICTS = {  # experiment -> its options
    "conditions": {},
    "notch": {"losses": 0},
    "dial": {"losses": 0},
    "sources": {},
    "kernel": {},
}
SHARES = 0.11, 0.2, 0.5
LENGTHS = {64: 6, 512: 3}  # tokens -> documents
LAGS = (-1,), (-1, 2), (-1, 2, -3, 1)
KINDS = "words", "copied", "near"
SEEDS = range(3)


def answer(name, model, tokens):
    """The verdict of an experiment on documents of so many tokens."""
    options = {"tokens": tokens, "documents": LENGTHS[tokens]} | VERDICTS[name]
    experiment = registry.get(name)
    return experiment.answer(experiment.run(model, **options)).verdict


def planted(name, tokens):
    """Verdicts on the models whose heads read positions."""
    waves = FAST if name == "notch" else ALL
    for lags, share in itertools.product(LAGS, SHARES):
        yield answer(name, directed.by_positions(lags, share, tokens, waves), tokens)


def null(name, kind):
    """Verdicts on the models whose heads read words."""
    for seed in SEEDS:
        yield answer(name, directed.by_words(kind, seed=seed), 64)


def row(name):
    """A row of the table: each kind of verdict, counted, in each column."""
    columns = [planted(name, tokens) for tokens in LENGTHS]
    columns += [null(name, kind) for kind in KINDS]
    counts = [Counter(column) for column in columns]
    cells = [", ".join(f"{n} {kind}" for kind, n in each.most_common()) for each in counts]
    return f"| `{name}` | {' | '.join(cells)} |"


def table(names):
    """The table, with a row for each of these experiments."""
    heads = ["", *(f"positions, {tokens} tokens" for tokens in LENGTHS)]
    heads += ["words", "words, copied", "words near the token"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(row(name) for name in names)]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:]:
        print(table(sys.argv[1:]))
    else:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(TABLE.sub(lambda _: table(VERDICTS), text), encoding="utf-8")
