"""Models that cannot know anything about positions: what every experiment answers of them.

    python tests/tools/null_models.py          measures all, and writes the table of docs/pages
    python tests/tools/null_models.py words    one kind, and writes its rows there

An encoder and a decoder, each with the reference library's random start, with the entries of every
matrix shuffled, and with the rows of its position table shuffled; and encoders whose heads have a
direction by words alone (directed.py). Three seeds each, documents of 64 tokens; where words make
the direction one of 512, too.
"""

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
LENGTHS = {64: SEEDS, 512: (0,)}  # tokens -> seeds, where words make the direction
FEW = {64: {}, 512: {"documents": 8}}  # tokens -> further options
PAGE = Path(__file__).parents[2] / "docs/pages/numbers.md"


def random_start(name, x, rng):
    """A tensor as the library starts it: biases 0, norms 1, matrices N(0, STD^2)."""
    if x.ndim < 2:
        return np.full_like(x, float(name.endswith("weight")))
    return (STD * rng.standard_normal(x.shape)).astype(x.dtype)


def shuffled_matrices(name, x, rng):
    return rng.permutation(x.ravel()).reshape(x.shape) if x.ndim == 2 else x


def shuffled_places(name, x, rng):
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


def by_words(kind):
    """Models whose heads have a direction by words, each with its number of tokens."""
    for tokens, seeds in LENGTHS.items():
        for seed in seeds:
            yield directed.by_words(kind, seed=seed, places=max(tokens, directed.T)), tokens


def changed(kind, base):
    """Copies of a bundled model, changed by one of KINDS."""
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            yield minitx.load(write(base, kind, folder, seed)), 64


def rows(kind):
    """{name: models} of the rows that a kind has."""
    if kind in BY_WORDS:
        return {kind: by_words(kind)}
    return {f"{kind}, `{base}`": changed(kind, base) for base in BASES}


def row(name, models):
    """How often each experiment says yes or partly of these models."""
    n, effects = 0, Counter()
    for model, tokens in models:
        n += 1
        for experiment in analysis.EXPERIMENTS.values():
            answer = answered(experiment, model, tokens) if experiment.about == "model" else None
            if answer is not None and answer.verdict in verdict.EFFECTS:
                effects[experiment.name] += 1
                print(f"{name}, {tokens} tokens: {experiment.name}: {answer}", file=sys.stderr)
    listed = ", ".join(f"`{name}` {times}" for name, times in effects.most_common())
    return f"| {name} | {n} | {listed or 'none'} |"


def answered(experiment, model, tokens):
    """What an experiment answers of documents of so many tokens; None where it is not asked."""
    given = {"tokens": tokens} | FEW[tokens]
    asked = {key: x for key, x in given.items() if key in experiment.option_names}
    try:
        return analysis.run(experiment.name, model, **asked).answer
    except (NotApplicable, ValueError) as error:
        print(f"{tokens} tokens: {experiment.name}: {error}", file=sys.stderr)
        return None


def main(kinds):
    """Each row is written as soon as it is measured."""
    for kind in kinds or (*KINDS, *BY_WORDS):
        for name, models in rows(kind).items():
            line, text = row(name, models), PAGE.read_text(encoding="utf-8")
            text = re.sub(rf"(?m)^\| {re.escape(name)} \|.*$", line, text)
            PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
