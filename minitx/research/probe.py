"""Linear probes: can a label be predicted from one point of the model?

Logistic regression on standardised features, its penalty chosen within the training texts, tested
on texts held out (Alain and Bengio 2017). Texts are split, not tokens, and equal texts stay
together. N rows, F features, K classes.

Order: the probe with its file, `fit_probe`, rows, the fit, the verdict.
"""

import json
from collections.abc import Sequence
from math import ceil
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Model
from ..inputs import Ids, Texts
from ..learning.saved import pack_state, write
from ..machine import show
from ..points import Key
from ..sampling import generator
from ..words.text import told_once
from .labelled import of_file, read_labels, split
from .passes import POOLS, choice, encoded, listed, point_of, random_of, reader, vectors
from .probe_file import FORMAT, STATED, read_file

SHUFFLES, CHANCE = 20, 0.95  # fits to shuffled labels, and the quantile of their accuracies
ENOUGH = 10  # training rows for each effective feature
TOKENS = POOLS | {"each": lambda x: x}
ABOVE, BELOW = "above chance", "not above chance"
AS_RANDOM = "above shuffled labels, but not above random weights"
WITHIN = "undecided: its interval contains the null; more held-out texts would tell"
VERDICTS = ABOVE, BELOW, AS_RANDOM, WITHIN, "undecided: needs # texts, # were given"


class Probe(show.Shown):
    """A linear probe: `.accuracy` on held-out texts, its 95% `.interval`, and its `.null`.

    `.null`: the 95% quantile of the accuracies with shuffled training labels, all of them in
    `.shuffled`. `.untrained`: the accuracy of a probe of random weights, None if not asked for.
    `.selectivity`: accuracy minus the mean of `.shuffled` (Hewitt and Liang 2019).
    `.verdict`: "above chance", "not above chance", "above shuffled labels, but not above random
    weights" where the interval contains `.untrained`, or "undecided: …" where it contains the null
    or there are fewer than ten training rows for each effective feature (participation ratio of the
    features). The test is easy if texts on both sides of the split resemble each other.
    `.classes` [K]; `.direction`: the unit vector from the first class to the second [F], or of each
    class [K F]. `.point`, `.token`: where the features are from; `.penalty`: 1 / C.

    >>> import minitx
    >>> texts = [f"The {x} was {y}." for x in ("dog", "cat", "man", "boy") for y in ("sad", "big")]
    >>> probe = minitx.fit_probe("tiny-stories", texts, ["sad", "big"] * 4, at=("resid_post", 1))
    >>> probe.accuracy, probe.predict(["The king was big."])
    (1.0, array(['big'], dtype='<U3'))
    >>> probe.verdict.partition(":")[0]
    'undecided'
    """

    point: Key
    token: str
    classes: list
    accuracy: float
    interval: tuple[float, float]
    null: float
    shuffled: list[float]
    untrained: float | None
    verdict: str
    penalty: float

    def __init__(self, model, arrays, **stated):
        self._model, self._arrays = model, arrays
        vars(self).update(stated)

    def _summary(self):
        low, high = self.interval
        accuracy = f"{self.accuracy:.1%} [{low:.1%}, {high:.1%}]"
        null = f"{self.null:.1%}"
        untrained = "not asked" if self.untrained is None else f"{self.untrained:.1%}"
        title = f"Probe of {self.point!r}, token {self.token!r}, {len(self.classes)} classes"
        lines = [
            f"accuracy on held-out texts {accuracy}; shuffled labels: up to {null}; "
            f"random weights: {untrained}",
            self.verdict,
        ]
        header = "accuracy on held-out texts", "shuffled labels", "random weights", "verdict"
        return show.Summary(title, lines, header, [(accuracy, null, untrained, self.verdict)])

    @property
    def selectivity(self) -> float:
        """Accuracy less the mean accuracy with shuffled labels: what is not the probe's own."""
        return self.accuracy - float(np.mean(self.shuffled))

    @property
    def direction(self) -> np.ndarray:  # [F], or [K F]
        """Where the score of a class grows fastest, in the model's own units."""
        W = (self._arrays["W"][:-1] / self._arrays["scale"][:, None]).T
        if len(W) == 2:
            W = W[1] - W[0]
        return W / np.linalg.norm(W, axis=-1, keepdims=True)

    @told_once()
    def predict(self, texts: Texts | Ids) -> np.ndarray | list[np.ndarray]:
        """The class of each text [N]; with token "each", those of each text's tokens, a list."""
        model, arrays = self._model, self._arrays
        predicted = []
        for batch in encoded(model, listed(texts)):
            x = TOKENS[self.token](vectors(model, batch, [self.point])[self.point])
            if x.shape[1] != len(arrays["mean"]):
                text = f"{self.point!r} of this model has {x.shape[1]} numbers a token"
                raise ValueError(f"{text}; the probe was fitted to {len(arrays['mean'])}")
            numbers = scores(x, arrays).argmax(axis=1)
            predicted.append(np.array(self.classes)[numbers])
        return predicted if self.token == "each" else np.concatenate(predicted)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a safetensors file, for `Probe.from_file`."""
        stated = {name: getattr(self, name) for name in STATED}
        write(Path(path), pack_state(self._arrays, json.dumps({"format": FORMAT} | stated)))

    @classmethod
    def from_file(cls, path: str | PathLike[str], model: Model | str | PathLike[str]) -> "Probe":
        """The probe in a file, for the model that it was fitted to, or one of the same shape.

        Raises ValueError for a file that `save` did not write.
        """
        stated, arrays = read_file(path)
        return cls(reader(model), arrays, **stated)


@told_once()
def fit_probe(
    model: Model | str | PathLike[str],
    texts: Texts | Ids | PathLike[str],
    labels: Sequence[Any] | ArrayLike | None,
    at: Key,
    token: str = "last",
    *,
    seed: int = 0,
    untrained: bool = True,
) -> Probe:
    """A linear probe for your own labels, at one point of the model.

    texts: a list of texts, of pairs, or of rows of ids. labels: a word or whole number for each;
    with token "each" also one for each token of each text, special tokens included. Or texts is a
    file, .csv, .jsonl or .parquet with a column `text`, and labels the name of its other column
    (None: label).
    at: a point with one vector for each token, such as ("resid_post", 2), ("post", 0), ("z", 1) of
    all heads, or "embed", which shows how far the words alone go.
    token: "last", "mean", or "each", whose rows are single tokens. seed: of split, shuffles and
    random weights. untrained: also probe a model of the same shape with random weights.
    Raises ValueError unless each class has four texts or more, and for labels or a point that do
    not fit. Source: Alain and Bengio 2017; Hewitt and Liang 2019.

    >>> import minitx
    >>> model = minitx.load("tiny-stories")
    >>> texts = [f"{name} was here" for name in ("Tom", "Mary", "Anna", "Ben")] * 2
    >>> minitx.fit_probe(model, texts[:5], [0, 1, 0, 1, 0], at=("resid_post", 2))
    Traceback (most recent call last):
    ValueError: class 0 has 2 different texts; expected 4 or more of each class
    """
    model = reader(model)
    point = point_of(model, at)
    return next(probes(model, texts, labels, [point], token, seed, untrained))


def probes(model, texts, labels, points, token, seed=0, untrained=True):
    """A Probe of each of these points, whose numbers are computed in one pass over the texts."""
    pool = choice("token", token, TOKENS)
    rng = generator(seed)
    texts, labels = of_file(texts, labels)
    batches = encoded(model, listed(texts))
    n = [batch.tokens.shape[1] for batch in batches]
    classes, y, is_by_token = read_labels(labels, n, token)
    side = split(batches, y, is_by_token, rng, classes)
    text = np.repeat(np.arange(len(n)), n if token == "each" else 1)
    y = np.concatenate(y) if is_by_token else y[text]
    trained = pooled(model, batches, points, pool)
    at_random = pooled(random_of(model, seed), batches, points, pool) if untrained else {}
    for point in points:
        rows = Rows(trained[point], y, text, is_by_token)
        null = rows._replace(x=at_random[point]) if untrained else None
        arrays, stated = fitted(rows, null, side, seed)
        yield Probe(model, arrays, point=point, token=token, classes=classes, **stated)


def pooled(model, batches, points, pool):  # -> {point: [N F]}
    """The rows of all texts at these points."""
    rows = {point: [] for point in points}
    for batch in batches:
        for point, x in vectors(model, batch, points).items():
            rows[point].append(pool(x))
    return {point: np.concatenate(x).astype(np.float64) for point, x in rows.items()}


class Rows(NamedTuple):
    """What a probe is fitted to: features [N F], classes [N], the number of each row's text [N]."""

    x: np.ndarray
    y: np.ndarray
    text: np.ndarray
    is_by_token: bool  # whether each token has a label of its own

    def of(self, texts) -> "Rows":
        """The rows of some texts, bool by number."""
        own = texts[self.text]
        return self._replace(
            x=self.x[own],
            y=self.y[own],
            text=self.text[own],
        )

    def shuffled(self, rng) -> "Rows":
        """The same with the labels of the texts exchanged, or of the tokens that have their own."""
        if self.is_by_token:
            return self._replace(y=rng.permutation(self.y))
        _, first, number = np.unique(self.text, return_index=True, return_inverse=True)
        return self._replace(y=rng.permutation(self.y[first])[number])


# --- the fit


def fitted(rows, untrained, side, seed):
    """The arrays of a probe, and what is stated of it.

    untrained: the Rows of random weights, or None. side [texts]: 0 fits, 1 chooses the penalty, 2
    is held out.
    """
    from ..analysis.maths import logistic

    train, arrays, right, C = right_of(rows, side)
    held_out = rows.of(side == 2)
    rng = np.random.default_rng((seed, 1))
    shuffles = [fit_rows(train.shuffled(rng), C) for _ in range(SHUFFLES)]
    shuffled = [float(by_text(held_out, other).mean()) for other in shuffles]
    low, high = logistic.wilson(right).tolist()
    stated = {
        "accuracy": float(right.mean()),
        "interval": (low, high),
        "shuffled": shuffled,
    }
    stated["null"] = float(np.quantile(shuffled, CHANCE))
    stated["penalty"] = 1 / C
    stated["untrained"] = float(right_of(untrained, side)[2].mean()) if untrained else None
    return arrays, stated | {"verdict": verdict(stated, train, len(side))}


def right_of(rows, side):
    """The rows that a probe is fitted to, its arrays, the share of each held-out text, its C."""
    from ..analysis.maths import logistic

    train = rows.of(side < 2)
    fit = rows.of(side == 0)
    rest = rows.of(side == 1)
    C = min(logistic.STRENGTHS, key=lambda C: loss_of(rest, fit_rows(fit, C)))
    arrays = fit_rows(train, C)
    return train, arrays, by_text(rows.of(side == 2), arrays), C


def fit_rows(rows, C):
    """Weights [F+1 K] of standardised features, with their mean and scale [F]."""
    from ..analysis.maths import logistic

    mean, scale = logistic.standards(rows.x)
    W = logistic.fit((rows.x - mean) / scale, rows.y, C)
    return {"W": W, "mean": mean, "scale": scale}


def scores(x, arrays):  # [N F] -> [N K]
    """The score of each class for each row."""
    standardised = (x - arrays["mean"]) / arrays["scale"]
    return standardised @ arrays["W"][:-1] + arrays["W"][-1]


def loss_of(rows, arrays):
    """Mean loss of rows in nats, without the penalty."""
    from ..analysis.maths import logistic

    x = (rows.x - arrays["mean"]) / arrays["scale"]
    return logistic.loss(arrays["W"], x, rows.y, np.inf)[0]


def by_text(rows, arrays):  # -> [texts]
    """The share of each text's rows whose class is predicted."""
    right = scores(rows.x, arrays).argmax(axis=1) == rows.y
    _, number = np.unique(rows.text, return_inverse=True)
    return np.bincount(number, right) / np.bincount(number)


def verdict(stated, train, n_texts):
    """Whether the accuracy is above chance, or how many texts it takes to tell."""
    x = train.x - train.x.mean(axis=0)
    spread = x.std(axis=0)
    x = x[:, spread > 0] / spread[spread > 0]
    if len(x) < x.shape[1]:
        gram = x @ x.T
    else:
        gram = x.T @ x
    features = np.trace(gram) ** 2 / max((gram * gram).sum(), 1e-300)
    needed = ceil(ENOUGH * features * n_texts / len(x))
    if needed > n_texts:
        return f"undecided: needs {needed} texts, {n_texts} were given"
    if stated["accuracy"] <= stated["null"] < 1:
        return BELOW
    if stated["interval"][0] <= stated["null"]:
        return WITHIN
    if (stated["untrained"] or 0) >= stated["interval"][0]:
        return AS_RANDOM
    return ABOVE
