"""Does the SVD concentrate the position table in a few columns of a head's queries and keys?

Queries and keys of one head in four bases: raw, as X W_Q has them; SVD, X U_Q with W_Q W_K^T = U_Q
S U_K^T; the principal axes of queries and of keys; random rotations, the null. Position is what the
halves of the documents have in common at a position (maths/bases.py). Means are taken over the
heads that carry positions. For a partial checkpoint, positions alone are read.

N documents, L layers, H heads, T ordinary tokens, d width of a head, r bases, c columns drawn. Axis
"side": queries, keys.
"""

from typing import Annotated

import numpy as np

from ..contract import Asks, Below, Led, NotApplicable, Of, Without, options, register
from ..drawing import Line, Part, When, draw, figures, line_sample, lines, row
from ..maths import bases as maths
from ..measures import heads, inputs
from ..running.stream import UNSAVED
from ..texts import corpus

BASES = "raw", "svd", "pca"  # and random rotations
NAMES = {
    "raw": "raw basis",
    "svd": "basis of the SVD",
    "pca": "principal axes",
    "random": "random rotation",
}
COLORS = {"raw": draw.BLUE, "svd": draw.VERMILION, "pca": draw.GREEN, "random": draw.GREY}
CARRIES = 0.05  # position's share of a head's variance from which it counts as carrying positions
BEYOND = 0.95  # of the random rotations, that a basis has to surpass
MAJORITY = 0.5  # of the heads
DRAWN = 3  # columns of each basis
FIRST = 64  # positions drawn


def bases(
    model,
    run=UNSAVED,
    *,
    head: str = "auto",
    text: options.Text = "sample",
    documents: options.TwoDocuments = 16,
    tokens: options.Tokens = 0,
    rotations: Annotated[int, options.Within(20, 1000)] = 40,
    seed: options.Seed = 0,
):
    """Positions in queries and keys in four bases: in how many columns, and how pure.

    head: the head to draw, as L0H0; auto: the head with the largest share of positions
    rotations: random rotations, the null
    """
    shown = None if head == "auto" else heads.select(head, model)
    if shown is not None and len(shown) > 1:
        raise ValueError(f"--head {head!r} names {len(shown)} heads; wanted one, or auto")
    layers = inputs.layers(model)
    if model.missing:
        texts, sums = [], _of_table(model, layers, tokens)
    else:
        texts = corpus.documents(model, text, documents, tokens)
        options.at_least("documents", len(texts), 2)
        sums = _summed(model, texts, run)
    position = maths.of_position(*sums["halves"])  # [2 L H d d]
    whole = sums["covariance"]
    by_basis = _bases(model, layers, whole)
    turns = maths.random(rotations, model.config.d_head, np.random.default_rng(seed))
    result = _measures(position, whole, by_basis, turns)
    result["documents"], result["d"] = len(texts), model.config.d_head
    place = np.unravel_index(result["carried"].argmax(), whole.shape[1:3])
    if shown is not None:
        [(layer, number)] = shown
        place = layers.index(layer), number
    result |= _drawn(sums["halves"], position, by_basis | {"random": turns[0]}, place)
    name = layers[place[0]], int(place[1])
    return result | {"head": heads.name(*name), "papers_head": heads.papers_name(*name)}


def _summed(model, texts, run):
    """Means of queries and keys at each position in two halves of the documents, and covariances.

    halves: [2 halves][2 sides L H T d]; covariance: [2 sides L H d d].
    """
    inner = texts.ordinary()
    W = _weights(model, inputs.layers(model))

    def measure(i, document):
        X = (yield inputs.reading(model, document))[:, inner]
        x = (X[:, None] @ W).astype(np.float64)  # [2 L H T d]
        return {("even", "odd")[i % 2]: x, "square": x.swapaxes(-1, -2) @ x}

    sums = run.gather(measure, texts, "documents")
    N, T = len(texts), inner.stop - inner.start
    halves = sums["even"] / (N - N // 2), sums["odd"] / (N // 2)
    mean = (sums["even"] + sums["odd"]).sum(axis=-2) / (N * T)
    covariance = sums["square"] / (N * T) - mean[..., :, None] * mean[..., None, :]
    return {"halves": halves, "covariance": covariance}


def _of_table(model, layers, T):
    """The same of positions alone, which are all that a partial checkpoint has."""
    X = np.array([inputs.of_positions(model, layer, T or None) for layer in layers])
    x = (X[:, None] @ _weights(model, layers)).astype(np.float64)
    return {"halves": (x, x), "covariance": maths.of_position(x, x)}


def _weights(model, layers):
    """The query and key weights of every head [2 L H D d]."""
    if model.config.d_head > model.config.d_model:
        raise NotApplicable("bases needs heads no wider than the model")
    return inputs.queries_keys(model, layers)


def _bases(model, layers, covariance):
    """{basis: M [2 sides L H d d]}."""
    W_Q, W_K = _weights(model, layers)
    own = np.broadcast_to(maths.raw(W_Q), covariance.shape)
    svd = np.array([maths.svd(*of_layer) for of_layer in zip(W_Q, W_K)])  # in float64: one by one
    return {"raw": own, "svd": svd.swapaxes(0, 1), "pca": maths.principal(covariance)}


def _measures(position, whole, by_basis, turns):
    """Columns and purity of each basis [L H], means over queries and keys, beside the null's."""
    variances = {name: maths.variances(position, M) for name, M in by_basis.items()}
    of_position, total = (np.trace(x, axis1=-2, axis2=-1) for x in (position, whole))
    result = {"carried": (of_position / np.maximum(total, maths.LEAST)).mean(axis=0)}
    carry = result["carried"] >= CARRIES
    result["n_carry"], result["n_heads"] = carry.sum(), carry.size
    null = _of_rotations(position, whole, turns)
    for name, v in variances.items():
        result[f"columns_by_head_{name}"] = maths.columns(v).mean(axis=0)
        pure = maths.purity(v, maths.variances(whole, by_basis[name]))
        result[f"purity_by_head_{name}"] = pure.mean(axis=0)
        result[f"accumulated_{name}"] = _mean(maths.accumulated(v).mean(axis=0), carry)
        result[f"columns_{name}"] = _mean(result[f"columns_by_head_{name}"], carry)
        result[f"columns_{name}_null"] = _mean(null["columns"].mean(axis=0), carry)
        result[f"purity_{name}"] = _mean(result[f"purity_by_head_{name}"], carry)
        result[f"purity_{name}_null"] = _mean(null["purity"].mean(axis=0), carry)
    result["columns_by_head_random"] = null["columns"].mean(axis=0)
    result["purity_by_head_random"] = null["purity"].mean(axis=0)
    result["accumulated_random"] = _mean(null["accumulated"], carry)
    least = np.quantile(null["columns"], 1 - BEYOND, axis=0)
    beyond = {name: result[f"columns_by_head_{name}"] < least for name in by_basis}
    for name, is_beyond in beyond.items():
        result[f"beyond_{name}"] = _mean(is_beyond, carry)
        result[f"beyond_{name}_null"] = 1 - BEYOND
        result[f"paired_{name}"] = _mean(maths.paired(*by_basis[name]), carry)
        result[f"paired_{name}_null"] = 1 / whole.shape[-1]
    fewer = result["columns_by_head_svd"] < result["columns_by_head_raw"]
    return result | {"fewer": _mean(fewer, carry)}


def _of_rotations(position, whole, turns):
    """Columns and purity under each rotation [n L H]; shares accumulated, their mean [L H d]."""
    measures = {"columns": [], "purity": []}
    accumulated = 0
    for turn in turns:
        v = maths.variances(position, turn)
        measures["columns"].append(maths.columns(v).mean(axis=0))
        measures["purity"].append(maths.purity(v, maths.variances(whole, turn)).mean(axis=0))
        accumulated = accumulated + maths.accumulated(v).mean(axis=0) / len(turns)
    result = {name: np.array(values) for name, values in measures.items()}
    return result | {"accumulated": accumulated}


def _mean(x, carry):
    """Mean over the heads that carry positions, of all heads if none does: [L H ...] -> [...]."""
    return x[carry].mean(axis=0) if carry.any() else x.mean(axis=(0, 1))


def _drawn(halves, position, by_basis, place):
    """The columns of one head that hold most of positions, in each basis: [r 2 c T]."""
    curves = []
    here = (slice(None), *place)
    mean = (halves[0] + halves[1])[here] / 2  # [2 T d]
    mean = mean - mean.mean(axis=1, keepdims=True)
    for name, M in by_basis.items():
        own = np.broadcast_to(M, position.shape)[here] if name == "random" else M[here]
        v = maths.variances(position[here], own).sum(axis=0)
        x = mean @ own[..., np.argsort(-v, kind="stable")[:DRAWN]]  # [2 T c]
        curves.append(x.swapaxes(1, 2)[..., :FIRST])
    return {"curves": np.array(curves), "bases": np.array([*by_basis])}


def _draw_one_head(figure, r):
    panels = figure.subplots(1, len(r["bases"]), sharex=True)
    for axes, name, curves in zip(panels, r["bases"], r["curves"]):
        _draw_columns(axes, str(name), curves)
    samples = line_sample("queries", color=draw.BLUE), line_sample("keys", color=draw.ORANGE)
    figure.legend(handles=samples, loc="outside upper right", ncols=2)
    panels[0].set_ylabel(f"{r['head']}, {r['papers_head']}:\nmean over documents, scaled")


def _draw_columns(axes, name, curves):
    """The columns that hold most of positions, queries and keys, one above the other."""
    scale = abs(curves).max() or 1.0
    places = np.arange(curves.shape[-1])
    for i, (q, k) in enumerate(zip(*curves)):
        level = -2.1 * i
        axes.plot(places, q / scale + level, color=draw.BLUE, linewidth=1.1)
        axes.plot(places, k / scale + level, color=draw.ORANGE, linewidth=1.1)
    axes.set_yticks(-2.1 * np.arange(curves.shape[1]), ["most", *["next"] * (curves.shape[1] - 1)])
    axes.set(title=NAMES[name], xlabel="position (tokens)")


def _heads(measure, label, **limits):
    """Panel: a dot for each head that carries positions, in each basis, against rotations."""

    def panel(axes, r):
        carry = r["carried"] >= CARRIES
        for name in BASES:
            x, y = (r[f"{measure}_by_head_{basis}"][carry] for basis in ("random", name))
            axes.plot(x, y, "o", color=COLORS[name], markersize=5, markeredgewidth=0)
        axes.axline((0, 0), slope=1, color="black", linewidth=0.6)
        axes.locator_params(axis="x", integer="top" not in limits)
        axes.set(xlabel=f"{label}: random rotations", ylabel=f"{label}: the basis")
        axes.set_ylim(0, **limits)

    return panel


register(
    bases,
    look="On the left, the higher a line rises in its first columns, the fewer columns positions "
    "fill. The dots are heads that carry positions: below the line their positions fill fewer "
    "columns than in random rotations (middle), above it these columns hold less of anything "
    "else (right). Principal axes come from the data, from queries and keys separately: they "
    "may gather positions as well, but then a column of the queries has no column of the keys "
    "that it meets. The SVD, which comes from the weights alone, has both. The second figure "
    "has the three columns of one head that hold most of positions: waves where a basis has "
    "gathered them.",
    published="The raw columns of Q and K already look like positions, mixed with words; in the "
    "basis of the SVD the parts come apart, and why it works so well is not quite clear "
    "(Yamamoto's blog post).",
    figure="blog post",
    about="table",
    weights_only=True,
    least_documents=2,
    per_head=(
        "carried",
        *(f"{measure}_by_head_{name}" for measure in ("columns", "purity") for name in BASES),
    ),
    numbers="""
        columns_svd: columns that positions fill in the basis of the SVD, (sum v)^2 / sum v^2 of the
            columns' position variances v, mean over the heads that carry positions
            null: columns that positions fill in random rotations of the raw basis
        columns_raw: columns that positions fill in the raw basis
            null: columns that positions fill in random rotations
        purity_[svd|raw]: position's share of the variance of the columns that it fills, in the
            [basis of the SVD|raw basis]
            null: position's share in the columns of random rotations
        beyond_[svd|raw]: share of the heads in which the [SVD|raw basis] gathers positions in fewer
            columns than 95% of random rotations
            null: share of random rotations that gather positions in fewer columns than 95% of them
        paired_[svd|pca]: how far each column of the queries meets only its own column of the keys,
            in the [basis of the SVD: by construction|principal axes]
            null: how far each column of the queries meets only its own column of the keys, under
            two unrelated rotations
        fewer: share of the heads in which positions fill fewer columns in the SVD's basis than in
            the raw one
            no null: the two are compared with random rotations one by one
        fact n_carry: heads that carry positions
        fact head: head drawn
        fact documents: documents read
    """,
    answer=Asks(
        "effective number of columns that positions occupy in the basis of the SVD",
        value="{columns_svd:.1f} of {d} (raw basis: {columns_raw:.1f})",
        chance="{columns_svd_null:.1f}, random rotations",
        rule=Led(
            Of("beyond_svd", enough=MAJORITY), Below("beyond_raw", null=1, enough=1 - MAJORITY)
        ),
        without=Without("n_carry"),
    ),
    says=[
        When("documents", "", "Of positions alone: "),
        "{n_carry} of {n_heads} heads carry positions ({CARRIES:.0%} or more of the variance of "
        "their queries and keys). By basis, positions fill this many of their {d} columns: ",
        "; ".join(
            f"{NAMES[name]}: {{columns_{name}:.1f}} columns, {{purity_{name}:.2f}} pure, "
            f"{{paired_{name}:.2f}} paired, gathered more than in {BEYOND:.0%} of random rotations "
            f"in {{beyond_{name}:.0%}} of the heads"
            for name in BASES
        ),
        ". Random rotations: {columns_svd_null:.1f} columns, {purity_svd_null:.2f} pure; two that "
        "differ for queries and keys: {paired_svd_null:.2f} paired. The SVD needs fewer columns "
        "than the raw basis in {fewer:.0%} of the heads.",
    ],
    draw=figures(
        row(
            lines(
                *(Line(f"accumulated_{name}", NAMES[name], "-", COLORS[name]) for name in BASES),
                Line("accumulated_random", NAMES["random"], "--", COLORS["random"]),
                first=1,
                xlabel="columns, those with most first",
                ylabel="share of positions in them",
                ylim=(0, 1.02),
            ),
            _heads("columns", "columns filled"),
            _heads("purity", "their purity", top=1),
            height=4.1,
        ),
        Part(_draw_one_head, height=3.5),
    ),
    shares_passes=True,
)
