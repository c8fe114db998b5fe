"""The angles between queries and keys where a position turns both, by pairs of features.

Pair number p turns by omega radians from token to token. Its part of the score of the mean query
and the mean key at key offset o is |c| cos(omega o - theta): it fits best where the turn makes up
for the angle theta. No basis is chosen, so nothing is arbitrary, and the sum over the pairs is the
kernel of the head. Positions reach the angles nowhere: means are over words and positions.

L layers, H heads, r pairs, R key offsets (positive: to the right), n heads drawn.
"""

import numpy as np

from ..contract import options
from ..drawing import draw
from ..maths import nulls, positional_kernel, profiles
from ..measures import heads, mean_kernel, score_moves
from ..texts import corpus

DEALS = 1000  # of angles among the pairs of a head
OFFSETS = profiles.offsets()
LINES = (-3, -2, -1, 1, 2, 3)  # offsets, in tokens, whose angles are drawn


def measure(model, run, given, _):
    """Angles and strengths of all pairs [L H r], and the offset at which they fit best.

    Nothing of them is arbitrary, so that none of the options of a basis is read.
    """
    head, text, documents, tokens, seed = given
    layers = score_moves.layers(model)
    document_set = corpus.documents(model, text, max(documents, 2), tokens)
    options.at_least("documents", len(document_set), 2)
    T, causal = document_set.T, model.config.causal
    options.within("tokens", T, profiles.REACH + 1, model.config.n_ctx)
    drawn = heads.select(head, model, document_set, run, layers)
    still = [heads.name(*pair) for pair in drawn if pair[0] not in layers]
    if still:
        text = f"{', '.join(still)}: no place turns a query there"
        raise ValueError(f"{text}; wanted one of layers {', '.join(map(str, layers))}")
    by_place = mean_kernel.means(model, document_set, run)
    query, key = (x[layers] for x in mean_kernel.overall(model, by_place))
    turns = [model.config.rotary[layer].for_length(T) for layer in layers]
    c = np.array([_pairs(q, k, len(turn.frequencies)) for q, k, turn in zip(query, key, turns)])
    omega = np.array([turn.frequencies for turn in turns])
    attention = heads.attention_over(model, document_set, T, run)[layers]
    result = {"T": T, "causal": causal, "pairs": c.shape[-1], "documents": len(document_set)}
    result |= {"layers": np.array(layers), "omega": omega, "angle_of_pairs": np.angle(c)}
    result["strength_of_pairs"] = abs(c)
    result["curve_of_heads"] = _curves(c, omega)
    result["offset_of_heads"] = highest(result["curve_of_heads"], causal)
    result["attention_of_heads"] = OFFSETS[attention.argmax(axis=-1)]
    result["directed"] = profiles.directed(attention, T, causal=causal)
    result["n_directed"] = result["directed"].sum()
    result |= {"mean_attention": attention, "rows": np.array([layers.index(i) for i, _ in drawn])}
    result |= {"columns": np.array([j for _, j in drawn])}
    result["heads"] = np.array([heads.name(*pair) for pair in drawn])
    return result | _right(c, omega, result, seed)


def _pairs(query, key, r):
    """c = q conj(k) of each of r pairs of the heads of a layer: [H d], [G d] -> [H r]."""
    key = np.repeat(key, len(query) // len(key), axis=0)
    return positional_kernel.pairs(query, r) * positional_kernel.pairs(key, r).conj()


def _curves(c, omega):
    """Sum over the pairs of |c| cos(omega o - theta) at each key offset: [L H r] -> [L H R]."""
    back = np.exp(-1j * omega[:, None, :, None] * OFFSETS)
    return (c[..., None] * back).real.sum(axis=2)


def highest(curves, causal):
    """The key offset [...] of the highest value [... R] among those that the mask leaves."""
    seen = np.where(causal & (OFFSETS > 0), -np.inf, curves)
    return OFFSETS[seen.argmax(axis=-1)]


def _right(c, omega, r, seed):
    """Share of the heads with a direction whose pairs fit best where they attend to.

    The null is the larger of two: heads shuffled, and the angles of a head dealt among its pairs.
    """
    directed = r["directed"]
    result = {"n_compared": directed.sum()}
    if not directed.any():
        return result
    attention = r["attention_of_heads"][directed]
    offset = r["offset_of_heads"][directed]
    rng = np.random.default_rng(seed)
    layer = np.nonzero(directed)[0]
    of_heads = c[directed]  # [n r]
    by_angles = []
    for _ in range(DEALS):
        angles = rng.permuted(np.angle(of_heads), axis=1)
        mixed = abs(of_heads) * np.exp(1j * angles)
        curves = _curves(mixed[:, None], omega[layer])[:, 0]
        by_angles.append(np.mean(highest(curves, r["causal"]) == attention))
    right, (_, by_heads) = nulls.matches(attention, offset, seed)
    by_chance = np.quantile(by_angles, nulls.CHANCE), by_heads
    result |= {"right": right, "right_null": max(by_chance)}
    return result | dict(zip(("right_dealt", "right_shuffled"), by_chance))


def paint(figure, r, i):
    """Of one head the angles of its pairs, and what they add up to, beside its attention."""
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    place = r["rows"][i], r["columns"][i]
    _draw_angles(left, r, place)
    _draw_curve(right, r, place)
    left.set_xlabel("period of the pair (tokens)")
    left.set_title(
        f"{r['heads'][i]}: pairs of features, larger if stronger\n(lines: offsets of ±1 to ±3)"
    )
    right.set_xlabel("key offset (tokens, + right)")


def _draw_angles(axes, r, place):
    """Angles of a head's pairs by their period, the larger the stronger; lines of one offset."""
    omega = r["omega"][place[0]]
    strength = r["strength_of_pairs"][place]
    period = 2 * np.pi / omega
    for offset in LINES:
        angle = (omega * offset + np.pi) % (2 * np.pi) - np.pi
        axes.plot(period, angle, "-", color=draw.VERMILION, linewidth=0.6, alpha=0.6)
    size = 120 * strength / max(strength.max(), 1e-300)
    axes.scatter(period, r["angle_of_pairs"][place], size, color=draw.BLUE, alpha=0.8)
    axes.set(xscale="log", ylim=(-np.pi, np.pi), ylabel="angle (radians)")


def _draw_curve(axes, r, place):
    """The sum over the pairs by key offset, and the mean attention."""
    seen = (OFFSETS <= 0) | (not r["causal"])
    axes.plot(OFFSETS[seen], r["curve_of_heads"][place][seen], color=draw.BLUE)
    axes.set_ylabel("sum over the pairs", color=draw.BLUE)
    twin = axes.twinx()
    twin.bar(OFFSETS, r["mean_attention"][place], 0.8, color=draw.ORANGE, alpha=0.5)
    twin.set_ylim(0, 1)
    twin.set_ylabel("mean attention", color=draw.ORANGE)
