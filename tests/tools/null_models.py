"""Checkpoints that cannot know anything about positions: what every experiment answers of them.

    python tests/tools/null_models.py FOLDER

writes six folders made of two bundled models, then a report of each, and FOLDER/verdicts.json.
An encoder and a decoder, each with the reference library's random start, with the entries of every
matrix shuffled, and with the rows of its position table shuffled.
"""

import argparse
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from minitx import weights
from minitx.analysis.__main__ import main as minitx

BASES = "tiny-roberta", "tiny-gpt2"
STD = 0.08  # initializer_range of both config.json
TABLES = "position_embeddings.weight", "wpe.weight"


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


def verdicts(base, kind, folder):
    """{experiment: verdict} of a report on a changed model; its files go into `folder`."""
    model = write(base, kind, folder / "models")
    minitx(["report", str(model), "--out", str(folder / model.name)])
    experiments = json.loads((folder / model.name / "report.json").read_text())["experiments"]
    return {key: entry["verdict"] for key, entry in experiments.items()}


def main():
    """Write the six models, their reports and their verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    pairs = itertools.product(BASES, KINDS)
    table = {f"{base}-{kind}": verdicts(base, kind, folder) for base, kind in pairs}
    (folder / "verdicts.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
