"""AdamW (Loshchilov & Hutter 2019): a step against the gradients, of an even size in each entry.

g is an array's gradient, m the running mean of g, v that of g^2, t the number of the step. Both
begin at 0, so they are divided by the share of the weights that is not on that 0.
"""

import math

import numpy as np

from ..kernels import TILE


class AdamW:
    """Arrays {name: array} that are changed in place, and the running means of their gradients.

    Matrices, or the arrays named in `shrinking`, shrink by rate * decay in each step, whatever
    their gradient; biases and the gains of norms do not.
    """

    def __init__(self, arrays, decay=0.01, betas=(0.9, 0.999), eps=1e-8, shrinking=None):
        self.arrays = arrays
        self.decay, self.betas, self.eps = decay, betas, eps
        self.first = {name: np.zeros_like(x) for name, x in arrays.items()}  # m
        self.second = {name: np.zeros_like(x) for name, x in arrays.items()}  # v
        self.steps = 0
        self.shrinking = shrinking
        if shrinking is None:
            self.shrinking = {name for name, x in arrays.items() if x.ndim > 1}

    def step(self, gradients, rate):
        """x -= rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps), in every array."""
        self.steps += 1
        for name, g in gradients.items():
            x, m, v = self.arrays[name], self.first[name], self.second[name]
            kept = 1 - rate * self.decay if name in self.shrinking else 1.0
            n_rows = max(1, TILE // max(1, x[:1].size))
            for i in range(0, len(x), n_rows):
                rows = slice(i, i + n_rows)
                self._tile(x[rows], g[rows], m[rows], v[rows], rate, kept)

    def _tile(self, x, g, m, v, rate, kept):
        """The step in rows that stay in the processor's cache from the first line to the last."""
        b1, b2 = self.betas
        work = g - m
        work *= 1 - b1
        m += work
        np.multiply(g, g, out=work)
        work *= 1 - b2
        v *= b2
        v += work
        root = np.sqrt(v, out=work)
        root /= math.sqrt(1 - b2**self.steps)
        root += self.eps
        direction = np.divide(m, root, out=work)
        direction *= rate / (1 - b1**self.steps)
        if kept != 1.0:
            x *= kept
        x -= direction


def rate_of(step, steps, rate, warm_up=0.1):
    """The rate of a step, numbers from 0: rising in a line, then falling as a cosine to 0."""
    rising = max(1, round(warm_up * steps))
    if step < rising:
        return rate * (step + 1) / rising
    done = (step - rising) / max(1, steps - rising)
    return rate * 0.5 * (1 + math.cos(math.pi * done))


def norm_of(gradients):
    """The length of all gradients as one vector, summed in float64."""
    squares = (float(np.vdot(g, g)) for g in gradients.values())
    return math.sqrt(sum(squares))


def clipped(gradients, largest):
    """Gradients, made shorter together where their length is beyond `largest`; 0: as they are."""
    norm = norm_of(gradients)
    factor = largest / (norm + 1e-6)  # as the reference library has it
    if not largest or factor >= 1:
        return gradients
    return {name: g * factor for name, g in gradients.items()}
