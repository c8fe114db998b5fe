"""Makes tiny-stories, a GPT-2 of four layers that reads whole words of stories from a grammar.

    python -m minitx.weights.training.train_stories --out FOLDER [--masked]

--masked: tiny-stories-masked, a ModernBERT of as many layers that predicts hidden words of them.

The stories are drawn while it trains (stories.py); it may be stopped at any time and goes on from
FOLDER when called again. Read downward: the plan, rows, training and files.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitx.learning.batches import Batch
from minitx.learning.gradients import UNCOUNTED
from minitx.learning.stages import Stage, Staged
from minitx.learning.tokens import Stream
from minitx.weights import stories
from minitx.weights.training.recipe import HOW, train

BREAK = 0.15  # share of the stories before which stands an <|endoftext|>
RATES, WARM_UPS = (3e-3, 2e-3), (200, 300)  # highest, in steps; of the causal, the masked model
INIT = 0.02  # deviation of the first weights
END = [2 + stories.MARKS.index(".")]  # of a fact
HIDDEN = 0.3, 0.08  # shares of the words that are told by the text, and of the others


# ---- the plan


class Row(NamedTuple):
    """A stage: steps, tokens and number of inputs, and what is read."""

    steps: int
    context: int
    batch: int
    rate: float  # at its end, as a share of the highest
    counted: float  # share of the words that nothing tells, among those to predict
    random: Mapping  # {kind of random row: its share of the rows}; the others are stories
    weights: Mapping  # {kind of story: how often it is drawn}; 1 where absent


# First the word before, from rows that repeat themselves; then words farther back, from facts in
# the same order again and again; only then stories, of which most are told by looking back.
ASKED = dict.fromkeys(("room", "owner", "thing", "holder", "colour"), 8.0)
TOLD = dict.fromkeys(("relation", "changed", "pronoun"), 3.0)
FAR = {"other": 6.0, "agreement": 8.0, "answer": 8.0}  # learned late: asked more often
LOOKING = ASKED | TOLD | FAR
MIXED = LOOKING | dict.fromkeys(ASKED, 4.0) | {"sums": 5.0, "plain": 6.0}
PLAN = (
    Row(800, 48, 32, 1.0, 1.0, {"repeated": 0.6}, {}),
    Row(1200, 48, 32, 1.0, 0.5, {"again": 0.375, "facts": 0.1875, "repeated": 0.1875}, LOOKING),
    Row(1400, 48, 32, 1.0, 0.5, {"again": 0.06, "facts": 0.1, "repeated": 0.04}, LOOKING),
    Row(3600, 96, 16, 0.0, 1.0, {"again": 0.024, "facts": 0.032, "repeated": 0.024}, MIXED),
)


CAUSAL = {"n_embd": 128, "n_layer": 4, "n_head": 4, "n_inner": 256}
CAUSAL |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
CAUSAL |= {"initializer_range": INIT, "tie_word_embeddings": True}
CAUSAL |= {"bos_token_id": 0, "eos_token_id": 0}
CAUSAL |= dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
ROPE = {"full_attention": {"rope_theta": 10000.0, "rope_type": "default"}}
MASKED = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4}
MASKED |= {"intermediate_size": 256, "hidden_activation": "gelu", "norm_eps": 1e-5}
MASKED |= {"layer_types": ["full_attention"] * 4, "rope_parameters": ROPE}
MASKED |= {"initializer_range": INIT, "tie_word_embeddings": True, "decoder_bias": True}
MASKED |= dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), False)
MASKED |= {f"{name}_token_id": None for name in ("pad", "bos", "eos", "cls", "sep")}
MASKED |= {f"{part}_dropout": 0.0 for part in ("attention", "embedding", "mlp", "classifier")}


def settings(context, is_masked=False):
    """config.json in the reference library's words."""
    n_words = len(stories.vocabulary())
    if is_masked:
        named = {"model_type": "modernbert", "vocab_size": n_words + 1}
        return named | {"max_position_embeddings": context} | MASKED
    return {"model_type": "gpt2", "vocab_size": n_words, "n_positions": context} | CAUSAL


# ---- rows


class Drawn:
    """Rows of stories and of random words, drawn when they are read. `ids`: {word: id}."""

    def __init__(self, row, is_masked=False):
        self.row, self.is_masked = row, is_masked
        self.ids = {word: i for i, word in enumerate(stories.vocabulary())}

    def batch(self, step, size, seed):
        """The Batch of a step; of a causal model, the last word of a row is predicted alone."""
        rng = np.random.default_rng((seed, step))
        rows = [self.drawn_row(rng) for _ in range(size)]
        tokens, is_told = (np.array(column) for column in zip(*rows))
        if self.is_masked:
            is_hidden = rng.random(tokens.shape) < np.where(is_told, *HIDDEN)
            hidden = np.where(is_hidden, len(self.ids), tokens)
            return Batch(hidden, np.where(is_hidden, tokens, UNCOUNTED))
        is_counted = is_told | (rng.random(is_told.shape) < self.row.counted)
        targets = np.where(is_counted[:, 1:], tokens[:, 1:], UNCOUNTED)
        return Batch(tokens[:, :-1], targets)

    def drawn_row(self, rng):
        """Ids and whether the text tells each, of one row; of a causal model, of a word more."""
        length = self.row.context + (not self.is_masked)
        share, end = rng.random(), 0.0
        for kind, of_kind in self.row.random.items():
            end += of_kind
            if share < end:
                return RANDOM[kind](length, rng)
        return self.stories(length, rng)

    def stories(self, length, rng):
        """A row of stories."""
        tokens, is_told = [], []
        frames = stories.mixed(length // 2, rng, self.row.weights)
        for frame, broken in zip(frames, (rng.random(len(frames)) < BREAK).tolist()):
            if len(tokens) >= length:
                break
            drawn = stories.filled(frame, rng)
            tokens += [0] * broken + [self.ids[word.lower()] for word in drawn.clean]
            is_told += [False] * broken + drawn.is_told
        return tokens[:length], is_told[:length]


def random_words(n, rng):
    """Ids of n different words."""
    first = 2 + len(stories.MARKS)
    return (first + rng.choice(len(stories.vocabulary()) - first, n, replace=False)).tolist()


def repeated(length, rng):
    """Five random words to half a row, again and again: the word before tells the next."""
    words = random_words(int(rng.integers(5, length // 2 + 1)), rng)
    return np.resize(words, length).tolist(), (np.arange(length) >= len(words)).tolist()


def again(length, rng):
    """Three to six facts in the same order: the words between are shared, and tell nothing."""
    facts = _facts(int(rng.integers(3, 7)), rng, END * (rng.random() < 0.7))
    row = [word for fact in facts for word in fact]
    return np.resize(row, length).tolist(), (np.arange(length) >= len(row)).tolist()


def facts(length, rng):
    """Two or three facts, again and again in any order: only its first word tells the last."""
    drawn = _facts(int(rng.integers(2, 4)), rng, END)
    tokens, is_told = [], []
    while len(tokens) < length:
        is_known = bool(tokens)
        for i in rng.permutation(len(drawn)).tolist():
            tokens += drawn[i]
            is_told += [False, *[is_known] * (len(drawn[i]) - 2), True]
    return tokens[:length], is_told[:length]


def _facts(n, rng, end):
    """n facts: a word, one to three that all of them share, another word, and an end."""
    words = random_words(2 * n + int(rng.integers(1, 4)), rng)
    return [[words[i], *words[2 * n :], words[n + i], *end] for i in range(n)]


RANDOM = {"repeated": repeated, "again": again, "facts": facts}


class Stories(Staged):
    """Stages that learn from stories."""

    def __init__(self, plan, text, seed, is_masked=False):
        self.is_masked = is_masked
        rate, warm_up = RATES[is_masked], WARM_UPS[is_masked]
        self.plan = [
            (Stage(*row[:3], rate * row.rate, settings(row.context, is_masked)), row)
            for row in plan
        ]
        steps, last = sum(row.steps for row in plan), plan[-1]
        how = HOW._replace(steps=steps, rate=rate, warm_up=min(1.0, warm_up / steps), seed=seed)
        how = how._replace(context=last.context, batch=last.batch)
        whole = settings(last.context, is_masked)
        super().__init__([stage for stage, _ in self.plan], whole, text, how)

    def rows(self, stage):
        """What gives the batches of a stage."""
        return Drawn(next(row for own, row in self.plan if own is stage), self.is_masked)


# ---- training and files


def main():
    """Train, or go on training, and write the checkpoint to --out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="folder for checkpoint and state")
    parser.add_argument("--masked", action="store_true", help="predict hidden words")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps-scale", type=float, default=1.0, help="factor on steps of stages")
    given = parser.parse_args()
    make(given.out, given.seed, given.steps_scale, given.masked)


def make(out, seed=0, scale=1.0, is_masked=False):
    """Train in a folder, or go on there; the History."""
    plan = [row._replace(steps=max(1, round(scale * row.steps))) for row in PLAN]
    text = nothing(is_masked)
    return train(Stories(plan, text, seed, is_masked), text, out, INIT)


def nothing(is_masked=False):
    """The Stream of no text, with the tokenizer of the stories: they are drawn."""
    empty = np.zeros(0, int)
    mask_id = len(stories.vocabulary()) if is_masked else None
    return Stream(empty, empty, empty, mask_id, None, stories.tokenizer_files(is_masked))


if __name__ == "__main__":
    main()
