"""Whether components of the stream look like positions, against columns of queries and keys.

The blog post on how the paper came about: principal and independent components of X were tried first, and those that
look like positions came out near the input. N documents, T tokens of each between its first and last, D width,
L layers, H heads, n components, C series. Order: the picture, the experiment, the components, their shares.
"""

import numpy as np

from .. import corpus, draw, factors, inputs, stream, waves as maths
from ..registry import experiment
from .extraction import directions

FEW = 4      # documents, at most, in which independent components are looked for
FIRST = 64   # positions drawn
SHOWN = 6    # layers with a series of their own
THERE = 0.1  # share above its null from which a component counts as position-like
VERDICTS = {(True, False): "near the input alone", (True, True): "near the input and in the last layer too",
            (False, True): "in the last layer, not near the input",
            (False, False): "neither near the input nor in the last layer"}


def plot(r):
    """A number for each component and layer; the best of each layer beside queries and keys; its series."""
    L, n = r["shares"].shape
    figure = draw.figure(12, max(5.2, 0.34 * L + 3))
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    shown = np.unique(np.linspace(0, L - 1, min(L, SHOWN)).round().astype(int))
    above, below = left.subplots(2, 1, height_ratios=(max(1.6, 0.34 * L), 2.2))
    _map(above, r)
    _best(below, r)
    left.legend(*below.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    for axes, layer in zip(right.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0], shown):
        _series(axes, r, layer)
    axes.set_xlabel("position (tokens)")
    right.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=2)
    right.supylabel("value (sd of the component)", fontsize=9)
    return figure


def _map(axes, r):
    axes.imshow(r["shares"], cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
    for (layer, c), value in np.ndenumerate(r["shares"]):
        axes.text(c, layer, round(100 * value), ha="center", va="center", fontsize=7)
    L, n = r["shares"].shape
    axes.set(xlabel=f"component of X ({r['method']})", ylabel="layer", yticks=range(L))
    axes.set_xticks(range(n), range(1, n + 1))
    axes.set_title("% of a component's variance that position explains")
    axes.tick_params(length=0)


def _best(axes, r):
    at = np.arange(len(r["best"]))
    for name, color, label in (("best", "black", f"X: best of {r['shares'].shape[1]} components"),
                               ("best_q", draw.BLUE, "Q: best column of any head"),
                               ("best_k", draw.ORANGE, "K: best column of any head")):
        axes.plot(at, r[name], "o-", color=color, label=label)
        axes.plot(at, r[name + "_null"], "s:", color=color, markersize=3, linewidth=1)
    axes.plot([], [], "s:", color=draw.GREY, markersize=3, linewidth=1, label="null: documents moved at random")
    axes.set(xlabel="layer", ylim=(-0.05, 1.05), xticks=at, ylabel="share explained by position")


def _series(axes, r, layer):
    """Mean of the most position-like component over the documents, and its course in the first of them."""
    shown = slice(0, FIRST)
    at = r["first_position"] + np.arange(r["series"].shape[1])[shown]
    axes.plot(at, r["series_first"][layer, shown], color=draw.GREY, linewidth=0.8, label="first document")
    axes.plot(at, r["series"][layer, shown], color=draw.BLUE, linewidth=1.3, label="mean over the documents")
    axes.set_xlim(at[0], at[-1])
    axes.set_title(f"layer {layer}, component {r['best_component'][layer] + 1}: {r['best'][layer]:.0%} position",
                   fontsize=8.5)


def says(r):
    """What the numbers show, in plain words."""
    what = {"pca": "principal", "ica": "independent"}[str(r["method"])]
    at = tuple(bool(r["share" + key] > THERE + r[f"share{key}_null"]) for key in ("", "_last"))
    return (f"Of the {r['n']} {what} components of X the most position-like has {r['share']:.0%} of its variance "
            f"explained by position in layer 0 (documents moved at random: {r['share_null']:.0%}) and "
            f"{r['share_last']:.0%} in the last layer ({r['share_last_null']:.0%}): such components come out "
            f"{VERDICTS[at]}. Of the columns of Q the best has {r['share_q']:.0%} in layer 0, of K "
            f"{r['share_k']:.0%}; more than half is explained in {r['n_half']} of the components of X and in "
            f"{r['n_half_q']} of {r['shares_q'].shape[1]} columns of Q and {r['n_half_k']} of K.")


@experiment(
    asks="Do plain components of the stream look like positions, as queries and keys do?",
    draw=plot,
    look="A component whose values are the same function of the position in every document is the position's: "
         "100 %. Those of X are found by looking at X alone, those of Q and K are given by the head's weights. In "
         "the series, blue is the mean over the documents, grey the first document: where grey follows blue, the "
         "component is the position. Components that order X by what words it holds scatter around 0 %, below it "
         "where whole documents differ. Special tokens, the first and the last token are left out: they would be "
         "position by themselves.",
    published="The blog post on how the paper came about: by PCA and ICA of X components that look like positions "
              "come out near the input layer, which shows what PCA can do, not what attention does; so the paper "
              "turned to the columns of queries and keys.",
    figure="blog post, PCA and ICA",
    says=says,
    numbers={
        "documents": "documents read",
        "share": "largest share of a component's variance that position explains, in layer 0, corrected for the "
                 "number of documents",
        "share_null": "the same with every document moved by a random number of tokens",
        "share_last": "the same in the last layer",
        "share_last_null": "the same with every document moved",
        "share_q": "the same for the columns of Q in layer 0, the first of each head",
        "share_q_null": "the same with every document moved",
        "share_k": "the same for the columns of K",
        "share_k_null": "the same with every document moved",
        "n_half": "components of X in layer 0 of whose variance position explains more than half",
        "n_half_null": "the same with every document moved",
        "n_half_q": "columns of Q in layer 0, of all heads, likewise",
        "n_half_q_null": "the same with every document moved",
        "n_half_k": "columns of K likewise",
        "n_half_k_null": "the same with every document moved",
        "best": "largest share of a component of X at every layer",
        "best_null": "the same with every document moved"})
def components(model, *, text: str = "sample", documents: int = 16, tokens: int = 0, components: int = 12,
               method: str = "pca", seed: int = 0):
    """Share of each component's variance that position explains, by layer.

    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read, 2 or more (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    components: components of X, and columns of the query and the key of each head
    method: pca, or ica, which needs scikit-learn and finds its components in the first 4 documents
    seed: seed of the shifts, and of ica's start
    """
    if method not in METHODS:
        raise ValueError(f"--method {method!r}: wanted {' or '.join(METHODS)}")
    read = corpus.documents(model, text, documents, tokens)
    corpus.at_least("documents", len(read), 2)
    corpus.at_least("tokens", read.T, 4)
    corpus.within("components", components, 1, min(model.config.d_model, 64, read.T - 3))
    found = {"T": read.T, "documents": len(read), "n": components, "method": method}
    U = {"x": METHODS[method](model, read, components, seed)} | {
        name: np.concatenate([*one.swapaxes(0, 1)[..., :components]], -1)
        for name, one in zip("qk", directions(model))}  # [L D C]

    def measure(index, document):
        shift, sums = np.random.default_rng((seed, index)).integers(1, read.T), {}
        X = inputs.of_text(model, document)[:, _inner(read)]
        for name, one in U.items():
            y = (X @ one.astype(X.dtype)).astype(np.float64)  # [L T C]
            sums |= {name: y, name + "_moved": np.roll(y, shift, axis=1), name + "_squares": (y * y).sum(axis=1)}
        return sums | {"first": sums["x"] * (index == 0)}
    sums = stream.gather(measure, read, "documents")
    return found | {"first_position": _inner(read).start} | _shares(sums, len(read))


def _inner(read):
    """The tokens of a document but for special ones, the first and the last, which are position by themselves."""
    return slice(max(1, len(read.before)), read.T - max(1, len(read.after)))


def principal(model, read, n, seed):
    """Directions of the first n principal components of X over all documents, from sums alone: [L D n]."""
    def measure(_, document):
        X = inputs.of_text(model, document)[:, _inner(read)].astype(np.float64)
        return {"sum": X.sum(axis=1), "products": (X.swapaxes(1, 2) @ X).astype(np.float32), "tokens": X.shape[1]}
    sums = stream.gather(measure, read, "documents: components")
    mean = sums["sum"] / sums["tokens"]
    covariance = sums["products"] / sums["tokens"] - mean[:, :, None] * mean[:, None, :]
    U = np.linalg.eigh(covariance)[1][..., ::-1][..., :n]
    return U * factors.signs(U)


def independent(model, read, n, seed):
    """Directions of n independent components of X, found on the first documents alone: [L D n]."""
    few = read.first(min(len(read), FEW))
    X = stream.gather(lambda _, document: {"x": inputs.of_text(model, document)[:, _inner(read)]}, few,
                      "documents: components", keep=("x",))["x"]
    X = X.swapaxes(0, 1).reshape(X.shape[1], -1, X.shape[-1]).astype(np.float64)  # [L FEW*T D]
    X -= X.mean(axis=1, keepdims=True)
    return np.array([np.linalg.lstsq(x, factors.ica(x, n, seed), rcond=None)[0] for x in X])  # they are linear in X


METHODS = {"pca": principal, "ica": independent}


def _shares(sums, N):
    """All shares, and the figures for people."""
    found = {}
    for name in "xqk":
        for suffix, moved in (("", ""), ("_null", "_moved")):
            share = maths.position_share(sums[name + moved], sums[name + "_squares"], N)  # [L C]
            key = {"x": ""}.get(name, "_" + name)
            found |= {"shares" + key + suffix: share, "best" + key + suffix: share.max(axis=1),
                      "share" + key + suffix: share[0].max(), "n_half" + key + suffix: (share[0] > 0.5).sum()}
    best, layer = found["shares"].argmax(axis=1), np.arange(len(found["shares"]))
    T = sums["x"].shape[1]
    mean = sums["x"][layer, :, best].mean(axis=1, keepdims=True) / N
    variance = sums["x_squares"][layer, best][:, None] / (N * T) - np.square(mean)
    deviation = np.sqrt(np.maximum(variance, 1e-300))
    for name, many in (("x", N), ("first", 1)):
        found["series" if many == N else "series_first"] = (sums[name][layer, :, best] / many - mean) / deviation
    last = {"share_last" + suffix: found["best" + suffix][-1] for suffix in ("", "_null")}
    return found | last | {"best_component": best}
