"""Makes weights/histories: one training with its snapshots, and the measures of others beside it.

    python -m minitx.weights.training.train_history snapshots --text FOLDER --out FOLDER
    python -m minitx.weights.training.train_history seeds --text FOLDER --out FOLDER

All of them are one small encoder of letters and pairs of letters, of which one thing is changed at
a time (KINDS). Weights that two kinds share begin alike, and the order of the inputs is the same.
Of the others only what `minitx forming` measures is kept, in seeds.safetensors. In NumPy alone;
each training takes half a minute of one core, and none is done twice. Read downward:
settings, text, kinds, a training that is measured on its way, files.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

import minitx
from minitx.analysis import forming
from minitx.analysis.forming import moments
from minitx.arrays import Weights
from minitx.config import Rotary
from minitx.learning import batches, loop, tokens
from minitx.learning.saved import RECORD, as_json, digest_in, write
from minitx.learning.start import in_one_vector, start
from minitx.loading.families import from_hf
from minitx.loading.files import read_json
from minitx.memory import all_freed_memory_kept
from minitx.positions import frequencies, sinusoids
from minitx.weights.training.recipe import HELD_OUT, INIT, lines_of
from minitx.words.text import Tokenizer

CONTEXT, WIDTH, HEADS, LAYERS, VOCAB = 28, 64, 4, 2, 192
SETTINGS = {
    "model_type": "roberta",
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 2 * WIDTH,
    "vocab_size": VOCAB,
    "max_position_embeddings": CONTEXT + 2,
    "layer_norm_eps": 1e-5,
    "type_vocab_size": 1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": INIT,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
}
HOW = {"steps": 1200, "batch": 80, "rate": 3e-3, "warm_up": 0.1, "decay": 0.1}
ADAMW = {"betas": (0.9, 0.98), "eps": 1e-6, "clip": 1.0, "masked": 0.15, "span": 1.0}
SEEDS = 0, 1, 2
SNAPSHOTS = 26  # of the one: 24, since the first steps coincide
EVERY = 50  # steps between the moments of the others
WHAT = forming.What(documents=32, shuffles=100)


# ---- text


def stream(text, held_out, out):
    """The Stream of all lines, and its tokenizer's files in `out`; made once, then loaded."""
    ids, vocabulary = out / "stream.safetensors", out / "tokenizer.json"
    if not ids.exists():
        out.mkdir(parents=True, exist_ok=True)
        lines = [line + "\n" for line in lines_of(text, held_out)]
        new = tokens.learned(lines, from_hf(dict(SETTINGS)), is_masked=True)
        write(vocabulary, new.to_str().encode())
        settings = tokens.settings_of(from_hf(dict(SETTINGS)), is_masked=True)
        write(out / "tokenizer_config.json", settings)
        arrays = {"kept": encoded(new, lines), "words": encoded(new, mixed(lines))}
        save_file(arrays, ids)
    return load_file(ids)


def encoded(tokenizer, lines):
    """Lines as one stream of ids."""
    parts = []
    for i in range(0, len(lines), 500):
        of_lines = tokenizer.encode_batch(lines[i : i + 500], add_special_tokens=False)
        parts += [np.array(line.ids, np.uint16) for line in of_lines]
    return np.concatenate(parts)


def mixed(lines):
    """The same lines, the words of each in random order."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.permutation(line.split())) + "\n" for line in lines]


# ---- kinds


class Kind(NamedTuple):
    """What is changed of a training with learned positions."""

    begin: Callable  # (Start) -> Start
    fixed: bool = False  # the position table stays as it begins
    text: str = "kept"


def as_it_is(begin):
    """Learned positions, from random rows."""
    return begin


def with_sinusoids(begin):
    """Rows of sinusoids, as large as the random ones were on average."""
    table = begin.arrays["W_pos"]
    table[2:] = INIT * 2**0.5 * sinusoids(CONTEXT, WIDTH)
    return begin


def with_turns(begin):
    """No table: queries and keys are turned."""
    d = WIDTH // HEADS
    rotary = Rotary(tuple(frequencies(10000.0, d).tolist()))
    config = replace(begin.model.config, n_pos=0, rotary=(rotary,) * LAYERS)
    arrays = vars(begin.model.weights) | {"W_pos": None}
    model = replace(begin.model, config=config, weights=Weights(**arrays))
    return in_one_vector(model, begin.settings, begin.flat.dtype)


KINDS = {
    "learned": Kind(as_it_is),
    "rotary": Kind(with_turns),
    "sinusoidal": Kind(with_sinusoids, fixed=True),
    "frozen": Kind(as_it_is, fixed=True),
    "words": Kind(as_it_is, text="words"),
}


class Fixed(loop.Loop):
    """A Loop in which the position table does not learn."""

    def step(self):
        table = self.start.arrays["W_pos"]
        before = table.copy()
        super().step()
        table[...] = before


# ---- a training that is measured


def measured(kind, seed, ids, tokenizer):
    """{name: array [S ...]} of one training, every so many steps."""
    how = loop.How(**HOW, **ADAMW, context=CONTEXT, seed=seed, snapshots=0, dtype="float32")
    begin = KINDS[kind].begin(start(SETTINGS, seed, how.dtype))
    given = tokens.Stream(ids.astype(np.intp), np.array([0]), np.array([2]), 4, None, {})
    run = (Fixed if KINDS[kind].fixed else loop.Loop)(
        begin, batches.Words(given, how.context, how.masked, how.span), how
    )
    model = replace(begin.model, tokenizer=tokenizer)
    rows, steps = [], [*range(0, how.steps + 1, EVERY)]
    with all_freed_memory_kept():
        for step in steps:
            while run.done < step:
                run.step()
            rows.append(moments.measured(model, WHAT))
            print(f"{kind} {seed}: step {step}, loss {rows[-1]['loss']:.3f}", flush=True)
    return moments.stacked(rows) | {"steps": np.array(steps), "losses": np.array(run.losses)}


# ---- files


def snapshots(given):
    """The training whose snapshots come along, by `minitx.train` itself, in float16."""
    shared, out = given.out / "shared", given.out / "masked-learned"
    stream(given.text, given.held_out, shared)
    write(shared / "config.json", (json.dumps(SETTINGS, indent=1) + "\n").encode())
    lines = lines_of(given.text, given.held_out)
    how = HOW | ADAMW | {"seed": SEEDS[0], "snapshots": SNAPSHOTS}
    minitx.train(shared, lines, **how, out=out, resume=True)
    for path in out.rglob("model.safetensors"):
        arrays = {name: x.astype(np.float16) for name, x in load_file(path).items()}
        save_file(arrays, path, metadata={"format": "pt"})
    for path in (out / "steps").glob("*/tokenizer*.json"):
        path.unlink()  # the folder above has it
    record = read_json(out / RECORD)
    steps = record["snapshots"]
    record["sha256"] = {step: digest_in(out / "steps" / f"{step:06}") for step in steps}
    write(out / RECORD, as_json(record))


def seeds(given):
    """The measures of all kinds and seeds."""
    shared = given.out / "shared"
    ids = stream(given.text, given.held_out, shared)
    tokenizer = Tokenizer(shared, "roberta")
    arrays = {}
    for kind in KINDS:
        rows = []
        for seed in SEEDS:
            path = given.out / f"{kind}-{seed}.safetensors"
            if not path.exists():
                save_file(measured(kind, seed, ids[KINDS[kind].text], tokenizer), path)
            rows.append(load_file(path))
        arrays |= {f"{kind}.{name}": np.array([r[name] for r in rows]) for name in rows[0]}
    save_file(arrays, given.out / "seeds.safetensors")


def main():
    """Train what is asked for, or go on with it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("snapshots", "seeds"))
    parser.add_argument("--text", required=True, help="folder of .txt books, one paragraph a line")
    parser.add_argument("--out", required=True, type=Path, help="folder for all of them")
    parser.add_argument("--held-out", type=Path, default=HELD_OUT, help="text never trained on")
    given = parser.parse_args()
    {"snapshots": snapshots, "seeds": seeds}[given.what](given)


if __name__ == "__main__":
    main()
