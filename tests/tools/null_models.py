"""Models that cannot know anything about positions: what every experiment answers of them.

    python tests/tools/null_models.py          measures WRITTEN and writes the table of docs/pages
    python tests/tools/null_models.py words    one kind, printed

An encoder and a decoder, each with the reference library's random start, with the entries of every
matrix shuffled, and with the rows of its position table shuffled; and encoders whose heads have a
direction by words alone (directed.py). Three seeds each, documents of 64 tokens; where words make
the direction one of 512, too.
"""

import itertools
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import directed
import numpy as np
from safetensors.numpy import load_file, save_file

import minitx
from minitx import analysis, weights
from minitx.analysis.contract import verdict
from minitx.analysis.contract.registry import NotApplicable

BASES = "tiny-roberta", "tiny-gpt2"
STD = 0.08  # initializer_range of both config.json
TABLES = "position_embeddings.weight", "wpe.weight"
SEEDS = range(3)
BY_WORDS = "words", "copied"
WRITTEN = "random-start", *BY_WORDS
LENGTHS = {64: SEEDS, 512: (0,)}  # tokens -> seeds, where words make the direction
FEW = {64: {}, 512: {"documents": 8}}  # tokens -> further options
PAGE = Path(__file__).parents[2] / "docs/pages/numbers.md"
TABLE = re.compile(r"(?<=<!-- null models -->\n).*?(?=<!-- end -->)", re.DOTALL)


def random_start(name, x, rng):
    """A tensor as the library starts it: biases 0, norms 1, matrices N(0, STD^2)."""
    if x.ndim < 2:
        return np.full_like(x, float(name.endswith("weight")))
    return (STD * rng.standard_normal(x.shape)).astype(x.dtype)


def shuffled_matrices(name, x, rng):
    """A tensor whose entries are in random order, if it is a matrix."""
    return rng.permutation(x.ravel()).reshape(x.shape) if x.ndim == 2 else x


def shuffled_places(name, x, rng):
    """A tensor whose rows are in random order, if it is the position table."""
    return rng.permutation(x) if name.endswith(TABLES) else x


KINDS = {
    "random-start": random_start,
    "shuffled-matrices": shuffled_matrices,
    "shuffled-places": shuffled_places,
}


def write(base, kind, folder, seed=0):
    """A copy of a bundled model, changed by one of KINDS, as a folder; returns its path."""
    rng = np.random.default_rng(seed)
    target = Path(folder) / f"{base}-{kind}"
    shutil.copytree(weights.find(base), target, dirs_exist_ok=True)
    tensors = load_file(target / "model.safetensors")
    changed = {name: KINDS[kind](name, x, rng) for name, x in tensors.items()}
    save_file(changed, target / "model.safetensors", metadata={"format": "pt"})
    return target


def models(kind):
    """The models of a kind, each with its number of tokens."""
    if kind in BY_WORDS:
        for tokens, seeds in LENGTHS.items():
            for seed in seeds:
                yield directed.by_words(kind, seed=seed, places=max(tokens, directed.T)), tokens
    else:
        for base, seed in itertools.product(BASES, SEEDS):
            with tempfile.TemporaryDirectory() as folder:
                yield minitx.load(write(base, kind, folder, seed)), 64


def verdicts(kind):
    """{experiment: how often it gives each verdict} on the models of a kind."""
    counts = {name: Counter() for name, x in analysis.EXPERIMENTS.items() if x.about == "model"}
    for model, tokens in models(kind):
        for name, counted in counts.items():
            own = {option.name for option in analysis.EXPERIMENTS[name].options}
            asked = {"tokens": tokens} | FEW[tokens]
            try:
                asked = {key: value for key, value in asked.items() if key in own}
                answer = analysis.run(name, model, **asked).answer
            except (NotApplicable, ValueError) as error:
                print(f"{kind}, {tokens} tokens: {name}: {error}", file=sys.stderr)
                continue
            if answer is not None:
                counted[answer.verdict] += 1
                if answer.verdict in verdict.EFFECTS:
                    print(f"{kind}, {tokens} tokens: {name}: {answer}", file=sys.stderr)
    return counts


def table(kinds):
    """A row for each experiment that finds an effect in any model, and one for all others."""
    of = {kind: verdicts(kind) for kind in kinds}
    names = of[kinds[0]]
    shown = [name for name in names if any(map(_effects, (x[name] for x in of.values())))]
    lines = [f"| | {' | '.join(kinds)} |", "|---" * (len(kinds) + 1) + "|"]
    for name in shown:
        cells = [f"{_effects(x[name])} of {x[name].total()}" for x in of.values()]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    others = [f"0 of {sum(x[n].total() for n in names if n not in shown)}" for x in of.values()]
    lines.append(f"| {len(names) - len(shown)} others | {' | '.join(others)} |")
    return "\n".join(lines) + "\n"


def _effects(counted):
    return sum(counted[kind] for kind in verdict.EFFECTS)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:]:
        print(table(sys.argv[1:]))
    else:
        text = TABLE.sub(table(WRITTEN), PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(text, encoding="utf-8")
