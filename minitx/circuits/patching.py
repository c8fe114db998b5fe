"""Activation patching: one piece of one run is put into the run of the other text of a pair.

What then changes is the effect of all that follows from this piece. N pairs of texts, L layers, H
heads, T tokens.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import numpy as np

from ..arrays import Model
from ..inputs import Batch, Ids
from ..machine.progress import bar
from ..points import Key, expand, has_texts, name_of, points
from ..sweep import at_once
from .effects import Effects, Patched, check_into, partners, random_texts, without_gaps
from .later import Later
from .measure import Measure, read_measure
from .texts import Inputs, Pairs, read_pairs

Texts = str | Sequence[str] | Ids | Batch
Piece = tuple[int, int]  # (layer, head), or (layer, place) where a point has no heads


def patch(
    model: Model,
    clean: Texts,
    corrupt: Texts,
    measure: Measure,
    at: Key = "z",
    *,
    together: Sequence[Piece] | None = None,
    into: Literal["both", "corrupt", "clean"] = "both",
    null: bool = True,
    prefix: Texts | None = None,
    place: int | None = None,
    unrelated: tuple[Texts, Texts] | list[tuple[Texts, Texts]] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Effects:
    """Effects of patching each head, or each layer at each position, separately.

    clean, corrupt: texts, rows of token ids, or a Batch, each pair of as many tokens; for an
    encoder-decoder the input of the encoder, with `prefix`, the decoder's input.
    measure: two tokens, the right and the wrong one, or two for each pair: the difference of their
    logits at `place`, by default the last position, or the mask of a masked model; or a function of
    the logits [N T V] that returns a number for each pair. Texts of a causal model are padded on
    the left, so that [:, -1] is the last position.
    at: any point by name, or in one layer, ("z", 3). One with an axis of heads (z, q, k, v,
    pattern) is patched head by head, [L H], or [L G] where heads share keys and values; others
    (resid_pre, mlp_out, attn_out) position by position, [L T]. together: heads (layer, head) that
    are patched at once; the effects are then one number.
    into: "corrupt", only clean activations into corrupt runs, or "clean", only the reverse;
    directions that are not run are NaN. null=False: no patches of unrelated pairs; nulls are NaN.
    Each halves the work. progress: a bar of the passes.
    unrelated: (clean, corrupt) texts that are patched as the null, one of the same length for each
    pair; by default another of the pairs (if all pairs have the same answer the null shares it, so
    use several), or, if none has the same length, a text of random tokens. With a list of R of
    these the null has a last axis [R].

    Returns Effects, with intervals and null, in both directions. Raises ValueError for pairs that
    do not align, a target of several tokens, an unknown point, or a model without head. Source: Vig
    et al. 2020; Meng et al. 2022; directions: Heimersheim & Nanda 2024.

    >>> import minitx
    >>> from minitx import circuits
    >>> model = minitx.load("tiny-gpt2")
    >>> clean, corrupt = ["He said that", "His house was"], ["She said that", "Her house was"]
    >>> effects = circuits.patch(model, clean, corrupt, (" he", " she"))
    >>> effects.effects.shape, effects.intervals.shape, effects.null.shape
    ((4, 4), (2, 4, 4), (4, 4))
    >>> circuits.patch(model, clean, corrupt, (" he", " she"), at="resid_pre").shape
    (4, 4)
    """
    check_into(into)
    pairs = read_pairs(model, clean, corrupt, prefix)
    number = read_measure(model, measure, pairs.clean, place)
    keys = _keys(model, pairs, at)
    streams = ["resid_pre"] if model.encoder is None else []  # where passes may begin
    good, bad = (side.run(model, [*keys, *streams, "logits"]) for side in pairs)
    pieces = _pieces(good, keys, together)
    others = unrelated_sets(model, pairs, unrelated, prefix, seed) if null else []
    args = Later(model, number), keys, pieces
    n_passes = len(pieces) * (1 + len(others)) * (1 + (into == "both"))
    with bar(progress, "patches", n_passes):
        into_corrupt = into_clean = None
        if into != "clean":
            of_others = [other.clean for other in others]
            into_corrupt = _direction(*args, pairs.corrupt, bad, good, of_others)
        if into != "corrupt":
            of_others = [other.corrupt for other in others]
            into_clean = _direction(*args, pairs.clean, good, bad, of_others)
    shape: tuple[int, ...] = (len(pairs),)
    if together is None:
        shape = len(pairs), len(keys), -1
    shape_of_null = (*shape, max(1, len(others))) if isinstance(unrelated, list) else shape
    values, lost = (
        Patched(side.values.reshape(shape), side.null.reshape(shape_of_null))
        for side in without_gaps(into_corrupt, into_clean)
    )
    on_clean, on_corrupt = (number.values(side["logits"]) for side in (good, bad))
    return Effects(on_clean, on_corrupt, values, lost, seed)


def _keys(model, pairs, name):
    """The point of all layers, or that of a point that occurs once."""
    available = points(model, pairs.clean.batch.types is not None)
    keys = expand([name], available, model)
    if name_of(keys[0]) == "logits":
        raise ValueError(
            "at is 'logits', from which the measure is computed; wanted an earlier point"
        )
    return keys


def _pieces(trace, keys, together):
    """Groups of (key, index of its second axis) that are patched at once."""
    if together is None:
        return [[(key, i)] for key in keys for i in range(trace[key].shape[1])]
    by_layer = {key[1] if isinstance(key, tuple) else 0: key for key in keys}
    for layer, i in together:
        if layer not in by_layer or not 0 <= i < trace[by_layer[layer]].shape[1]:
            shape = [len(keys), trace[keys[0]].shape[1]]
            raise ValueError(f"together has {(layer, i)}; wanted indices within {shape}")
    return [[(by_layer[layer], i) for layer, i in together]]


def unrelated_sets(model, pairs, given, prefix, seed) -> list[Pairs]:
    """One set of unrelated pairs, or as many as are given in a list."""
    sets = given if isinstance(given, list) else [given]
    return [unrelated_pairs(model, pairs, one_set, prefix, seed) for one_set in sets]


def unrelated_pairs(model, pairs, given, prefix, seed) -> Pairs:
    """For each pair another one as long: those that are given, others of the pairs, or random ones.

    Raises ValueError for given texts that do not align with the pairs.
    """
    if given is None:
        sides = []
        for side in pairs:
            partner = partners(side, seed)
            is_alone = partner is None
            sides.append(random_texts(model, side, seed) if is_alone else side.rows(partner))
        return Pairs(*sides)
    clean, corrupt = given
    others = read_pairs(model, clean, corrupt, prefix)
    if not np.array_equal(others.clean.texts.valid, pairs.clean.texts.valid):
        raise ValueError(
            "unrelated texts have other lengths; wanted one of the same length for each pair"
        )
    return others


def _direction(later, keys, pieces, base, own, trace, others):
    """Patches of each group of pieces into the runs of `base`, and patches of unrelated texts.

    own: the trace of the base. trace: the one from which the pieces are. others: Inputs.
    """
    values = patched_values(later, pieces, base, own, trace)
    null = [] if others else [np.full_like(values, np.nan)]
    for other in others:
        null.append(patched_values(later, pieces, base, own, other.run(later.model, keys)))
    return Patched(values, np.stack(null, axis=-1))


def patched_values(later, pieces, base: Inputs, own, values):  # -> [N n]
    """The measure of each text in runs in which each group of pieces has these values.

    A pass begins at the first layer that changes, with the stream of the base's `own` trace. Groups
    with the same first layer are computed side by side, in as many copies of the texts.
    """
    N = len(base.batch.tokens)
    n_copies = 1
    if all(has_texts(key) for group in pieces for key, _ in group):
        n_copies = at_once(base.batch)
    results = []
    for layer, same in groupby(pieces, _first_layer):
        of_layer = [*same]
        for i in range(0, len(of_layer), n_copies):
            groups = of_layer[i : i + n_copies]
            rows = np.tile(np.arange(N), len(groups))
            edits = _edits(groups, values)
            measured = later.values(base.rows(rows), rows, layer, own, edits)
            results.append(measured.reshape(-1, N))
    return np.concatenate(results).T


def _first_layer(group):
    """The first layer that a group of pieces changes."""
    return min(key[1] if isinstance(key, tuple) else 0 for key, _ in group)


def _edits(groups, values):
    """{key: function that puts each group's values into its own copy of the texts}."""
    indices = {}
    for copy, group in enumerate(groups):
        for key, i in group:
            indices.setdefault(key, []).append((copy, i))

    def edit(key):
        def patched(x):
            x = x.copy()
            copies = x.reshape(len(groups), -1, *x.shape[1:])
            for copy, i in indices[key]:
                copies[copy, :, i] = values[key][:, i]
            return x

        return patched

    return {key if isinstance(key, tuple) else (key, None): edit(key) for key in indices}
