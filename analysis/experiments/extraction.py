"""Whether queries and keys bring out the wave of the positions that the words hide in their input.

N documents, T tokens, D width, L layers, H heads, r columns of a query, F frequencies. Order: the picture, the
experiment, its parts.
"""

import numpy as np

from .. import corpus, draw, factors, inputs, spectra, stream, waves as maths
from ..registry import experiment

CURVES = {  # name -> what it is, colour
    "x": ("X, what the layer reads", "black"), "q": ("Q", draw.BLUE), "k": ("K", draw.ORANGE),
    "random": ("null: X in random directions", draw.GREY), "x_text": ("null: X without positions", draw.GREEN),
    "q_text": ("null: Q without positions", draw.SKY), "k_text": ("null: K without positions", draw.PURPLE)}
SHOWN = 6          # layers with a line of their own
STANDS_OUT = 1.25  # times its null, from which a peak is called one
VERDICTS = {       # stands out in X, in Q and K both
    (False, True): "not in X, but in Q and K", (False, False): "neither in X nor in both Q and K",
    (True, True): "in X, and further in Q and K", (True, False): "in X, but no further in both Q and K"}
MOVES = {True: "falls", False: "rises"}
KINDS = {True: f"The position table's highest peak above {maths.SLOW} cycles", None: "The frequency asked for",
         False: f"The position table has no peak above {maths.SLOW} cycles; its largest amplitude"}


def plot(r):
    """Largest amplitudes by frequency in X, Q and K, a line for each layer; the height of the peak by layer."""
    figure = draw.figure(12.5, 6.6)
    above, below = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    panels = above.subplots(1, 3, sharey=True)
    fast = slice(min(maths.SLOW + 1, r["peak"]), None)  # slower ones may leave the panel
    top = 1.1 * max(r[name][:, fast].max() for name in "xqk")
    for axes, name in zip(panels, "xqk"):
        _spectra(axes, r, name, top)
    panels[0].set_ylabel("amplitude, largest of all columns")
    panels[2].legend(loc="upper left", bbox_to_anchor=(1, 1))
    _heights(*below.subplots(1, 2, width_ratios=(1.6, 1)), r)
    return figure


def _spectra(axes, r, name, top):
    from matplotlib import colormaps
    f, T, L, table = r["frequency"][1:], int(r["T"]), len(r["x"]), r["position"][1:]
    for layer in np.unique(np.linspace(0, L - 1, min(L, SHOWN)).round().astype(int)):
        color = colormaps["viridis_r"](0.1 + 0.9 * layer / max(L - 1, 1))
        axes.plot(f, r[name][layer, 1:], color=color, linewidth=1, label=f"layer {layer}")
    axes.plot(f, r[name + "_text"][0, 1:], ":", color=draw.VERMILION, linewidth=1,
              label="null: layer 0,\nno positions")
    axes.fill_between(f, table * top / 3 / max(table.max(), 1e-300), color=draw.GREY, alpha=0.3, linewidth=0,
                      label="position table\n(scaled)")
    axes.axvline(r["peak"], color="black", linestyle="--", linewidth=0.7)
    axes.set(xlim=(0, T / 2), ylim=(0, top), xlabel=f"frequency (cycles in {T} tokens)")
    axes.set_title(f"{CURVES[name][0]}: contrast {r['contrast_' + name]:.2f} in layer 0")
    draw.period_axis(axes, T)


def _heights(axes, words, r):
    """The contrast of every curve at every layer, with the range of the documents."""
    at = np.arange(len(r["x"]))
    for i, (name, (label, color)) in enumerate(CURVES.items()):
        low, middle, high = np.quantile(r["contrasts"][:, i], spectra.QUARTILES, axis=0)
        null = "null" in label
        axes.fill_between(at, low, high, color=color, alpha=0.12, linewidth=0)
        axes.plot(at, middle, "s:" if null else "o-", color=color, markersize=3 if null else 5, label=label)
    axes.set(xlabel="layer", xticks=at[::-(-len(at) // 16)],
             ylabel=f"contrast: amplitude at {r['peak']}\nover the median one")
    axes.set_title("the peak by layer: median and quartiles of the documents")
    axes.set_ylim(0)
    words.set_axis_off()
    words.legend(*axes.get_legend_handles_labels(), loc="center left")


def says(r):
    """What the numbers show, in plain words."""
    each = "; ".join(f"in {name.upper()} {r['contrast_' + name]:.2f} ({what}: {r[f'contrast_{name}_null']:.2f})"
                     for name, what in zip("xqk", ("without positions", *["random directions"] * 2)))
    x, q, k = (r["contrast_" + name] > STANDS_OUT * r[f"contrast_{name}_null"] for name in "xqk")
    alike, chance = (", ".join(f"{name} {value:.2f}" for name, value in zip("XQK", r[key]))
                     for key in ("alike", "alike_null"))
    depth = " and ".join(f"in {name.upper()} it {MOVES[bool(last < first)]} from {first:.2f} to {last:.2f} (without "
                         f"positions: {r[f'last_{name}_text']:.2f})"
                         for name in "qk" for last, first in [(r["last_" + name], r[f"last_{name}_null"])])
    cycles = "1 cycle" if r["peak"] == 1 else f"{r['peak']} cycles"
    return (f"{r['kind']} is at {cycles}, a period of {r['T'] / r['peak']:.3g} tokens. In layer 0 the amplitude there, "
            f"over the median one, is {each}. Where {STANDS_OUT} times the null counts, the peak stands out "
            f"{VERDICTS[bool(x), bool(q and k)]}. Over all frequencies, the slow ones too, the amplitudes go with "
            f"those of the table with a correlation of {alike} ({chance} without positions). From the first layer to "
            f"the last, {depth}; 1 is no peak.")


@experiment(
    asks="Do queries and keys extract the positions from what they read?",
    draw=plot,
    look="Each line is the largest amplitude that any column of X, Q or K has at a frequency. The grey area is the "
         "shape of the position table's own spectrum, the dashed line its highest peak of more than 4 cycles. The "
         "words of a text are noise in which this peak drowns in X; where it stands out in Q and K, the head's "
         "directions pick the positions out. Directions drawn at random show whether any change of basis would do "
         "so, the text without positions whether the words alone would.",
    published="In roberta-base the peak of the position embeddings near frequency 50 (of 512 tokens) is absent in X, "
              "present in Q and K, and fades from layer to layer (Yamamoto and Matsuzaki, figure 5).",
    figure="figure 5",
    says=says,
    numbers={
        "documents": "documents read",
        "peak": "frequency of the highest peak of the position table above 4 cycles, in cycles over the document",
        "contrast_x": "amplitude of X at it, over the median amplitude at all frequencies, in layer 0; each the "
                      "largest of all columns",
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
        "alike": "correlation, over all frequencies but 0, of the amplitudes of X, of Q and of K in layer 0 with the "
                 "mean amplitudes of the position table",
        "alike_null": "the same without positions",
        "by_layer": "contrast of X, of Q and of K at every layer",
        "by_layer_null": "the same without positions"})
def extraction(model, *, text: str = "sample", documents: int = 16, tokens: int = 0, frequency: int = 0,
               seed: int = 0):
    """Largest amplitudes of X, Q and K by frequency and layer.

    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    frequency: the peak to follow, in cycles over the document (0: the position table's highest above 4 cycles)
    seed: seed of the random directions and of the shuffles that tell a peak
    """
    read = corpus.documents(model, text, documents, tokens)
    table = inputs.reachable(model)[:read.T]
    peak, is_peak = (frequency, None) if frequency else maths.position_peak(table, seed)
    corpus.within("frequency", peak, 1, read.T // 2)
    U_Q, U_K = directions(model)

    def measure(index, document):
        X, bare = (inputs.of_text(model, document, edits) for edits in ((), {"pos_embed": np.zeros_like}))
        random = np.linalg.qr(np.random.default_rng((seed, index)).standard_normal(U_Q.shape))[0].astype(X.dtype)
        curves = [maths.largest(X, U) for U in (None, U_Q, U_K, random)] + \
                 [maths.largest(bare, U) for U in (None, U_Q, U_K)]
        return dict(zip(CURVES, curves)) | {"contrasts": maths.contrast(np.array(curves), peak)}
    sums = stream.gather(measure, read, "documents", keep=("contrasts",))
    found = {name: x if name == "contrasts" else x / len(read) for name, x in sums.items()}
    found |= {"position": spectra.amplitude(table).mean(axis=1), "frequency": np.arange(read.T // 2 + 1),
              "T": read.T, "documents": len(read), "peak": peak, "kind": KINDS[is_peak]}
    return found | _headline(found, peak)


def directions(model):
    """U_Q and U_K of every head: [L H D r] twice."""
    cfg = model.config
    pairs = [[inputs.query_key(model, layer, head) for head in range(cfg.n_heads)] for layer in range(cfg.n_layers)]
    W_Q, W_K = (np.array([[pair[i] for pair in row] for row in pairs]) for i in (0, 1))
    U_Q, _, U_K = factors.svd(W_Q, W_K)
    return U_Q, U_K


def _headline(found, peak):
    """The figures for people."""
    by_layer = {name: maths.contrast(found[name], peak) for name in CURVES}
    result = {}
    for key, suffix in (("", ""), ("_null", "_text")):
        result["by_layer" + key] = np.array([by_layer[name + suffix] for name in "xqk"])
        result["alike" + key] = np.array([maths.alike(found[name + suffix][0], found["position"]) for name in "xqk"])
    for name, null in zip("xqk", ("x_text", "random", "random")):
        result |= {f"contrast_{name}{suffix}": by_layer[key][0]
                   for suffix, key in (("", name), ("_null", null), ("_text", name + "_text"))}
        result |= {f"last_{name}{suffix}": by_layer[key][at]
                   for suffix, key, at in (("", name, -1), ("_null", name, 0), ("_text", name + "_text", -1))}
    return result
