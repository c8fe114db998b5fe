"""Do positions alone determine where heads look?

The positional kernel of a head is its mean score at each lag with the words averaged out: queries
and keys are means over documents at each position. Where a position enters by turning queries and
keys or by a bias on the scores, the kernel of the mean query and key is also known: a sum of
cosines, slopes, or the stored bias. The model's own pass with mean queries and keys must give it.

N documents, T tokens, L layers, H heads, R lags (positive: the key stands to the right).
"""

import numpy as np

from ..contract import Asks, Of, Without, options, register, verdict
from ..drawing import Part, When, draw, figures, panels
from ..maths import lags as lag_maths
from ..maths import nulls, profiles
from ..maths import positional_kernel as maths
from ..measures import heads, lag_signals, mean_kernel
from ..running.stream import UNSAVED
from ..texts import corpus

NEAR = profiles.REACH  # lags within which peaks are compared
REACH = 30  # lags drawn to each side, where documents are long enough
SHUFFLES = 20  # of the query positions
MOST = 0.9  # of the heads with a direction, from which the answer is yes
FIRST = 3  # heads of the first figure
MOST_NAMED = 48  # rows of the map of all heads that have a name
# nats by which a kernel's peak has to exceed its median: a key there gets a tenth more attention
LEAST = verdict.MARGIN
FLAT = NEAR + 1  # the lag of a kernel without such a peak: no attention is there


def kernel(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 20,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Each head's mean score by lag with the words averaged out, and what its mechanism gives."""
    cfg = model.config
    document_set = corpus.documents(model, text, documents, tokens)
    options.at_least("documents", len(document_set), 2)
    T = document_set.T
    options.within("tokens", T, NEAR + 1, cfg.n_ctx)
    reach = min(REACH, T - 1)
    by_place = mean_kernel.means(model, document_set, run)
    query, key = mean_kernel.overall(model, by_place)
    alone = mean_kernel.run_alone(model, next(iter(document_set)), query, key)
    attention = heads.attention_over(model, document_set, T, run)
    result = {"documents": len(document_set), "T": T, "causal": cfg.causal}
    result |= {"lags": profiles.offsets(reach), "attention": attention}
    result |= _known(model, alone, query, key, result)
    result["kernel"] = _by_place(model, by_place, alone.bias, reach)
    result |= _compare(result, seed)
    return result | _by_chance(model, by_place, result, seed)


def _known(model, alone, query, key, r):
    """The mechanism by its formula and by the model's own pass, and how far they are apart."""
    lags = r["lags"]
    reach = lags[-1]
    visible = _visible(r)
    known = mean_kernel.formula(model, query, key, lags, r["T"])
    if known is None:
        return {}
    own = maths.mean_by_lag(alone.scores, reach)
    error = maths.furthest(own[..., visible], known[..., visible]).max()
    return {"mechanism": own, "known": known, "error": error}


def _visible(r):
    """Lags at which a query may look: [R] bool."""
    return (r["lags"] <= 0) | (not r["causal"])


def _by_place(model, by_place, bias, reach):
    """Mean scores by lag [L H R]: queries of one half of the documents, keys of the other.

    by_place: means at each position, as `mean_kernel.means` gives them. bias: [L ...].
    """
    curves = []
    for layer, added in enumerate(bias):
        scale = model.config.attn_scale(layer)
        q, k = ([by_place[f"{name}_{half}"][layer] for half in ("even", "odd")] for name in "qk")
        even = mean_kernel.product(q[0], k[1], scale)
        odd = mean_kernel.product(q[1], k[0], scale)
        curves.append(maths.mean_by_lag((even + odd) / 2 + added, reach))
    return np.array(curves)


def _compare(r, seed):
    """Where kernels and attention are highest, and how often at the same offset."""
    causal = bool(r["causal"])
    curves = lag_signals.middle(r["kernel"], NEAR)
    lag, sharpness = lag_maths.peak(curves, NEAR, causal)
    height = lag_maths.height(curves, lag, NEAR, causal)
    offset = profiles.offsets()[r["attention"].argmax(axis=-1)]
    directed = profiles.directed(r["attention"], int(r["T"]), causal=causal)
    result = {"lag_of_heads": lag, "sharpness_of_heads": sharpness, "offset_of_heads": offset}
    result |= {"directed": directed, "n_directed": directed.sum(), "height_of_heads": height}
    peak = np.where(height > LEAST, lag, FLAT)
    result["n_agree"] = (peak == offset)[directed].sum()
    result["n_flat"] = ((lag == offset) & (peak == FLAT))[directed].sum()
    share, (_, high) = nulls.matches(peak.ravel(), offset.ravel(), seed)
    return result | {"agree": share, "agree_null": high}


def _by_chance(model, by_place, r, seed):
    """The most heads whose kernel peaks where they look, with the queries' positions shuffled.

    Each head has an order of its own: heads are counted, and many are alike. A bias by distance
    is then the same at every lag on average, and is left out.
    """
    L, H = r["kernel"].shape[:2]
    no_bias = np.zeros(L)
    places = np.tile(np.arange(int(r["T"])), (L, H, 1))
    rng = np.random.default_rng(seed)
    counts = []
    for _ in range(SHUFFLES):
        order = rng.permuted(places, axis=-1)[..., None]
        shuffled = dict(by_place)
        for name in ("q_even", "q_odd"):
            shuffled[name] = np.take_along_axis(by_place[name], order, axis=2)
        curves = _by_place(model, shuffled, no_bias, NEAR)
        lag, _ = lag_maths.peak(curves, NEAR, bool(r["causal"]))
        is_peak = lag_maths.height(curves, lag, NEAR, bool(r["causal"])) > LEAST
        counts.append((is_peak & (lag == r["offset_of_heads"]))[r["directed"]].sum())
    return {"n_agree_null": max(counts)}


def _draw_first(figure, r):
    """The heads that attend most to one offset, first those with a direction."""
    strength = r["attention"].max(axis=-1) + r["directed"]
    order = np.argsort(-strength, axis=None, kind="stable")[:FIRST]
    panels = figure.subplots(1, FIRST)
    for axes, *pair in zip(panels, *np.unravel_index(order, strength.shape)):
        _draw_head(axes, r, *pair)
        axes.set_xlabel("lag (tokens, + right)")
    for axes in panels[len(order) :]:
        axes.set_visible(False)
    panels[0].set_ylabel("mean score")
    figure.legend(handles=_samples(r), loc="outside upper center", ncols=3)


def _draw_every(figure, r):
    """All heads as one map: the kernel less its median, a row a head; rings: most attention."""
    shown, lags = _visible(r), r["lags"]
    curves = r["kernel"].reshape(-1, len(lags))[:, shown]  # [heads lags]
    curves = curves - np.median(curves, axis=1, keepdims=True)
    most = np.quantile(abs(curves), 0.99) or 1.0
    ends = lags[shown][0] - 0.5, lags[shown][-1] + 0.5, len(curves) - 0.5, -0.5
    axes = figure.subplots()
    of_signs = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
    image = axes.imshow(curves, extent=ends, aspect="auto", **of_signs)
    offsets = r["offset_of_heads"].ravel()
    for color, width in ("white", 3), ("black", 1):  # on dark cells the rim is seen
        style = {"color": "black", "markeredgecolor": color, "markeredgewidth": width}
        axes.plot(offsets, range(len(curves)), "o", markersize=4, fillstyle="none", **style)
    every = -(-len(curves) // MOST_NAMED)
    rows = range(0, len(curves), every)
    H = r["kernel"].shape[1]
    axes.set_yticks(rows, [heads.name(row // H, row % H) for row in rows])
    axes.set(
        xlabel="lag (tokens, + right)", title="every head; ring: the offset with most attention"
    )
    figure.colorbar(image, ax=axes, extend="both", label="mean score less its median")


def _draw_head(axes, r, layer, head):
    """Kernel and attention of a head, and what its mechanism gives; around their own medians."""
    lags = r["lags"]
    shown = _visible(r)
    twin = axes.twinx()
    attention = r["attention"][layer, head]
    twin.bar(profiles.offsets(), attention, width=0.8, color=draw.VERMILION, alpha=0.5)
    twin.set_ylim(0, 1)
    twin.set_yticks([0, 1])
    twin.tick_params(axis="y", colors=draw.VERMILION)
    axes.set_zorder(twin.get_zorder() + 1)
    axes.patch.set_visible(False)
    for name, style in LINES.items():
        if name in r:
            curve = r[name][layer, head][shown]
            axes.plot(lags[shown], curve - np.median(curve), **style)
    axes.set_title(heads.name(layer, head))


LINES = {
    "known": {"color": draw.ORANGE, "linestyle": "--"},
    "kernel": {"color": draw.BLUE, "linestyle": "-"},
}


def _samples(r):
    samples = [panels.line_sample("kernel: mean score of positions", **LINES["kernel"])]
    if "known" in r:
        text = "what the mechanism gives the mean query and key"
        samples.append(panels.line_sample(text, **LINES["known"]))
    bars = {"color": draw.VERMILION, "alpha": 0.5}
    return [*samples, panels.bar_sample("mean attention (right axis)", **bars)]


register(
    kernel,
    draw=figures(
        Part(_draw_first, height=3.6),
        Part(_draw_every, height=lambda r: min(1.4 + 0.16 * r["kernel"][..., 0].size, 9)),
    ),
    look="Blue is the mean score of a head at each lag when the words are averaged out, each curve "
    "less its median; vermilion is the mean attention. Where blue peaks under the highest bar, "
    "positions alone send the head there; where it is flat, words do. Dashed: what a bias or "
    "turned queries and keys must give, where the model has these. Where it lies on the blue line "
    "the mechanism is all; what is between them has reached the stream in another way, such as "
    "the causal mask, or is left of the words of few documents.",
    published="Kernels of this kind are stored in T5 (Raffel et al. 2020) and ALiBi (Press et al. "
    "2022), and are sums of cosines in rotary models (Su et al. 2021); how much of a model's "
    "scores the lag alone explains is asked by Wennberg and Henter (2021).",
    numbers="""
        n_agree: heads with a direction whose kernel stands more than {LEAST} nats above its median
            and is highest at the offset with most attention
            null: the most in {SHUFFLES} shuffles of the query positions
        fact n_flat: heads with a direction whose kernel is highest there, but by {LEAST} nats or
            less
        fact n_directed: heads with a direction: {profiles.DIRECTION}
        agree: share of all heads whose kernel has such a peak at the offset with most attention
            null: 99% quantile for shuffled pairs of heads
        error: largest difference between the model's pass with mean queries and keys and the
            formula of its mechanism, as a share of the largest value
            no null: rounding alone keeps it from 0
    """,
    answer=Asks(
        "heads with a direction whose kernel (mean score by offset) peaks where they look, by "
        f"more than {LEAST} nats",
        value="{n_agree} of {n_directed}",
        chance="up to {n_agree_null}",
        rule=Of("n_agree", out_of="n_directed", enough=MOST),
        without=Without("n_directed", "0 heads with a direction", "0 heads"),
    ),
    says=[
        "In {n_agree} of the {n_directed} heads with a direction the kernel, the mean score of "
        "positions with the words averaged out, is highest at the offset with most attention, and "
        "there more than {LEAST} nats above its median",
        When("n_flat", " (in {n_flat} more it is highest there, but lower)"),
        "; with the query positions shuffled, in {n_agree_null} at most. The kernel is highest at "
        "that offset in {agree:.0%} of all heads (99% of the shuffles of heads: up to "
        "{agree_null:.0%}).",
        When(
            "known",
            " Where a position enters the scores the kernel is known: the model's own pass with "
            "mean queries and keys differs from the formula by {error:.1g} of its largest value.",
        ),
    ],
    per_head=("lag_of_heads", "height_of_heads", "sharpness_of_heads", "offset_of_heads"),
    least_documents=2,
    shares_passes=True,
)
