"""What one model makes of its places: numbers, each with what chance gives, most with an interval.

Where its sharpest head looks, how far all heads look and what the loss is without positions
(measures/place_effects.py), how much of a token's position the stream holds, and the loss in longer
inputs; which heads follow keys that are moved, and which depend on one band of waves. N documents,
T tokens, L layers, K lengths.
"""

from functools import partial

import numpy as np

from ..contract import NotApplicable, options
from ..contract.nothing import Nothing
from ..maths import profiles, stats
from ..measures import (
    context_extension,
    dial_arrays,
    losses,
    notch_arrays,
    other_models,
    place_effects,
    position_probe,
    residual_stream,
)
from ..texts import corpus

FACTORS = 0.5, 1, 2, 4  # lengths, in inputs of the trained length
# long documents, where the text holds them: with 7, signs at random reach all of a change
FEWEST = 10
MOVED, MOVED_BY = 16, 4  # documents with moved keys, and the largest shift: those of `dial`
OF_DIAL = "slope", "slope_null", "n_orders", "n_orders_follow"
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
        values = place_effects.attention(self.model, self.documents, run, self.label)
        values |= probe(self.model, self.documents, seed, run, self.label)
        try:
            values |= place_effects.off(self.model, self.documents, every, seed, run, self.label)
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
        result = {"by_kernel": bool(r.get("n_cells_named"))}
        if result["by_kernel"]:
            result |= {name: r[name] for name in ("slope_named", "slope_named_null")}
            result |= _share(
                "named", r["n_exact_named"], r["n_exact_named_null"], r["n_cells_named"]
            )
        if not r["n_cells"]:
            return result | {"no_move": "no head has a direction that could move"}
        result |= _share("follow", r["n_exact"], r["n_exact_null"], r["n_cells"])
        return result | {name: r[name] for name in OF_DIAL}

    def measure_notch(self, seed, run):
        """Heads that depend on one band of the waves of positions: `notch`, without its losses."""
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
        """Loss of the same tokens at each length, and its change from the trained one: [K]."""
        place_effects.check_head(self.model)
        model, documents, lengths = self.longer, self.long_documents(), self.lengths

        def measure(_, document):
            total, n = of_document(model, document, lengths, every)
            ordinary = document[documents.ordinary(len(document))]
            counts = np.bincount(ordinary, minlength=model.config.n_vocab)
            return {"total": total, "n": n, "counts": counts}

        sums = run.gather(measure, documents, f"lengths: {self.label}", keep=("total", "n"))
        total, n = sums["total"], sums["n"]
        trained = FACTORS.index(1)
        change = total - total[:, trained : trained + 1]
        result = {"loss_by_length": total.sum(axis=0) / n.sum()}
        result["loss_frequencies"] = stats.entropy(sums["counts"])
        return result | place_effects.of_changes("by_length", change, n, seed)


def _share(name, n_exact, n_exact_null, n_cells):
    """Share of cells that are exact, what chance gives, and how many there are, by name."""
    result = {name: n_exact / n_cells, f"{name}_null": n_exact_null / n_cells}
    return result | {f"{name}_cells": n_cells}


def probe(model, documents, seed, run, what):
    """R² of a token's position in each layer, its interval, and with shuffled positions: [L+1]."""
    streams = {what: partial(residual_stream.states_read, model)}
    measured = position_probe.scored(streams, documents, seed, run)[what]
    best = measured["r2"].argmax()
    result = {"r2_by_layer": measured["r2"], "r2_by_layer_interval": measured["r2_interval"]}
    result["r2_by_layer_null"] = measured["r2_shuffled"]
    result["r2"] = measured["r2"][best]
    result["r2_interval"] = measured["r2_interval"][best]
    result["r2_null"] = measured["r2_shuffled"].max()
    return result


def of_document(model, document, lengths, every):
    """Sums of the losses [K] of tokens predicted at every length, and the number of these tokens.

    A document is cut into consecutive windows of each length; longer ones give more context. every:
    of so many of its tokens a masked model is asked one; those of a window are hidden at once.
    """
    by_length = np.array([in_windows(model, document, n, every) for n in lengths])
    common = np.isfinite(by_length).all(axis=0)
    return by_length[:, common].sum(axis=1), common.sum()


def in_windows(model, document, n, every):
    """Loss of each ordinary token of a document [T] in windows of n tokens; nan: not predicted.

    Special tokens stand at the ends of each window.
    """
    document = np.asarray(document)
    before, after = losses.ends(model, document)
    end = len(document) - after
    size = n - before - after
    cost = np.full(end - before, np.nan)
    for start in range(0, len(cost) - size + 1, size):
        body = document[before:end][start : start + size]
        window = np.concatenate([document[:before], body, document[end:]])
        if model.config.causal:
            places = np.arange(max(before, 1), before + size)
            cost[start + places - before] = losses.causal(model, window)[places - 1]
        else:
            first = -start % every
            asked = losses.gaps(model, window, every=every, start=first)
            cost[start + first : start + size : every] = asked
    return cost
