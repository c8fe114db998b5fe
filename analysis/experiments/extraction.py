"""Do queries and keys extract positions from their input?

The waves of the positions, which the words hide in the input X, in the spectra of X, of queries Q
and of keys K: the highest peaks of the position table, fast and slow ones apart. N documents,
T tokens, D width, L layers, H heads, r columns of a query, F = T//2 + 1 frequencies, n peaks.
"""

from functools import partial

import numpy as np

from ..contract import Asks, Every, Of, Without, options, register
from ..drawing import Part, Rows, When, draw, few, figures, line_sample, row
from ..maths import nulls, spectra, waves
from ..measures import inputs
from ..running.stream import UNSAVED
from ..texts import corpus

CURVES = {  # name -> what it is, colour
    "x": ("X, input", "black"),
    "q": ("Q, queries", draw.BLUE),
    "k": ("K, keys", draw.ORANGE),
    "random": ("X in random directions", draw.GREY),
    "x_text": ("X without positions", draw.GREEN),
    "q_text": ("Q without positions", draw.SKY),
    "k_text": ("K without positions", draw.PURPLE),
}
SHOWN = 4  # layers with a line of their own
DRAWS = 100  # sets of random directions, over all documents
STANDS_OUT = {  # in X, in Q and K both
    (False, True): "not in X, but in Q and K",
    (False, False): "neither in X nor in both Q and K",
    (True, True): "in X, and in Q and K",
    (True, False): "in X, but not in both Q and K",
}
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
    documents: options.Documents = 16,
    tokens: options.Tokens = 0,
    frequency: options.Size = 0,
    seed: options.Seed = 0,
):
    """Largest amplitudes of X, Q and K by frequency and layer.

    frequency: the peak to follow, in cycles over the document (0: the position table's highest,
    two fast ones and two slow ones)
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
    result["peak_names"] = np.array([f"{f} cycles ({T / f:.3g} tokens)" for f in followed])
    result |= _by_peak(result)
    result |= _contrasts(result)
    result |= _similarity(result)
    return result


def _measure(model, documents, followed, seed, run):
    """Mean over documents of every curve [L F], and the contrast of the followed peaks.

    contrasts [N curves L n] in each document; draws [DRAWS or more, n] in random directions.
    """
    U_Q, U_K = inputs.qk_directions(model)
    draws = -(-DRAWS // len(documents))  # in each document

    def measure(i, document):
        X = yield inputs.reading(model, document)
        bare = yield inputs.reading(model, document, {"pos_embed": np.zeros_like})
        random = _random_directions(U_Q.shape, (seed, i), X.dtype)
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
        U = _random_directions((1, *shape[1:]), (*seed, draw_index + 1), x.dtype)
        curves.append(waves.largest(x, U)[0])
    return np.array(curves)


def _random_directions(shape, seed, dtype):
    """Orthonormal columns for every head, made in float64 layer by layer: [L H D r]."""
    rng = np.random.default_rng(seed)
    directions = np.empty(shape, dtype)
    for of_layer in directions:
        of_layer[:] = np.linalg.qr(rng.standard_normal(shape[1:]))[0]
    return directions


def _by_peak(r):
    """Contrast of every followed peak in X, Q and K of every layer [n 3 L], with its null [3 L].

    The null is what the text alone reaches in that layer: the 99% quantile of the contrast without
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


def period(r):
    """The period of the peak, in tokens."""
    return r["T"] / r["peak"]


def where(r):
    """Where the highest peak stands out of its null in layer 0."""
    x, q, k = (bool(r[f"contrast_{name}"] > r[f"contrast_{name}_null"]) for name in "xqk")
    return STANDS_OUT[x, q and k]


def highest(r):
    """Where the amplitudes of X, Q and K are highest in layer 0, drifts left out, in cycles."""
    first = min(spectra.DRIFT + 1, len(r["frequency"]) - 1)
    return [first + r[name][0, first:].argmax() for name in "xqk"]


def heights(r, end=""):
    """The contrasts there, with positions, or of the curves of this `end`."""
    return [waves.contrast(r[name + end], f)[0] for name, f in zip("xqk", highest(r))]


def of_words(r):
    """The contrasts that the words alone have there."""
    return heights(r, "_text")


def _correlations(key, layer=0):
    """The correlations with the table's spectrum in a layer."""
    return ", ".join(f"{x.upper()} {{correlation_{x}{key}[{layer}]:.2f}}" for x in "xqk")


def _moves(x):
    """How the peak of Q or of K changes from the first layer to the last."""
    values = f"{{last_{x}_null:.2f}} to {{last_{x}:.2f}} (without positions: {{last_{x}_text:.2f}})"
    falls = When(f"last_{x} < last_{x}_null", "falls", "rises")
    return [f"in {x.upper()} it ", falls, f" from {values}"]


def _draw_peaks(figure, r):
    """Heights of the fast and of the slow peaks."""
    kinds = [fast for fast in (True, False) if (r["is_fast"] == fast).any()]
    grid = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, fast in zip(grid, kinds):
        _draw_contrasts(axes, r, fast)
    grid[0].set_ylabel("contrast: amplitude at the peak\nover the median one")
    grid[-1].legend(handles=_samples(), loc="upper left", bbox_to_anchor=(1, 1))


def _draw_spectra(axes, r, name):
    """Curves of X, Q or K, with the words alone and the position table."""
    fast = slice(min(spectra.DRIFT + 1, r["peak"]), None)  # slower ones may leave the panel
    top = 1.1 * max(r[x][:, fast].max() for x in "xqk")
    f, T = r["frequency"][1:], int(r["T"])
    words = r[name + "_text"][0, 1:]
    for layer in few(len(r[name]), SHOWN):
        style = {"color": draw.shade(layer, len(r[name])), "label": f"layer {layer}"}
        axes.plot(f, r[name][layer, 1:], linewidth=1, **style)
    text = "null: layer 0,\nno positions"
    axes.plot(f, words, "--", color=draw.GREY, linewidth=1.2, label=text)
    table = r["position"][1:]
    scaled = table * top / 3 / max(table.max(), 1e-300)
    text = "position table\n(scaled)"
    axes.fill_between(f, scaled, color=draw.GREY, alpha=0.3, linewidth=0, label=text)
    text = "the table's\nhighest peaks"
    for i, peak in enumerate(r["followed"]):
        style = {"linestyle": ":", "linewidth": 0.8, "label": "_" if i else text}
        axes.axvline(peak, color="black", **style)
    axes.set(xlim=(0, T / 2), ylim=(0, top), xlabel=f"frequency (cycles in {T} tokens)")
    times = f"{r['contrast_' + name]:.2f} × the median at {r['peak']}"
    title = f"{CURVES[name][0]}, layer 0: {times}"
    curves = np.vstack([r[name][few(len(r[name]), SHOWN), 1:], words])
    axes.set_title(title + _mark_cut(axes, f, curves, top))
    draw.period_axis(axes, T)
    if name == "x":
        axes.set_ylabel("amplitude, largest of all columns")
    if name == "k":
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


def _mark_cut(axes, f, curves, top):
    """Mark where one of the curves [C F] leaves the panel; returns how high it goes."""
    highest = curves.max(axis=0)
    is_cut = highest > top
    if not is_cut.any():
        return "\n"
    axes.plot(f[is_cut], np.full(is_cut.sum(), top), "k^", markersize=6, clip_on=False, zorder=5)
    return f"\n▲ cut off: up to {highest.max():.0f} at {f[highest.argmax()]}"


def _draw_maps(figure, r, suffix=""):
    """Heat maps over frequency and layer of X, Q and K, with positions or without."""
    grid = figure.subplots(1, 3, sharey=True)
    T = int(r["T"])
    for name, axes in zip("xqk", grid):
        x = r[name + suffix][:, 1:]
        extent = (0.5, T // 2 + 0.5, len(x) - 0.5, -0.5)
        image = axes.imshow(x, aspect="auto", extent=extent, cmap="Blues", norm=_colors(r))
        axes.set_yticks(range(0, len(x), -(-len(x) // 6)))
        axes.set_xlabel(f"frequency (cycles in {T} tokens)")
        first, last = r[f"correlation_{name}"][[0, -1]]
        title = f"{name.upper()}, all layers: correlation with the table\n{first:.2f} in the first"
        null = f"null, no positions: {CURVES[name][0]}"
        axes.set_title(null if suffix else f"{title}, {last:.2f} in the last")
    grid[0].set_ylabel("layer")
    bar = figure.colorbar(image, ax=grid, label="largest amplitude", aspect=30)
    draw.plain_log(bar.ax.yaxis)


def _height_of_maps(r):
    """Inches of a row of maps."""
    return 1.7 + 0.16 * min(2 * len(r["x"]), 24) / 1.5


def _colors(r):
    """One scale for all maps."""
    from matplotlib.colors import LogNorm

    everything = np.concatenate([r[x + end][:, 1:].ravel() for end in ("", "_text") for x in "xqk"])
    low, high = np.quantile(everything, (0.01, 0.999))
    low = max(low, 1e-6 * high, 1e-300)
    return LogNorm(low, max(high, 1.01 * low))


def _draw_contrasts(axes, r, fast):
    """The contrast of the fast or of the slow peaks at every layer, with their nulls."""
    layers = np.arange(len(r["x"]))
    top = np.quantile(r["contrasts"][:, :3], 0.75, axis=0).max()
    axes.set(xlabel="layer", xticks=layers[:: -(-len(layers) // 16)], ylim=(0, 1.15 * top))
    peaks = np.flatnonzero(r["is_fast"] == fast)
    kind = ("slow peaks", f"peaks of {spectra.SLOW} tokens or less")[fast]
    names = " and ".join(str(name) for name in r["peak_names"][peaks])
    axes.set_title(f"{kind}:\n{names}")
    for i, name in enumerate("xqk"):
        color = CURVES[name][1]
        beside = layers + 0.05 * (i - 1)  # where there is no peak, all lie at 1
        for line, peak in zip(("o-", "^--"), peaks):
            low, high = np.quantile(r["contrasts"][:, i, :, peak], (0.25, 0.75), axis=0)
            axes.fill_between(beside, low, high, color=color, alpha=0.12, linewidth=0)
            axes.plot(beside, r["by_peak"][peak, i], line, color=color, markersize=5)
        axes.plot(beside, r["by_peak_null"][i], ":", color=draw.GREY, linewidth=1.5)
    for peak in peaks:
        axes.plot(0, r["followed_q_null"][peak], **GREY, **DASH)


def _samples():
    samples = []
    for name in "xqk":
        label, color = CURVES[name]
        samples.append(line_sample(label, color=color, marker="o"))
    return samples + [line_sample(label, **style) for label, style in SAMPLES.items()]


GREY = {"color": draw.GREY}
DASH = {"linestyle": "", "marker": "_", "markersize": 16, "markeredgewidth": 2}
SAMPLES = {
    "the highest peak; shade:\nquartiles of the documents": GREY | {"marker": "o"},
    "the second": GREY | {"linestyle": "--", "marker": "^"},
    "null: text alone, 99%\nof frequencies are lower": GREY | {"linestyle": ":"},
    "null: random directions\nin layer 0, 99% lower": GREY | DASH,
}

register(
    extraction,
    look="Each line is the largest amplitude that any column of X, Q or K has at a frequency. The "
    "grey area is the shape of the position table's own spectrum, the dotted lines its "
    f"highest peaks, up to two with a period of {spectra.SLOW} tokens or less and up to two "
    f"slower ones of more than {spectra.DRIFT} cycles. The words of a text are noise that "
    "hides these peaks in X; where the peaks stand out in Q and K, the heads' directions pick "
    "the positions out. Directions drawn at random show whether any change of basis would do "
    "so; the text without positions shows whether the words alone would. The heat maps have "
    "the same amplitudes for all layers, those of the text without positions in the last "
    "figure: stripes that it lacks come from positions. In the second figure fast and slow "
    "peaks (where the table has such) are drawn apart, because they may fade at different "
    "depths; where there is no peak, all curves lie at 1, side by side.",
    published="In roberta-base the peak of the position embeddings near frequency 50 (of 512 "
    "tokens) is absent in X, present in Q and K, and fades from layer to layer (Yamamoto and "
    "Matsuzaki, figure 5; as heat maps over all layers in figure 6 of their longer paper).",
    figure="figure 5",
    numbers="""
        contrast_[q|k]: amplitude of [Q|K] at the position table's highest peak, over the median
            amplitude at all frequencies, in layer 0; each the largest of all heads and columns
            null: 99% quantile of that contrast in random orthonormal directions in place of
            [U_Q|U_K]
        contrast_x: contrast of the input X at the position table's highest peak in layer 0, the
            largest of all columns
            null: contrast that X without positions has at one frequency of a hundred
        fact peak: frequency of the position table's highest peak, in cycles over the document
        last_[q|k]: contrast of [Q|K] at that peak in the last layer; 1 is no peak
            null: contrast of [Q|K] at that peak in the first layer, which would stay without fading
        layers_[q|k] by peak_names: consecutive layers, from the first, in which each peak followed
            stands out of [Q|K]: higher than [Q|K] without positions at 99% of the frequencies
            no null: only layers in which it exceeds its null are counted
        last_[q|k]_text: contrast of [Q|K] at the highest peak in the last layer, without positions
            no null: it is a null
        alike by X, Q, K: correlation, over all frequencies but 0, of the amplitudes of X, of Q and
            of K in layer 0 with the mean amplitudes of the position table
            null: correlation of the amplitudes of X, Q and K without positions with those of the
            position table
        correlation_[q|k|x] by layer_names: correlation, over all frequencies but 0, of the
            amplitudes of [Q|K|X] with the mean amplitudes of the position table, by layer
            null: that correlation for [Q|K|X] without positions
        fact documents: documents read
    """,
    answer=Asks(
        When(
            "is_peak",
            "amplitude at the positions' peak (period {period:.3g} tokens) over the median, layer "
            "0 (input: {contrast_x:.2f})",
            "peaks of the position table above chance, which queries and keys could extract",
        ),
        value="{contrast_q:.2f} in queries, {contrast_k:.2f} in keys",
        chance="{contrast_q_null:.2f} in random directions",
        rule=Every(
            Of("contrast_q", null=("contrast_q_null", "contrast_x"), most=np.inf),
            Of("contrast_k", null=("contrast_k_null", "contrast_x"), most=np.inf),
        ),
        without=Without("is_peak", "0 peaks", "0 in 99% of shuffled tables"),
    ),
    says=[
        When("peak != 1", "{kind} is at {peak} cycles", "{kind} is at {peak} cycle"),
        ", a period of {period:.3g} tokens. The contrast in layer 0 is the amplitude there over "
        "the median amplitude: {contrast_x:.2f} in X (the text alone: {contrast_x_null:.2f}), "
        "{contrast_q:.2f} in Q (random directions: {contrast_q_null:.2f}), {contrast_k:.2f} in K "
        "(random directions: {contrast_k_null:.2f}); 99% of the null is below the number in "
        "parentheses. By this measure the peak stands out {where}. Over all frequencies, the slow "
        "ones too, the correlation of the amplitudes with those of the table is "
        f"{_correlations('')} ({_correlations('_null')} without positions), and in the last layer "
        f"{_correlations('', -1)} ({_correlations('_null', -1)}). From the first layer to the "
        "last, ",
        *_moves("q"),
        " and ",
        *_moves("k"),
        "; 1 is no peak. Away from slow drift, of {spectra.DRIFT} cycles or less, the highest "
        "amplitudes of X, Q and K in layer 0 are at {highest[0]}, {highest[1]} and {highest[2]} "
        "cycles: {heights[0]:.2f}, {heights[1]:.2f} and {heights[2]:.2f} times the median, and "
        "{of_words[0]:.2f}, {of_words[1]:.2f} and {of_words[2]:.2f} there without positions.",
        When(
            "followed.size != 1",
            [
                " Counted from the first of {layer_names.size} layers on, the peaks stand out of "
                "what the text alone reaches at one frequency of a hundred: ",
                Rows("{peak_names} in {layers_q} of Q and {layers_k} of K"),
                ".",
            ],
        ),
    ],
    draw=figures(
        row(*(partial(_draw_spectra, name=x) for x in "xqk"), sharey=True, height=4.15),
        Part(_draw_peaks, height=3.45),
        *(Part(partial(_draw_maps, suffix=end), _height_of_maps) for end in ("", "_text")),
    ),
    shares_passes=True,
)
