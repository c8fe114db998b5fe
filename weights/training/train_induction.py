"""Makes tiny-induction, a GPT-2 of two layers that repeats sequences it has read before.

    python -m minitx.weights.training.train_induction --out FOLDER

Each document is a row of random words, and then pieces of that row, from anywhere in it and in any
order. Only the pieces count: nothing but the row tells what comes next. It learns with the
project's own gradients and AdamW, without torch; the loop may be stopped at any time and goes on
from its state in FOLDER. Read downward: words and tokenizer, documents, fresh weights, training,
files.
"""

import argparse
import json
import string
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from minitx.analysis.tuning import batches, state, tensors, training
from minitx.learning.gradients import UNCOUNTED

START = "<|endoftext|>"  # and every word that is not known
WORDS = (
    "ant ape bat bear bee bird cat cow deer dog duck elk fish fox frog goat hare hen horse lamb "
    "lion mole mouse owl pig ram rat seal sheep swan toad wolf red blue green grey black white "
    "brown pink one two three four five six seven eight nine ten Mary John Anna Tom Kate Paul "
    "Jane Mark Rose Jack sun moon star rain snow wind sea hill tree leaf stone sand road house "
    "door key cup bell book lamp drum ship boat cart bread milk salt tea run walk jump sit eat "
    "drink read sing"
).split()
CONTEXT = 64
ROW = 8, 32  # different words that a document begins with
PIECE = 3, 16  # words of each piece of the row, at most as many as the row has
WIDTH, HEADS, INNER, LAYERS = 128, 8, 64, 2
INIT = 0.02
HOW = training.How(
    steps=5000, batch=32, rate=3e-3, warm_up=0.05, decay=0.1, held_out=0.004, every=250
)
DOCUMENTS = HOW.steps * HOW.batch


# ---- words and tokenizer


def vocabulary():
    """Every word, in the order of its id."""
    return [START, *string.ascii_lowercase, *WORDS]


def build_tokenizer():
    """A token for each word between blanks and punctuation."""
    ids = {word: i for i, word in enumerate(vocabulary())}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=START))
    tokenizer.add_special_tokens([START])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


# ---- documents


class Document(NamedTuple):
    """Ids, and those that are told at each place."""

    tokens: np.ndarray  # [T]
    targets: np.ndarray  # [T]


def document(number, seed):
    """A row of different words, and pieces of it up to CONTEXT, in each the next word told."""
    rng = np.random.default_rng((seed, number))
    n = rng.integers(ROW[0], ROW[1] + 1)
    row = 1 + rng.permutation(len(vocabulary()) - 1)[:n]
    tokens, is_told = [*row], [False] * n
    while len(tokens) <= CONTEXT:
        size = min(n, rng.integers(PIECE[0], PIECE[1] + 1))
        start = rng.integers(n - size + 1)
        tokens += [*row[start : start + size]]
        is_told += [True] * (size - 1) + [False]
    targets = np.where(is_told[:CONTEXT], tokens[1 : CONTEXT + 1], UNCOUNTED)
    return Document(np.array(tokens[:CONTEXT]), targets)


class Repeats:
    """Documents by number, each drawn when it is read."""

    classes = ()

    def __init__(self, seed):
        self.seed = seed
        self.groups = np.arange(DOCUMENTS)

    def batch(self, numbers, rng):
        """These documents with their targets."""
        rows = [document(number, self.seed) for number in numbers.tolist()]
        tokens, targets = (np.array(column) for column in zip(*rows))
        return batches.Batch(tokens, targets, np.ones(tokens.shape, bool))


# ---- fresh weights


def config():
    """config.json in the reference library's words."""
    settings = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "dtype": "float32"}
    settings |= {"vocab_size": len(vocabulary()), "n_positions": CONTEXT, "n_embd": WIDTH}
    settings |= {"n_layer": LAYERS, "n_head": HEADS, "n_inner": INNER}
    settings |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
    settings |= {"initializer_range": INIT, "tie_word_embeddings": True}
    settings |= {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
    return settings | {"bos_token_id": 0, "eos_token_id": 0}


def initial(rng):
    """{name in the file: array}: matrices normal with deviation INIT, biases 0, norms 1."""
    shapes = {"wte.weight": (len(vocabulary()), WIDTH), "wpe.weight": (CONTEXT, WIDTH)}
    for i in range(LAYERS):
        for name, n_in, n_out in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, INNER),
            ("mlp.c_proj", INNER, WIDTH),
        ):
            shapes[f"h.{i}.{name}.weight"] = n_in, n_out
            shapes[f"h.{i}.{name}.bias"] = (n_out,)
        for name in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{name}.{part}": (WIDTH,) for part in ("weight", "bias")}
    shapes |= {f"ln_f.{part}": (WIDTH,) for part in ("weight", "bias")}
    arrays = {}
    for name, shape in shapes.items():
        if len(shape) == 2:
            values = INIT * rng.standard_normal(shape)
        else:
            values = np.full(shape, name.endswith("weight"))
        arrays[f"transformer.{name}"] = values.astype(np.float32)
    return arrays


# ---- training and files


def begin(out, seed):
    """A folder that loads, with fresh weights."""
    out.mkdir(parents=True, exist_ok=True)
    settings = {"model_max_length": CONTEXT, "tokenizer_class": "PreTrainedTokenizerFast"}
    settings |= {"unk_token": START, "bos_token": START, "eos_token": START}
    build_tokenizer().save(str(out / "tokenizer.json"))
    for name, values in (("config", config()), ("tokenizer_config", settings)):
        text = json.dumps(values, indent=2, sort_keys=True) + "\n"
        (out / f"{name}.json").write_text(text, encoding="utf-8")
    arrays = initial(np.random.default_rng(seed))
    save_file(arrays, out / "model.safetensors", metadata={"format": "pt"})


def halved(checkpoint):
    """The checkpoint in float16."""
    arrays = {name: x.astype(np.float16) for name, x in checkpoint.tensors.items()}
    return checkpoint._replace(tensors=arrays)


def train(out, seed, until=None):
    """Train in a folder, or go on there, to the last step or to step `until`."""
    begin(out / "fresh", seed)
    checkpoint = tensors.opened(out / "fresh")
    learned = checkpoint.learned()
    run = training.Training(checkpoint.model, learned, Repeats(seed), HOW)
    place = state.Folder(out, {"how": HOW._asdict(), "seed": seed}, checkpoint.tensors)
    place.take_up(run)
    if until is not None:
        while run.done < until:
            run.step()
        place.save(run)
        return
    run.go_on(lambda run: report(run, place))
    tensors.save_checkpoint(halved(checkpoint), out)


def main():
    """Train, or go on training, and write the checkpoint to --out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="folder for checkpoint and state")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    train(given.out, given.seed)


def report(run, place):
    """After each step: the state is saved, and now and then the losses are printed."""
    place.after(run)
    if run.done % run.how.every == 0:
        held_out = run.curve[-1][1]
        mean = np.mean(run.losses[-run.how.every :])
        print(f"step {run.done}: loss {mean:.4f}, held out {held_out:.4f}", flush=True)


if __name__ == "__main__":
    main()
