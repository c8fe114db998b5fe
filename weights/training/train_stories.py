"""Makes tiny-stories, a GPT-2 of four layers that reads whole words of stories from a grammar.

    python -m minitx.weights.training.train_stories --out FOLDER

The stories are drawn while it trains (stories.py); it may be stopped at any time and goes on from
FOLDER when called again. Read downward: the plan, rows, training and files.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitx.gradients import UNCOUNTED
from minitx.training.batches import Batch
from minitx.training.stages import Stage, Staged
from minitx.training.tokens import Stream
from minitx.weights import stories
from minitx.weights.training.recipe import FRESH, HOW, INIT, train, waves

BREAK = 0.15  # share of the stories before which stands an <|endoftext|>
RATE, WARM_UP = 3e-3, 100


# ---- the plan


class Row(NamedTuple):
    """A stage: steps, tokens and number of inputs, the rate at its end, shares of what is read."""

    steps: int
    context: int
    batch: int
    rate: float
    counted: float  # share of the words that nothing tells, among those to predict
    weights: Mapping  # {kind: how often it is drawn}; 1 where absent


# Pieces of rows first, of which only the last word tells the next. This plan is not yet one that
# teaches to look back; weights/README.md says what was tried.
LOOKING = dict.fromkeys(("room", "owner", "colour", "thing", "holder", "other"), 4.0)
PLAN = (
    Row(600, 48, 24, RATE, 0.0, {"pieces": 1e5}),
    Row(
        1800,
        48,
        24,
        RATE,
        0.1,
        LOOKING | {"room": 8.0, "owner": 8.0, "repeated": 8.0, "pieces": 4.0},
    ),
    Row(1200, 96, 12, 0.0, 1.0, LOOKING | {"repeated": 2.0, "plain": 6.0}),
)


def settings(context):
    """config.json in the reference library's words."""
    named = {"model_type": "gpt2", "vocab_size": len(stories.vocabulary())}
    named |= {"n_positions": context, "n_embd": 128, "n_layer": 4, "n_head": 4, "n_inner": 256}
    named |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
    named |= {"tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 0}
    return named | {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}


# ---- rows


class Drawn:
    """Rows of stories, drawn when they are read. `ids`: {word: id}."""

    def __init__(self, row):
        self.row = row
        self.ids = {word: i for i, word in enumerate(stories.vocabulary())}

    def batch(self, step, size, seed):
        """The Batch of a step; the last word of a row is predicted alone."""
        rng = np.random.default_rng((seed, step))
        rows = [self.stories(rng) for _ in range(size)]
        tokens, is_told = (np.array(column) for column in zip(*rows))
        is_counted = is_told | (rng.random(is_told.shape) < self.row.counted)
        targets = np.where(is_counted[:, 1:], tokens[:, 1:], UNCOUNTED)
        return Batch(tokens[:, :-1], targets)

    def stories(self, rng):
        """Ids and whether the text tells each, of one row and a word more."""
        length = self.row.context + 1
        tokens, is_told = [], []
        frames = stories.mixed(length // 2, rng, self.row.weights)
        for frame, broken in zip(frames, (rng.random(len(frames)) < BREAK).tolist()):
            if len(tokens) >= length:
                break
            drawn = stories.filled(frame, rng)
            tokens += [0] * broken + [self.ids[word.lower()] for word in drawn.clean]
            is_told += [False] * broken + drawn.is_told
        return tokens[:length], is_told[:length]


class Stories(Staged):
    """Stages that learn from stories."""

    def __init__(self, plan, text, seed):
        self.plan = []
        for number, row in enumerate(plan):
            own = {"n_positions": row.context, "initializer_range": FRESH if number else INIT}
            self.plan.append((Stage(*row[:4], own), row))
        steps, last = sum(row.steps for row in plan), plan[-1]
        how = HOW._replace(steps=steps, rate=RATE, warm_up=min(1.0, WARM_UP / steps), seed=seed)
        how = how._replace(context=last.context, batch=last.batch)
        super().__init__([stage for stage, _ in self.plan], settings(last.context), text, how)

    def drawn(self, stage):
        """The Start of a stage, whose rows of positions begin as sinusoids."""
        begin = super().drawn(stage)
        table = begin.arrays["W_pos"]
        table[...] = waves(*table.shape)
        return begin

    def rows(self, stage):
        """What gives the batches of a stage."""
        return Drawn(next(row for own, row in self.plan if own == stage))


# ---- training and files


def main():
    """Train, or go on training, and write the checkpoint to --out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="folder for checkpoint and state")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps-scale", type=float, default=1.0, help="factor on steps of stages")
    given = parser.parse_args()
    make(given.out, given.seed, given.steps_scale)


def make(out, seed=0, scale=1.0):
    """Train in a folder, or go on there; the History."""
    plan = [row._replace(steps=max(1, round(scale * row.steps))) for row in PLAN]
    text = nothing()
    return train(Stories(plan, text, seed), text, out)


def nothing():
    """The Stream of no text, with the tokenizer of the stories: they are drawn."""
    empty = np.zeros(0, int)
    return Stream(empty, empty, empty, None, None, stories.tokenizer_files())


if __name__ == "__main__":
    main()
