"""Architecturally, is attention the only part that mixes tokens?

One vector of a layer's input is replaced, and the rows of what attention and the MLP write that
change are counted, in every layer for itself. Then how attention mixes: the entropy of each row of
its pattern, and the rank of A V, all heads side by side. A row of the pattern weighs vectors as
wholes: one weight multiplies all numbers of a value. N documents, T tokens, L layers, H heads.
"""

from functools import partial
from typing import Annotated

import numpy as np

from minitx import forward
from minitx.kernels import matmul_heads
from minitx.model import join_heads

from ..contract import Asks, Of, options, register
from ..drawing import Line, When, draw, figures, layer_ticks, lines, row, token_ticks
from ..maths import effective, profiles
from ..measures import heads
from ..running import passes
from ..running.stream import UNSAVED
from ..texts import corpus

WRITERS = {"attn_out": "resid_pre", "mlp_out": "resid_mid"}  # what is written: what it reads
LABELLED = 24  # tokens, at most, that all get their label
ALL = 0.99  # of the rows that see a vector, from which on attention changes all of them


def mixing(
    model,
    run=UNSAVED,
    *,
    show: Annotated[int, options.Within(2, 64)] = 12,
    text: options.Text = "sample",
    documents: options.Documents = 8,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Rows that change with one vector, the entropy of attention, and the rank of what it mixes.

    show: tokens of the first document that are replaced, one at a time
    """
    document_set = corpus.documents(model, text, documents, tokens)
    options.at_least("tokens", document_set.T, 2)
    few = document_set.first()[0][:show]
    result = {"documents": len(document_set), "T": document_set.T}
    result["pieces"] = np.array(corpus.labels(model, few))
    result["changed"] = changed_rows(model, few)  # [2 L T T]
    result |= _counts(result["changed"], model.config.causal)

    def measure(i, document):
        order = np.random.default_rng((seed, i)).permutation(len(document))
        return (yield _reading(model, document, order))

    sums = run.gather(measure, document_set, "documents")
    result |= {name: x / len(document_set) for name, x in sums.items()}
    n_visible = profiles.visible(document_set.T, model.config.causal).sum(axis=1)
    result |= {"keys": result["keys_of_heads"].mean(), "keys_null": n_visible.mean()}
    result |= {"nats": result["entropy"].mean(), "nats_null": np.log(n_visible).mean()}
    result["layers"] = np.array([f"layer {i}" for i in range(model.config.n_layers)])
    for name in ("rank", "effective_rank"):
        mixed, by_chance, values = result[f"{name}s"].T
        result |= {name: mixed, f"{name}_null": by_chance, f"{name}_values": values}
    return result


def changed_rows(model, tokens):
    """Rows that change with one vector of the input, for each writer and layer: [2 L T T] bool.

    [w, l, i, j]: row i of what writer w (attention, MLP) of layer l writes differs, in any bit,
    when vector j of what it reads is replaced by its neighbour's. All else stays as it was.
    """
    inputs, outputs = _watched(model, tokens, {})
    changed = []
    for j in range(len(tokens)):
        _, others = _watched(model, tokens, inputs, j)
        by_layer = [(others[key] != x).any(axis=-1)[0] for key, x in outputs.items()]
        changed.append(by_layer)
    L = model.config.n_layers
    pairs = np.array(changed).reshape(len(tokens), L, len(WRITERS), -1)  # [j l w i]
    return pairs.transpose(2, 1, 3, 0)


def _watched(model, tokens, before, j=0):
    """What the writers of every layer read and write: two of {(point, layer): [1 T D]}.

    before: what they read in the plain pass; vector j of it is replaced. {}: the plain pass.
    """
    inputs, outputs = {}, {}

    def hook(name, x, layer=None):
        if name in WRITERS:
            outputs[name, layer] = x
        if name not in WRITERS.values():
            return x
        if before:  # whatever the layers before made of the new vector
            x = before[name, layer].copy(order="K")
            x[:, j] = x[:, (j + 1) % x.shape[1]]
        inputs[name, layer] = x
        return x

    forward(model, tokens, hook=hook)
    return inputs, outputs


def _counts(changed, causal):
    """Rows that change, as shares of those that see the vector, and those that do not see it."""
    seen = profiles.visible(changed.shape[-1], causal)
    by_attention, by_mlp = changed
    result = {"attention_rows": by_attention[:, seen].mean(axis=1)}  # [L]
    result["attention_share"] = result["attention_rows"].mean()
    result["blind_rows"] = by_attention[:, ~seen].sum()
    result["mlp_rows"] = by_mlp.sum(axis=1).mean()
    own = np.eye(changed.shape[-1], dtype=bool)
    result["mlp_own"] = bool((by_mlp == own).all())
    return result


def _reading(model, document, order):
    """A Reading: entropy of each head's rows, effective keys, ranks of V, A V, mixed by chance."""
    points, by_layer = {}, []

    def watch(name, x, layer=None):
        if name in ("pattern", "v"):
            points[name] = x
        if name == "z":
            by_layer.append(_of_layer(points["pattern"], points["v"], x, order))

    def value(_):
        entropies, keys, ranks, effective_ranks = zip(*by_layer)
        result = {"entropy": entropies, "keys_of_heads": keys}
        result |= {"ranks": ranks, "effective_ranks": effective_ranks}
        return {name: np.array(x) for name, x in result.items()}

    return passes.Reading(model, document, watch, value)


def _of_layer(pattern, v, z, order):
    """One layer: entropy [H], effective keys [H]; ranks and effective ranks [3]: A V, null, V.

    The null is A with the values of other tokens: their order is random.
    """
    entropy = effective.entropy(pattern[0])  # [H T]
    mixed = (z, matmul_heads(pattern, v[:, :, order]), v)
    spectra = [effective.singular_values(join_heads(x)[0]) for x in mixed]
    n = max(len(order), join_heads(v).shape[-1])
    ranks = [effective.rank(s, n) for s in spectra]
    effective_ranks = [effective.effective_rank(s) for s in spectra]
    return entropy.mean(axis=1), np.exp(entropy).mean(axis=1), ranks, effective_ranks


def extremes(r):
    """The heads with the fewest and with the most effective keys, and how many these are."""
    keys = r["keys_of_heads"]
    pairs = [np.unravel_index(i, keys.shape) for i in (keys.argmin(), keys.argmax())]
    return [f"{heads.name(*pair)} {keys[pair]:.1f}" for pair in pairs]


def attention_alone(r):
    """The share of rows that attention changes; 0 if an MLP changes rows of other tokens, too."""
    return r["attention_share"] * r["mlp_own"]


def _draw_changed(axes, r, writer):
    """In which share of the layers row i changes with vector j."""
    changed = r["changed"][writer]
    axes.imshow(changed.mean(axis=0), cmap="Blues", vmin=0, vmax=1.25)
    token_ticks(axes.set_xticks, r["pieces"], LABELLED, rotation=90)
    token_ticks(axes.set_yticks, r["pieces"], LABELLED)
    axes.set(xlabel="vector that is replaced", ylabel="row that changes (strongest: in all layers)")
    edges = np.arange(0.5, len(r["pieces"]) - 1)  # else a full map is one square
    axes.vlines(edges, -0.5, edges[-1] + 1, color="white", linewidth=0.8)
    axes.hlines(edges, -0.5, edges[-1] + 1, color="white", linewidth=0.8)
    axes.set_title(f"what {('attention', 'the MLP')[writer]} writes")


def _draw_keys(axes, r):
    """Effective keys of every head, and as many as uniform attention has."""
    keys = r["keys_of_heads"]
    layers = np.arange(len(keys))
    L, H = keys.shape
    beside = np.linspace(-0.2, 0.2, H) if H > 1 else np.zeros(1)
    x = layers[:, None] + beside
    axes.scatter(x, keys, color=draw.BLUE, s=24, label="a head")
    axes.plot(layers, keys.mean(axis=1), color=draw.BLUE, linewidth=1, label="mean of a layer")
    label = f"null: uniform attention ({r['keys_null']:.0f})"
    axes.axhline(r["keys_null"], color="black", linestyle="--", linewidth=1, label=label)
    axes.set(yscale="log", ylabel="effective number of keys of a row", ylim=(0.9, None))
    layer_ticks(axes, L)
    axes.legend(**draw.ABOVE)


register(
    mixing,
    look="In the first figure a column is the vector that is replaced in what a layer reads, a row "
    "what changes in what it writes: the MLP's map is a diagonal, because it treats every "
    "token by itself; attention's is full where all tokens see each other, and a triangle in "
    "a causal model. A pale cell changes in some layers only: elsewhere the weight is so "
    "small that it is lost in rounding. In the second a head near 1 copies one token, one "
    "near the dashed line averages over all. A V has as many directions as the values or "
    "fewer where heads average over many tokens, and can have more where they look at "
    "different ones. The null asks whether it matters which tokens are mixed: where it lies "
    "on A V, their number alone does.",
    published="Attention is often said to focus on what is important; the MLP, which treats each "
    "token by itself, holds most of the weights. What attention adds is that tokens are mixed; "
    "attention alone, layer upon layer, makes all tokens alike (Dong et al. 2021).",
    about="architecture",
    numbers="""
        attention_share: share of the rows that see a vector which attention changes when that is
            replaced
            no null: what a vector reaches is the architecture's, chance has no part in it
        mlp_rows: rows of what an MLP writes that change when one vector is replaced
            no null: the architecture's
        blind_rows: rows of attention that change though they do not see the vector
            no null: the architecture's
        keys: effective number of keys of a row of attention, e to its entropy, mean
            null: keys that a row sees, on average: uniform attention
        nats: entropy of a row of attention, in nats, mean over rows and heads
            null: entropy of uniform attention, in nats
        effective_rank by layers: effective rank of A V, all heads side by side, by layer
            null: effective rank of A times the values of other tokens, by layer
        effective_rank_values by layers: effective rank of the values before they are mixed, by
            layer
            no null: what is mixed; what becomes of it has a null
        rank by layers: rank of A V beyond the rounding of float32, by layer
            null: rank of A times the values of other tokens, by layer
        rank_values by layers: rank of the values before they are mixed, by layer
            no null: what is mixed; what becomes of it has a null
    """,
    answer=Asks(
        "share of attention's output rows, among those that see a vector, that change when it is "
        "replaced",
        value="{attention_share:.1%} (of the MLPs' {pieces.size} rows: {mlp_rows:g})",
        chance="",
        rule=Of("attention_alone", null=0, enough=ALL),
    ),
    says=[
        "When one of {pieces.size} vectors that a layer reads is replaced, {mlp_rows:g} row of "
        "what its MLP writes changes, and {attention_share:.1%} of those rows of what attention "
        "writes that see it",
        When("blind_rows", " ({blind_rows} rows that do not see it change too)"),
        ". A row of attention is spread over {keys:.1f} keys effectively, of the {keys_null:.0f} "
        "that it sees (by head: {extremes}). The values have effective ranks of "
        "{effective_rank_values.mean:.1f} (mean over layers) before they are mixed and "
        "{effective_rank.mean:.1f} after ({effective_rank:.1f} by layer); by chance, with the "
        "values of other tokens, {effective_rank_null.mean:.1f}. Their numerical ranks are "
        "{rank_values.mean:.1f} and {rank.mean:.1f}.",
    ],
    draw=figures(
        row(partial(_draw_changed, writer=0), partial(_draw_changed, writer=1), height=4.8),
        row(
            _draw_keys,
            lines(
                Line("effective_rank_values", "V, before mixing", color=draw.GREY),
                Line("effective_rank", "A V", color=draw.VERMILION),
                Line("effective_rank_null", "null: A with values in random order", "o--", "black"),
                xticks=layer_ticks,
                ylabel="effective rank, all heads",
                ylim=(0, None),
            ),
            height=4.2,
        ),
    ),
    per_head=("entropy", "keys_of_heads"),
    shares_passes=True,
)
