"""How much of the residual stream is the position embedding, layer after layer, and what the norms do to its wave.

The blog post writes a norm of "all else + P" as "all else + S P L", S and L diagonal: S P L is the position part of
the stream. T tokens, D width, K points of the stream, C parts, R random tables, F frequencies. Order: the picture,
the experiment, its parts.
"""

from collections import ChainMap

import numpy as np

from minitx import forward

from .. import corpus, draw, inputs, nulls, residual as maths, spectra, stream
from ..registry import experiment

PARTS = {"word": draw.ORANGE, "position": draw.BLUE, "carried": draw.SKY, "type": "black", "attention": draw.GREEN,
         "mlp": draw.PURPLE, "bias": draw.GREY}
SHOWN = 7  # points of the stream in a panel with a line for each


def plot(r):
    """Shares above; below the position part's spectrum, the norms' scales, the spectrum with and without them."""
    figure = draw.figure(12.5, 8)
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.1))
    stack, travel = above.subplots(1, 2, width_ratios=(1.2, 1))
    _stack(stack, r)
    _travel(travel, r)
    wave, scales, jagged = below.subplots(1, 3)
    _waves(wave, r)
    _scales(scales, r)
    _jagged(jagged, r)
    return figure


def _stack(axes, r):
    """Stacked bars of all shares at each point that a layer reads; what is negative hangs below 0."""
    shares, at = r["shares"][r["read"]], np.arange(len(r["read"]))
    up, down = np.zeros(len(at)), np.zeros(len(at))
    for name, share in zip(r["parts"], shares.T):
        axes.bar(at, share, 0.8, np.where(share >= 0, up, down), color=PARTS[str(name)], label=name)
        up, down = up + np.maximum(share, 0), down + np.minimum(share, 0)
    axes.axhline(0, color="black", linewidth=0.7)
    axes.set(ylabel="share of the stream", ylim=(min(down.min() * 1.05, -0.02), up.max() * 1.02))
    axes.set_title("what the stream consists of")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    _layers(axes, r)


def _travel(axes, r):
    """The share of positions on a scale on which a tenth is a step, and the range of that of the random tables."""
    at = np.arange(len(r["read"]))
    for name, label in (("position", "position"), ("carried", "position,\ncarried by attention")):
        if name in r["parts"]:
            part, color = r["parts"].tolist().index(name), PARTS[name]
            null = r["shares_null"][r["read"], :, part]
            axes.fill_between(at, null.min(axis=1), null.max(axis=1), color=color, alpha=0.25, linewidth=0)
            axes.plot(at, null.mean(axis=1), "--", color=color, linewidth=0.9,
                      label=f"null: {null.shape[1]} random tables")
            axes.plot(at, r["shares"][r["read"], part], "o-", color=color, markersize=4, label=label)
    axes.axhline(0, color="black", linewidth=0.7)
    axes.set_yscale("symlog", linthresh=1e-3)
    axes.set_ylim(top=1)
    axes.set_ylabel("share of the stream\n(log, linear below 0.001)")
    axes.set_title("how far positions travel")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    _layers(axes, r)


def _layers(axes, r):
    n = len(r["read"])
    every = -(-n // 16)
    axes.set_xticks(np.r_[np.arange(0, n - 1, every), n - 1], [*map(str, range(0, n - 1, every)), "out"])
    axes.set_xlabel("layer that reads the stream")


def _shown(r):
    """(index of a point, its label, colour) of at most SHOWN points, the first and the last among them."""
    from matplotlib import colormaps
    n = len(r["read"])
    for i in np.unique(np.linspace(0, n - 1, min(n, SHOWN)).round().astype(int)):
        label = "output" if i == n - 1 else f"read by layer {i}"
        yield r["read"][i], label, colormaps["viridis_r"](0.1 + 0.9 * i / n)


def _waves(axes, r):
    f, T, shown = r["frequency"][1:], int(r["T"]), [*_shown(r)]
    for i, label, color in shown:
        axes.plot(f, r["spectra"][i, 1:], color=color, linewidth=1.2, label=label)
    for i, _, color in (shown[0], shown[-1]):
        axes.plot(f, r["spectra_null"][i, 1:], color=color, linewidth=0.9, linestyle=":")
    _frequencies(axes, T)
    axes.set_title("the position part (dotted: a random table)")
    axes.legend(fontsize=7, loc="upper right", ncols=2)


def _frequencies(axes, T):
    """A frequency axis with the periods above it, and room for a legend."""
    axes.set(yscale="log", xlim=(0, T / 2), xlabel=f"frequency (cycles in {T} tokens)",
             ylabel="amplitude, mean over columns")
    axes.set_ylim(top=axes.get_ylim()[1] * 3)
    draw.period_axis(axes, T)


def _scales(axes, r):
    t = np.arange(int(r["T"]))
    for i, label, color in _shown(r):
        axes.plot(t, r["scale_first"][i], color=color, linewidth=0.8, label=label)
    axes.set(yscale="log", xlim=(0, t[-1]), xlabel="position (tokens)",
             ylabel="product of 1/σ over the norms passed")
    axes.set_title("S, in the first document")


def _jagged(axes, r):
    """Spectra at the output, where S has gathered the most."""
    f, T, out = r["frequency"][1:], int(r["T"]), r["read"][-1]
    for name, color, line, label in (
            ("spectra", draw.BLUE, "-", "with S"), ("spectra_even", "black", "--", "S its mean everywhere"),
            ("spectra_shuffled", draw.VERMILION, ":", "null: S in random order")):
        axes.plot(f, r[name][out, 1:], line, color=color, linewidth=1.2, label=label)
    _frequencies(axes, T)
    axes.set_title(f"does S make the wave jagged? {r['kept']:.1%} of it stays\n(null: {r['kept_null']:.1%})")
    axes.legend()


def says(r):
    """What the numbers show, in plain words."""
    null = r["shares_null"][r["read"][-1], :, r["parts"].tolist().index("position")]
    side = "less than any of" if r["share"] < null.min() else \
        "more than any of" if r["share"] > null.max() else "like"
    return (f"The position table makes up {r['share_first']:.1%} of what layer 0 reads and {r['share']:.2%} of the "
            f"output, {side} {len(null)} random tables that go the same way ({r['share_null']:.2%} on average). "
            f"{r['kept']:.1%} of the power of its wave is still that wave after the factors by which the norms "
            f"multiply each token ({r['kept_null']:.1%} with these in random order); the rest is noise that they add. "
            f"Its highest peak at the output is {r['peak']:.1f} times the median amplitude (of a random table: "
            f"{r['peak_null']:.1f}).")


@experiment(
    asks="How far does the position signal travel?",
    draw=plot,
    look="With the scale of every norm held at its value, the stream is exactly the sum of what was written to "
         "it, and a part's share is its length along the sum. Positions start as the blue part; light blue is what "
         "attention moves of them to other tokens. Dashed lines with their range are random tables with the same "
         "mean and variance in each column: where positions are below them, the layers write against the "
         "positions, where above, along them. Below: the wave of the position part, the factors S by which the "
         "norms multiply each token, and the wave with S, with S replaced by its mean, and with S in random order. "
         "A model that norms before each part (GPT-2) is shown as its layers read it: there S is one norm's. What "
         "layers compute from positions, other than moving them, counts as attention or mlp.",
    published="The blog post on how the paper came about: a norm leaves S P L of the positions P, and as S "
              "multiplies each token by a factor of its own, it may break a periodic wave, so that positions may not "
              "reach the upper layers; or they do, and the model throws them away.",
    figure="blog post, S P L",
    says=says,
    numbers={
        "share_first": "share of what layer 0 reads that is the position table",
        "share_first_null": "the same for random tables with its mean and variance in each column, on average",
        "share": "share of the output that is the position table, on the direct way through the norms",
        "share_null": "the same for the random tables in its place",
        "layers_half": "layers in a row, from the first, that read at least half of the share that layer 0 reads",
        "layers_half_null": "the same for the random tables",
        "carried": "share of the output that is position moved there by attention",
        "carried_null": "the same for the random tables, which, unlike the true one, no layer has answered to",
        "kept": "share of the wave's power at the output that would also be there if S were the same for all tokens",
        "kept_null": "the same with S in random order over the tokens",
        "peak": "largest amplitude of the position part at the output, away from frequency 0, over the median one",
        "peak_null": "the same for a random table",
        "peak_first": "the same for the position part of what layer 0 reads",
        "formula": "share of the power of the blog post's S P L, which leaves out that a norm takes the mean off, "
                   "that is the exact position part of the output",
        "error": "what the parts leave out of the stream, relative: rounding"})
def residual(model, *, text: str = "sample", documents: int = 8, tokens: int = 0, carried: int = 1,
             tables: int = 5, seed: int = 0):
    """Exact shares of the residual stream, and the position embedding's wave in it.

    text: file or folder with one document or paragraph a line, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    carried: 1: position that attention moves to other tokens is a part of its own; 0: it is attention
    tables: random tables, drawn as the null
    seed: seed of the random tables and of the shuffles
    """
    corpus.within("carried", carried, 0, 1)
    corpus.at_least("tables", tables, 1)
    read = corpus.documents(model, text, documents, tokens)
    table = inputs.reachable(model)[:read.T]
    drawn = np.array([*nulls.gaussian(table, tables, seed)], table.dtype)  # [R T D]
    there = dict.fromkeys(PARTS, True) | {"type": model.config.default_type is not None, "carried": carried}
    names = [name for name in PARTS if there[name]]

    def measure(index, document):
        rng = np.random.default_rng((seed, index))
        found = walk(model, document, drawn, carried, lambda *stages: _measured(*stages, table, names, rng))
        return found | {"scale_first": found["scale"] * (index == 0)}
    sums = stream.gather(measure, read, "documents")
    found = {name: x if name == "scale_first" else x / len(read) for name, x in sums.items()}
    found |= {"T": read.T, "documents": len(read), "frequency": np.arange(read.T // 2 + 1),
              "parts": np.array(names)} | _points(model.config)
    return found | _headline(found)


def _points(cfg):
    """Names of the points, and the numbers of those that a layer reads or that are the output."""
    points = maths.stages(cfg.n_layers, cfg.pre_norm)
    return {"points": np.array([p if isinstance(p, str) else f"{p[0]}.L{p[1]}" for p in points]),
            "read": np.array([i for i, p in enumerate(points) if not cfg.pre_norm or "ln" in str(p)])}


def walk(model, document, drawn, carried, look):
    """look(stage, stage with random tables, x) at every point of one forward pass -> {name: stacked [K ...]}.

    drawn: [R T D]; they take the place of the positions side by side, all else staying as it was. Only one layer's
    points are held at a time.
    """
    cfg, held, seen = model.config, {}, []
    points = held, ChainMap({"pos_embed": drawn}, held)
    splits = [maths.split(p, model.weights, model.layers, cfg.pre_norm, carried=carried) for p in points]
    stops = maths.stages(cfg.n_layers, cfg.pre_norm)

    def tap(name, x, layer=None):
        key = name if layer is None else (name, layer)
        if name.endswith(("embed", "_scale", "_out")) or carried and name == "pattern":
            held[key] = x
        if key in stops:
            seen.append(look(*map(next, splits), x))
            held.clear()
        return x
    forward(model, document, at=tap)
    return {name: np.array([one[name] for one in seen]) for name in seen[0]}


def _measured(stage, other, x, table, names, rng):
    """What is kept of one point of the stream: the parts there, with P and with random tables."""
    part, scale = stage.parts["position"][0], stage.scale[0][:, None]  # [T D], [T 1]
    even = part / scale  # the wave that no S has touched: what else the norms do is the same for every token
    mixed = rng.permutation(scale) * even
    return {"shares": _means(maths.shares(stage.parts), names)[0],
            "ratios": _means(maths.ratios(stage.parts), names)[0],
            "shares_null": _means(maths.shares(other.parts), names), "spectra": _spectrum(part),
            "spectra_null": _spectrum(other.parts["position"][0]), "spectra_even": _spectrum(even * scale.mean()),
            "spectra_shuffled": _spectrum(mixed), "scale": stage.scale[0], "kept_at": maths.alike(even, part),
            "kept_at_null": maths.alike(even, mixed), "formula_at": maths.alike(part, scale * table * stage.gain),
            "error_at": np.linalg.norm(sum(stage.parts.values()) - x) / np.linalg.norm(x)}


def _means(shares, names):
    """Mean over the tokens, 0 for what is not there yet: [B C]."""
    some = 0 * shares["position"].mean(axis=-1)
    return np.array([shares[name].mean(axis=-1) + some if name in shares else some for name in names]).T


def _spectrum(x):
    return spectra.amplitude(x).mean(axis=1)


def _headline(r):
    """The figures for people."""
    first, out = r["read"][[0, -1]]
    part = {name: i for i, name in enumerate(r["parts"].tolist())}
    found = {"formula": r["formula_at"][out], "error": r["error_at"].max(),
             "peak_first": _peak(r["spectra"][first])}
    for null, shares in (("", r["shares"]), ("_null", r["shares_null"].mean(axis=1))):
        travel = shares[r["read"], part["position"]]
        found |= {"share_first" + null: travel[0], "share" + null: travel[-1],
                  "layers_half" + null: np.cumprod(travel[:-1] >= travel[0] / 2).sum(),
                  "kept" + null: r["kept_at" + null][out], "peak" + null: _peak(r["spectra" + null][out])}
        if "carried" in part:
            found["carried" + null] = shares[out, part["carried"]]
    return found


def _peak(spectrum):
    """Largest amplitude over the median one, frequency 0 left out."""
    return spectra.largest(spectrum) / np.median(spectrum[1:])
