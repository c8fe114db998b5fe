"""Do queries and keys extract the positions from what they read?

The wave of the positions, which the words hide in the input X, in the spectra of X, of queries Q
and of keys K. N documents, T tokens, D width, L layers, H heads, r columns of a query,
F = T//2 + 1 frequencies.
"""

import numpy as np

from ..maths import spectra, waves
from ..measures import inputs
from ..runner import draw, options
from ..runner.registry import register
from ..runner.stream import UNSAVED
from ..texts import corpus

CURVES = {  # name -> what it is, colour
    "x": ("X, what the layer reads", "black"),
    "q": ("Q", draw.BLUE),
    "k": ("K", draw.ORANGE),
    "random": ("null: X in random directions", draw.GREY),
    "x_text": ("null: X without positions", draw.GREEN),
    "q_text": ("null: Q without positions", draw.SKY),
    "k_text": ("null: K without positions", draw.PURPLE),
}
SHOWN = 6  # layers with a line of their own
STANDS_OUT = 1.25  # times its null, from which a peak is called one
VERDICTS = {  # stands out in X, in Q and K both
    (False, True): "not in X, but in Q and K",
    (False, False): "neither in X nor in both Q and K",
    (True, True): "in X, and further in Q and K",
    (True, False): "in X, but no further in both Q and K",
}
MOVES = {True: "falls", False: "rises"}
KINDS = {
    True: f"The position table's highest peak above {waves.SLOW} cycles",
    None: "The frequency asked for",
    False: f"The position table has no peak above {waves.SLOW} cycles; its largest amplitude",
}


def extraction(
    model,
    run=UNSAVED,
    *,
    text: str = "sample",
    documents: int = 16,
    tokens: int = 0,
    frequency: int = 0,
    seed: int = 0,
):
    """Largest amplitudes of X, Q and K by frequency and layer.

    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    frequency: the peak to follow, in cycles over the document (0: the position table's highest
    above 4 cycles)
    seed: seed of the random directions and of the shuffles that tell a peak
    """
    texts = corpus.documents(model, text, documents, tokens)
    T = texts.T
    table = inputs.reachable(model)[:T]
    if frequency:
        peak, is_peak = frequency, None
    else:
        peak, is_peak = waves.position_peak(table, seed)
    options.within("frequency", peak, 1, T // 2)
    result = _measure(model, texts, peak, seed, run)
    result["position"] = spectra.amplitude(table).mean(axis=1)
    result["frequency"] = np.arange(T // 2 + 1)
    result |= {"T": T, "documents": len(texts), "peak": peak, "kind": KINDS[is_peak]}
    result |= _contrasts({name: waves.contrast(result[name], peak) for name in CURVES})
    result |= _similarity(result)
    return result


def _measure(model, documents, peak, seed, run):
    """Mean over documents of every curve [L F], and its contrast in each of them [N curves L]."""
    U_Q, U_K = inputs.qk_directions(model)

    def measure(i, document):
        X = inputs.of_text(model, document)
        bare = inputs.of_text(model, document, {"pos_embed": np.zeros_like})
        random = _random_directions(U_Q.shape, (seed, i)).astype(X.dtype)
        curves = [waves.largest(X, U) for U in (None, U_Q, U_K, random)]
        curves += [waves.largest(bare, U) for U in (None, U_Q, U_K)]
        contrasts = waves.contrast(np.array(curves), peak)
        return dict(zip(CURVES, curves)) | {"contrasts": contrasts}

    sums = run.gather(measure, documents, "documents", keep=("contrasts",))
    result = {name: sums[name] / len(documents) for name in CURVES}
    result["contrasts"] = sums["contrasts"]
    return result


def _random_directions(shape, seed):
    """Orthonormal columns for every head: [L H D r]."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal(shape))[0]


def _contrasts(by_layer):
    """The contrast of each curve in the first and the last layer: {name: [L]} -> {name: ...}."""
    result = {}
    for name, null in (("x", "x_text"), ("q", "random"), ("k", "random")):
        curve, text = by_layer[name], by_layer[name + "_text"]
        result[f"contrast_{name}"] = curve[0]
        result[f"contrast_{name}_null"] = by_layer[null][0]
        result[f"contrast_{name}_text"] = text[0]
        result[f"last_{name}"] = curve[-1]
        result[f"last_{name}_null"] = curve[0]
        result[f"last_{name}_text"] = text[-1]
    result["by_layer"] = np.array([by_layer[name] for name in "xqk"])
    result["by_layer_null"] = np.array([by_layer[name + "_text"] for name in "xqk"])
    return result


def _similarity(r):
    """Correlation of the curves of layer 0 with the position table's spectrum."""

    def correlation(name):
        return waves.spectrum_correlation(r[name][0], r["position"])

    whole = [correlation(name) for name in "xqk"]
    words = [correlation(name + "_text") for name in "xqk"]
    return {"alike": np.array(whole), "alike_null": np.array(words)}


def says(r):
    """What the numbers show, in plain words."""
    cycles = "1 cycle" if r["peak"] == 1 else f"{r['peak']} cycles"
    nulls = ("without positions", "random directions", "random directions")
    contrasts = "; ".join(
        f"in {name.upper()} {r[f'contrast_{name}']:.2f} ({null}: {r[f'contrast_{name}_null']:.2f})"
        for name, null in zip("xqk", nulls)
    )
    by_layer = " and ".join(_says_by_layer(r, name) for name in "qk")
    return (
        f"{r['kind']} is at {cycles}, a period of {r['T'] / r['peak']:.3g} tokens. In layer 0 the "
        f"amplitude there, over the median one, is {contrasts}. Where {STANDS_OUT} times the null "
        f"counts, the peak stands out {_verdict(r)}. Over all frequencies, the slow ones too, the "
        f"amplitudes go with those of the table with a correlation of {_list(r['alike'])} "
        f"({_list(r['alike_null'])} without positions). From the first layer to the last, "
        f"{by_layer}; 1 is no peak."
    )


def _verdict(r):
    """Where the peak stands out from its null."""
    x, q, k = (r[f"contrast_{name}"] > STANDS_OUT * r[f"contrast_{name}_null"] for name in "xqk")
    return VERDICTS[bool(x), bool(q and k)]


def _list(correlations):
    return ", ".join(f"{name} {value:.2f}" for name, value in zip("XQK", correlations))


def _says_by_layer(r, name):
    """How the peak of Q or of K changes from the first layer to the last."""
    first, last = r[f"last_{name}_null"], r[f"last_{name}"]
    return (
        f"in {name.upper()} it {MOVES[bool(last < first)]} from {first:.2f} to {last:.2f} (without "
        f"positions: {r[f'last_{name}_text']:.2f})"
    )


def plot(r):
    """Largest amplitudes by frequency, a line for each layer; below, the height of the peak."""
    figure = draw.figure(12.5, 6.6)
    above, below = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    panels = above.subplots(1, 3, sharey=True)
    fast = slice(min(waves.SLOW + 1, r["peak"]), None)  # slower ones may leave the panel
    top = 1.1 * max(r[name][:, fast].max() for name in "xqk")
    for axes, name in zip(panels, "xqk"):
        _draw_spectra(axes, r, name, top)
    panels[0].set_ylabel("amplitude, largest of all columns")
    panels[2].legend(loc="upper left", bbox_to_anchor=(1, 1))
    heights, legend = below.subplots(1, 2, width_ratios=(1.6, 1))
    _draw_contrasts(heights, r)
    legend.set_axis_off()
    legend.legend(*heights.get_legend_handles_labels(), loc="center left")
    return figure


def _draw_spectra(axes, r, name, top):
    """Curves of X, Q or K, with the words alone and the position table."""
    f, T = r["frequency"][1:], int(r["T"])
    _draw_layers(axes, f, r[name][:, 1:])
    words = r[name + "_text"][0, 1:]
    text = "null: layer 0,\nno positions"
    axes.plot(f, words, ":", color=draw.VERMILION, linewidth=1, label=text)
    table = r["position"][1:]
    scaled = table * top / 3 / max(table.max(), 1e-300)
    text = "position table\n(scaled)"
    axes.fill_between(f, scaled, color=draw.GREY, alpha=0.3, linewidth=0, label=text)
    axes.axvline(r["peak"], color="black", linestyle="--", linewidth=0.7)
    axes.set(xlim=(0, T / 2), ylim=(0, top), xlabel=f"frequency (cycles in {T} tokens)")
    axes.set_title(f"{CURVES[name][0]}: contrast {r['contrast_' + name]:.2f} in layer 0")
    draw.period_axis(axes, T)


def _draw_layers(axes, f, curves):
    """Up to SHOWN layers of [L F]."""
    from matplotlib import colormaps

    L = len(curves)
    for layer in np.unique(np.linspace(0, L - 1, min(L, SHOWN)).round().astype(int)):
        color = colormaps["viridis_r"](0.1 + 0.9 * layer / max(L - 1, 1))
        axes.plot(f, curves[layer], color=color, linewidth=1, label=f"layer {layer}")


def _draw_contrasts(axes, r):
    """The contrast of every curve at every layer, with the range of the documents."""
    layers = np.arange(len(r["x"]))
    for i, (label, color) in enumerate(CURVES.values()):
        low, middle, high = np.quantile(r["contrasts"][:, i], spectra.QUARTILES, axis=0)
        axes.fill_between(layers, low, high, color=color, alpha=0.12, linewidth=0)
        line, size = ("s:", 3) if "null" in label else ("o-", 5)
        axes.plot(layers, middle, line, color=color, markersize=size, label=label)
    axes.set(xlabel="layer", xticks=layers[:: -(-len(layers) // 16)])
    axes.set_ylabel(f"contrast: amplitude at {r['peak']}\nover the median one")
    axes.set_title("the peak by layer: median and quartiles of the documents")
    axes.set_ylim(0)


register(
    extraction,
    draw=plot,
    look="Each line is the largest amplitude that any column of X, Q or K has at a frequency. The "
    "grey area is the shape of the position table's own spectrum, the dashed line its highest peak "
    "of more than 4 cycles. The words of a text are noise in which this peak drowns in X; where it "
    "stands out in Q and K, the head's directions pick the positions out. Directions drawn at "
    "random show whether any change of basis would do so, the text without positions whether the "
    "words alone would.",
    published="In roberta-base the peak of the position embeddings near frequency 50 (of 512 "
    "tokens) is absent in X, present in Q and K, and fades from layer to layer (Yamamoto and "
    "Matsuzaki, figure 5).",
    figure="figure 5",
    says=says,
    numbers={
        "documents": "documents read",
        "peak": "frequency of the highest peak of the position table above 4 cycles, in cycles "
        "over the document",
        "contrast_x": "amplitude of X at it, over the median amplitude at all frequencies, in "
        "layer 0; each the largest of all columns",
        "contrast_x_null": "the same without positions: the text alone",
        "contrast_q": "the same for Q, the largest of all heads and columns",
        "contrast_q_null": "the same for random orthonormal directions in place of U_Q",
        "contrast_k": "the same for K",
        "contrast_k_null": "the same for random orthonormal directions in place of U_K",
        "contrast_q_text": "that of Q without positions",
        "contrast_k_text": "that of K without positions",
        "last_x": "contrast of X in the last layer; 1 is no peak",
        "last_x_null": "the same in the first layer: without fading it would stay",
        "last_x_text": "the same in the last layer, without positions",
        "last_q": "contrast of Q in the last layer; 1 is no peak",
        "last_q_null": "the same in the first layer",
        "last_q_text": "the same in the last layer, without positions",
        "last_k": "contrast of K in the last layer; 1 is no peak",
        "last_k_null": "the same in the first layer",
        "last_k_text": "the same in the last layer, without positions",
        "alike": "correlation, over all frequencies but 0, of the amplitudes of X, of Q and of K "
        "in layer 0 with the mean amplitudes of the position table",
        "alike_null": "the same without positions",
        "by_layer": "contrast of X, of Q and of K at every layer",
        "by_layer_null": "the same without positions",
    },
)
