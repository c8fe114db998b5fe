"""Write tests/golden/transformerlens.json: what a run of TransformerLens 4 on tiny-gpt2 names.

Of each name two numbers of its value (`numbers`). Needs `pip install transformer-lens`, which
`make golden` does not: python tests/tools/make_golden_names.py
"""

import json
import os
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[1] / "golden" / "transformerlens.json"
IDS = [5, 6, 7, 8, 9, 300, 12]
HIDDEN = 1e30  # from here on a score is of a key that is not seen


def numbers(x):
    """The length of an array and its product with a fixed one; what is hidden counts as 0."""
    x = np.asarray(x, np.float64).ravel()
    x = np.where(abs(x) < HIDDEN, x, 0.0)
    return [float(np.linalg.norm(x)), float(x @ np.cos(np.arange(x.size)))]


def main():
    """Write the file."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from importlib.metadata import version

    import torch
    from transformer_lens.model_bridge import TransformerBridge

    folder = str(Path(__file__).parents[2] / "weights" / "tiny-gpt2")
    bridge = TransformerBridge.boot_transformers(folder, device="cpu", dtype=torch.float32)
    _, cache = bridge.run_with_cache(torch.tensor([IDS]))
    values = {name: numbers(x.detach().numpy()) for name, x in cache.items()}
    packages = "transformer-lens", "transformers", "torch"
    record = {"versions": {name: version(name) for name in packages}, "values": values}
    lines = json.dumps(record).replace("], ", "],\n").replace('"values": {', '"values": {\n')
    FILE.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
