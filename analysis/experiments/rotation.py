"""The rotation that turns a head's queries into its keys, and whether its angles are shifts by whole tokens.

T tokens, D width, F frequencies, A bins of angles, R key offsets (positive: to the right), n heads drawn, L layers,
H heads, G random bases. Order: the picture, the experiment, its input, one head, all heads.
"""

import numpy as np

from .. import corpus, draw, factors, heads, inputs, nulls, profiles, rotation as maths, stream
from ..registry import experiment

SHIFTS = (1, 2, 3)  # to both sides, in tokens or in tens, hundreds of them: the curves in the maps
DEALS = 100         # random deals of the angles
ZERO = 1e-6         # radians below which an angle counts as zero
TRIALS = ("smallest rotation, from other bases", "published basis with random ones", "random bases with each other",
          "published with smallest rotation")


def plot(r):
    """Three maps and the energy by offset for every head; below, what is arbitrary and what a rotation explains."""
    n, thin = len(r["heads"]), r["completion"] == "thin"
    figure = draw.figure(12.5, 2.4 * n + 2.7)
    above, below = figure.subfigures(2, 1, height_ratios=(2.4 * n + 0.5, 2.2), hspace=0.02)
    grid = above.subplots(n, 4, squeeze=False, width_ratios=(1, 1, 1, 1.05))
    for i in range(n):
        for axes, name in zip(grid[i], ("whole", "queries", "keys")):
            image = _map(axes, r, r[name][i])
        _offsets(grid[i, 3], r, i)
        size = f"|eigenvalue| {r['modulus'][i]:.2f} (chance: {r['modulus_null'][i]:.2f})\n" if thin else ""
        grid[i, 0].set_ylabel(f"{r['heads'][i]}, {r['papers_heads'][i]}\n{size}angle (radians)")
    whole = "what weights determine, all alike" if thin else "the whole input (keys: the same)"
    for axes, title in zip(grid[0], (whole, "what queries read", "what keys read")):
        axes.set_title(title)
        _periods(axes, r)
    for axes in grid[-1, :3]:
        axes.set_xlabel(f"frequency (cycles in {r['T']} tokens)")
    grid[-1, 3].set_xlabel("offset of the key that fits, $-\\Delta$ (tokens)")
    above.colorbar(image, ax=grid[:, 2], shrink=0.6, aspect=30, label="amplitude / largest")
    left, right = below.subplots(1, 2, width_ratios=(1.3, 1))
    _gauge(left, r)
    _fit(right, r)
    return figure


def _map(axes, r, energy):
    """Heat map over frequency and angle [F A] with the curves of whole shifts."""
    T, last, half = int(r["T"]), _last(r), np.pi / len(r["angle"])
    shown = np.sqrt(energy[1:last + 1].T)
    image = axes.imshow(shown / max(shown.max(), 1e-300), cmap="Blues", vmin=0, vmax=1, origin="lower", aspect="auto",
                        extent=(0.5, last + 0.5, r["angle"][0] - half, r["angle"][-1] + half))
    step = 10 ** max(0, int(np.ceil(np.log10(T / (24 * last)))))  # curves of fewer tokens would lie on each other
    for delta in step * np.array((*SHIFTS, *(-d for d in SHIFTS))):
        theta = np.sign(delta) * np.linspace(0, np.pi, 200)
        f = maths.lag_curve(theta, T, delta)
        inside = f <= last
        axes.plot(f[inside], theta[inside], color=draw.VERMILION, linewidth=0.6)
        end = inside & (abs(theta) < 2.7)  # clear of the frame
        axes.annotate(draw.offset(-delta), (f[end][-1], theta[end][-1]), fontsize=7, color=draw.VERMILION)
    axes.set(xlim=(0.5, last + 0.5), ylim=(-np.pi, np.pi), yticks=(-3, -2, -1, 0, 1, 2, 3))
    return image


def _periods(axes, r):
    """Periods of a few frequencies above a map."""
    above, shown = axes.secondary_xaxis("top"), np.unique(np.linspace(1, _last(r), 5).astype(int))
    above.set_xticks(shown, [f"{r['T'] / f:.{0 if r['T'] > 10 * f else 1}f}" for f in shown])
    above.set_xlabel("period (tokens)")


def _last(r):
    """Frequency up to which the maps are drawn: 99 % of what queries read."""
    energy = r["queries"][:, 1:].sum(axis=(0, 2))
    return min(max(8, 1 + int(np.searchsorted(energy.cumsum(), 0.99 * energy.sum()))), len(energy))


def _offsets(axes, r, i):
    """Share of the energy at each key offset, and the share that angles dealt at random would have."""
    offsets = profiles.offsets()
    axes.bar(offsets, r["share_by_offset"][i], width=0.8, color=draw.SKY)
    axes.plot(offsets, r["dealt_by_offset"][i], color=draw.GREY, linestyle="--", marker="o", markersize=2.5)
    axes.plot(r["attention_offset"][i], 0, "^", color=draw.VERMILION, markersize=7, clip_on=False)
    most = max(r["share_by_offset"][i].max(), r["dealt_by_offset"][i].max())
    axes.set_title(f"above chance: {draw.offset(r['offset'][i])}; median: {r['median_offset'][i]:+.3g};\n"
                   f"attention (triangle): {draw.offset(r['attention_offset'][i])}")
    axes.set(ylim=(0, max(1e-6, 1.1 * most)), ylabel="share of energy")


def _gauge(axes, r):
    rows = (*r["trials"].swapaxes(0, 1), r["apart"][:, None])  # [n G] or [n 1]
    for row, of_heads in enumerate(rows):
        for i, values in enumerate(of_heads):
            place = row + min(0.15, 0.5 / len(of_heads)) * (i - (len(of_heads) - 1) / 2)
            axes.plot(values, np.full(len(values), place), "o", markersize=4, alpha=0.7, color=_color(i))
    axes.set(xlim=(min(-0.05, *(of.min() - 0.05 for of in rows)), 1.05), ylim=(len(TRIALS) - 0.4, -0.6),
             xlabel="correlation of two maps of the whole input within each frequency")
    axes.set_yticks(range(len(TRIALS)), TRIALS)
    axes.set_title("is the map settled (1), or an arbitrary choice of basis?")


def _fit(axes, r):
    for i, (name, value) in enumerate(zip(r["heads"], r["fit"])):
        axes.bar(i, value, color=_color(i), width=0.6)
        axes.plot([i - 0.4, i + 0.4], 2 * [r["fit_null"][i]], color="black", linewidth=1)
    axes.set_xticks(range(len(r["heads"])), r["heads"])
    axes.set(ylim=(0, 1), ylabel="variance explained")
    axes.set_title(f"keys explained by one rotation of queries; line: noise\n"
                   f"(noise {r['T']} × {r['D']}: {r['fit_of_noise']:.2f})")


def _color(i):
    return (draw.BLUE, draw.ORANGE, draw.GREEN, draw.PURPLE, draw.SKY)[i % 5]


def says(r):
    """What the numbers show, in plain words."""
    each = "; ".join(
        f"{head} {draw.offset(t)} with {share:.1%} of the energy (angles dealt at random: {null:.1%}; "
        f"{'more' if excess > line else 'no more'} than chance gives), and attention looks at {draw.offset(a)}"
        for head, t, share, null, excess, line, a in zip(*(r[name] for name in (
            "heads", "offset", "share", "share_null", "excess", "excess_null", "attention_offset"))))
    settled = (f"By what the weights determine, the offset is that of attention in {r['agree']:.0%} of all "
               f"{r['offset_of_heads'].size} heads (heads shuffled: {r['agree_null'][0]:.0%}, up to "
               f"{r['agree_null'][1]:.0%}).")
    own, lapack, random = r["trials"].mean(axis=(0, 2))
    arbitrary = bool(abs(lapack - random) < 0.1 and max(lapack, random) < own / 2)
    choice = (f"Within each frequency the map of the whole input from the published basis correlates with maps from "
              f"random bases by {lapack:.2f}, these with each other by {random:.2f}"
              f"{', so it is one arbitrary choice of many' * arbitrary}; the smallest rotation from other bases "
              f"correlates with itself by {own:.2f} and with the published one by {r['apart'].mean():.2f}, and has "
              f"{r['zero'].mean():.0%} of its angles at zero.")
    if r["completion"] == "thin":
        choice += (f" Thin bases contract: eigenvalues of {r['modulus'].mean():.2f} on average (two random spaces: "
                   f"{r['modulus_null'].mean():.2f}, a rotation: 1).")
    alone = " Positions alone, without words." if r["input"] == "positions" else ""
    middle = ", ".join(f"{offset:+.1f}" for offset in r["median_offset"])
    return (f"The offset that stands out most is in {each}; half of the energy fits keys to the right of {middle} "
            f"tokens. {settled} {choice}{alone}")


@experiment(
    asks="Are keys the queries, rotated by whole tokens?",
    draw=plot,
    look="A wave that is turned by an angle is moved by a number of tokens; the red lines are moves by 1, 2 and 3 "
         "tokens (or tens, hundreds of tokens, where waves are so slow that nearer lines would be one), named by the "
         "offset of the key that then fits the query (-1: one to the left). Dark places along "
         "one line mean a head that looks there; waves moved by more than half a turn show on the other side. The "
         "first map is of the whole input, as published; queries and keys have the same one, since K p is Q p times a "
         "number of modulus 1. Most of the input the head does not read: the next two maps are of what its queries "
         "and its keys read, weighted as in the scores. The bars add up the second map by offset; dashed: the same "
         "waves with the angles dealt at random. Below, at the left: the weights leave most of the basis free, and a "
         "map that changes with it shows a choice, not the head. At the right: one rotation explains something of "
         "pure noise too.",
    published="In roberta-base the map of head(1,1), here L0H0, which looks weakly left, peaks between the curves of "
              "1 and 3 tokens, that of head(2,3), here L1H2, which looks one to the right, on the curve of -1 "
              "(Yamamoto and Matsuzaki, figure 6).",
    figure="figure 6",
    says=says,
    weights_only=True,
    numbers={
        "heads": "heads drawn",
        "offset": "key offset, in tokens, whose share of the energy stands most above chance: minus the shift; in a "
                  "causal model to the left",
        "share": "its share of the energy of what queries read",
        "share_null": "its share if the angles are dealt at random",
        "excess": "the difference",
        "excess_null": f"95 % quantile of the largest such difference in {DEALS} deals",
        "offset_lapack": "that offset from the published basis",
        "attention_offset": "offset, in tokens, of most attention",
        "near": "share of the energy at all offsets within 10 tokens",
        "near_null": "the same if the angles are dealt at random",
        "median_offset": "offset, in tokens, of the keys that fit, in the middle of all the energy (chance: near 0)",
        "agree": "share of all heads, their determined part alone, whose offset is that of most attention",
        "agree_null": "the same for shuffled pairs of heads: mean, 95 % quantile",
        "zero": "share of angles at zero in the smallest rotation",
        "modulus": "mean modulus of the eigenvalues: 1 for a rotation, less where the basis is thin",
        "modulus_null": "the same for two random spaces as wide",
        "gauge": "correlation, within each frequency, of the map of the smallest rotation with itself from random "
                 "bases, mean",
        "gauge_lapack": "correlation of the map of the published basis with those of random bases, mean",
        "gauge_lapack_null": "the same for random bases among each other",
        "apart": "correlation of the map of the published basis with that of the smallest rotation",
        "fit": "share of the keys' variance that one rotation of the queries explains",
        "fit_null": "the same for two arrays of noise of the same shape",
        "fit_of_noise": "the same for two arrays of noise as wide as the model"})
def rotation(model, *, head: str = "auto", completion: str = "procrustes", input: str = "text", gauge: int = 5,
             text: str = "sample", tokens: int = 0, seed: int = 0):
    """Angles between queries and keys, by frequency, and how far they depend on an arbitrary choice.

    head: heads to draw, as L0H0,L1H2; auto: the sharpest to the left, to the right, and the broadest
    completion: basis where weights settle none: procrustes (smallest rotation), lapack (as published), thin (none)
    input: text (first document), or positions (alone, as always in a partial checkpoint)
    gauge: random bases with which the maps are compared
    text: file or folder with one document or paragraph a line, - for standard input, or sample
    tokens: length of the document (0: the model's longest input)
    seed: seed of the random bases and deals
    """
    _one_of("completion", completion, ("procrustes", "lapack", "thin"))
    _one_of("input", input, ("text", "positions"))
    corpus.within("gauge", gauge, 1, 50)
    input = "positions" if model.missing else input
    read = corpus.documents(model, text, tokens=tokens) if input == "text" else None
    T = read.T if read else tokens or model.config.n_ctx
    corpus.within("tokens", T, profiles.REACH + 1, model.config.n_ctx)
    chosen = heads.chosen(head, model, read)
    X, attention = _inside(model, read, T)
    offset = profiles.offsets()[profiles.mean_attention(attention, T).argmax(axis=-1)]
    there = inputs.layers(model)
    each = [_head(X[layer], *inputs.query_key(model, layer, h), model.config.causal, completion, gauge, seed)
            for layer, h in chosen]
    noise = np.random.default_rng(seed).standard_normal((2, T, model.config.d_model))
    return {"T": T, "D": model.config.d_model, "input": input, "completion": completion, "angle": maths.bin_centres(),
            "heads": np.array([heads.name(*pair) for pair in chosen]),
            "papers_heads": np.array([heads.papers_name(*pair) for pair in chosen]),
            "attention_offset": np.array([offset[there.index(layer), h] for layer, h in chosen]),
            "fit_of_noise": maths.fit(*noise)} | \
        {name: np.array([one[name] for one in each]) for name in each[0]} | _all(model, X, offset, seed)


def _one_of(name, value, wanted):
    """ValueError unless an option is one of some words."""
    if value not in wanted:
        raise ValueError(f"--{name} is {value!r}; wanted {' or '.join(wanted)}")


def _inside(model, read, T):
    """Input {layer: X [T D]} in float64 and attention profiles [L H R]: of the first document, or of positions."""
    there = inputs.layers(model)
    if read is None:
        return {layer: inputs.of_positions(model, layer, T).astype(float) for layer in there}, \
            np.array([heads.from_positions(model, layer, T) for layer in there])
    document = read.first()[0]
    return dict(enumerate(inputs.of_text(model, document).astype(float))), stream.head_profiles(model, document)


def _head(x, W_Q, W_K, causal, completion, n, seed):
    """Maps [F A], shares by key offset [R] and trials of one head."""
    turned = {how: _turned(W_Q, W_K, how, seed) for how in dict.fromkeys((completion, "procrustes", "lapack"))}
    U_Q, U_K, theta, P, modulus = turned[completion]
    read, thin = factors.seen(x, W_Q, W_K), maths.complete(W_Q, W_K, "thin")
    g = maths.phase_map(read, U_Q, P)
    maps = {name: maths.binned(one, theta) for name, one in (
        ("whole", maths.phase_map(x, U_Q, P)), ("queries", g),
        ("keys", maths.phase_map(factors.seen(x, W_K, W_Q), U_K, P)))}
    rng = np.random.default_rng(seed)
    noise, spaces = rng.standard_normal((2, len(x), thin[0].shape[1])), rng.standard_normal((2, *thin[0].shape))
    return {name: one.astype(np.float32) for name, one in maps.items()} | \
        _shares(g, theta, len(x), causal, seed) | \
        _trials(x, W_Q, W_K, turned, n, seed) | \
        {"modulus": modulus.mean(), "modulus_null": _turned(*spaces, completion, seed)[-1].mean(),
         "modulus_by_angle": _by_angle(theta, modulus),
         "zero": (abs(turned["procrustes"][2]) < ZERO).mean(),
         "offset_lapack": _offset(read, causal, *turned["lapack"]),
         "median_offset": _median(g, theta, len(x)),
         "fit": maths.fit(*(x @ U for U in thin)), "fit_null": maths.fit(*noise)}


def _turned(W_Q, W_K, how, seed=0):
    """Bases of queries and keys, angles, eigenvectors and the modulus of the eigenvalues."""
    U_Q, U_K = maths.complete(W_Q, W_K, how, seed)
    return U_Q, U_K, *maths.angles(U_Q, U_K)


def _by_angle(theta, modulus):
    """Mean modulus of the eigenvalues in each bin of angles [A], 0 where there are none."""
    total, count = (maths.binned(np.sqrt(one)[None], theta)[0] for one in (modulus, np.ones_like(modulus)))
    return total / np.maximum(count, 1)


def _trials(x, W_Q, W_K, turned, n, seed):
    """Correlations of maps of the whole input made from different bases; those of n random ones [3 n]."""
    def drawn(U_Q, _, theta, P, __):
        return maths.shape(x, U_Q, theta, P)

    def others(how):
        return [drawn(*_turned(W_Q, W_K, how, seed + 1 + i)) for i in range(n)]

    def alike(one, many):
        return [maths.alike(one, other) for other in many]
    smallest, published = drawn(*turned["procrustes"]), drawn(*turned["lapack"])
    one, random = drawn(*_turned(W_Q, W_K, "random", seed)), others("random")
    trials = np.array([alike(smallest, others("procrustes")), alike(published, random), alike(one, random)])
    return {"trials": trials, "apart": maths.alike(published, smallest)} | \
        dict(zip(("gauge", "gauge_lapack", "gauge_lapack_null"), trials.mean(axis=1)))


def _median(g, theta, T):
    """Offset, in tokens, of the keys that fit, in the middle of the energy: as much of it has keys farther left."""
    offset, energy = 0 - maths.shift(theta, T).ravel(), np.square(g[1:]).ravel()  # 0 -: no -0
    order = np.argsort(offset, kind="stable")
    below = energy[order].cumsum()
    return offset[order][np.searchsorted(below, below[-1] / 2)]


def _shares(g, theta, T, causal, seed):
    """Shares by key offset, those of angles dealt at random, and the offset with the largest difference."""
    share, dealt = _by_offset(g, theta, T)
    rng, free, best = np.random.default_rng(seed), abs(theta) > ZERO, _best(share - dealt, causal)
    mixed, line = theta.copy(), []
    for _ in range(DEALS):
        mixed[free] = rng.permutation(theta[free])
        excess = maths.by_lag(g, mixed, T)[::-1] - dealt
        line.append(excess[_best(excess, causal)])
    return {"share_by_offset": share, "dealt_by_offset": dealt, "offset": profiles.offsets()[best],
            "share": share[best], "share_null": dealt[best], "excess": (share - dealt)[best],
            "excess_null": np.quantile(line, 0.95), "near": share.sum(), "near_null": dealt.sum()}


def _by_offset(g, theta, T):
    """Shares [R] of the key offsets, minus Delta, in a map; and those expected when angles other than 0 are dealt."""
    free = abs(theta) > ZERO
    even = np.where(free, np.sqrt(np.square(g[:, free]).mean(axis=1, keepdims=True)), g)
    return maths.by_lag(g, theta, T)[::-1], maths.by_lag(even, theta, T)[::-1]


def _best(excess, causal):
    """Index of the offset, among those that the mask leaves, that stands most above chance: [R]."""
    return np.where(causal & (profiles.offsets() > 0), -np.inf, excess).argmax()


def _offset(read, causal, U_Q, _, theta, P, __):
    """The key offset that stands most above chance in what queries read [T D]."""
    share, dealt = _by_offset(maths.phase_map(read, U_Q, P), theta, len(read))
    return profiles.offsets()[_best(share - dealt, causal)]


def _all(model, X, attention, seed):
    """Offsets of all heads from the columns that the weights determine, and how often attention goes there."""
    def one(layer, head):
        W_Q, W_K = inputs.query_key(model, layer, head)
        return _offset(factors.seen(X[layer], W_Q, W_K), model.config.causal, *_turned(W_Q, W_K, "thin"))
    found = np.array([[one(layer, head) for head in range(model.config.n_heads)] for layer in X])
    agree, null = nulls.matches(found.ravel(), attention.ravel(), seed)
    return {"offset_of_heads": found, "attention_of_heads": attention, "agree": agree, "agree_null": null}
