"""Makes tests/golden/recurrent-toy: what torch computes with the bundled recurrent toy.

Needs torch, as make_golden.py does, and the functions of weights/training/train_recurrent.py, with
which the models were trained. recurrent.safetensors holds `source` [B S], and for each model in
float64 `NAME.logits` [B S V] and `NAME.pattern` [B S S]; the decoder reads what it should have
written.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "weights"))
import train_recurrent  # noqa: E402


def main():
    """Write the reference of all models on the same sequences."""
    torch.manual_seed(0)
    arrays = {"source": torch.randint(train_recurrent.SYMBOLS, (3, 9))}
    weights = load_file(ROOT / "weights/recurrent-toy/model.safetensors")
    for name, (mechanism, _) in train_recurrent.RECIPES.items():
        prefix = f"{name}."
        w = {key[len(prefix) :]: x.double() for key, x in weights.items() if key.startswith(prefix)}
        logits, pattern = train_recurrent.forward(mechanism, w, arrays["source"], arrays["source"])
        arrays |= {f"{name}.logits": logits, f"{name}.pattern": pattern.contiguous()}
    folder = ROOT / "tests/golden/recurrent-toy"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(arrays, folder / "recurrent.safetensors")


if __name__ == "__main__":
    main()
