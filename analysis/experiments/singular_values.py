"""Do a head's weights act on only a few directions, those of the position table?

The weights of each head alone: the singular values of W_A = W_Q W_K^T, and its share between the
principal components of positions. L layers that have query and key weights, H heads, D width,
d width of a head, r singular values, n principal components.
"""

import numpy as np

from ..contract import Asks, Below, Led, Of, options, register
from ..drawing import Part, draw, few, figures, head_map, row
from ..maths import factors, stats, waves
from ..measures import heads, inputs
from ..running.stream import UNSAVED

USUAL = 12  # components of positions, or as many as there are
SUBSPACES = 50  # random ones
SHOWN = 3  # layers with a panel of their own


def singular_values(
    model, run=UNSAVED, *, components: options.Count = USUAL, seed: options.Seed = 0
):
    """Singular values and effective rank of W_A, and its share between the principal components of
    positions.

    components: principal components of the positions as the layer reads them, without words
    """
    layers = inputs.layers(model)
    most = min(model.config.d_model, model.config.n_ctx) - 1
    components = options.fitting("components", components, most, USUAL)
    rng = np.random.default_rng(seed)
    measured = [_measure(model, layer, components, rng) for layer in layers]
    result = stats.stacked(measured)
    by_chance = result.pop("shares_null")  # [L SUBSPACES H]
    result |= {"layers": np.array(layers), "n": components, "r": result["S"].shape[-1]}
    result["held"] = result["variance"][0]
    for name, of in (("rank", np.median), ("rank_least", np.min)):
        result |= {name: of(result["ranks"]), f"{name}_null": of(result["ranks_null"])}
    result |= _position_shares(result["shares"], by_chance)
    i, head = np.unravel_index(result["shares"].argmax(), result["shares"].shape)
    result["share_head"] = heads.name(layers[i], head)
    result["layer_names"] = np.array([f"layer {layer}" for layer in layers])
    return result


def _measure(model, layer, n, rng):
    W_Q, W_K = inputs.queries_keys(model, [layer])[:, 0].astype(np.float64)  # [H D d]
    _, S, _ = factors.svd(W_Q, W_K)
    _, S_null, _ = factors.svd(_random_like(W_Q, rng), _random_like(W_K, rng))
    unit = S_null / np.maximum(np.linalg.norm(S_null, axis=1, keepdims=True), 1e-300)
    _, P, variance = factors.pca(inputs.of_positions(model, layer), n)
    result = {"S": S, "S_null": unit.mean(axis=0), "variance": variance.sum()}
    result["ranks"] = waves.effective_rank(S)
    result["ranks_null"] = waves.effective_rank(S_null)
    result["shares"] = waves.between(P.T, W_Q, W_K)
    result["shares_null"] = []
    for _ in range(SUBSPACES):
        V, _ = np.linalg.qr(rng.standard_normal(P.T.shape))  # [D n]
        result["shares_null"].append(waves.between(V, W_Q, W_K))
    return result


def _random_like(W, rng):
    """Gaussian weights with the Frobenius norm of each head: [H D d]."""
    norms = np.linalg.norm(W, axis=(1, 2), keepdims=True)
    return rng.standard_normal(W.shape) * norms / W[0].size ** 0.5


def _position_shares(shares_by_head, by_chance):
    """Largest share, and means of the first and last layer: [L H], [L SUBSPACES H]."""
    most_by_chance = by_chance.max()
    result = {"share": shares_by_head.max(), "share_null": most_by_chance}
    result["n_above"] = (shares_by_head > most_by_chance).sum()
    result["n_above_null"] = 0  # the null is the most that any head reaches
    result["n_above_by_layer"] = (shares_by_head > most_by_chance).sum(axis=1)
    result["share_by_layer"] = shares_by_head.mean(axis=1)
    result["share_by_layer_null"] = by_chance.mean()
    result["share_first"] = shares_by_head[0].mean()
    result["share_first_null"] = by_chance[0].mean()
    result["share_last"] = shares_by_head[-1].mean()
    result["share_last_null"] = by_chance[-1].mean()
    return result


def above(r):
    """Whether a head is beyond the random subspaces."""
    return "more" if r["share"] > r["share_null"] else "no more"


def _draw_singular_values(figure, r):
    """Up to SHOWN layers side by side."""
    layers = few(len(r["S"]), SHOWN)
    panels = figure.subplots(1, len(layers), sharey=True, squeeze=False)[0]
    for axes, layer in zip(panels, layers):
        _draw_layer(axes, r, layer)
    norms = np.linalg.norm(r["S"], axis=-1, keepdims=True)
    highest = (r["S"] / np.maximum(norms, 1e-300)).max()
    panels[0].set_ylabel("singular value of W_A\n(their squares sum to 1)")
    panels[0].set_ylim(0, 1.03 * highest)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)


def _draw_layer(axes, r, layer):
    """A line for every head of a layer, and what random weights give."""
    numbers = np.arange(1, r["r"] + 1)
    for head, S in enumerate(r["S"][layer]):
        unit = S / max(np.linalg.norm(S), 1e-300)
        label = "" if head else "a head"  # once in the legend
        axes.plot(numbers, unit, color=draw.BLUE, linewidth=0.9, alpha=0.7, label=label)
    text = "null: random weights"
    axes.plot(numbers, r["S_null"][layer], "--", color="black", linewidth=1.2, label=text)
    axes.set(xlim=(1, r["r"]), xlabel="number of the singular value")
    axes.locator_params(axis="x", integer=True)
    axes.set_title(f"layer {r['layers'][layer]}")


register(
    singular_values,
    look="A line that falls fast is a head that compares few directions of its input; the dashed "
    "line is what weights drawn at random would give. The right map shows how much of W_A "
    "joins the space in which positions vary to itself: a head whose share is far above that "
    "of any other such space compares positions, and its few directions are why a handful of "
    "columns of query and key are periodic.",
    published="Queries and keys of heads that attend by position are periodic in about 4 to 12 "
    "columns, and 12 principal components hold 92.23% of roberta-base's position table (Yamamoto "
    "and Matsuzaki, section 3.3 and appendix B); the singular values themselves are not shown.",
    figure="section 3.3",
    about="table",
    weights_only=True,
    numbers="""
        n_above: heads whose squared W_A lies between the principal components of positions, on
            both sides, by a larger share than random subspaces reach in any head
            no null: it is 0 by construction, the most that any head reaches
        share_by_layer by layer_names: share of a head's squared W_A that lies between the
            principal components of positions, mean of each layer
            null: mean share between {SUBSPACES} random subspaces of as many dimensions, all heads
        n_above_by_layer by layer_names: heads whose share is above what random subspaces reach, by
            layer
            no null: it is 0 by construction, the most that any head reaches
        rank: median over the heads of the effective rank of W_A: (sum of s^2)^2 / sum of s^4
            null: median for Gaussian W_Q and W_K with the Frobenius norms of each head
        rank_least: the least effective rank of a head
            null: the least effective rank with Gaussian weights
        share: largest share of a head's squared W_A between the principal components of positions
            null: the most in any head for {SUBSPACES} random subspaces of as many dimensions
        fact share_head: head with the largest share between the principal components of positions
        share_[first|last]: mean share between the principal components of positions, [first|last]
            layer
            null: mean share between random subspaces, [first|last] layer
        fact held: share of the variance of positions that the principal components hold, first
            layer
    """,
    answer=Asks(
        "heads whose W_Q W_Kᵀ acts in the table's first {n} components more than by chance; "
        "median effective rank",
        value="{n_above} of {shares.size}; {rank:.1f} of {r}",
        chance="{n_above_null} of {shares.size}; {rank_null:.1f}",
        rule=Led(
            Of("n_above", null=0, out_of="shares.size", enough=1 / 2),  # 0 by construction
            Below("rank", null="rank_least_null", most=np.inf),
        ),
    ),
    says="Half of the heads have an effective rank of at most {rank:.1f}, of {r} (random weights: "
    "{rank_null:.1f}). Of the squared W_A of layer {layers[0]}, {share_first:.1%} lie between the "
    "{n} principal components of positions, of that of layer {layers[-1]}, {share_last:.1%} "
    "(between any {n} directions {share_first_null:.2%}). The head with the most is {share_head} "
    "with {share:.1%}, {above} than {SUBSPACES} random subspaces reach in any head "
    "({share_null:.1%}).",
    draw=figures(
        row(
            head_map(
                "ranks",
                "effective rank, of {r}\n(null, random weights: {rank_null:.1f})",
                darkest="r",
            ),
            head_map(
                "shares",
                "% of W_A between {n} components of positions\n(null, any {n} directions: "
                "{share_first_null:.2%})",
                times=100,
            ),
            height=lambda r: max(2.4, 0.36 * len(r["S"]) + 1.2),
        ),
        Part(_draw_singular_values, height=3.6),
    ),
    per_head=("ranks", "shares"),
)
