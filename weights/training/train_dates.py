"""Makes tiny-bart, a small encoder-decoder that reads dates: tokenizer, batches, training, a file.

    python -m minitx.weights.training.train_dates --out FOLDER

The data are drawn while it trains (dates.py); it may be stopped at any time and goes on from FOLDER
when called again. tiny-bart itself was trained in torch by the same settings, on the same dates
from other first weights.
"""

import argparse
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, processors

import minitx
from minitx import weights
from minitx.learning.batches import Batch
from minitx.learning.stages import Stage, Staged
from minitx.learning.tokens import Stream
from minitx.loading.files import read_json
from minitx.weights import dates
from minitx.weights.training.recipe import HOW, WARM_UP, train

SPECIALS = "<s>", "<pad>", "</s>", "<unk>"
START, PAD, END = 0, 1, 2
TEXTS = 64  # dates of a step
STEPS, RATE = 12000, 2e-3  # the rate falls in the second half


# ---- tokenizer


def build_tokenizer():
    """A piece for every character, behind BART's special ones: a BPE without merges."""
    vocabulary = {piece: i for i, piece in enumerate((*SPECIALS, *dates.ALPHABET))}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.decoder = decoders.Fuse()
    ends = ("</s>", END), ("<s>", START)
    tokenizer.post_processor = processors.RobertaProcessing(
        *ends, trim_offsets=False, add_prefix_space=False
    )
    return tokenizer


# ---- batches


def padded(rows):
    """Rows of ids as [B T], short ones filled with PAD."""
    length = max(map(len, rows))
    return np.array([row + [PAD] * (length - len(row)) for row in rows])


def batch_of(tokenizer, written):
    """The Batch of dates: the decoder reads </s> and what it wrote before."""
    encoded = (
        tokenizer.encode_batch([getattr(record, field) for record in written])
        for field in ("text", "iso")
    )
    source, target = (padded([row.ids for row in rows]) for rows in encoded)
    inputs = np.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=END)
    return Batch(inputs, target, {"source": source, "source_valid": source != PAD})


class Dates(Staged):
    """Stages that learn from dates."""

    def rows(self, stage):
        """What gives the batches."""
        return self

    def batch(self, step, size, seed):
        """The Batch of a step."""
        rng = np.random.default_rng([seed, step])
        return batch_of(self.text, dates.draw(rng, size))


# ---- training and files


def loop_of(tokenizer, settings, steps, seed):
    """The Dates of a config.json's settings."""
    first = steps - steps // 2
    stages = [Stage(first, 0, TEXTS, RATE, {}), Stage(steps - first, 0, TEXTS, 0.0, {})]
    how = HOW._replace(steps=steps, rate=RATE, warm_up=WARM_UP / max(steps, WARM_UP), seed=seed)
    return Dates(stages, settings, tokenizer, how)


def exact(model, tokenizer, written):
    """Share of dates whose every piece is the likeliest one, and so is written exactly."""
    right = []
    for start in range(0, len(written), 500):
        inputs, target, others = batch_of(tokenizer, written[start : start + 500])
        guess = minitx.logits(model, minitx.forward(model, inputs, **others)).argmax(-1)
        right += (guess == target).all(-1).tolist()
    return np.mean(right)


def main():
    """Train, or go on training, and write the checkpoint to --out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="folder for checkpoint and state")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    tokenizer, bundle = build_tokenizer(), weights.find("tiny-bart")
    files = {"tokenizer.json": tokenizer.to_str().encode()}
    for name in ("generation_config.json", "tokenizer_config.json"):
        files[name] = (bundle / name).read_bytes()
    loop = loop_of(tokenizer, read_json(bundle / "config.json"), given.steps, given.seed)
    text = Stream(np.zeros(0, int), None, None, None, None, files)
    history = train(loop, text, given.out)
    rng = np.random.default_rng(given.seed)
    for forms, which in ((dates.SEEN, "trained"), (dates.UNSEEN, "unseen")):
        written = dates.draw(rng, 2000, forms, held_out=True)
        share = exact(history.model, tokenizer, written)
        print(f"held-out dates, {which} forms: {share:.2%} exact")


if __name__ == "__main__":
    main()
