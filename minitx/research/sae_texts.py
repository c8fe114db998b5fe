"""A sparse autoencoder on texts: the features of each token, and the loss of the model with them.

T tokens, D numbers of the point, F features.
"""

import html
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..learning.saved import write
from ..machine import show
from ..points import text_of
from .passes import encode, encoded, listed, reader, vectors
from .sae_kinds import at_random, explained
from .steering import log_probabilities

MOST = 8  # features of a token that are told
PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>body {{font: 15px sans-serif; margin: 2em}} td {{padding: .1em .8em}}
.f {{display: inline-block; padding: 0 .4em; margin: .1em; color: #000}}</style>
<h1>{title}</h1><p>{beside}</p><table><thead><tr><th>token</th>
<th>features, the largest first: number and value</th></tr></thead>{rows}</table>"""
ROW = "<tr><td>{token}</td><td>{cells}</td></tr>"
CELL = (
    '<span class="f" style="background: rgb(0 114 178 / {shade:.2f})">{feature}: {value:.3g}</span>'
)


class Recovered(NamedTuple):
    """Loss of the next token, nats, with something else in place of a point.

    loss: of the model as it is. reconstructed: with the reconstruction. random: with that of random
    unit vectors, as many and as many active. mean, zero: with the point at its mean over the
    tokens, and at 0. `.share`: how much of what the mean loses is recovered; `.null`: by random
    vectors. Both are nan where the mean loses nothing, as in a model of random weights.
    """

    n_tokens: int
    loss: float
    reconstructed: float
    random: float
    mean: float
    zero: float

    @property
    def share(self) -> float:
        """(mean - reconstructed) / (mean - loss): 1 where nothing is lost."""
        return self._share(self.reconstructed)

    @property
    def null(self) -> float:
        """The same of random vectors."""
        return self._share(self.random)

    def _share(self, own):
        lost = self.mean - self.loss
        return (self.mean - own) / lost if lost > 0 else float("nan")


class Features(show.Shown):
    """The features of a text's tokens: `.values` [T F], `.tokens` [T]; `.save(path)`: a page.

    `.explained`: the share of the variance of this text's vectors; `.null`: of random unit vectors,
    as many and as many active.
    """

    def __init__(self, what, tokens, values, explained, null):
        self.tokens, self.values = tokens, values
        self.explained, self.null = explained, null
        active = (values > 0).sum(axis=1).mean()
        self._title = f"{what}: {active:.3g} of {values.shape[1]} features are active at a token"

    def largest(self, token: int) -> list[tuple[int, float]]:
        """The features of a token, by number in the text, with their values; the largest first."""
        row = self.values[token]
        order = np.argsort(-row, kind="stable")[:MOST]
        return [(int(i), float(row[i])) for i in order if row[i] > 0]

    def _beside(self):
        own, null = self.explained, self.null
        return f"variance of this text explained: {own:.1%}; by random vectors: {null:.1%}"

    def _summary(self):
        rows = []
        for i, token in enumerate(self.tokens):
            parts = (f"{feature}: {value:.3g}" for feature, value in self.largest(i))
            rows.append((token, ", ".join(parts)))
        lines = [self._beside(), *("  ".join(row) for row in rows)]
        return show.Summary(self._title, lines, ("token", "features"), rows)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a page: each token with its features, darker where they are larger."""
        most = max(self.values.max(), 1e-300)
        rows = []
        for i, token in enumerate(self.tokens):
            cells = ""
            for feature, value in self.largest(i):
                shade = 0.6 * value / most
                cells += CELL.format(shade=shade, feature=feature, value=value)
            rows.append(ROW.format(token=html.escape(token), cells=cells))
        parts = {"title": html.escape(self._title), "beside": self._beside()}
        write(Path(path), PAGE.format(rows="".join(rows), **parts))


def features_of(sae, model: Any, text: Any, seed=0) -> Features:
    """The features of one text."""
    from ..analysis.texts import corpus

    model = reader(model)
    batch = encode(model, text, 0)
    x = vectors(model, batch, [sae.point])[sae.point]
    f = sae.encode(x)
    by_chance = chance_of(x, f, seed)
    own = explained(x, sae.decode(f, x))
    null = explained(x, by_chance)
    tokens = [str(piece) for piece in corpus.labels(model, batch.tokens[0])]
    what = f"Features at {text_of(sae.point)}"
    return Features(what, tokens, f, own, null)


def recovered_of(sae, model: Any, documents: Iterable[Any], seed=0) -> Recovered:
    """The loss over documents, with other vectors in place of the point."""
    model = reader(model)
    batches = encoded(model, listed(documents, "documents"))
    rows = [vectors(model, batch, [sae.point])[sae.point] for batch in batches]
    x = np.concatenate(rows)
    f = sae.encode(x)
    ends = np.cumsum([len(row) for row in rows])[:-1]
    losses = [loss_of(model, batches, None, sae.point)]
    mean = np.broadcast_to(x.mean(axis=0), x.shape)
    for y in (sae.decode(f, x), chance_of(x, f, seed), mean, np.zeros_like(x)):
        losses.append(loss_of(model, batches, np.split(y, ends), sae.point))
    return Recovered(len(x) - len(rows), *losses)


def chance_of(x, f, seed):
    """Rows from random unit vectors, as many as the features f, and as many active."""
    k = round((f > 0).sum(axis=1).mean())
    return at_random(x, f.shape[1], k, seed)


def loss_of(model, batches, rows, point):
    """Mean loss of all tokens but the first of each text, with these rows at the point."""
    total, n = 0.0, 0
    for i, batch in enumerate(batches):
        edits = {point: placed(rows[i])} if rows else None
        n_own = batch.tokens.shape[1] - 1
        total -= float(log_probabilities(model, [batch], edits)[0]) * n_own
        n += n_own
    return total / n


def placed(y):
    """An edit that puts rows [T F] in place of a point; heads stand side by side in a row."""

    def edit(x):  # [1 T F], or [1 H T d]
        if x.ndim == 3:
            return y[None].astype(x.dtype)
        _, H, T, d = x.shape
        return y.reshape(T, H, d).swapaxes(0, 1)[None].astype(x.dtype)

    return edit
