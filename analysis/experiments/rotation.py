"""Are keys the queries, rotated by whole tokens?

A rotation turns a head's queries into its keys, and at each frequency its angles are shifts by a
number of tokens. The weights leave most of the basis free, so the experiment also measures how much
of the rotation is an arbitrary choice. T tokens, D width, F frequencies, A bins of angles, R key
offsets (positive: to the right), n columns of a basis, L layers, H heads, G random bases; g [F n]
is the amplitude at each frequency and angle, theta [n] are the angles.
Order: the experiment, its input, one head, all heads; the words; the picture.
"""

from typing import NamedTuple

import numpy as np

from ..maths import factors, nulls, profiles
from ..maths import rotation as maths
from ..measures import heads, inputs
from ..runner import draw, options
from ..runner.registry import register
from ..runner.stream import UNSAVED
from ..texts import corpus

COMPLETIONS = "procrustes", "lapack", "thin"
SHIFTS = (1, 2, 3)  # to both sides, in tokens or in tens, hundreds of them: the curves in the maps
PERMUTATIONS = 100  # of the angles
ZERO = 1e-6  # radians below which an angle counts as zero
TRIALS = (
    "smallest rotation, from other bases",
    "published basis with random ones",
    "random bases with each other",
    "published with smallest rotation",
)
COLORS = draw.BLUE, draw.ORANGE, draw.GREEN, draw.PURPLE, draw.SKY  # of the heads


def rotation(
    model,
    run=UNSAVED,
    *,
    head: str = "auto",
    completion: str = "procrustes",
    input: str = "text",
    gauge: int = 5,
    text: str = "sample",
    tokens: int = 0,
    seed: int = 0,
):
    """Angles between queries and keys, by frequency, and how far they depend on an arbitrary
    choice.

    head: heads to draw, as L0H0,L1H2; auto: the sharpest to the left, to the right, and the
    broadest
    completion: basis where weights settle none: procrustes (smallest rotation), lapack (as
    published), thin (none)
    input: text (first document), or positions (alone, as always in a partial checkpoint)
    gauge: random bases with which the maps are compared
    text: file or folder with one document or paragraph a line, - for standard input, or sample
    tokens: length of the document (0: the model's longest input)
    seed: seed of the random bases and deals
    """
    _check_word("completion", completion, COMPLETIONS)
    _check_word("input", input, ("text", "positions"))
    options.within("gauge", gauge, 1, 50)
    if model.missing:
        input = "positions"
    document_set = None
    T = tokens or model.config.n_ctx
    if input == "text":
        document_set = corpus.documents(model, text, tokens=tokens)
        T = document_set.T
    options.within("tokens", T, profiles.REACH + 1, model.config.n_ctx)
    pairs = heads.select(head, model, document_set, run)
    X, attention = _read_input(model, document_set, T)
    attention_offset = profiles.offsets()[profiles.mean_attention(attention, T).argmax(axis=-1)]
    noise = np.random.default_rng(seed).standard_normal((2, T, model.config.d_model))
    result = {"T": T, "D": model.config.d_model, "input": input, "completion": completion}
    result["angle"] = maths.bin_centres()
    result["fit_of_noise"] = maths.fit(*noise)
    result |= _name_heads(pairs, inputs.layers(model), attention_offset)
    result |= _measure_heads(model, X, pairs, completion, gauge, seed)
    return result | _compare_all_heads(model, X, attention_offset, seed)


def _check_word(name, value, words):
    """Raise ValueError unless an option is one of these words."""
    if value not in words:
        raise ValueError(f"--{name} is {value!r}; wanted {' or '.join(words)}")


def _read_input(model, document_set, T):
    """Input {layer: X [T D]} in float64 and attention profiles [L H R].

    They are those of the first document, or without documents those of positions alone.
    """
    if document_set is None:
        layers = inputs.layers(model)
        X = {layer: inputs.of_positions(model, layer, T).astype(float) for layer in layers}
        attention = [heads.from_positions(model, layer, T) for layer in layers]
        return X, np.array(attention)
    document = document_set.first()[0]
    X = inputs.of_text(model, document).astype(float)
    return dict(enumerate(X)), heads.head_profiles(model, document)


def _name_heads(pairs, layers, attention_offset):
    """Names of the heads drawn, and the offset of most attention of each, from [L H]."""
    rows = [layers.index(layer) for layer, _ in pairs]
    columns = [number for _, number in pairs]
    result = {"heads": np.array([heads.name(*pair) for pair in pairs])}
    result["papers_heads"] = np.array([heads.papers_name(*pair) for pair in pairs])
    result["attention_offset"] = attention_offset[rows, columns]
    return result


def _measure_heads(model, X, pairs, completion, gauge, seed):
    """What `_measure_head` gives for each of the heads drawn, stacked by name."""
    results = []
    for layer, number in pairs:
        W_Q, W_K = inputs.query_key(model, layer, number)
        result = _measure_head(X[layer], W_Q, W_K, model.config.causal, completion, gauge, seed)
        results.append(result)
    return {name: np.array([result[name] for result in results]) for name in results[0]}


def _measure_head(x, W_Q, W_K, causal, completion, gauge, seed):
    """Maps [F A], shares by key offset [R], trials and the fit of one head."""
    bases = {completion, "procrustes", "lapack"}
    rotations = {basis: _rotate(W_Q, W_K, basis, seed) for basis in bases}
    U_Q, U_K, theta, P, modulus = rotations[completion]
    query_part = factors.seen(x, W_Q, W_K)  # what queries read of x
    key_part = factors.seen(x, W_K, W_Q)
    g = maths.phase_map(query_part, U_Q, P)
    g_of_keys = maths.phase_map(key_part, U_K, P)
    amplitudes = {"whole": maths.phase_map(x, U_Q, P), "queries": g, "keys": g_of_keys}
    result = {}
    for name, amplitude in amplitudes.items():
        result[name] = maths.binned(amplitude, theta).astype(np.float32)
    result |= _offset_shares(g, theta, len(x), causal, seed)
    result |= _trials(x, W_Q, W_K, rotations, gauge, seed)
    result["modulus"] = modulus.mean()
    result["modulus_by_angle"] = _mean_by_angle(theta, modulus)
    result["zero"] = (abs(rotations["procrustes"].theta) < ZERO).mean()
    result["offset_lapack"] = _highest_offset(query_part, causal, rotations["lapack"])
    result["median_offset"] = _median_offset(g, theta, len(x))
    return result | _fit(x, W_Q, W_K, completion, seed)


class Rotation(NamedTuple):
    """How a head's queries turn into its keys, given a basis of each."""

    U_Q: np.ndarray  # [D n]
    U_K: np.ndarray  # [D n]
    theta: np.ndarray  # [n] angles, rising
    P: np.ndarray  # [n n] eigenvectors
    modulus: np.ndarray  # [n] of the eigenvalues


def _rotate(W_Q, W_K, basis, seed=0):
    """The Rotation of a head; basis: one of COMPLETIONS, or random."""
    U_Q, U_K = maths.complete(W_Q, W_K, basis, seed)
    return Rotation(U_Q, U_K, *maths.angles(U_Q, U_K))


def _offset_shares(g, theta, T, causal, seed):
    """Shares of the energy by key offset, those that chance gives, the offset most above it."""
    share, expected = _by_offset(g, theta, T)
    excess = share - expected
    best = _argmax_visible(excess, causal)
    permuted = _permuted_excess(g, theta, expected, T, causal, seed)
    result = {}
    result["share_by_offset"] = share
    result["dealt_by_offset"] = expected
    result["offset"] = profiles.offsets()[best]
    result["share"] = share[best]
    result["share_null"] = expected[best]
    result["excess"] = excess[best]
    result["excess_null"] = np.quantile(permuted, 0.95)
    result["near"] = share.sum()
    result["near_null"] = expected.sum()
    return result


def _by_offset(g, theta, T):
    """Shares of the energy [R] at the key offsets, minus Delta, and the mean over permuted angles.

    Angles of 0 stay where they are.
    """
    free = abs(theta) > ZERO
    mean = np.sqrt(np.square(g[:, free]).mean(axis=1, keepdims=True))
    even = np.where(free, mean, g)
    return maths.by_lag(g, theta, T)[::-1], maths.by_lag(even, theta, T)[::-1]


def _argmax_visible(excess, causal):
    """Index of the offset with the largest excess [R], among those that the mask leaves."""
    return np.where(causal & (profiles.offsets() > 0), -np.inf, excess).argmax()


def _permuted_excess(g, theta, expected, T, causal, seed):
    """Largest excess over the expected shares, a number for each permutation of the angles."""
    rng = np.random.default_rng(seed)
    free = abs(theta) > ZERO
    permuted = theta.copy()
    largest = []
    for _ in range(PERMUTATIONS):
        permuted[free] = rng.permutation(theta[free])
        excess = maths.by_lag(g, permuted, T)[::-1] - expected
        largest.append(excess[_argmax_visible(excess, causal)])
    return largest


def _highest_offset(x, causal, rotated):
    """The key offset whose share of the energy stands most above chance in an input [T D]."""
    g = maths.phase_map(x, rotated.U_Q, rotated.P)
    share, expected = _by_offset(g, rotated.theta, len(x))
    return profiles.offsets()[_argmax_visible(share - expected, causal)]


def _median_offset(g, theta, T):
    """Offset of the keys that fit, in tokens, with half of the energy on either side of it."""
    offset = 0 - maths.shift(theta, T).ravel()  # 0 - x, as -x would give -0
    energy = np.square(g[1:]).ravel()
    order = np.argsort(offset, kind="stable")
    below = energy[order].cumsum()
    return offset[order][np.searchsorted(below, below[-1] / 2)]


def _trials(x, W_Q, W_K, rotations, n, seed):
    """Correlations of maps of the whole input that were made from different bases.

    trials [3 n]: the smallest rotation, the published basis and a random one, each with n others.
    """

    def shape(rotated):
        return maths.shape(x, rotated.U_Q, rotated.theta, rotated.P)

    def shapes(basis):
        return [shape(_rotate(W_Q, W_K, basis, seed + 1 + i)) for i in range(n)]

    smallest = shape(rotations["procrustes"])
    published = shape(rotations["lapack"])
    first_random = shape(_rotate(W_Q, W_K, "random", seed))
    random = shapes("random")
    own = _correlations(smallest, shapes("procrustes"))
    trials = np.array([own, _correlations(published, random), _correlations(first_random, random)])
    result = {"trials": trials, "apart": maths.map_correlation(published, smallest)}
    names = "gauge", "gauge_lapack", "gauge_lapack_null"
    return result | dict(zip(names, trials.mean(axis=1)))


def _correlations(shape, others):
    """Correlations of the shape of a map with those of others."""
    return [maths.map_correlation(shape, other) for other in others]


def _mean_by_angle(theta, modulus):
    """Mean modulus of the eigenvalues in each bin of angles [A], 0 where there are none."""
    # `binned` adds up squares
    total = maths.binned(np.sqrt(modulus)[None], theta)[0]
    count = maths.binned(np.ones_like(modulus)[None], theta)[0]
    return total / np.maximum(count, 1)


def _fit(x, W_Q, W_K, completion, seed):
    """How much of the keys a rotation explains, and of noise; the modulus that noise gives."""
    U_Q, U_K = maths.complete(W_Q, W_K, "thin")
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((2, len(x), U_Q.shape[1]))
    spaces = rng.standard_normal((2, *U_Q.shape))
    modulus = _rotate(*spaces, completion, seed).modulus.mean()
    fit = maths.fit(x @ U_Q, x @ U_K)
    return {"modulus_null": modulus, "fit": fit, "fit_null": maths.fit(*noise)}


def _compare_all_heads(model, X, attention_offset, seed):
    """Offsets of all heads [L H] from what the weights determine, and of most attention."""
    best = []
    for layer in X:
        for number in range(model.config.n_heads):
            W_Q, W_K = inputs.query_key(model, layer, number)
            query_part = factors.seen(X[layer], W_Q, W_K)
            thin = _rotate(W_Q, W_K, "thin")
            best.append(_highest_offset(query_part, model.config.causal, thin))
    offset = np.array(best).reshape(attention_offset.shape)
    agree, null = nulls.matches(offset.ravel(), attention_offset.ravel(), seed)
    result = {"offset_of_heads": offset, "attention_of_heads": attention_offset}
    return result | {"agree": agree, "agree_null": null}


def says(r):
    """What the numbers show, in plain words."""
    columns = ("heads", "offset", "share", "share_null", "excess", "excess_null")
    rows = zip(*(r[name] for name in (*columns, "attention_offset")))
    each_head = "; ".join(_describe_head(*row) for row in rows)
    middle = ", ".join(f"{offset:+.1f}" for offset in r["median_offset"])
    settled = (
        f"By what the weights determine, the offset is that of attention in {r['agree']:.0%} of "
        f"all {r['offset_of_heads'].size} heads (heads shuffled: {r['agree_null'][0]:.0%}, up to "
        f"{r['agree_null'][1]:.0%})."
    )
    alone = " Positions alone, without words." if r["input"] == "positions" else ""
    return (
        f"The offset that stands out most is in {each_head}; half of the energy fits keys to the "
        f"right of {middle} tokens. {settled} {_describe_choice(r)}{alone}"
    )


def _describe_head(name, offset, share, null, excess, line, attention_offset):
    """The offset of one head, beside chance and its attention."""
    verdict = "more" if excess > line else "no more"
    return (
        f"{name} {draw.offset(offset)} with {share:.1%} of the energy (angles dealt at random: "
        f"{null:.1%}; {verdict} than chance gives), and attention looks at "
        f"{draw.offset(attention_offset)}"
    )


def _describe_choice(r):
    """Whether the map is an arbitrary choice, and what thin bases leave out."""
    own, lapack, random = r["trials"].mean(axis=(0, 2))
    arbitrary = abs(lapack - random) < 0.1 and max(lapack, random) < own / 2
    verdict = ", so it is one arbitrary choice of many" if arbitrary else ""
    choice = (
        "Within each frequency the map of the whole input from the published basis correlates "
        f"with maps from random bases by {lapack:.2f}, these with each other by "
        f"{random:.2f}{verdict}; the smallest rotation from other bases correlates with itself by "
        f"{own:.2f} and with the published one by {r['apart'].mean():.2f}, and has "
        f"{r['zero'].mean():.0%} of its angles at zero."
    )
    if r["completion"] != "thin":
        return choice
    return choice + (
        f" Thin bases contract: eigenvalues of {r['modulus'].mean():.2f} on average (two random "
        f"spaces: {r['modulus_null'].mean():.2f}, a rotation: 1)."
    )


def plot(r):
    """Maps and energy by offset of every head; below, how arbitrary the basis is, and the fit."""
    n = len(r["heads"])
    figure = draw.figure(12.5, 2.4 * n + 2.7)
    above, below = figure.subfigures(2, 1, height_ratios=(2.4 * n + 0.5, 2.2), hspace=0.02)
    _draw_heads(above, r)
    left, right = below.subplots(1, 2, width_ratios=(1.3, 1))
    _draw_trials(left, r)
    _draw_fit(right, r)
    return figure


def _draw_heads(figure, r):
    """A row for each head: three maps and the energy by offset."""
    n = len(r["heads"])
    grid = figure.subplots(n, 4, squeeze=False, width_ratios=(1, 1, 1, 1.05))
    for i in range(n):
        for axes, name in zip(grid[i], ("whole", "queries", "keys")):
            image = _draw_map(axes, r, r[name][i])
        _draw_offsets(grid[i, 3], r, i)
        grid[i, 0].set_ylabel(_row_label(r, i))
    whole = "the whole input (keys: the same)"
    if r["completion"] == "thin":
        whole = "what weights determine, all alike"
    for axes, title in zip(grid[0], (whole, "what queries read", "what keys read")):
        axes.set_title(title)
        _draw_periods(axes, r)
    for axes in grid[-1, :3]:
        axes.set_xlabel(f"frequency (cycles in {r['T']} tokens)")
    grid[-1, 3].set_xlabel("offset of the key that fits, $-\\Delta$ (tokens)")
    figure.colorbar(image, ax=grid[:, 2], shrink=0.6, aspect=30, label="amplitude / largest")


def _row_label(r, i):
    """Names of a head, and in thin bases the modulus of its eigenvalues."""
    size = ""
    if r["completion"] == "thin":
        size = f"|eigenvalue| {r['modulus'][i]:.2f} (chance: {r['modulus_null'][i]:.2f})\n"
    return f"{r['heads'][i]}, {r['papers_heads'][i]}\n{size}angle (radians)"


def _draw_map(axes, r, energy):
    """Heat map over frequency and angle [F A] with the curves of whole shifts."""
    last = _last_frequency(r)
    half = np.pi / len(r["angle"])  # of a bin
    amplitude = np.sqrt(energy[1 : last + 1].T)
    amplitude /= max(amplitude.max(), 1e-300)
    extent = (0.5, last + 0.5, r["angle"][0] - half, r["angle"][-1] + half)
    image = axes.imshow(
        amplitude, cmap="Blues", vmin=0, vmax=1, origin="lower", aspect="auto", extent=extent
    )
    _draw_shifts(axes, int(r["T"]), last)
    axes.set(xlim=(0.5, last + 0.5), ylim=(-np.pi, np.pi), yticks=range(-3, 4))
    return image


def _last_frequency(r):
    """Frequency up to which the maps are drawn: 99 % of what queries read."""
    energy = r["queries"][:, 1:].sum(axis=(0, 2))
    last = 1 + int(np.searchsorted(energy.cumsum(), 0.99 * energy.sum()))
    return min(max(8, last), len(energy))


def _draw_shifts(axes, T, last):
    """Curves of shifts by whole tokens, up to the frequency `last`."""
    # curves of fewer tokens would lie on each other
    step = 10 ** max(0, int(np.ceil(np.log10(T / (24 * last)))))
    for delta in step * np.array((*SHIFTS, *(-d for d in SHIFTS))):
        theta = np.sign(delta) * np.linspace(0, np.pi, 200)
        f = maths.lag_curve(theta, T, delta)
        inside = f <= last
        axes.plot(f[inside], theta[inside], color=draw.VERMILION, linewidth=0.6)
        end = np.flatnonzero(inside & (abs(theta) < 2.7))[-1]  # clear of the frame
        label = draw.offset(-delta)
        axes.annotate(label, (f[end], theta[end]), fontsize=7, color=draw.VERMILION)


def _draw_periods(axes, r):
    """Periods of a few frequencies above a map."""
    above = axes.secondary_xaxis("top")
    frequencies = np.unique(np.linspace(1, _last_frequency(r), 5).astype(int))
    periods = r["T"] / frequencies
    above.set_xticks(frequencies, [f"{p:.0f}" if p > 10 else f"{p:.1f}" for p in periods])
    above.set_xlabel("period (tokens)")


def _draw_offsets(axes, r, i):
    """Share of the energy at each key offset, beside the share expected of permuted angles."""
    offsets = profiles.offsets()
    share, expected = r["share_by_offset"][i], r["dealt_by_offset"][i]
    axes.bar(offsets, share, width=0.8, color=draw.SKY)
    axes.plot(offsets, expected, color=draw.GREY, linestyle="--", marker="o", markersize=2.5)
    axes.plot(r["attention_offset"][i], 0, "^", color=draw.VERMILION, markersize=7, clip_on=False)
    axes.set_title(
        f"above chance: {draw.offset(r['offset'][i])}; median: {r['median_offset'][i]:+.3g};\n"
        f"attention (triangle): {draw.offset(r['attention_offset'][i])}"
    )
    most = max(share.max(), expected.max())
    axes.set(ylim=(0, max(1e-6, 1.1 * most)), ylabel="share of energy")


def _draw_trials(axes, r):
    """Correlations of maps from different bases, a row for each trial, a colour for each head."""
    rows = (*r["trials"].swapaxes(0, 1), r["apart"][:, None])  # [heads G] or [heads 1]
    for row, correlations in enumerate(rows):
        n = len(correlations)
        for i, values in enumerate(correlations):
            place = row + min(0.15, 0.5 / n) * (i - (n - 1) / 2)
            height = np.full(len(values), place)
            axes.plot(values, height, "o", markersize=4, alpha=0.7, color=_color(i))
    least = min(-0.05, *(row.min() - 0.05 for row in rows))
    axes.set(xlim=(least, 1.05), ylim=(len(TRIALS) - 0.4, -0.6))
    axes.set_xlabel("correlation of two maps of the whole input within each frequency")
    axes.set_yticks(range(len(TRIALS)), TRIALS)
    axes.set_title("is the map settled (1), or an arbitrary choice of basis?")


def _draw_fit(axes, r):
    """Variance of the keys that one rotation of the queries explains, beside that of noise."""
    for i, value in enumerate(r["fit"]):
        axes.bar(i, value, color=_color(i), width=0.6)
        axes.plot([i - 0.4, i + 0.4], 2 * [r["fit_null"][i]], color="black", linewidth=1)
    axes.set_xticks(range(len(r["heads"])), r["heads"])
    axes.set(ylim=(0, 1), ylabel="variance explained")
    axes.set_title(
        f"keys explained by one rotation of queries; line: noise\n"
        f"(noise {r['T']} × {r['D']}: {r['fit_of_noise']:.2f})"
    )


def _color(i):
    """Colour of head number i."""
    return COLORS[i % len(COLORS)]


register(
    rotation,
    draw=plot,
    says=says,
    look=(
        "A wave that is turned by an angle is moved by a number of tokens; the red lines are "
        "moves by 1, 2 and 3 tokens (or tens, hundreds of tokens, where waves are so slow that "
        "nearer lines would be one), named by the offset of the key that then fits the query (-1: "
        "one to the left). Dark places along one line mean a head that looks there; waves moved "
        "by more than half a turn show on the other side. The first map is of the whole input, as "
        "published; queries and keys have the same one, since K p is Q p times a number of "
        "modulus 1. Most of the input the head does not read: the next two maps are of what its "
        "queries and its keys read, weighted as in the scores. The bars add up the second map by "
        "offset; dashed: the same waves with the angles dealt at random. Below, at the left: the "
        "weights leave most of the basis free, and a map that changes with it shows a choice, not "
        "the head. At the right: one rotation explains something of pure noise too."
    ),
    published=(
        "In roberta-base the map of head(1,1), here L0H0, which looks weakly left, peaks between "
        "the curves of 1 and 3 tokens, that of head(2,3), here L1H2, which looks one to the "
        "right, on the curve of -1 (Yamamoto and Matsuzaki, figure 6)."
    ),
    figure="figure 6",
    numbers={
        "heads": "heads drawn",
        "offset": (
            "key offset, in tokens, whose share of the energy stands most above chance: minus the "
            "shift; in a causal model to the left"
        ),
        "share": "its share of the energy of what queries read",
        "share_null": "its share if the angles are dealt at random",
        "excess": "the difference",
        "excess_null": f"95 % quantile of the largest such difference in {PERMUTATIONS} deals",
        "offset_lapack": "that offset from the published basis",
        "attention_offset": "offset, in tokens, of most attention",
        "near": "share of the energy at all offsets within 10 tokens",
        "near_null": "the same if the angles are dealt at random",
        "median_offset": (
            "offset, in tokens, of the keys that fit, in the middle of all the energy (chance: "
            "near 0)"
        ),
        "agree": (
            "share of all heads, their determined part alone, whose offset is that of most "
            "attention"
        ),
        "agree_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "zero": "share of angles at zero in the smallest rotation",
        "modulus": (
            "mean modulus of the eigenvalues: 1 for a rotation, less where the basis is thin"
        ),
        "modulus_null": "the same for two random spaces as wide",
        "gauge": (
            "correlation, within each frequency, of the map of the smallest rotation with itself "
            "from random bases, mean"
        ),
        "gauge_lapack": (
            "correlation of the map of the published basis with those of random bases, mean"
        ),
        "gauge_lapack_null": "the same for random bases among each other",
        "apart": "correlation of the map of the published basis with that of the smallest rotation",
        "fit": "share of the keys' variance that one rotation of the queries explains",
        "fit_null": "the same for two arrays of noise of the same shape",
        "fit_of_noise": "the same for two arrays of noise as wide as the model",
    },
    weights_only=True,
)
