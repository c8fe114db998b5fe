"""Trains the zoo: tiny checkpoints that differ only in how a place enters, as far as they can.

    python -m minitx.weights.training.train_zoo causal-rotary --text FOLDER --out FOLDER

`all` trains one after another. Text, pieces, sizes, steps, the order of the data, the seed and the
first weights are those of all causal models, and of all masked ones. Every model trains in one of
the layouts of models.py; zoo_files.py writes it as a real family has it. A run may be stopped at
any time and continues from FOLDER when called again. Needs torch, an optional extra.
"""

import argparse
import shutil
from pathlib import Path

from minitx.weights.training import train, zoo_files

# One layer first: heads that look at neighbours form there within 4 million tokens. Its copies
# write less, which keeps positions in the stream behind it.
SCHEDULE = {
    "stages": (
        (32, 128, 900, 2e-3, 2e-3),
        (64, 64, 300, 2e-3, 2e-3),
        (64, 64, 700, 2e-3, 2e-3),
        (64, 64, 900, 2e-3, 0.0),
    ),
    "depths": (1, 1, 3, 3),
    "layers": 3,
    "writers": 0.2,
    "products": "float32",
    "eps": 1e-5,
}
CAUSAL = {**SCHEDULE, "family": "gpt2", "specials": ("<|endoftext|>",), "offset": 0}
MASKED = {
    **SCHEDULE,
    "family": "roberta",
    "specials": ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    "offset": 2,
}
RECIPES = {
    "causal-learned": train.Recipe(**CAUSAL),
    "causal-rotary": train.Recipe(**CAUSAL, place="rotary"),
    "causal-alibi": train.Recipe(**CAUSAL, place="alibi"),
    "causal-none": train.Recipe(**CAUSAL, place="none"),
    "masked-sinusoidal": train.Recipe(**MASKED, place="sinusoidal"),
    "masked-rotary": train.Recipe(**{**MASKED, "family": "modernbert"}, place="rotary"),
    "masked-buckets": train.Recipe(**MASKED, place="buckets"),
    "causal-sinusoidal": train.Recipe(**CAUSAL, place="sinusoidal"),
    "masked-learned": train.Recipe(**MASKED),
    "masked-none": train.Recipe(**MASKED, place="none"),
    "masked-disentangled": train.Recipe(**MASKED, place="disentangled"),
    "masked-disentangled-buckets": train.Recipe(**MASKED, place="disentangled-buckets"),
}


def make(name, given):
    """Train, or go on training, one model of the zoo and write it to a folder of its name."""
    recipe = RECIPES[name]
    shared, out = given.out / name.partition("-")[0], given.out / name
    for folder in (shared, out):
        folder.mkdir(parents=True, exist_ok=True)
    tokenizer, stream = train.prepare(recipe, given.text, given.held_out, shared)
    print(f"{name}: {len(stream):,} tokens of text", flush=True)
    w = train.train(recipe, stream, out / "state.safetensors", given.seed, given.steps_scale)
    shutil.copyfile(shared / "tokenizer.json", out / "tokenizer.json")
    zoo_files.export(recipe, w, out)
    loss, n = train.held_out_loss(recipe, w, tokenizer, given.held_out.read_text(encoding="utf-8"))
    print(f"{name}: held-out loss {loss:.4f} nats over {n:,} predicted tokens", flush=True)


def main():
    """Train one model, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", choices=[*RECIPES, "all"])
    parser.add_argument("--text", required=True, help="folder of .txt books, one paragraph a line")
    parser.add_argument("--out", required=True, type=Path, help="folder for all of them")
    parser.add_argument("--held-out", type=Path, default=train.SAMPLE, help="never trained on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--steps-scale", type=float, default=1.0, help="factor on every stage's steps"
    )
    given = parser.parse_args()
    names = [*RECIPES] if given.name == "all" else [given.name]
    for name in names:
        make(name, given)


if __name__ == "__main__":
    main()
