"""Write tests/golden/transformerlens*.json: what a run of TransformerLens 4 names.

Of tiny-gpt2, and in transformerlens-pairs.json of the golden model t5-relu. Of each name two
numbers of its value (`numbers`). Needs `pip install transformer-lens`, which
`make golden` does not: python tests/tools/make_golden_names.py
"""

import json
import os
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
FILE, PAIRS = GOLDEN / "transformerlens.json", GOLDEN / "transformerlens-pairs.json"
PAIR = "t5-relu"
IDS = [5, 6, 7, 8, 9, 300, 12]
SOURCE, TARGET = [5, 6, 7, 8, 9], [0, 11, 12, 13]
HIDDEN = 1e30  # from here on a score is of a key that is not seen


def numbers(x):
    """The length of an array and its product with a fixed one; what is hidden counts as 0."""
    x = np.asarray(x, np.float64).ravel()
    x = np.where(abs(x) < HIDDEN, x, 0.0)
    return [float(np.linalg.norm(x)), float(x @ np.cos(np.arange(x.size)))]


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"
    from importlib.metadata import version

    packages = "transformer-lens", "transformers", "torch"
    versions = {name: version(name) for name in packages}
    write(FILE, ROOT / "weights" / "tiny-gpt2", versions, IDS)
    write(PAIRS, GOLDEN / PAIR, versions, SOURCE, decoder_input=TARGET)


def write(file, folder, versions, ids, **others):
    """The two numbers of every name in a run of the model in a folder."""
    import torch
    from transformer_lens.model_bridge import TransformerBridge

    bridge = TransformerBridge.boot_transformers(str(folder), device="cpu", dtype=torch.float32)
    others = {name: torch.tensor([row]) for name, row in others.items()}
    _, cache = bridge.run_with_cache(torch.tensor([ids]), **others)
    values = {name: numbers(x.detach().numpy()) for name, x in cache.items()}
    record = {"versions": versions, "values": values}
    lines = json.dumps(record).replace("], ", "],\n").replace('"values": {', '"values": {\n')
    file.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
