"""Do principal components of the residual stream depend mainly on the position?

The blog post on how the paper came about: principal and independent components of X were tried
first, and those that look like positions came out near the input. Here they are compared with the
columns of queries and keys. N documents, T tokens of each between its first and last, D width, L
layers, H heads, n components, C series.
"""

from typing import Annotated, Literal

import numpy as np

from ..contract import Asks, Enough, Of, options, register
from ..drawing import Part, draw, few, figures
from ..maths import factors
from ..maths import waves as maths
from ..measures import document_features, inputs
from ..running.stream import UNSAVED
from ..texts import corpus

USUAL = 12  # components, or as many as there are
FEW = 4  # documents, at most, in which independent components are looked for
FIRST = 64  # positions drawn
SHOWN = 3  # layers with a series of their own
HALF = 0.5  # share of a component's variance from which it is mostly position
WRITTEN = 16  # components, at most, whose shares are written as numbers
EXCESS = 0.1  # share above its null from which a component counts as position-like
KINDS = {"pca": "principal", "ica": "independent"}
PLACES = {  # where position-like components come out: near the input, in the last layer
    (True, False): "near the input alone",
    (True, True): "near the input and in the last layer too",
    (False, True): "in the last layer, not near the input",
    (False, False): "neither near the input nor in the last layer",
}


def components(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 16,
    tokens: options.Tokens = 0,
    components: Annotated[int, options.Within(1, 64)] = USUAL,
    method: Literal["pca", "ica"] = "pca",
    seed: options.Seed = 0,
):
    """Share of each component's variance that position explains, by layer.

    components: components of X, and columns of the query and the key of each head
    method: pca, or ica, which needs scikit-learn and finds its components in the first 4 documents
    """
    document_set = corpus.documents(model, text, documents, tokens)
    options.at_least("documents", len(document_set), 2)
    options.at_least("tokens", document_set.T, 4)
    most = min(model.config.d_model, 64, document_set.T - 3)
    components = options.fitting("components", components, most, USUAL)
    inner = _inner(document_set)
    directions = {"x": METHODS[method](model, document_set, components, seed, run)}
    directions |= _of_heads(model, components)

    def measure(index, document):
        shift = np.random.default_rng((seed, index)).integers(1, document_set.T)
        X = yield inputs.reading(model, document)
        series = _series(X[:, inner], directions, shift)
        series["first"] = series["x"] * (index == 0)
        return series

    sums = run.gather(measure, document_set, "documents")
    result = {"T": document_set.T, "documents": len(document_set), "n": components}
    fitted = min(len(document_set), FEW) if method == "ica" else len(document_set)
    rows = range(document_set.T)[inner]
    result |= {"n_rows": fitted * len(rows), "n_features": model.config.d_model}
    result["layer_names"] = np.array([f"layer {i}" for i in range(model.config.n_layers)])
    result |= {"method": method, "first_position": inner.start}
    result |= _position_shares(sums, len(document_set))
    random = document_features.random(model, seed)
    result["share_random"] = _random_share(random, document_set, method, components, seed, run)
    return result | _best_series(sums, result["best_component"], len(document_set))


def _of_heads(model, n):
    """The first n directions of every head's queries and of its keys, side by side: [L D C]."""
    every = dict(zip("qk", inputs.qk_directions(model)))  # [L H D r]
    return {name: np.concatenate([*U.swapaxes(0, 1)[..., :n]], -1) for name, U in every.items()}


def _random_share(model, document_set, method, n, seed, run):
    """The largest share that position explains of a component of layer 0, in a random model."""
    inner = _inner(document_set)
    what = "components: random weights"
    directions = {"x": METHODS[method](model, document_set, n, seed, run, what)[:1]}

    def measure(_, document):
        X = yield inputs.reading(model, document)
        return _series(X[:1, inner], directions, 0)

    sums = run.gather(measure, document_set, "documents: random weights")
    return maths.position_share(sums["x"], sums["x_squares"], len(document_set)).max()


def _inner(document_set):
    """Slice of the tokens of a document that are not position by themselves.

    It leaves out special tokens, the first token and the last.
    """
    before, after = len(document_set.before), len(document_set.after)
    return slice(max(1, before), document_set.T - max(1, after))


def principal(model, document_set, n, seed, run, what="documents: components"):
    """Directions of the first n principal components of X over all documents: [L D n].

    They come from sums over the documents: X is never held as a whole.
    """
    inner = _inner(document_set)

    def measure(_, document):
        X = (yield inputs.reading(model, document))[:, inner].astype(np.float64)
        products = (X.swapaxes(1, 2) @ X).astype(np.float32)
        return {"sum": X.sum(axis=1), "products": products, "tokens": X.shape[1]}

    sums = run.gather(measure, document_set, what)
    mean = sums["sum"] / sums["tokens"]
    covariance = sums["products"] / sums["tokens"] - mean[:, :, None] * mean[:, None, :]
    _, vectors = np.linalg.eigh(covariance)  # of the smallest variance first
    U = vectors[..., ::-1][..., :n]
    return U * factors.signs(U)


def independent(model, document_set, n, seed, run, what="documents: components"):
    """Directions of n independent components of X, from the first documents alone: [L D n]."""
    inner = _inner(document_set)

    def measure(_, document):
        return {"x": (yield inputs.reading(model, document))[:, inner]}

    few = document_set.first(min(len(document_set), FEW))
    X = run.gather(measure, few, what, keep=("x",))["x"]
    X = X.swapaxes(0, 1).reshape(X.shape[1], -1, X.shape[-1]).astype(np.float64)  # [L FEW*T D]
    X -= X.mean(axis=1, keepdims=True)
    sources = (factors.ica(x, n, seed) for x in X)  # linear in x
    return np.array([np.linalg.lstsq(x, s, rcond=None)[0] for x, s in zip(X, sources)])


METHODS = {"pca": principal, "ica": independent}


def _series(X, directions, shift):
    """Series [L T C] of X [L T D] along directions, the same moved, and their sums of squares."""
    series = {}
    for name, U in directions.items():
        y = (X @ U.astype(X.dtype)).astype(np.float64)
        series[name] = y
        series[name + "_moved"] = np.roll(y, shift, axis=1)
        series[name + "_squares"] = (y * y).sum(axis=1)
    return series


def _position_shares(sums, N):
    """Shares that position explains [L C] in X, Q and K, with their nulls, and the largest."""
    result = {}
    for name, suffix in (("x", ""), ("q", "_q"), ("k", "_k")):
        for null, moved in (("", ""), ("_null", "_moved")):
            share = maths.position_share(sums[name + moved], sums[name + "_squares"], N)
            result["shares" + suffix + null] = share
            result["best" + suffix + null] = share.max(axis=1)
            result["share" + suffix + null] = share[0].max()
            result["n_half" + suffix + null] = (share[0] > 0.5).sum()
    for null in ("", "_null"):
        result["share_last" + null] = result["best" + null][-1]
    result["best_component"] = result["shares"].argmax(axis=1)
    return result


def _best_series(sums, best, N):
    """Series of component best[l] of X in each layer l, in its standard deviations: [L T] each.

    series: its mean over the documents; series_first: the first document's.
    """
    layers = np.arange(len(best))
    T = sums["x"].shape[1]
    total = sums["x"][layers, :, best]
    mean = total.mean(axis=1, keepdims=True) / N
    variance = sums["x_squares"][layers, best][:, None] / (N * T) - np.square(mean)
    deviation = np.sqrt(np.maximum(variance, 1e-300))
    first = sums["first"][layers, :, best]
    return {"series": (total / N - mean) / deviation, "series_first": (first - mean) / deviation}


def where(r):
    """In which layers components look like positions."""
    near_input = bool(r["share"] > EXCESS + r["share_null"])
    in_last = bool(r["share_last"] > EXCESS + r["share_last_null"])
    return PLACES[near_input, in_last]


def _draw_all_layers(figure, r):
    """Shares of all components, and the best beside those of queries and keys."""
    left, right = figure.subplots(1, 2)
    _draw_shares(left, r)
    _draw_best(right, r)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=2)


def _draw_all_series(figure, r):
    """The best component of the first, a middle and the last layer."""
    layers = few(len(r["shares"]), SHOWN)
    panels = figure.subplots(len(layers), 1, sharex=True, squeeze=False)[:, 0]
    for axes, layer in zip(panels, layers):
        _draw_series(axes, r, layer)
    panels[-1].set_xlabel("position (tokens)")
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    figure.supylabel("value (sd of the component)", fontsize=10)


def _draw_shares(axes, r):
    """The share of each component in each layer, as colour and number."""
    axes.imshow(r["shares"], cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
    L, n = r["shares"].shape
    if n <= WRITTEN:
        for (layer, c), share in np.ndenumerate(r["shares"]):
            axes.text(c, layer, round(100 * share), ha="center", va="center", fontsize=10)
    axes.set(xlabel=f"{KINDS[str(r['method'])]} component of X", ylabel="layer", yticks=range(L))
    shown = range(0, n, -(-n // WRITTEN))
    axes.set_xticks(shown, [c + 1 for c in shown])
    axes.set_title("% of a component's variance that position explains")
    axes.tick_params(length=0)


def _draw_best(axes, r):
    """The largest share in each layer of X, Q and K, with its null."""
    layers = np.arange(len(r["best"]))
    dotted = {"markersize": 3, "linewidth": 1}
    of_x = f"X: best of {r['shares'].shape[1]} components"
    labels = of_x, "Q: best column of any head", "K: best column of any head"
    names = "best", "best_q", "best_k"
    apart = -0.06, 0, 0.06  # else the curves hide each other
    for name, x, color, label in zip(names, apart, ("black", draw.BLUE, draw.ORANGE), labels):
        axes.plot(layers + x, r[name], "o-", color=color, label=label)
        axes.plot(layers + x, r[f"{name}_null"], "s:", color=color, **dotted)
    at_random = {"color": draw.VERMILION, "markersize": 6, "linestyle": ""}
    axes.plot(0, r["share_random"], "D", label="X of layer 0, random weights", **at_random)
    axes.plot([], [], "s:", color=draw.GREY, label="null: documents shifted at random", **dotted)
    axes.set(xlabel="layer", ylim=(-0.05, 1.05), xticks=layers)
    axes.set_ylabel("share explained by position")


def _draw_series(axes, r, layer):
    """The most position-like component: its mean over the documents and the first document's."""
    first = r["series_first"][layer, :FIRST]
    mean = r["series"][layer, :FIRST]
    position = r["first_position"] + np.arange(len(mean))
    axes.plot(position, first, color=draw.GREY, linewidth=0.8, label="first document")
    axes.plot(position, mean, color=draw.BLUE, linewidth=1.3, label="mean over the documents")
    axes.set_xlim(position[0], position[-1])
    number = r["best_component"][layer] + 1
    title = f"layer {layer}, component {number}: {r['best'][layer]:.0%} position"
    axes.set_title(title, fontsize=10)


register(
    components,
    draw=figures(
        Part(_draw_all_layers, height=lambda r: max(4.5, 0.34 * len(r["shares"]) + 1.6)),
        Part(_draw_all_series, height=4.8),
    ),
    look="A component whose values are the same function of the position in every document belongs "
    "to position: 100%. The components of X are found from X alone; the columns of Q and K are "
    "given by the head's weights. In the series, blue is the mean over the documents, grey the "
    "first document: where grey follows blue, the component is the position. Components that order "
    "X by the words that it holds scatter around 0%; they lie below 0% where whole documents "
    "differ. Special tokens, the first and the last token are left out: they would be position by "
    "themselves.",
    published="The blog post on how the paper came about: PCA and ICA of X give components that "
    "look like positions near the input layer. This shows what PCA can do, not what attention "
    "does, so the paper turned to the columns of queries and keys.",
    figure="blog post, PCA and ICA",
    numbers="""
        share: largest share of the variance of a component of X that position explains, in layer 0,
            corrected for the number of documents
            null: largest share in layer 0 with every document shifted by a random number of tokens
        share_last: largest share of the variance of a component of X that position explains, in the
            last layer
            null: largest share in the last layer with every document shifted
        share_[q|k]: largest share of the variance of a column of [Q|K] that position explains, in
            layer 0, of the first columns of each head
            null: largest share of a column of [Q|K] with every document shifted
        n_half: components of X in layer 0 with more than half of their variance explained by
            position
            null: components of X mostly explained by position, every document shifted
        n_half_[q|k]: columns of [Q|K] in layer 0, among the first columns of each head, with more
            than half of their variance explained by position
            null: columns of [Q|K] mostly explained by position, every document shifted
        best by layer_names: largest share of the variance of a component of X that position
            explains
            null: largest share of a component of X with every document shifted
        fact documents: documents read
    """,
    answer=Asks(
        "largest share of variance due to position in one of {n} {KINDS[method]} components of "
        "layer 0's input",
        value="{share:.0%}",
        chance="{share_null:.0%}, documents shifted at random; {share_random:.0%}, random weights",
        rule=Enough(Of("share", null=("share_null", "share_random"), enough=HALF)),
    ),
    says="The most position-like of the {n} {KINDS[method]} components of X has {share:.0%} of "
    "its variance explained by position in layer 0 (documents shifted at random: {share_null:.0%}; "
    "with random weights: {share_random:.0%}). In the last layer it has {share_last:.0%} "
    "({share_last_null:.0%}): such components come out {where}. The best column of Q has "
    "{share_q:.0%} in layer 0, the best of K {share_k:.0%}. Position explains more than half in "
    "{n_half} of the components of X, in {n_half_q} of {shares_q[0].size} columns of Q and in "
    "{n_half_k} of K.",
    least_documents=2,
    shares_passes=True,
)
