"""Small trainings for tests: golden models, fixed tokens and targets, the same for every caller."""

import numpy as np
import parity

from minitx.analysis.tuning import batches, tensors, training

CURVES = "gpt2-causal", "bert-masked"
DECAY, RATE = 0.1, 0.01


class Fixed:
    """Random tokens [N T] with random targets, a class for each row where there are classes."""

    def __init__(self, model, classes):
        self.classes = classes
        n, T = 40, 7
        self.groups = np.arange(n)
        rng = np.random.default_rng(4)
        self.tokens = rng.integers(4, model.config.n_vocab - 1, (n, T))
        most = len(classes) or model.weights.W_U.shape[1]
        self.targets = rng.integers(0, most, n if classes else (n, T))
        if not classes:
            self.targets[rng.random((n, T)) < 0.5] = -100

    def batch(self, numbers, rng):
        """These rows; the random numbers are not used."""
        valid = np.ones((len(numbers), self.tokens.shape[1]), bool)
        return batches.Batch(self.tokens[numbers], self.targets[numbers], valid)


def started(variant, dtype=np.float64, classes=(), **how):
    """A Training of a golden model that has done no step, and its Checkpoint."""
    checkpoint = tensors.opened(parity.GOLDEN / variant, dtype)
    if classes:
        checkpoint = tensors.with_classes(checkpoint, classes, np.random.default_rng(0))
    data = Fixed(checkpoint.model, classes)
    how = training.How(**{"steps": 200, "rate": RATE, "decay": DECAY, "batch": 8} | how)
    return training.Training(checkpoint.model, checkpoint.learned(), data, how), checkpoint


def prepared(variant, **how):
    return started(variant, **how)[0]


def random_steps():
    """{name: array} of a matrix and a bias, and the gradients of five steps."""
    rng = np.random.default_rng(1)
    shapes = {"W_Q": (4, 3), "b_Q": (3,)}
    gradients = [{name: rng.standard_normal(s) for name, s in shapes.items()} for _ in range(6)]
    return gradients[0], gradients[1:]
