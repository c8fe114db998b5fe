"""Steering: a direction between two kinds of texts, added to the residual stream.

    v = mean of x over the positive texts - mean of x over the negative ones,   x <- x + scale v

x is the stream before a layer, at each text's last token (Turner et al. 2023; Rimsky et al. 2024).
D is its width, n the number of draws of a null.

Order: the vector, its edit, its effect on texts, their log-probability.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from numbers import Real
from os import PathLike
from typing import NamedTuple

import numpy as np

from ..arrays import Model
from ..heads import require_head
from ..inputs import Ids, Texts
from ..machine import show
from ..sampling import generator
from ..trace import run
from ..words.text import told_once
from .passes import POOLS, choice, encoded, listed, point_of, random_of, reader, vectors

DRAWS, TRIED = 100, 20  # shuffled vectors; of them, those whose effect is measured
UNTRAINED = 4  # models with random weights
CHANCE = 0.95  # quantile of what shuffled labels give
VERDICTS = "beyond chance", "no more than chance", "undecided"
LEAST, HELD_OUT = 6, 2  # texts of each side that a vector is made of, and that it is tried on


class Effect(NamedTuple):
    """Change of the log-probability of texts, in nats per token, and that of vectors by chance.

    change: mean of the texts. shuffled, random [n]: the same of vectors of shuffled labels, as long
    as these are, and of random directions, as long as the vector. by_text [N]: of each text.
    untrained [4]: the same of models with random weights, by the vectors that their streams give.
    """

    change: float
    shuffled: np.ndarray
    random: np.ndarray
    by_text: np.ndarray
    untrained: np.ndarray


class Contrast(NamedTuple):
    """The change of texts to steer towards less that of texts to steer away from, nats per token.

    interval: 95% over the texts (Welch's t). null: the largest of vectors of shuffled labels, of
    random directions, and of random weights. verdict: "beyond chance" if all of the interval is
    above it, "no more than chance" if none is; "undecided" otherwise, and of fewer than 6 texts a
    side or 2 held out.
    """

    change: float
    interval: tuple[float, float]
    null: float
    verdict: str


class SteeringVector(show.Shown):
    """A direction in the stream before a layer: `.vector` [D], `.layer`, `.share`, `.null`.

    `.share`: its length over the mean length of the stream. `.null`: the 95% quantile of that
    share for vectors of shuffled labels, `.shuffled` [n D]. A share below its null is noise.
    `.n`: how many positive and negative texts it is made of.
    """

    def __init__(self, model, layer, vector, shuffled, length, n, again):
        self.layer, self.n = layer, n
        self._again = again  # f(model) -> the vector of the same texts in another model
        self.vector, self.shuffled = vector, shuffled
        self.share = float(np.linalg.norm(vector) / length)
        self.null = float(np.quantile(np.linalg.norm(shuffled, axis=1), CHANCE) / length)
        self._model = model

    def _summary(self):
        title = f"Steering vector [{len(self.vector)}] before layer {self.layer}"
        row = f"{self.share:.1%}", f"{self.null:.1%}"
        lines = [f"{row[0]} of the stream's length; 95% of shuffled labels: up to {row[1]}"]
        return show.Summary(title, lines, ("share of the stream", "shuffled labels"), [row])

    @told_once()
    def effect(self, texts: Texts, scale: float = 1.0, seed: int = 0) -> Effect:
        """Change of the mean log-probability of these texts, in nats per token, where it is added.

        Measure it on texts that the vector was not made of, and on unrelated ones: that is the
        price. Raises ValueError for a model that does not predict the next token.

        >>> import minitx
        >>> v = minitx.steering_vector("tiny-stories", ["She was sad."], ["She was glad."], 2)
        >>> effect = v.effect(["He was sad."], scale=2.0)
        >>> effect.random.shape, effect.by_text.shape
        ((20,), (1,))
        """
        batches = encoded(self._model, listed(texts))
        before = log_probabilities(self._model, batches)
        rng = np.random.default_rng(seed)
        drawn = rng.standard_normal((TRIED, len(self.vector)))

        def change(direction):
            edits = self._edits(direction, scale)
            return log_probabilities(self._model, batches, edits) - before

        shuffled = [change(direction).mean() for direction in self.shuffled[:TRIED]]
        random = [change(self._as_long(direction)).mean() for direction in drawn]
        own = change(self.vector)
        untrained = np.array([null._gain(batches, scale).mean() for null in self._untrained])
        return Effect(float(own.mean()), np.array(shuffled), np.array(random), own, untrained)

    def contrast(self, towards: Effect, away: Effect) -> Contrast:
        """What texts of one side gain more than those of the other, beside what chance gives.

        towards, away: effects on texts of either side that the vector was not made of.
        """
        shuffled = towards.shuffled - away.shuffled
        random = towards.random - away.random
        untrained = towards.untrained - away.untrained
        null = float(max(x.max() for x in (shuffled, random, untrained)))
        low = high = np.nan
        if min(len(towards.by_text), len(away.by_text)) >= HELD_OUT:
            low, high = difference(towards.by_text, away.by_text)
        beyond, no_more, verdict = VERDICTS
        if min(self.n) >= LEAST and low > null:
            verdict = beyond
        elif min(self.n) >= LEAST and high <= null:
            verdict = no_more
        change = towards.change - away.change
        return Contrast(change, (low, high), null, verdict)

    @cached_property
    def _untrained(self):
        return [self._again(random_of(self._model, seed)) for seed in range(UNTRAINED)]

    def _gain(self, batches, scale):  # -> [N]
        edits = self._edits(self.vector, scale)
        after, before = (log_probabilities(self._model, batches, x) for x in (edits, None))
        return after - before

    def _as_long(self, direction):
        """A direction with the length of the vector itself."""
        length = max(np.linalg.norm(direction), 1e-300)
        return direction * (np.linalg.norm(self.vector) / length)

    def _edits(self, vector, scale):
        return {("resid_pre", self.layer): lambda x: x + np.asarray(scale * vector, x.dtype)}


@told_once()
def steering_vector(
    model: Model | str | PathLike[str],
    positive: Texts | Ids,
    negative: Texts | Ids,
    layer: int,
    *,
    token: str = "last",
    seed: int = 0,
) -> SteeringVector:
    """The mean of the stream before a layer over positive texts, minus that over negative texts.

    positive, negative: a text or several, or rows of ids, best in pairs that differ in one thing.
    Equally many positive and negative texts are pairs, within which the null swaps labels. Give six
    pairs or more: with fewer, more than one swap in 20 gives the vector itself, or its negative.
    layer: from 0; -1 is the last. token: "last" reads each text's last token, "mean" the mean of
    all. seed: of the shuffled labels.
    Raises ValueError for a model of pictures, an encoder-decoder (give its `.encoder`), a layer
    out of range, another token, no text, or a text that is too long. Source: Turner et al. 2023;
    Rimsky et al. 2024.

    >>> import minitx
    >>> model = minitx.load("tiny-stories")
    >>> v = minitx.steering_vector(model, ["The dog was sad."], ["The dog was happy."], layer=2)
    >>> v.vector.shape == (model.config.d_model,), v.share > 0
    (True, True)
    """
    model = reader(model)
    pool = choice("token", token, POOLS)
    key = point_of(model, ("resid_pre", layer))
    sides = [listed(positive, "positive"), listed(negative, "negative")]
    batches = encoded(model, [*sides[0], *sides[1]])
    pooled, lengths = [], []
    for batch in batches:
        stream = vectors(model, batch, [key])[key]
        pooled.append(pool(stream)[0])
        lengths.extend(np.linalg.norm(stream, axis=1))
    x = np.array(pooled, np.float64)
    n = [*map(len, sides)]
    weights = np.repeat([1 / n[0], -1 / n[1]], n)
    rng = generator(seed)
    shuffled = _shuffled(weights, n, rng) @ x
    again = partial(
        steering_vector, positive=sides[0], negative=sides[1], layer=layer, token=token, seed=seed
    )
    length = np.mean(lengths)
    return SteeringVector(model, key[1], weights @ x, shuffled, length, tuple(n), again)


def _shuffled(weights, n, rng):  # -> [DRAWS N]
    """The weights of all texts under shuffled labels: within pairs, if the sides have as many."""
    if n[0] == n[1]:
        flips = rng.choice([-1, 1], (DRAWS, n[0]))
        return np.tile(flips, 2) * weights
    return np.array([rng.permutation(weights) for _ in range(DRAWS)])


def steer(vector: SteeringVector, scale: float = 1.0) -> dict[tuple[str, int], Callable]:
    """The edits that add scale times a steering vector to the stream, at every token.

    For `edits` of run, sweep and generate; a negative scale steers the other way.

    >>> import minitx
    >>> v = minitx.steering_vector("tiny-stories", ["A sad dog"], ["A happy dog"], layer=2)
    >>> edits = minitx.steer(v, scale=4.0)
    >>> [*edits]
    [('resid_pre', 2)]
    >>> minitx.run("tiny-stories", "The dog was", "logits", edits)["logits"].shape[1]
    3
    """
    if not isinstance(vector, SteeringVector):
        text = f"{vector!r:.80} is no steering vector"
        raise ValueError(f"{text}; expected what minitx.steering_vector returns")
    if not isinstance(scale, Real) or not np.isfinite(scale):
        raise ValueError(f"scale is {scale!r:.80}; expected a finite number")
    return vector._edits(vector.vector, scale)


def difference(x, y):  # [N], [M] -> (low, high)
    """95% interval of mean x - mean y, by Welch's t."""
    import scipy

    a = x.var(ddof=1) / len(x)
    b = y.var(ddof=1) / len(y)
    squares = a * a / (len(x) - 1) + b * b / (len(y) - 1)
    degrees = max((a + b) ** 2 / max(squares, 1e-300), 1)
    reach = scipy.special.stdtrit(degrees, 0.975) * (a + b) ** 0.5
    middle = x.mean() - y.mean()
    return float(middle - reach), float(middle + reach)


def log_probabilities(model, batches: Sequence, edits=None) -> np.ndarray:  # [N]
    """The mean log-probability of each text's tokens but the first, in nats."""
    require_head(model)
    cfg = model.config
    if cfg.task_head != "causal":
        text = f"this model ({cfg.model_type}) does not predict the next token"
        raise ValueError(f"{text}; the probability of a text needs a causal model")
    return np.array([_of_text(model, batch, edits) for batch in batches])


def _of_text(model, batch, edits):
    y = run(model, batch.tokens, "logits", edits, types=batch.types)["logits"][0, :-1]
    if not len(y):
        raise ValueError("a text has one token; its probability needs two or more")
    y = y.astype(np.float64)
    total = np.logaddexp.reduce(y, axis=1)
    own = np.take_along_axis(y, batch.tokens[0, 1:, None], axis=1)[:, 0]
    return (own - total).mean()
