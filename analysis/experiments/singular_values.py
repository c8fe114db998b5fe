"""The weights of each head alone: how many directions W_A = W_Q W_K^T uses, and whether they are those of positions.

L layers that have query and key weights, H heads, D width, d width of a head, r singular values, n principal
components. Order: the picture, the experiment, one layer.
"""

import numpy as np

from .. import corpus, draw, factors, heads as names, inputs, waves as maths
from ..registry import experiment

SUBSPACES = 50  # random ones
SHOWN = 6       # layers with a panel of their own


def plot(r):
    """Singular values, a panel for each layer; below, for every head, effective rank and share between positions."""
    L, H, _ = r["S"].shape
    shown = np.unique(np.linspace(0, L - 1, min(L, SHOWN)).round().astype(int))
    tall = max(2.2, 0.33 * L + 1.2)
    figure = draw.figure(12, 3 + tall)
    above, below = figure.subfigures(2, 1, height_ratios=(3, tall))
    panels = above.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, layer in zip(panels, shown):
        _curves(axes, r, layer)
    panels[0].set_ylabel("singular value of W_A\n(their squares sum to 1)")
    panels[0].set_ylim(0, 1.03 * (r["S"] / np.maximum(np.linalg.norm(r["S"], axis=-1, keepdims=True), 1e-300)).max())
    panels[-1].legend(loc="upper right")
    ranks, shares = below.subplots(1, 2)
    _map(ranks, r, r["ranks"], "{:.0f}", r["r"], "Blues")
    ranks.set_title(f"effective rank, of {r['r']} (null, random weights: {r['rank_null']:.1f})")
    _map(shares, r, 100 * r["shares"], "{:.2g}", 100, "Oranges")
    shares.set_title(f"% of W_A between {r['n']} components of positions (null, any {r['n']}: "
                     f"{100 * r['share_first_null']:.2g})")
    return figure


def _curves(axes, r, layer):
    at = np.arange(1, r["r"] + 1)
    for head, S in enumerate(r["S"][layer]):
        axes.plot(at, S / max(np.linalg.norm(S), 1e-300), color=draw.BLUE, linewidth=0.9, alpha=0.7,
                  label="" if head else "a head")
    axes.plot(at, r["S_null"][layer], "--", color="black", linewidth=1.2, label="null: random weights")
    axes.set(xlim=(1, r["r"]), xlabel="number of the singular value")
    axes.set_title(f"layer {r['layers'][layer]}")


def _map(axes, r, values, form, most, colors):
    """A number for every head; darker is more."""
    axes.imshow(values, cmap=colors, vmin=0, vmax=1.4 * most, aspect="auto")
    for (layer, head), value in np.ndenumerate(values):
        axes.text(head, layer, form.format(value), ha="center", va="center", fontsize=7)
    axes.set_xticks(range(values.shape[1]))
    axes.set_yticks(range(len(values)), r["layers"])
    axes.set(xlabel="head (the paper counts from 1)", ylabel="layer")
    axes.tick_params(length=0)


def says(r):
    """What the numbers show, in plain words."""
    above = "more" if r["share"] > r["share_null"] else "no more"
    return (f"Half of the heads have an effective rank of at most {r['rank']:.1f}, of {r['r']} (random weights: "
            f"{r['rank_null']:.1f}). Of the squared W_A of layer {r['layers'][0]}, {r['share_first']:.1%} lie "
            f"between the {r['n']} principal components of positions, of that of layer {r['layers'][-1]}, "
            f"{r['share_last']:.1%} (between any {r['n']} directions {r['share_first_null']:.2%}). The head with the "
            f"most is {r['share_head']} with {r['share']:.1%}, {above} than {SUBSPACES} random subspaces reach in "
            f"any head ({r['share_null']:.1%}).")


@experiment(
    asks="How many directions does a head compare, and are they those of positions?",
    draw=plot,
    look="A line that falls fast is a head that compares few directions of its input; the dashed line is what "
         "weights drawn at random would give. The right map asks how much of W_A joins the space in which positions "
         "vary to itself: a head that is there far above the share of any other such space compares positions, and "
         "its few directions are why a handful of columns of query and key are periodic.",
    published="Queries and keys of heads that attend by position are periodic in about 4 to 12 columns, and 12 "
              "principal components hold 92.23 % of roberta-base's position table (Yamamoto and Matsuzaki, section 3.3 "
              "and appendix B); the singular values themselves are not shown.",
    figure="section 3.3",
    says=says,
    weights_only=True,
    numbers={
        "layers": "layers looked at: those whose weights are there",
        "rank": "median over the heads of the effective rank of W_A: (sum of s^2)^2 / sum of s^4",
        "rank_null": "the same for Gaussian W_Q and W_K with the same Frobenius norms",
        "rank_least": "the least effective rank of a head",
        "rank_least_null": "the same for these random weights",
        "share": "largest share of a head's squared W_A that lies between the principal components of positions, on "
                 "both sides",
        "share_null": f"the most in any head for {SUBSPACES} random subspaces of as many dimensions",
        "share_head": "that head",
        "n_above": "heads whose share is above the most that random subspaces reach in any head",
        "share_first": "mean share of the first layer",
        "share_first_null": "the same for random subspaces, on average",
        "share_last": "mean share of the last layer",
        "share_last_null": "the same for random subspaces, on average",
        "held": "share of the variance of positions that these components hold, in the first layer"})
def singular_values(model, *, components: int = 12, seed: int = 0):
    """Singular values and effective rank of W_A, and its share between the principal components of positions.

    components: principal components of the positions as the layer reads them, without words
    seed: seed of the random weights and subspaces
    """
    D, there = model.config.d_model, inputs.layers(model)
    corpus.within("components", components, 1, min(D, model.config.n_ctx) - 1)
    rng = np.random.default_rng(seed)
    found = [_layer(model, layer, components, rng) for layer in there]
    each = {name: np.array([one[name] for one in found]) for name in found[0]}
    by_chance = each.pop("shares_null")  # [L SUBSPACES H]
    best = np.unravel_index(each["shares"].argmax(), each["shares"].shape)
    return each | {
        "layers": np.array(there), "n": components, "r": each["S"].shape[-1], "held": each["variance"][0],
        "rank": np.median(each["ranks"]), "rank_null": np.median(each["ranks_null"]),
        "rank_least": each["ranks"].min(), "rank_least_null": each["ranks_null"].min(),
        "share": each["shares"].max(), "share_null": by_chance.max(),
        "share_head": names.name(there[best[0]], best[1]), "n_above": (each["shares"] > by_chance.max()).sum(),
        "share_first": each["shares"][0].mean(), "share_first_null": by_chance[0].mean(),
        "share_last": each["shares"][-1].mean(), "share_last_null": by_chance[-1].mean()}


def _layer(model, layer, n, rng):
    """All numbers of the heads of one layer."""
    pairs = [inputs.query_key(model, layer, head) for head in range(model.config.n_heads)]
    W_Q, W_K = (np.array([pair[i] for pair in pairs], np.float64) for i in (0, 1))  # [H D d]
    random = [rng.standard_normal(W.shape) * np.linalg.norm(W, axis=(1, 2), keepdims=True) / W[0].size ** 0.5
              for W in (W_Q, W_K)]
    _, P, variance = factors.pca(inputs.of_positions(model, layer), n)
    S, S_null = factors.svd(W_Q, W_K)[1], factors.svd(*random)[1]
    any_other = (np.linalg.qr(rng.standard_normal(P.T.shape))[0] for _ in range(SUBSPACES))
    return {"S": S, "S_null": (S_null / np.linalg.norm(S_null, axis=1, keepdims=True)).mean(axis=0),
            "ranks": maths.effective_rank(S), "ranks_null": maths.effective_rank(S_null), "variance": variance.sum(),
            "shares": maths.between(P.T, W_Q, W_K), "shares_null": [maths.between(V, W_Q, W_K) for V in any_other]}
