"""Do queries and keys extract the positions from what they read?

The waves of the positions, which the words hide in the input X, in the spectra of X, of queries Q
and of keys K: the highest peaks of the position table, fast and slow ones apart. N documents,
T tokens, D width, L layers, H heads, r columns of a query, F = T//2 + 1 frequencies, n peaks.
"""

import numpy as np

from ..maths import nulls, spectra, waves
from ..measures import inputs
from ..runner import draw, options, verdict
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED
from ..texts import corpus

CURVES = {  # name -> what it is, colour
    "x": ("X, what the layer reads", "black"),
    "q": ("Q", draw.BLUE),
    "k": ("K", draw.ORANGE),
    "random": ("X in random directions", draw.GREY),
    "x_text": ("X without positions", draw.GREEN),
    "q_text": ("Q without positions", draw.SKY),
    "k_text": ("K without positions", draw.PURPLE),
}
SHOWN = 6  # layers with a line of their own
DRAWS = 100  # sets of random directions, over all documents
STANDS_OUT = {  # in X, in Q and K both
    (False, True): "not in X, but in Q and K",
    (False, False): "neither in X nor in both Q and K",
    (True, True): "in X, and in Q and K",
    (True, False): "in X, but not in both Q and K",
}
MOVES = {True: "falls", False: "rises"}
PEAK = "The position table's highest peak"
KINDS = {  # whether it is a peak, and a fast one
    (True, True): f"{PEAK} with a period of {spectra.SLOW} tokens or less",
    (True, False): f"{PEAK} of more than {spectra.DRIFT} cycles, which is slow,",
    (None, True): "The frequency asked for",
    (None, False): "The frequency asked for",
    (False, True): "The position table has no peak; its largest amplitude",
    (False, False): "The position table has no peak; its largest amplitude",
}


def extraction(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.Size = 16,
    tokens: options.Size = 0,
    frequency: options.Size = 0,
    seed: options.Seed = 0,
):
    """Largest amplitudes of X, Q and K by frequency and layer.

    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    frequency: the peak to follow, in cycles over the document (0: the position table's highest,
    two fast ones and two slow ones)
    seed: seed of the random directions and of the shuffles that tell a peak
    """
    texts = corpus.documents(model, text, documents, tokens)
    T = texts.T
    options.within("frequency", frequency or 1, 1, T // 2)
    table = inputs.reachable(model)[:T]
    followed, is_peak = ([frequency], None) if frequency else waves.followed(table, seed)
    result = _measure(model, texts, followed, seed, run)
    result["position"] = spectra.amplitude(table).mean(axis=1)
    result["frequency"] = np.arange(T // 2 + 1)
    result |= {"T": T, "documents": len(texts), "followed": np.array(followed)}
    result |= {"peak": followed[0], "is_peak": is_peak is not False}
    result["is_fast"] = result["followed"] >= spectra.lowest(T)
    result["kind"] = KINDS[is_peak, bool(result["is_fast"][0])]
    result["peak_names"] = np.array([_name(f, T) for f in followed])
    result |= _by_peak(result)
    result |= _contrasts(result)
    result |= _similarity(result)
    return result


def _name(f, T):
    """A frequency as the labels name it."""
    return f"{f} cycles ({T / f:.3g} tokens)"


def _measure(model, documents, followed, seed, run):
    """Mean over documents of every curve [L F], and the contrast of the followed peaks.

    contrasts [N curves L n] in each document; draws [DRAWS or more, n] in random directions.
    """
    U_Q, U_K = inputs.qk_directions(model)
    draws = -(-DRAWS // len(documents))  # in each document

    def measure(i, document):
        X = yield inputs.reading(model, document)
        bare = yield inputs.reading(model, document, {"pos_embed": np.zeros_like})
        random = _random_directions(U_Q.shape, (seed, i)).astype(X.dtype)
        curves = [waves.largest(X, U) for U in (None, U_Q, U_K, random)]
        curves += [waves.largest(bare, U) for U in (None, U_Q, U_K)]
        by_chance = _by_chance(X[:1], U_Q.shape, draws, (seed, i))
        contrasts = {
            "contrasts": _followed(np.array(curves), followed),
            "draws": _followed(by_chance, followed),
        }
        return dict(zip(CURVES, curves)) | contrasts

    sums = run.gather(measure, documents, "documents", keep=("contrasts", "draws"))
    result = {name: sums[name] / len(documents) for name in CURVES}
    result["contrasts"] = sums["contrasts"]
    result["draws"] = sums["draws"].reshape(-1, len(followed))
    return result


def _followed(curves, frequencies):
    """Contrast at each of n frequencies: [... F] -> [... n]."""
    return np.stack([waves.contrast(curves, f) for f in frequencies], axis=-1)


def _by_chance(x, shape, draws, seed):
    """Curves of the first layer's input x [1 T D] in random directions, drawn anew: [draws F]."""
    curves = []
    for draw_index in range(draws):
        U = _random_directions((1, *shape[1:]), (*seed, draw_index + 1)).astype(x.dtype)
        curves.append(waves.largest(x, U)[0])
    return np.array(curves)


def _random_directions(shape, seed):
    """Orthonormal columns for every head: [L H D r]."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal(shape))[0]


def _by_peak(r):
    """Contrast of every followed peak in X, Q and K of every layer [n 3 L], with its null [3 L].

    The null is what the text alone reaches in that layer: the 99 % quantile of the contrast without
    positions over all frequencies of more than DRIFT cycles.
    """
    by_peak = np.array([_followed(r[name], r["followed"]) for name in "xqk"])  # [3 L n]
    words = [_reached(r[name + "_text"]) for name in "xqk"]
    result = {"by_peak": np.moveaxis(by_peak, -1, 0), "by_peak_null": np.array(words)}
    stands_out = result["by_peak"] > result["by_peak_null"]
    result["layers"] = np.cumprod(stands_out, axis=-1).sum(axis=-1)  # [n 3]
    return result


def _reached(curves):
    """Contrast that curves [L F] reach at one frequency of a hundred, drifts left out: [L]."""
    F = curves.shape[-1]
    frequencies = range(min(spectra.DRIFT + 1, F - 1), F)
    return np.quantile(_followed(curves, frequencies), nulls.CHANCE, axis=-1)


def _contrasts(r):
    """The contrast of the highest peak in the first and the last layer, and of all in layer 0."""
    result = {}
    by_chance = np.quantile(r["draws"], nulls.CHANCE, axis=0)  # [n]
    for i, name in enumerate("xqk"):
        curve, words = r["by_peak"][0, i], r["by_peak_null"][i]
        text = waves.contrast(r[name + "_text"], r["peak"])
        result[f"contrast_{name}"] = curve[0]
        result[f"contrast_{name}_null"] = words[0] if name == "x" else by_chance[0]
        result[f"contrast_{name}_text"] = text[0]
        result[f"last_{name}"] = curve[-1]
        result[f"last_{name}_null"] = curve[0]
        result[f"last_{name}_text"] = text[-1]
        result[f"followed_{name}"] = r["by_peak"][:, i, 0]
        result[f"followed_{name}_null"] = words[:1].repeat(len(by_chance))
        result[f"layers_{name}"] = r["layers"][:, i]
    result["followed_q_null"] = result["followed_k_null"] = by_chance
    result["by_layer"], result["by_layer_null"] = r["by_peak"][0], r["by_peak_null"]
    return result


def _similarity(r):
    """Correlation of the curves [L F] with the position table's spectrum, in every layer [L]."""
    result = {"layer_names": np.array([f"layer {layer}" for layer in range(len(r["x"]))])}
    for name in "xqk":
        for key, curves in (("", r[name]), ("_null", r[name + "_text"])):
            each = [waves.spectrum_correlation(curve, r["position"]) for curve in curves]
            result[f"correlation_{name}{key}"] = np.array(each)
    for key in ("", "_null"):
        result["alike" + key] = np.array([result[f"correlation_{name}{key}"][0] for name in "xqk"])
    return result


def says(r):
    """What the numbers show, in plain words."""
    cycles = "1 cycle" if r["peak"] == 1 else f"{r['peak']} cycles"
    contrasts = "; ".join(
        f"in {name.upper()} {r[f'contrast_{name}']:.2f} ({null}: {r[f'contrast_{name}_null']:.2f})"
        for name, null in zip("xqk", ("the text alone", "random directions", "random directions"))
    )
    by_layer = " and ".join(_says_by_layer(r, name) for name in "qk")
    return (
        f"{r['kind']} is at {cycles}, a period of {r['T'] / r['peak']:.3g} tokens. In layer 0 the "
        f"amplitude there, over the median one, is {contrasts}; each number in parentheses is "
        f"what 99 % of its null stays below. By this measure the peak stands out {_verdict(r)}. "
        "Over all frequencies, the slow ones too, the correlation of the amplitudes with those "
        f"of the table is {_list(r['alike'])} ({_list(r['alike_null'])} without positions), and "
        f"in the last layer {_list(_last(r, ''))} ({_list(_last(r, '_null'))}). From the first "
        f"layer to the last, {by_layer}; 1 is no peak.{_says_followed(r)}"
    )


def _says_followed(r):
    """How far each of several peaks is followed."""
    if len(r["followed"]) == 1:
        return ""
    layers = "; ".join(
        f"{name} in {in_q} of Q and {in_k} of K"
        for name, in_q, in_k in zip(r["peak_names"], r["layers_q"], r["layers_k"])
    )
    return (
        f" Counted from the first of {len(r['x'])} layers on, the peaks stand out of what the text "
        f"alone reaches at one frequency of a hundred: {layers}."
    )


def _stands_out(r):
    """Whether the highest peak stands out of its null in X, in Q and in K of layer 0."""
    return [bool(r[f"contrast_{name}"] > r[f"contrast_{name}_null"]) for name in "xqk"]


def _verdict(r):
    x, q, k = _stands_out(r)
    return STANDS_OUT[x, q and k]


def answer(r):
    """Yes if the highest peak is higher in Q and K than in random directions and than in X.

    Partly if in one of the two only; no without a peak to extract.
    """
    if not r["is_peak"]:
        measure = "peaks of the position table above chance, which queries and keys could extract"
        return Answer("undecided", measure, "0 peaks", "0 in 99 % of shuffled tables")
    findings = []
    for name in ("contrast_q", "contrast_k"):
        null = max(r[f"{name}_null"], r["contrast_x"])
        findings.append(verdict.of(r, name, null=null, most=np.inf))
    measure = (
        f"amplitude at the positions' peak ({r['peak']} cycles) over the median one, layer 0 "
        f"(input: {r['contrast_x']:.2f})"
    )
    value = f"{r['contrast_q']:.2f} in queries, {r['contrast_k']:.2f} in keys"
    chance = f"{r['contrast_q_null']:.2f} in random directions"
    return Answer(verdict.every(*findings), measure, value, chance)


def _list(correlations):
    return ", ".join(f"{name} {value:.2f}" for name, value in zip("XQK", correlations))


def _last(r, key):
    """The correlations with the table's spectrum in the last layer."""
    return [r[f"correlation_{name}{key}"][-1] for name in "xqk"]


def _says_by_layer(r, name):
    """How the peak of Q or of K changes from the first layer to the last."""
    first, last = r[f"last_{name}_null"], r[f"last_{name}"]
    return (
        f"in {name.upper()} it {MOVES[bool(last < first)]} from {first:.2f} to {last:.2f} (without "
        f"positions: {r[f'last_{name}_text']:.2f})"
    )


def plot(r):
    """Largest amplitudes by frequency: lines, and heat maps of all layers; heights of the peaks."""
    deep = 1.6 + 0.16 * min(2 * len(r["x"]), 24)  # of the heat maps, in inches
    figure = draw.figure(12.5, 7.6 + deep)
    heights = (4.15, deep, 3.45)
    above, middle, below = figure.subfigures(3, 1, height_ratios=heights, hspace=0.02)
    panels = above.subplots(1, 3, sharey=True)
    fast = slice(min(spectra.DRIFT + 1, r["peak"]), None)  # slower ones may leave the panel
    top = 1.1 * max(r[name][:, fast].max() for name in "xqk")
    for axes, name in zip(panels, "xqk"):
        _draw_spectra(axes, r, name, top)
    panels[0].set_ylabel("amplitude, largest of all columns")
    panels[2].legend(loc="upper left", bbox_to_anchor=(1, 1))
    _draw_maps(middle, r)
    kinds = [fast for fast in (True, False) if (r["is_fast"] == fast).any()]
    grid = below.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, fast in zip(grid, kinds):
        _draw_contrasts(axes, r, fast)
    grid[0].set_ylabel("contrast: amplitude at the peak\nover the median one")
    grid[-1].legend(handles=_legend(), loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _draw_spectra(axes, r, name, top):
    """Curves of X, Q or K, with the words alone and the position table."""
    f, T = r["frequency"][1:], int(r["T"])
    words = r[name + "_text"][0, 1:]
    _draw_layers(axes, f, r[name][:, 1:])
    text = "null: layer 0,\nno positions"
    axes.plot(f, words, ":", color=draw.VERMILION, linewidth=1, label=text)
    table = r["position"][1:]
    scaled = table * top / 3 / max(table.max(), 1e-300)
    text = "position table\n(scaled)"
    axes.fill_between(f, scaled, color=draw.GREY, alpha=0.3, linewidth=0, label=text)
    for peak in r["followed"]:
        axes.axvline(peak, color="black", linestyle="--", linewidth=0.6)
    axes.set(xlim=(0, T / 2), ylim=(0, top), xlabel=f"frequency (cycles in {T} tokens)")
    title = f"{CURVES[name][0]}: {r['contrast_' + name]:.2f} at {r['peak']}, layer 0"
    axes.set_title(title + _mark_cut(axes, f, np.vstack([_shown(r[name][:, 1:]), words]), top))
    draw.period_axis(axes, T)


def _mark_cut(axes, f, curves, top):
    """Mark where one of the curves [C F] leaves the panel; returns how high it goes, for the title.

    The marks stand at f [F], on the upper edge.
    """
    highest = curves.max(axis=0)
    is_cut = highest > top
    if not is_cut.any():
        return "\n"
    axes.plot(f[is_cut], np.full(is_cut.sum(), top), "k^", markersize=6, clip_on=False, zorder=5)
    return f"\n▲ cut off: up to {highest.max():.0f} at {f[highest.argmax()]}"


def _shown(curves):
    """The layers that have a line of their own, at most SHOWN of [L ...]."""
    L = len(curves)
    return curves[np.unique(np.linspace(0, L - 1, min(L, SHOWN)).round().astype(int))]


def _draw_layers(axes, f, curves):
    """Up to SHOWN layers of [L F]."""
    from matplotlib import colormaps

    last = max(len(curves) - 1, 1)
    for layer, curve in zip(_shown(np.arange(len(curves))), _shown(curves)):
        color = colormaps["viridis_r"](0.1 + 0.9 * layer / last)
        axes.plot(f, curve, color=color, linewidth=1, label=f"layer {layer}")


def _draw_maps(figure, r):
    """Heat maps over frequency and layer of X, Q and K, with positions and below them without."""
    from matplotlib.colors import LogNorm

    pairs = [(r[name][:, 1:], r[name + "_text"][:, 1:]) for name in "xqk"]
    everything = np.concatenate([x.ravel() for pair in pairs for x in pair])
    low, high = np.quantile(everything, (0.01, 0.999))
    low = max(low, 1e-6 * high, 1e-300)
    colors = {"cmap": "viridis", "norm": LogNorm(low, max(high, 1.01 * low))}
    grid = figure.subplots(2, 3, sharex=True, sharey=True)
    T = int(r["T"])
    for column, (name, pair) in enumerate(zip("xqk", pairs)):
        for axes, x in zip(grid[:, column], pair):
            half = len(x) - 0.5
            extent = (0.5, T // 2 + 0.5, half, -0.5)
            image = axes.imshow(x, aspect="auto", extent=extent, **colors)
            axes.set_yticks(range(0, len(x), -(-len(x) // 6)))
        first, last = (r[f"correlation_{name}"][i] for i in (0, -1))
        title = f"{name.upper()}, all layers: correlation with the table\n{first:.2f} in the first"
        grid[0, column].set_title(f"{title}, {last:.2f} in the last")
        grid[1, column].set_xlabel(f"frequency (cycles in {T} tokens)")
    grid[0, 0].set_ylabel("layer")
    grid[1, 0].set_ylabel("null: layer,\nno positions")
    figure.colorbar(image, ax=grid, label="largest amplitude", aspect=30)


def _draw_contrasts(axes, r, fast):
    """The contrast of the fast or of the slow peaks at every layer, with their nulls."""
    layers = np.arange(len(r["x"]))
    axes.set(xlabel="layer", xticks=layers[:: -(-len(layers) // 16)], ylim=(0, 1.15 * _top(r)))
    peaks = np.flatnonzero(r["is_fast"] == fast)
    kind = ("slow", "fast")[fast] + " peaks"
    names = " and ".join(str(name) for name in r["peak_names"][peaks])
    axes.set_title(f"{kind}:\n{names}")
    for i, name in enumerate("xqk"):
        color = CURVES[name][1]
        beside = layers + 0.05 * (i - 1)  # where there is no peak, all lie at 1
        for line, peak in zip(("o-", "^--"), peaks):
            _draw_contrast(axes, beside, r["contrasts"][:, i, :, peak], line, color)
        axes.plot(beside, r["by_peak_null"][i], ":", color=color, linewidth=1)
    for peak in peaks:
        axes.plot(0, r["followed_q_null"][peak], "_", color=draw.VERMILION, markersize=16)


def _top(r):
    """The highest contrast that is drawn."""
    return np.quantile(r["contrasts"][:, :3], 0.75, axis=0).max()


def _draw_contrast(axes, x, contrasts, line, color):
    """Median and quartiles over documents of [N L]."""
    low, middle, high = np.quantile(contrasts, spectra.QUARTILES, axis=0)
    axes.fill_between(x, low, high, color=color, alpha=0.12, linewidth=0)
    axes.plot(x, middle, line, color=color, markersize=5)


def _legend():
    from matplotlib.lines import Line2D

    handles = []
    for name in "xqk":
        label, color = CURVES[name]
        handles.append(Line2D([], [], marker="o", color=color, label=label))
    grey = {"color": draw.GREY}
    for line, marker, label in (
        ("-", "o", "the highest peak,\nmedian and quartiles\nof the documents"),
        ("--", "^", "the second"),
        (":", "", "null: text alone, 99 %\nof frequencies are lower"),
    ):
        handles.append(Line2D([], [], linestyle=line, marker=marker, label=label, **grey))
    label = "null: random directions\nin layer 0, 99 % lower"
    style = {"color": draw.VERMILION, "linestyle": "", "markersize": 12}
    handles.append(Line2D([], [], marker="_", label=label, **style))
    return handles


register(
    extraction,
    draw=plot,
    look="Each line is the largest amplitude that any column of X, Q or K has at a frequency. "
    "The grey area is the shape of the position table's own spectrum, the dashed lines its "
    f"highest peaks, up to two with a period of {spectra.SLOW} tokens or less and up to two "
    f"slower ones of more than {spectra.DRIFT} cycles. The words of a text are noise that "
    "hides these peaks in X; where the peaks stand out in Q and K, the heads' directions "
    "pick the positions out. Directions drawn at random show whether any change of basis "
    "would do so; the text without positions shows whether the words alone would. The heat "
    "maps have the same amplitudes for all layers, each with the map of the text without "
    "positions below it: stripes that only the upper one has come from positions. At the "
    "bottom, fast and slow peaks (where the table has such) are drawn apart, because they may "
    "fade at different depths; where there is no peak, all curves lie at 1, side by side.",
    published="In roberta-base the peak of the position embeddings near frequency 50 (of 512 "
    "tokens) is absent in X, present in Q and K, and fades from layer to layer (Yamamoto and "
    "Matsuzaki, figure 5; as heat maps over all layers in figure 6 of their longer paper).",
    figure="figure 5",
    says=says,
    answer=answer,
    numbers={
        "contrast_q": "amplitude of Q at the position table's highest peak, over the median "
        "amplitude at all frequencies, in layer 0; each the largest of all heads and columns",
        "contrast_q_null": "99 % quantile of that contrast in random orthonormal directions in "
        "place of U_Q",
        "contrast_k": "contrast of K at the position table's highest peak in layer 0, the largest "
        "of all heads and columns",
        "contrast_k_null": "99 % quantile of that contrast in random orthonormal directions in "
        "place of U_K",
        "contrast_x": "contrast of the input X at the position table's highest peak in layer 0, "
        "the largest of all columns",
        "contrast_x_null": "contrast that X without positions has at one frequency of a hundred",
        "peak": "frequency of the position table's highest peak, in cycles over the document",
        "last_q": "contrast of Q at that peak in the last layer; 1 is no peak",
        "last_q_null": "contrast of Q at that peak in the first layer, which would stay without "
        "fading",
        "last_k": "contrast of K at that peak in the last layer; 1 is no peak",
        "last_k_null": "contrast of K at that peak in the first layer, which would stay without "
        "fading",
        "last_x": "contrast of X at that peak in the last layer; 1 is no peak",
        "last_x_null": "contrast of X at that peak in the first layer, which would stay without "
        "fading",
        "followed_q": "contrast of Q in layer 0 at each peak followed",
        "followed_q_null": "99 % quantile of that contrast in random directions",
        "followed_k": "contrast of K in layer 0 at each peak followed",
        "followed_k_null": "99 % quantile of that contrast in random directions",
        "followed_x": "contrast of X in layer 0 at each peak followed",
        "followed_x_null": "contrast that X without positions has at one frequency of a hundred",
        "layers_q": "layers in a row, from the first, in which each peak followed stands out of Q: "
        "higher than Q without positions at 99 % of the frequencies",
        "layers_k": "layers in a row, from the first, in which each peak followed stands out of K",
        "contrast_q_text": "contrast of Q at the highest peak in layer 0, without positions",
        "contrast_k_text": "contrast of K at the highest peak in layer 0, without positions",
        "last_q_text": "contrast of Q at the highest peak in the last layer, without positions",
        "last_k_text": "contrast of K at the highest peak in the last layer, without positions",
        "last_x_text": "contrast of X at the highest peak in the last layer, without positions",
        "alike": "correlation, over all frequencies but 0, of the amplitudes of X, of Q and of K "
        "in layer 0 with the mean amplitudes of the position table",
        "alike_null": "correlation of the amplitudes of X, Q and K without positions with those of "
        "the position table",
        "correlation_q": "correlation, over all frequencies but 0, of the amplitudes of Q with the "
        "mean amplitudes of the position table, by layer",
        "correlation_q_null": "that correlation for Q without positions",
        "correlation_k": "correlation of the amplitudes of K with those of the table, by layer",
        "correlation_k_null": "that correlation for K without positions",
        "correlation_x": "correlation of the amplitudes of X with those of the table, by layer",
        "correlation_x_null": "that correlation for X without positions",
        "documents": "documents read",
    },
    labels={
        "correlation_q": "layer_names",
        "correlation_k": "layer_names",
        "correlation_x": "layer_names",
        "alike": ("X", "Q", "K"),
        "followed_q": "peak_names",
        "followed_k": "peak_names",
        "followed_x": "peak_names",
        "layers_q": "peak_names",
        "layers_k": "peak_names",
    },
)
