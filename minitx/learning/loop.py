"""The loop in memory: a batch, its gradients, a step, until all steps are done."""

import warnings
from typing import NamedTuple

import numpy as np

from .adamw import AdamW, clipped, rate_of
from .gradients import gradients

MATRICES, REST = "matrices", "rest"  # the two parts of the vector that learns


class How(NamedTuple):
    """The numbers that a training goes by."""

    steps: int
    context: int  # tokens of an input
    batch: int  # inputs
    rate: float  # of learning, at its highest
    warm_up: float  # share of the steps in which it rises
    decay: float  # what a step of rate 1 would take off a matrix, as a share
    betas: tuple  # of the running means of gradients and of their squares
    eps: float
    clip: float  # longest gradient; 0: any
    masked: float  # share of the words that a masked model predicts
    span: float  # mean number of them side by side
    seed: int
    snapshots: int
    dtype: str


class Loop:
    """A Start that learns from Words. `.losses`: of each step, in nats."""

    def __init__(self, start, words, how):
        self.start, self.words, self.how = start, words, how
        self.optimizer = AdamW(
            parts(start.flat, start.n_matrices),
            how.decay,
            how.betas,
            how.eps,
            shrinking={MATRICES},
        )
        self.slopes = np.empty_like(start.flat)  # the gradient, in the order of `flat`
        self.losses = []

    @property
    def done(self):
        """Steps that are done."""
        return self.optimizer.steps

    def place(self, done):
        """Ready for the values of a state that was saved after so many steps."""

    def rate(self):
        """Of the next step."""
        how = self.how
        return rate_of(self.done, how.steps, how.rate, how.warm_up)

    def step(self):
        """One batch, its gradients, one step. Raises ValueError where one is no number."""
        how, step = self.how, self.done
        batch = self.words.batch(step, how.batch, how.seed)
        loss = self.gradients(batch)
        slopes = parts(self.slopes, self.start.n_matrices)
        self.optimizer.step(clipped(slopes, how.clip), self.rate())
        self.losses.append(loss)

    def slopes_of(self, batch):
        """The Gradients of all arrays."""
        model, keys = self.start.model, [*self.start.arrays]
        return gradients(model, batch.tokens, batch.targets, keys, **batch.others)

    def gradients(self, batch):
        """Fills `slopes` -> the loss. Raises ValueError where a number is not finite."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # what overflows is said below
                grads = self.slopes_of(batch)
            begin = 0
            for key in self.start.arrays:
                end = begin + grads[key].size
                self.slopes[begin:end] = grads[key].ravel()
                begin = end
            if not (np.isfinite(grads.loss) and np.isfinite(self.slopes @ self.slopes)):
                raise ValueError(f"the loss is {grads.loss:.4g}, and its gradient is not finite")
        except ValueError as error:
            text = f"step {self.done + 1}: {error}. Take a smaller rate, a longer warm-up or a clip"
            raise ValueError(text) from None
        return grads.loss


def parts(flat, n_matrices):
    """The two parts of a vector."""
    return {MATRICES: flat[:n_matrices], REST: flat[n_matrices:]}


def snapshot_steps(steps, n):
    """At most n numbers of steps, from 0 to the last, that grow geometrically: [0, 1, 2, 3, 5 …].

    >>> snapshot_steps(1000, 8)
    [0, 1, 3, 10, 32, 100, 316, 1000]
    """
    if n < 2:
        return [steps][:n]
    n = min(n, 20 * steps + 2)  # of so many, each step is one
    grown = np.geomspace(steps, 1, n - 1)
    return [0, *sorted({round(x) for x in grown.tolist()})]
