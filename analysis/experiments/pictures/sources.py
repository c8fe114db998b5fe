"""Do the first layer's scores come from positions or from the content of patches?

With each norm's scale frozen the scores between patches are a sum of products: of a query's part
and a key's part, each the patch, the position, or biases. The share of a product is its
covariance with the score over the keys of a query, divided by the score's variance; shares sum to
1. Chance: the positions' part of the keys in random order. H heads of the first layer.
"""

import numpy as np

import minitx
from minitx import head_weights

from ...contract import Asks, Of, options, register_of_pictures
from ...drawing import Bar, bars, draw, row
from ...measures import heads, pictures
from ...running.stream import UNSAVED


def sources(
    model,
    run=UNSAVED,
    *,
    text: pictures.Source = "sample",
    documents: pictures.Count = 0,
    seed: options.Seed = 0,
):
    """Shares of positions and patches in the first layer's scores."""
    places = pictures.grid_of(model)
    sample = pictures.sample(model, text, documents, seed)

    def measure(i, tokens):
        q, k = _parts(model, tokens, places)
        order = np.random.default_rng((seed, i)).permutation(places.n)
        shuffled = k[1][:, order]
        return {"covariance": _covariances(q, k), "null": _covariances(q, k, shuffled)}

    sums = run.gather(measure, sample, "pictures")
    covariance = sums["covariance"]  # [H 3 3]
    variance = covariance.sum(axis=(1, 2))
    share = covariance / variance[:, None, None]
    by_chance = sums["null"][:, 1, 1] / variance
    names = [heads.name(0, head) for head in range(len(share))]
    result = {"documents": len(sample), "heads": np.array(names), "share": share}
    result |= {"position": share[:, 1, 1], "position_null": by_chance, "patch": share[:, 0, 0]}
    result["rest"] = 1 - result["position"] - result["patch"]
    for name in ("position", "position_null", "patch", "rest"):
        result[f"mean_{name}"] = result[name].mean()
    result |= {"most": share[:, 1, 1].max(), "most_null": by_chance.max()}
    result["strongest"] = names[share[:, 1, 1].argmax()]
    return result


def _parts(model, tokens, places):
    """Parts of the patches' queries and keys, [H n d] each: patch, position, biases."""
    w, first, cfg = model.weights, model.layers[0], model.config
    scales = {"ln_embed": "ln_embed_scale", "ln1": ("ln1_scale", 0)}  # of each norm
    if w.ln_embed_w is None:
        del scales["ln_embed"]
    trace = minitx.run(model, tokens, ["embed", "pos_embed", *scales.values()])
    embed, position = (trace[name][0].astype(np.float64) for name in ("embed", "pos_embed"))
    parts = [embed, position, np.zeros_like(embed)]
    for norm, point in scales.items():
        arrays = w if norm == "ln_embed" else first
        scale = trace[point][0].astype(np.float64)
        gain, bias = getattr(arrays, f"{norm}_w"), getattr(arrays, f"{norm}_b")
        parts = [gain * (x - x.mean(axis=-1, keepdims=True)) * scale[:, None] for x in parts]
        parts[2] = parts[2] + bias
    W_Q, W_K = (head_weights.matrices(first, cfg, letter) for letter in "QK")
    q = [x @ W_Q for x in parts]
    q[2] = q[2] + head_weights.biases(first, cfg, "Q")[:, None]
    k = [x @ W_K for x in parts]  # b_K is the same for all keys
    return [x[:, places.patches] for x in q], [x[:, places.patches] for x in k]


def _covariances(q, k, shuffled=None):
    """Covariance of each product with the scores, over the keys of each query: [H 3 3].

    shuffled: the positions' part of other keys, in whose place that part is set beside the scores.
    """
    scores = sum(a @ b.swapaxes(1, 2) for a in q for b in k)
    centred = scores - scores.mean(axis=-1, keepdims=True)
    keys = k if shuffled is None else [k[0], shuffled, k[2]]
    products = np.array([[a @ b.swapaxes(1, 2) for b in keys] for a in q])  # [3 3 H n n]
    return (centred * products).sum(axis=(3, 4)).transpose(2, 0, 1)


register_of_pictures(
    sources,
    look="Where the blue bar is far above its dash, a head of the first layer compares positions "
    "with positions.",
    numbers="""
        most: largest share of position × position in the variance of a head's scores over the keys
            null: the largest with the keys' positions in random order
        [mean_position|mean_patch|mean_rest]: share of [position × position|patch × patch|all other
            products], mean over the heads of the first layer
            no null: that of single heads has one
        position by heads: share of position × position
            null: the same with the keys' positions in random order
        patch by heads: share of patch × patch
            no null: shares sum to 1
        fact documents: pictures read
    """,
    answer=Asks(
        "largest share of position × position in a head of the first layer",
        value="{most:.0%}",
        chance="{most_null:.0%}",
        rule=Of("most", enough=0.5),
    ),
    says=[
        "In the first layer position × position is {mean_position:.0%} of the variance of "
        "scores between patches, patch × patch {mean_patch:.0%}, mixed products and biases "
        "{mean_rest:.0%} (mean over heads). {strongest} has the largest share of position × "
        "position, {most:.0%} (keys' positions in random order: at most {most_null:.0%}).",
    ],
    draw=row(
        bars(
            Bar("position", "position × position", draw.BLUE, null="position_null"),
            Bar("patch", "patch × patch", draw.ORANGE),
            Bar("rest", "all other products", draw.GREY),
            ticks="heads",
            null="null: the keys' positions in random order",
            ylabel="share of the variance of scores",
        )
    ),
)
