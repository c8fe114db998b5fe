"""What one model makes of its places: numbers, each with what chance gives, most with an interval.

Where its sharpest head looks, how far all heads look, how much of a token's place the stream holds,
what the loss is without places, and in longer inputs; which heads follow keys that are moved, and
which hang on one band of waves. N documents, T tokens, L layers, H heads, K
lengths. Order: a row, then each number.
"""

from functools import partial

import numpy as np

from ..contract import options
from ..contract.nothing import Nothing
from ..contract.registry import NotApplicable
from ..maths import nulls, profiles, stats
from ..measures import (
    context_extension,
    dial_arrays,
    heads,
    losses,
    notch_arrays,
    other_models,
    position_edits,
    position_probe,
    residual_stream,
)
from ..texts import corpus
from . import _mechanisms_lengths

FACTORS = 0.5, 1, 2, 4  # lengths, in inputs of the trained length
QUARTERS = 4  # of the pairs of features that are turned, the fastest first
PREDICTS = "causal", "masked"
# long documents, where the text holds them: with 7, signs at random reach all of a change
FEWEST = 10
MOVED, MOVED_BY = 16, 4  # documents with moved keys, and the largest shift: those of `dial`
NOTCHED, OCTAVES = 12, 4  # documents without a band, and bands: those of `notch`


class Row:
    """One model of the comparison, with its documents; all is checked before long work."""

    def __init__(self, i, model, text, documents, tokens):
        self.name = other_models.name(model)
        self.label = f"{i + 1} {self.name}"
        self.model = model
        kinds = context_extension.mechanisms(model)
        self.mechanism = " + ".join(kinds)
        self.asked = "; ".join(dict.fromkeys(context_extension.HOW[kind] for kind in kinds))
        self.documents = corpus.documents(model, text, documents, tokens)
        self.T = self.documents.T
        options.within("tokens", self.T, profiles.REACH + 1, model.config.n_ctx)
        self.lengths = [int(factor * self.T) for factor in FACTORS]
        self.longer = context_extension.lengthened(model, self.lengths[-1])
        self.few = max(FEWEST, documents // int(FACTORS[-1]))
        self.text = text

    def long_documents(self):
        """Documents of the longest length; raises NotApplicable where the text holds too few."""
        T = self.lengths[-1]
        try:
            documents = corpus.documents(self.longer, self.text, 0, T, most=self.few)
            options.several(documents)
        except ValueError:
            raise NotApplicable(f"the text is too short for two documents of {T} tokens") from None
        return documents

    def measure(self, every, seed, run):
        """All numbers of the row; no_off and no_length: why some are not among them."""
        values = attention(self.model, self.documents, run, self.label)
        values |= probe(self.model, self.documents, seed, run, self.label)
        try:
            values |= off(self.model, self.documents, every, seed, run, self.label)
        except NotApplicable as reason:
            values["no_off"] = str(reason)
        try:
            values |= self.measure_lengths(every, seed, run)
        except NotApplicable as reason:
            values["no_length"] = str(reason)
        for name, measure in (("no_move", self.measure_moves), ("no_notch", self.measure_notch)):
            try:
                values |= measure(seed, run)
            except (NotApplicable, Nothing) as reason:
                values[name] = str(reason)
        return values

    def measure_moves(self, seed, run):
        """What heads do when the keys of one layer are moved: `dial`, without its losses."""
        shifts = np.arange(-MOVED_BY, MOVED_BY + 1)
        least = 2 * (profiles.REACH + MOVED_BY)
        if self.documents.size < least:
            raise NotApplicable(f"documents are too short to move keys: {least} tokens are needed")
        given = "keys", -1, self.text, self._few(MOVED), self.T, 0, seed, f"moved: {self.label}"
        r = dial_arrays.measure(self.model, run, dial_arrays.Asked(*given), shifts)
        if not r["n_cells"]:
            raise NotApplicable("no head has a direction that could move")
        n = r["n_cells"]
        result = {"follow": r["n_exact"] / n, "follow_null": r["n_exact_null"] / n, "cells": n}
        result |= {name: r[name] for name in ("slope", "slope_null", "n_orders_follow")}
        return result | {"n_orders": r["n_orders"]}

    def measure_notch(self, seed, run):
        """Heads that hang on one band of the waves of positions: `notch`, without its losses."""
        least = 2 ** (OCTAVES + 1)
        if self.documents.size < least:
            raise NotApplicable(f"documents are too short for bands: {least} tokens are needed")
        given = -1, OCTAVES, self.text, self._few(NOTCHED), self.T, 0, f"bands: {self.label}"
        r = notch_arrays.measure(self.model, run, notch_arrays.Asked(*given))
        if not r["n_need"]:
            raise NotApplicable("no head has a direction from positions")
        result = {"lost": r["n_lost"] / r["n_need"], "lost_null": r["n_lost_null"] / r["n_need"]}
        return result | {"need": r["n_need"]}

    def _few(self, n):
        """That many documents, or as many as there are."""
        return min(n, len(self.documents))

    def measure_lengths(self, every, seed, run):
        """The loss at each length."""
        check_head(self.model)
        given = self.longer, self.long_documents(), self.lengths
        return longer(*given, every, seed, run, self.label)


def check_head(model):
    """Raise NotApplicable if the model predicts no tokens."""
    head = model.config.task_head
    if head not in PREDICTS:
        raise NotApplicable(f"this checkpoint's head is {head}: it predicts no tokens")


def attention(model, documents, run, what):
    """Where the sharpest head looks, and how far all heads look on average.

    The head and its offset are chosen on every other document, and measured on the others.
    """
    T = documents.T
    measure = partial(_look, model, T)
    by_document = run.gather(measure, documents, f"attention: {what}", keep=("near", "distance"))
    near = by_document["near"]
    layer, head, i = _sharpest(near[::2].mean(axis=0))
    offset = profiles.offsets()[i]
    result = {"sharp_head": heads.name(layer, head), "sharp_offset": offset}
    result |= _mean("sharp", near[1::2, layer, head, i])
    result |= _mean("reach", by_document["distance"].mean(axis=(1, 2)))
    causal = model.config.causal
    even = profiles.mean_attention(profiles.uniform(T, causal), T)
    result["sharp_null"] = even[profiles.offsets() != 0].max()
    far = abs(profiles.offsets(T - 1))
    result["reach_null"] = profiles.uniform(T, causal, T - 1) @ far / T
    if model.config.rotary:
        sharpest = layer, head, int(offset)
        result["without"] = _without(model, documents, run, what, sharpest)
    return result


def _look(model, T, _, document):
    """Attention to near offsets [L H R], and the mean distance to what is looked at [L H]."""
    profile = yield heads.profiles_read(model, document, reach=T - 1)
    near = profiles.mean_attention(profile, T)[..., T - 1 - profiles.REACH : T + profiles.REACH]
    return {"near": near, "distance": profile @ abs(profiles.offsets(T - 1)) / T}


def _sharpest(near):
    """Layer, head and number of the offset, not 0, with most attention in [L H R]."""
    others = near * (profiles.offsets() != 0)
    return np.unravel_index(others.argmax(), others.shape)


def _mean(name, values):
    """A mean over documents [N] and its interval, by name."""
    return {name: values.mean(), f"{name}_interval": stats.bootstrap(values)}


def _without(model, documents, run, what, sharpest):
    """Attention of a rotary head at its offset when a quarter of its pairs is not turned.

    [QUARTERS], the fastest pairs first.
    """
    layer, head, offset = sharpest
    edits = [{"pos_angle": partial(_still, number=i)} for i in range(QUARTERS)]

    def measure(_, document):
        looks = [heads.head_profiles(model, document, edit)[layer, head] for edit in edits]
        return {"looks": np.array(looks)}

    looks = run.gather(measure, documents, f"pairs not turned: {what}")["looks"]
    near = profiles.mean_attention(looks / len(documents), documents.T)
    return near[:, profiles.REACH + offset]


def _still(angle, number):
    """Angles [B T r] in which one of QUARTERS of the pairs stays where it is."""
    parts = np.array_split(np.arange(angle.shape[-1]), QUARTERS)
    angle = angle.copy()
    angle[..., parts[number]] = 0
    return angle


def probe(model, documents, seed, run, what):
    """R² of a token's position in each layer, its interval, and with shuffled places: [L+1]."""
    streams = {what: partial(residual_stream.states_read, model)}
    n_fit, n_choose, _ = position_probe.parts(documents)
    fits = position_probe.fit_ridge(streams, documents, n_fit, n_choose, seed, run)
    weights = {name: w for name, (w, _) in fits.items()}
    scores = position_probe.evaluate(streams, documents, n_fit + n_choose, weights, seed, run)
    measured = scores[what]
    best = measured["r2"].argmax()
    result = {"r2_by_layer": measured["r2"], "r2_by_layer_interval": measured["r2_interval"]}
    result["r2_by_layer_null"] = measured["r2_shuffled"]
    result["r2"] = measured["r2"][best]
    result["r2_interval"] = measured["r2_interval"][best]
    result["r2_null"] = measured["r2_shuffled"].max()
    return result


def off(model, documents, every, seed, run, what):
    """Change of the loss, in nats a token, when nothing tells places.

    every: of a masked model, hide one token in this many, at once. Raises NotApplicable for a model
    that predicts nothing, or has nothing to switch off.
    """
    check_head(model)
    if context_extension.mechanisms(model) == ["none"]:
        raise NotApplicable("nothing tells places, so nothing can be switched off")
    conditions = [None, position_edits.condition(position_edits.off(model.config))]

    def measure(i, document):
        costs = [_costs(model, document, condition, every, i) for condition in conditions]
        ordinary = document[documents.ordinary(len(document))]
        counts = np.bincount(ordinary, minlength=model.config.n_vocab)
        return {"total": np.sum(costs, axis=1), "n": len(costs[0]), "counts": counts}

    sums = run.gather(measure, documents, f"places off: {what}", keep=("total", "n"))
    total, n = sums["total"], sums["n"]
    result = {"loss": total[:, 0].sum() / n.sum(), "loss_null": stats.entropy(sums["counts"])}
    change = (total[:, 1] - total[:, 0])[:, None]
    return result | _change("off", change, n, seed)


def _costs(model, document, condition, every, i):
    """Losses of a document's tokens, or of one in `every`, which are hidden at once."""
    if model.config.task_head == "causal":
        return losses.causal(model, document, condition=condition)
    return losses.gaps(model, document, condition, every, start=i % every)


def _change(name, change, n, seed):
    """Mean of changes [N K] of n [N] tokens, its interval and null, by name."""
    by_chance = nulls.random_signs(change, n.sum(), seed)
    result = {name: change.sum(axis=0) / n.sum()}
    result[f"{name}_interval"] = stats.bootstrap(change, n).T
    result[f"{name}_null"] = np.quantile(by_chance, nulls.CHANCE, axis=0)
    if change.shape[1] == 1:
        return {key: value[0] for key, value in result.items()}
    return result


def longer(model, documents, lengths, every, seed, run, what):
    """Loss of the same tokens at these lengths, and its change from the trained one: [K].

    model: one that reads documents of the longest; every: as for by_length.
    """
    check_head(model)

    def measure(_, document):
        total, n = _mechanisms_lengths.of_document(model, document, lengths, every)
        ordinary = document[documents.ordinary(len(document))]
        counts = np.bincount(ordinary, minlength=model.config.n_vocab)
        return {"total": total, "n": n, "counts": counts}

    sums = run.gather(measure, documents, f"lengths: {what}", keep=("total", "n"))
    total, n = sums["total"], sums["n"]
    trained = FACTORS.index(1)
    change = total - total[:, trained : trained + 1]
    result = {"loss_by_length": total.sum(axis=0) / n.sum()}
    result["loss_frequencies"] = stats.entropy(sums["counts"])
    return result | _change("by_length", change, n, seed)
