"""Numbers of docs/pages/howto/learning-on.md: bundled models that learn on, in a few ways.

    python -m benchmarks.learned_on --out FOLDER [--reviews FOLDER] [--only NAME …]

Without positions: a model learns on from the sample with its position table at zero, and, as the
null, with the table kept. Before and after: tiny-roberta learns the labels of reviews, or to tell
a text from its own words in random order; `compare` says which heads moved. Its nulls are the same
run with another seed, and with the labels dealt at random. --reviews is a folder with pos/ and
neg/, one review a file. A run that has ended is taken as it is, one that was stopped goes on.

Order: the command, what is learned, what is read off, the file.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np

import minitx
from minitx.analysis import run
from minitx.analysis.contract import registry
from minitx.analysis.machine.files import as_json, write
from minitx.analysis.pages import compare
from minitx.analysis.texts import corpus
from minitx.analysis.tuning import tune

FILE = Path(tune.__file__).parent / "learned_on.json"  # which an installation has, too
WORDS = {"tokens": 128, "batch": 8, "steps": 600}
CLASSES = {"tokens": 128, "batch": 8, "steps": 300}
# twice through the reviews: after 300 steps it knows them by heart, and held-out ones less and less
OF_REVIEWS = {"tokens": 256, "batch": 16, "steps": 220, "decay": 0.1, "every": 20}
MODELS = "tiny-roberta", "tiny-gpt2"
REVIEWS = 1000  # of each kind
READ = {"documents": 24, "tokens": 128}  # what heads are measured on
OFFSET = 0.3  # attention to one offset from which a head has a direction


def main():
    """Learn what is not learned yet, measure, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoints")
    parser.add_argument("--reviews", type=Path, help="folder with pos/ and neg/")
    parser.add_argument("--only", nargs="*", help="names of runs")
    parser.add_argument("--file", type=Path, default=FILE, help="numbers to write or add to")
    given = parser.parse_args()
    record = json.loads(given.file.read_text(encoding="utf-8")) if given.file.is_file() else {}
    for name, (model, options) in runs(given.reviews, given.out).items():
        if given.only and name not in given.only:
            continue
        folder = given.out / name
        learned = tune.tune(model, folder, resume=True, **options)
        record[name] = rounded(measured(name, model, folder, learned))
        write(given.file, as_json(record) + "\n")
        print(name, json.dumps(record[name]["held_out"]), flush=True)


def runs(reviews, out):
    """{name: (model, options of `tune`)}; those of reviews where there are any."""
    every = {}
    for model in MODELS:
        for positions in ("zero", "kept"):
            every[f"{model}-{positions}"] = model, WORDS | {"positions": positions}
    for seed in (0, 1):
        options = CLASSES | {"task": "order", "documents": 300, "seed": seed}
        every[f"order-{seed}"] = MODELS[0], options
    if reviews is None:
        return every
    for name, seed, column in (
        ("reviews-0", 0, "label"),
        ("reviews-1", 1, "label"),
        ("reviews-shuffled", 0, "shuffled"),
    ):
        options = OF_REVIEWS | {"text": str(table(reviews, out)), "column": "text"}
        every[name] = MODELS[0], options | {"label": column, "seed": seed}
    return every


def table(reviews, out):
    """A .csv of reviews with their labels, and with the same labels in random order."""
    rows = []
    for label in ("neg", "pos"):
        files = sorted((reviews / label).glob("*.txt"))[:REVIEWS]
        rows += [(path.read_text(encoding="utf-8"), label) for path in files]
    if not rows:
        raise ValueError(f"{reviews} has no neg/*.txt and pos/*.txt")
    shuffled = np.random.default_rng(0).permutation([label for _, label in rows])
    out.mkdir(parents=True, exist_ok=True)
    path = out / "reviews.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label", "shuffled"))
        writer.writerows((*row, other) for row, other in zip(rows, shuffled))
    return path


def measured(name, model, folder, learned):
    """Losses on held-out documents; where heads look; how far they moved."""
    record = {"held_out": [[point["step"], point["loss"]] for point in learned["held_out"]]}
    result = run("profiles", folder, **READ).arrays
    offset, weight = result["best_offset"], result["best_attention"]
    record |= {"offset": offset.tolist(), "weight": weight.tolist()}
    record["n_directed"] = int(((weight >= OFFSET) & (offset != 0)).sum())
    if name.startswith(MODELS):
        return record | {"by_frequency": by_frequency(model)}
    return record | {"moved": moved(folder)}


def rounded(x):
    """Every number of a record with five digits."""
    if isinstance(x, dict):
        return {name: rounded(value) for name, value in x.items()}
    if isinstance(x, list):
        return [rounded(value) for value in x]
    return float(f"{x:.5g}") if isinstance(x, float) else x


def by_frequency(model):
    """Loss of guessing each token by how often the sample has it, in nats."""
    loaded = minitx.load(model)
    rows = np.array([*corpus.documents(loaded, "sample", 400, WORDS["tokens"])])[:, 1:-1]
    p = np.bincount(rows.ravel()) / rows.size
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


def moved(folder):
    """What `compare` says of the bundle and the folder: {measure: its record}."""
    record = {}
    for name in ("profiles", "mixing"):
        experiment = registry.get(name)
        options = {option.name: option.default for option in experiment.options} | READ
        out = folder.parent / "compared" / folder.name / name
        models = [minitx.load(MODELS[0]), minitx.load(folder)]
        compare.make(experiment, models, [MODELS[0], folder.name], options, out)
        written = json.loads((out / "compare.json").read_text(encoding="utf-8"))
        record |= written["measures"]
    return record


if __name__ == "__main__":
    main()
