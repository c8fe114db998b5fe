"""The loop in memory: gradients of a batch, AdamW, and the loss on what is held out.

Read downward: how it goes, the loop, which arrays learn, what a loss that is no number came from.
"""

import warnings
from typing import NamedTuple

import numpy as np

import minitx
from minitx.learning import adamw
from minitx.learning.gradients import UNCOUNTED, expand_names
from minitx.learning.parameters import owners, parameters
from minitx.memory import all_freed_memory_kept

from . import batches

HELD_OUT = 0  # of the seeds: what is hidden in the held-out documents is always the same
TOGETHER = 16  # held-out documents side by side


class How(NamedTuple):
    """The numbers that a loop goes by."""

    steps: int = 1000
    batch: int = 16  # documents
    rate: float = 5e-4  # at its highest
    warm_up: float = 0.1  # share of the steps in which it rises
    decay: float = 0.01
    clip: float = 1.0  # longest gradient; 0: any
    held_out: float = 0.1  # share of the documents
    every: int = 100  # steps between losses on them
    seed: int = 0


class Training:
    """A model whose `learned` arrays {name: array} are changed step by step.

    `.losses`: of each step. `.curve`: (steps done, loss on the held-out documents), from 0 on.
    """

    def __init__(self, model, learned, data, how):
        self.model, self.data, self.how = model, data, how
        self.optimizer = adamw.AdamW(learned, how.decay)
        self.parts = batches.split(data.groups, how.held_out, how.seed)
        self.losses, self.curve = [], []

    @property
    def done(self):
        """Steps that are done."""
        return self.optimizer.steps

    def begin(self):
        """Measures the held-out loss before the first step."""
        if not self.curve:
            self.look()

    def go_on(self, after=None):
        """All steps that are left; after(self) is called after each."""
        self.begin()
        with all_freed_memory_kept():
            while self.done < self.how.steps:
                self.step()
                if self.done % self.how.every == 0 or self.done == self.how.steps:
                    self.look()
                if after is not None:
                    after(self)

    def look(self):
        """Measures the held-out loss."""
        self.curve.append((self.done, self.held_out()))

    def step(self):
        """One batch, its gradients, one step. Raises ValueError where one is no number."""
        how, step = self.how, self.done
        batch = self.batch(step)
        learned = self.optimizer.arrays
        grads = self.gradients(batch, [*learned])
        self.losses.append(grads.loss)
        rate = adamw.rate_of(step, how.steps, how.rate, how.warm_up)
        self.optimizer.step(adamw.clipped(grads, how.clip), rate)

    def batch(self, step):
        """What a step learns from."""
        numbers = batches.drawn(self.parts.learned, step, self.how.batch, self.how.seed)
        return self.data.batch(numbers, np.random.default_rng((self.how.seed, step, 1)))

    def gradients(self, batch, wrt):
        """Those of a batch. Raises ValueError where a number is not finite."""
        try:
            grads = gradients_of(self.model, batch, wrt)
            check(grads)
        except ValueError as error:
            text = f"step {self.done + 1}: {error}; {sizes(self.model, batch)}"
            raise ValueError(text) from None
        return grads

    def held_out(self):
        """Mean loss over all targets of the held-out documents."""
        numbers = self.parts.held_out
        total, n = 0.0, 0
        for start in range(0, len(numbers), TOGETHER):
            rng = np.random.default_rng((self.how.seed, start, HELD_OUT))
            batch = self.data.batch(numbers[start : start + TOGETHER], rng)
            if (batch.targets == UNCOUNTED).all():
                continue
            grads = self.gradients(batch, [])
            total += grads.loss * grads.n_targets
            n += grads.n_targets
        return total / n


def gradients_of(model, batch, wrt):
    """The gradients of a batch. Raises ValueError for a norm whose stream is not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what overflows is an error, said below
        return minitx.gradients(model, batch.tokens, batch.targets, wrt, valid=batch.valid)


def check(grads):
    """Raises ValueError if a loss or a gradient is not finite."""
    wrong = [text_of(key) for key, g in grads.items() if not np.isfinite(g).all()]
    if not np.isfinite(grads.loss) or wrong:
        text = f"the loss is {grads.loss:.4g}"
        raise ValueError(f"{text}; not finite are the gradients of: {', '.join(wrong[:4]) or '-'}")


def choose(model, learned, only="", freeze=""):
    """The learned arrays that `only` names without those that `freeze` names.

    Names are joined by commas: W_pos, W_Q.L3, W_Q (in all layers). Raises ValueError for a name
    that the model does not have or that is no array of its file, and where nothing is left.
    """
    wanted = named(model, learned, only) if only else [*learned]
    frozen = set(named(model, learned, freeze)) if freeze else set()
    left = {key: learned[key] for key in wanted if key not in frozen}
    if not left:
        raise ValueError(f"--only {only!r} and --freeze {freeze!r} leave nothing to learn")
    return left


def named(model, learned, names):
    """The keys that names joined by commas stand for, by their owners."""
    keys = expand_names([key_of(name) for name in names.split(",")], [*parameters(model)], model)
    owner = owners(model)
    own = list(dict.fromkeys(owner[key] for key in keys))
    fixed = [key for key in own if key not in learned]
    if fixed:
        raise ValueError(f"{text_of(fixed[0])} is computed, not learned: it is not in the file")
    return own


def key_of(name):
    """W_Q.L3 -> ("W_Q", 3); W_pos -> "W_pos"."""
    stem, dot, layer = name.strip().partition(".L")
    return (stem, int(layer)) if dot and layer.isdecimal() else name.strip()


def text_of(key):
    """("W_Q", 3) -> W_Q.L3."""
    return key if isinstance(key, str) else f"{key[0]}.L{key[1]}"


def sizes(model, batch):
    """Where numbers went out of range: the first layer, the largest values; what to do."""
    where, largest = overflow(model, batch)
    arrays = {text_of(key): float(abs(x).max()) for key, x in parameters(model).items()}
    name = max(arrays, key=arrays.__getitem__)
    return (
        f"{where}; the largest value up to there is {largest:.3g}, the largest of an array "
        f"{arrays[name]:.3g} ({name}). Take a smaller --rate, a longer --warm-up, or a --clip"
    )


def overflow(model, batch):
    """The first layer whose stream is not finite, in words; the largest value before it."""
    with np.errstate(all="ignore"):
        trace = minitx.run(model, batch.tokens, ["resid_pre", "resid_post"], valid=batch.valid)
    largest = 0.0
    for layer in range(model.config.n_layers):
        for name, side in (("resid_pre", "before"), ("resid_post", "after")):
            x = trace[name, layer]
            if not np.isfinite(x).all():
                return f"the stream {side} layer {layer} is not finite", largest
            largest = max(largest, float(abs(x).max()))
    return f"the stream is finite in layers 0 to {layer}", largest
