"""Attention and loss when the positions that one attention layer reads are moved by s tokens.

Where a table tells positions, the rows that keys or queries read are moved; where positions enter
the scores, turned queries and keys or a bias by distance are those of other positions. N documents,
T tokens, n ordinary ones, l layers, S shifts, H heads, R offsets, K shifts of the loss.
"""

from typing import NamedTuple

import numpy as np

from ..contract import NotApplicable, options, verdict
from ..maths import offset_shifts as maths
from ..maths import profiles
from ..texts import corpus
from . import by_mechanism, inputs, later_layers, mean_kernel, position_moves, score_moves
from . import position_parts as reading

ORDERED = 4  # documents that are read with places in random orders
FOLLOWS = {"keys": -1, "queries": 1, "both": 0}  # tokens that an offset moves for each of the shift


class Asked(NamedTuple):
    """What is moved, and on which documents; the options of `dial`."""

    move: str
    layer: int
    text: str
    documents: int
    tokens: int
    losses: int
    seed: int
    what: str = "documents"  # words for the progress


def measure(model, run, asked, shifts):
    """Arrays of `dial`; raises Nothing where no mechanism tells positions."""
    result = by_mechanism.of_model(model, WAYS)(model, run, asked, shifts)
    result |= {"shifts": shifts, "causal": model.config.causal}
    return result | maths.followed(result, FOLLOWS[asked.move], asked.seed)


def _documents(model, asked, shifts):
    """The documents, several, which leave room for the shifts."""
    document_set = corpus.documents(model, asked.text, asked.documents, asked.tokens)
    options.several(document_set)
    reach = shifts[-1]
    least = 2 * (profiles.REACH + reach)
    if document_set.size < least:
        raise NotApplicable(
            f"documents have {document_set.size} ordinary tokens; wanted {least} or more to move "
            f"positions by {reach} (--reach) and see {profiles.REACH} offsets on each side"
        )
    return document_set


def _by_table(model, run, asked, shifts):
    """Attention where a table tells positions, whose rows are moved."""
    layers = inputs.layers_named(model, asked.layer)
    if model.missing:
        return _alone(model, layers, asked, shifts)
    document_set = _documents(model, asked, shifts)
    N, places = len(document_set), document_set.ordinary()
    total = reading.total(model, document_set, run, asked.what)
    look = _looks(position_moves.attention, asked, shifts, places, document_set.size)
    n_losses = min(asked.losses, N)

    def of_document(i, document):
        passed = yield reading.of_document_read(model, document)
        others = (total - passed.inputs) / (N - 1)
        readings = reading.readings(model, passed, others, places, layers)
        sums = {"attention": look(model, readings, i)}
        given = later_layers.task(model, document, places, i)
        if given is not None and n_losses:
            used = (i < n_losses) / n_losses
            sums["losses"] = position_moves.losses(
                model, given, others, places, layers, shifts, used
            )
        return sums

    sums = run.gather(of_document, document_set, asked.what)
    result = {"T": document_set.T, "n": document_set.size, "documents": N}
    result |= _attention(sums["attention"], N, shifts) | {"layers": np.array(layers)}
    return result | _loss_results(sums, layers, shifts, n_losses)


def _looks(attention, asked, shifts, places, n):
    """The function of a model, what its layers read, and the number of the document: [l W H R].

    W moves: `position_moves.ways`; orders are those of the first ORDERED documents, in all others
    nothing is counted for them.
    """
    wide = profiles.REACH + shifts[-1]
    n_ways = 1 + len(shifts) + position_moves.N_ORDERS * (len(shifts) - 1)

    def look(model, by_layer, i):
        rng = np.random.default_rng((asked.seed, i))
        orders = ()
        if i < ORDERED:
            orders = position_moves.orders(shifts, n, np.random.default_rng((asked.seed, i, n)))
        seen = []
        for x in by_layer:
            ways = position_moves.ways(shifts, n, rng, orders)
            seen.append(attention(model, x, asked.move, ways, places, wide))
        seen = np.array(seen)
        return np.pad(seen, ((0, 0), (0, n_ways - seen.shape[1]), (0, 0), (0, 0)))

    return look


def _attention(sums, N, shifts):
    """Mean attention at the shifts [l S+1 H R], and in orders of positions [l orders S-1 H R]."""
    by_shift, in_orders = np.split(sums, [len(shifts) + 1], axis=1)
    by_order = in_orders.reshape(len(sums), position_moves.N_ORDERS, -1, *sums.shape[2:])
    return {"attention": by_shift / N, "attention_orders": by_order / min(N, ORDERED)}


def _alone(model, layers, asked, shifts):
    """The same on positions alone, without words, for a checkpoint that lacks them."""
    T = asked.tokens or model.config.n_ctx
    options.within("tokens", T, 2 * (profiles.REACH + shifts[-1]), model.config.n_ctx)
    look = _looks(position_moves.attention, asked, shifts, slice(0, T), T)
    sums = look(model, reading.alone(model, layers, T), 0)
    result = {"T": T, "n": T, "documents": 0, "layers": np.array(layers)}
    return result | _attention(sums, 1, shifts)


def _in_scores(model, run, asked, shifts):
    """Attention where positions enter the scores, turned or biased as at other positions."""
    layers = score_moves.layers(model, asked.layer)
    document_set = _documents(model, asked, shifts)
    N, places = len(document_set), document_set.ordinary()
    n_losses = min(asked.losses, N)
    look = _looks(score_moves.attention, asked, shifts, places, document_set.T)
    by_place = mean_kernel.means(model, document_set, run, asked.what)
    first = document_set.first()[0]
    lag, height = score_moves.of_kernel(model, first, by_place, layers)

    def of_document(i, document):
        parts, _ = yield score_moves.of_document_read(model, document)
        sums = {"attention": look(model, [parts[layer] for layer in layers], i)}
        task = later_layers.task(model, document, places, i)
        if task is not None and n_losses:
            used = (i < n_losses) / n_losses
            sums["losses"] = score_moves.losses(model, task, layers, shifts, used)
        return sums

    sums = run.gather(of_document, document_set, asked.what)
    result = {"T": document_set.T, "n": document_set.size, "documents": N}
    result |= _attention(sums["attention"], N, shifts) | {"layers": np.array(layers)}
    result |= {"kernel_lag": lag, "kernel_height": height}
    result["kernel_named"] = height > verdict.MARGIN  # nats, as in `kernel`
    result["distinct"] = mean_kernel.distinct(model, profiles.offsets())
    return result | _loss_results(sums, layers, shifts, n_losses)


WAYS = by_mechanism.entries(
    table=_by_table,
    rotary=_in_scores,
    bias=_in_scores,
    terms=_in_scores,
    none=f"nothing to move: {by_mechanism.NO_PLACES}",
)


def _loss_results(sums, layers, shifts, n_losses):
    """Loss, and its rise in every layer with keys moved and with both moved: [l K+1] each."""
    if "losses" not in sums:
        return {}
    by_layer = sums["losses"]
    result = {"loss": by_layer[0, 0, 0], "loss_documents": n_losses}
    result["loss_shifts"] = np.array([0, *position_moves.loss_shifts(shifts)])
    rise = by_layer - by_layer[..., :1]
    result["rise_keys"], result["rise_both"] = rise[:, 0], rise[:, 1]
    worst = np.unravel_index(rise[:, 0].argmax(), rise[:, 0].shape)
    result["rise"], result["rise_null"] = rise[:, 0][worst], rise[:, 1][worst]
    result["rise_layer"] = layers[worst[0]]
    result["rise_shift"] = result["loss_shifts"][worst[1]]
    return result
