"""Architecturally, do query, key and value differ only in their projections?

All three come from the same input, by different matrices. So matrices change their places here:
those of keys with those of values, of queries with those of keys or values; and the loss says what
each is for. As controls, W_Q and W_K are turned together, which changes no product of theirs, and
heads get the keys and values of the next head. N documents, T tokens, L layers, W ways.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import scipy

from minitx import head_weights
from minitx import run as run_model
from minitx.arrays import Layer

from ..contract import NATS, Asks, Below, NotApplicable, Of, Provided, options, register
from ..drawing import Bar, When, bars, draw, row, whiskers
from ..maths import stats
from ..measures import inputs, losses, position_tables
from ..running.stream import UNSAVED
from ..texts import corpus

EXACT = 1e-4  # of queries, keys and values: beyond it, they are not projections of one input
LENGTH = 64  # tokens of a document, where that is not given
TOGETHER = "W_Q and W_K turned together"
NEXT = "W_K, W_V of the next head"
MAIN, QK, QV = "W_K and W_V swapped", "W_Q and W_K swapped", "W_Q and W_V swapped"
SWAPS = {MAIN: "KV", QK: "QK", QV: "QV"}
NUMBERS = {  # name of a result: the way whose rise it is
    "rise": MAIN,
    "rise_next": NEXT,
    "rise_qk": QK,
    "rise_qv": QV,
    "rise_null": TOGETHER,
}
COLORS = {MAIN: draw.VERMILION, NEXT: draw.GREY, TOGETHER: draw.BLUE}


def projections(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.Documents = 8,
    tokens: options.Tokens = 0,
    every: options.Every = 8,
    seed: options.Seed = 0,
):
    """What swapping the matrices of queries, keys and values does to the loss.

    tokens: length of each document (0: 64, or the model's longest input if that is less)
    """
    position_tables.check_head(model, "projections")
    if model.config.pos_terms:
        raise NotApplicable(
            "projections needs scores that are products q.k only; here other terms are added"
        )
    T = tokens or min(LENGTH, model.config.n_ctx)
    document_set = corpus.documents(model, text, documents, T)
    layers = range(model.config.n_layers)
    ways = _ways(model, seed)
    models = [changed(model, way, layers) for way in ways.values()]
    for layer in layers:
        models += [changed(model, ways[name], [layer]) for name in (MAIN, NEXT)]

    def measure(i, document):
        costs = [losses.total(x, document, every, i % every) for x in (model, *models)]
        return {"costs": np.array(costs)}

    sums = run.gather(measure, document_set, "documents", keep=("costs",))
    total, n = np.moveaxis(sums["costs"], 2, 0)  # [N 1 + W + 2 L]
    result = {"documents": len(document_set), "T": document_set.T, "ways": np.array([*ways])}
    result["predicts"] = position_tables.PREDICTS[model.config.task_head]
    result["layers"] = np.array([f"layer {i}" for i in layers])
    result["input_error"] = input_error(model, document_set.first()[0])
    result |= {"n_keys": model.config.n_kv, "is_placed": _is_placed(model.config)}
    return result | _rises(total, n, [*ways])


def changed(model, way, layers):
    """The model with `way` done to the arrays of these layers: way(layer) -> {name: array}."""
    new = [Layer(**vars(w) | (way(w) if w.index in layers else {})) for w in model.layers]
    return replace(model, layers=tuple(new))


def _ways(model, seed):
    """{what is done: way}, the same in every layer but for the directions of the turn.

    Queries take no other's place where several heads share keys: there are more of them.
    """
    cfg, turns = model.config, _turns(model.config, np.random.default_rng(seed))
    swaps = SWAPS if cfg.n_kv == cfg.n_heads else {MAIN: SWAPS[MAIN]}
    ways = {name: partial(swapped, pair=pair) for name, pair in swaps.items()}
    ways[NEXT] = partial(of_next_head, d=cfg.d_head)
    ways[TOGETHER] = lambda w: turned(w, turns[w.index], cfg)
    return ways


def _turns(cfg, rng):  # -> [L G d d]
    """An orthogonal matrix for each head of keys, which changes no product of query and key.

    Where both are normed, or turned by their position, it is a half turn of some features, of both
    of a pair: any other would not be the same turn behind the norm, or the positions' turn.
    """
    size = cfg.n_layers, cfg.n_kv, cfg.d_head, cfg.d_head
    if not _is_placed(cfg):
        return np.linalg.qr(rng.standard_normal(size))[0]
    signs = rng.choice([-1.0, 1.0], size[:-1])
    for layer, rotary in enumerate(cfg.rotary):
        r = len(rotary.frequencies) if rotary else 0
        signs[layer, :, r : 2 * r] = signs[layer, :, :r]
    return signs[..., None] * np.eye(cfg.d_head)


def _is_placed(cfg):
    """Whether more than a projection is between the stream and the queries of the scores."""
    return bool(cfg.rotary or cfg.qk_norm or cfg.qk_norm_all)


def swapped(w, pair):
    """Two of the matrices of a layer, and their biases, in each other's place."""
    a, b = pair
    arrays = {}
    for kind in ("W_", "b_"):
        arrays[kind + a], arrays[kind + b] = getattr(w, kind + b), getattr(w, kind + a)
    return arrays


def of_next_head(w, d):
    """Every head with the keys and values of the next one, the last with those of the first."""
    held = {name: getattr(w, name) for name in ("W_K", "b_K", "W_V", "b_V")}
    return {name: np.roll(x, -d, axis=-1) for name, x in held.items() if x is not None}


def turned(w, turns, cfg):
    """W_Q and W_K of each head multiplied by one orthogonal matrix [G d d]: q.k stays."""
    arrays = {}
    for letter, n in (("Q", cfg.n_heads), ("K", cfg.n_kv)):
        turn = scipy.linalg.block_diag(*head_weights.for_each_head(turns, n))
        for name in (f"W_{letter}", f"b_{letter}"):
            x = getattr(w, name)
            arrays[name] = x if x is None else (x @ turn).astype(x.dtype)
    return arrays


def input_error(model, document):
    """Largest difference between q, k, v and their projections of one input X, over the largest.

    X is what attention reads in each layer, the same for the three. Queries and keys that are
    turned by their position are read before their turn, with the norm that they may have.
    """
    X = inputs.of_text(model, document)
    turns = model.config.rotary or [None] * len(X)
    points = [[f"{x}_in" if turn else x for x in "qk"] + ["v"] for turn in turns]
    keep = [(point, layer) for layer, names in enumerate(points) for point in names]
    trace = run_model(model, document, keep=keep)
    errors = []
    for point, layer in keep:
        x, letter = trace[point, layer], point[0].upper()
        own = head_weights.projected(X[layer][None], model.layers[layer], model.config, letter)
        errors.append(float(abs(own - x).max()) / max(float(abs(x).max()), 1e-300))
    return max(errors)


def _rises(total, n, ways):
    """Loss, and its rise in every way, with intervals, from sums and numbers [N 1 + W + 2 L]."""
    change = total - total[:, :1]
    rises = change.sum(axis=0) / n.sum(axis=0)
    intervals = stats.interval(change, n)
    W = len(ways) + 1
    n_predicted = int(n[:, 0].sum())
    result = {"loss": total[:, 0].sum() / n_predicted, "n_predicted": n_predicted}
    result |= {"rises": rises[1:W], "intervals": intervals[:, 1:W]}
    by_way = dict(zip(ways, rises[1:W]))
    result |= {name: by_way[way] for name, way in NUMBERS.items() if way in by_way}
    result["rise_interval"] = intervals[:, 1 + ways.index(MAIN)]
    swapped_in, next_in = rises[W:].reshape(-1, 2).T
    result |= {"rise_by_layer": swapped_in, "rise_by_layer_null": next_in}
    result["intervals_by_layer"] = intervals[:, W:].reshape(2, -1, 2)
    return result


def worst(r):
    """Which layer alone costs most when its W_K and W_V are swapped."""
    return r["rise_by_layer"].argmax()


def interval(i):
    """Of the change in one layer: number 0 with W_K and W_V swapped, 1 with the next head's."""
    return lambda r: r["intervals_by_layer"][:, :, i].T


def _draw_ways(axes, r):
    """A bar for each way, with its interval and its number."""
    y = np.arange(len(r["ways"]))
    for place, name, rise, low, high in zip(y, r["ways"], r["rises"], *r["intervals"]):
        color = COLORS.get(str(name), draw.ORANGE)
        ends = whiskers(rise, low, high)[:, None]
        axes.barh(place, rise, 0.7, color=color, xerr=ends, capsize=3)
        end = np.fmax(high, 0), place
        axes.annotate(f"{rise:+z.2f}", end, (6, 0), textcoords="offset points", va="center")
    axes.axvline(0, color="black", linewidth=0.7)
    axes.set_yticks(y, [draw.wrapped(str(name), 16) for name in r["ways"]])
    axes.invert_yaxis()
    ends = np.append(r["rises"], r["intervals"])
    axes.set(xlim=(min(0, np.nanmin(ends)), 1.2 * max(np.nanmax(ends), 0.01)))
    axes.set(xlabel=f"change of the {r['predicts']} (nats per token)", title="in all layers")


register(
    projections,
    look="A long bar means that the two matrices do different work, although both read the same "
    "input. The bar of the rotation is rounding error: a head's scores depend on W_Q and W_K "
    "through their product alone. The grey bars are the scale: what it costs if each head has the "
    "keys and values of another. On the right a single layer is changed.",
    published="Query, key and value are named after a look-up in a table, and taken for three "
    "inputs. In self-attention the three are one, multiplied by three matrices (Vaswani et al. "
    "2017, 3.2.2); scores depend on W_Q W_K^T alone.",
    about="architecture",
    numbers="""
        rise: change of the loss in nats per token, W_K and W_V swapped in all layers
            null: change of the loss in nats per token, W_Q and W_K turned together: rounding
        rise_next: change with the keys and values of the next head in all layers
            no null: it is the scale of the others
        rise_[qk|qv]: change of the loss in nats per token, W_Q and W_[K|V] swapped in all layers
            no null: that of W_K and W_V swapped serves all swaps
        input_error: largest difference of queries, keys and values from projections of one input,
            relative
            no null: {EXACT} is rounding; more says that they are no projections of one input
        rise_by_layer by layers: change of the loss in nats per token, W_K and W_V swapped in a
            single layer
            null: change with the keys and values of the next head in a single layer
        fact rise_interval by from, to: 95% interval over documents of the change with W_K
            and W_V swapped
        loss: mean loss in nats per token as it is (masked models: pseudo-loss)
            no null: it is what the changes are of
        fact n_predicted: tokens predicted
    """,
    answer=Asks(
        "rise of the {predicts} in nats per token, W_K and W_V swapped in all layers",
        value="{rise:+z.2f} ({rise_interval:to +z.2f})",
        chance="turned together: {rise_null:+z.2f}",
        rule=Provided(
            Below("input_error", null=EXACT, most=np.inf, margin=0),
            Of("rise", null="rise_null.abs", **NATS),
            otherwise="no",
        ),
    ),
    says=[
        "Queries, keys and values are projections of one input (largest difference "
        "{input_error:.1g}). With W_K and W_V swapped in all layers the {predicts} of {loss:.2f} "
        "nats per token changes by {rise:+.2f} ({rise_interval:to +.2f}), most in {layers[worst]} "
        "alone ({rise_by_layer[worst]:+.2f})",
        When(
            "n_keys == 1",
            "; there is no next head of keys and values",
            "; with the keys and values of the next head by {rise_next:+.2f}",
        ),
        When(
            "rise_qk == rise_qk",
            "; with W_Q and W_K swapped by {rise_qk:+.2f}, W_Q and W_V by {rise_qv:+.2f}",
        ),
        When(
            "is_placed",
            ". With half of the features of W_Q and W_K turned round together it changes by "
            "{rise_null:+.0e}.",
            ". With W_Q and W_K turned by the same random rotation it changes by {rise_null:+.0e}: "
            "only W_Q W_K^T counts.",
        ),
    ],
    draw=row(
        _draw_ways,
        bars(
            Bar("rise_by_layer", MAIN, COLORS[MAIN], interval(0)),
            Bar("rise_by_layer_null", f"null: {NEXT}", COLORS[NEXT], interval(1)),
            legend=draw.STACKED,
            xlabel="layer that is changed",
            ylabel="change of the loss (nats per token)",
        ),
        height=4.8,
    ),
)
