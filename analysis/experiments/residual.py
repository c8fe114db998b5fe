"""Do position embeddings keep their share of the residual stream from layer to layer?

How much of the residual stream is the position embedding, layer after layer, and what the norms do
to its wave. The blog post writes a norm of "all else + P" as "all else + S P L", S and L diagonal:
S P L is the position part of the stream. T tokens, D width, K points of the stream, C parts, R
random tables, F frequencies.
"""

import numpy as np

from ..contract import Asks, Of, options, register
from ..drawing import draw, few, figures, row, stream_layers
from ..machine.language import filled
from ..maths import nulls, spectra, stats
from ..maths import residual as maths
from ..measures import inputs, residual_stream
from ..running.stream import UNSAVED
from ..texts import corpus

PARTS = {
    "word": draw.ORANGE,
    "position": draw.BLUE,
    "carried": draw.SKY,
    "type": "black",
    "attention": draw.GREEN,
    "mlp": draw.PURPLE,
    "bias": draw.GREY,
}


def residual(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.Documents = 8,
    tokens: options.Tokens = 0,
    carried: bool = True,
    tables: options.Count = 5,
    seed: options.Seed = 0,
):
    """Exact shares of the residual stream, and the position embedding's wave in it.

    carried: make position that attention moves to other tokens a part of its own; otherwise it
    counts as attention
    tables: random tables, drawn as the null
    """
    document_set = corpus.documents(model, text, documents, tokens)
    T, N = document_set.T, len(document_set)
    table = inputs.varying(model)[:T]
    random_tables = np.array([*nulls.gaussian(table, tables, seed)], table.dtype)  # [R T D]
    names, even = _part_names(model.config, carried), inputs.gained(model, table)

    def measure(index, document):
        rng = np.random.default_rng((seed, index))

        def measure_point(stage, random_stage, x):
            return _measure_point(stage, random_stage, x, even, names, rng)

        sums = yield walk(model, document, random_tables, carried, measure_point)
        sums["scale_first"] = sums["scale"] * (index == 0)
        return sums

    sums = run.gather(measure, document_set, "documents")
    result = {name: x if name == "scale_first" else x / N for name, x in sums.items()}
    result |= {"T": T, "documents": N, "frequency": np.arange(T // 2 + 1)}
    result["parts"] = np.array(names)
    result |= _points(model.config)
    return result | _headline(result)


def _part_names(cfg, carried):
    """Names of the parts that the stream of this model is split into."""
    names = [*PARTS]
    if cfg.default_type is None:
        names.remove("type")
    if not carried:
        names.remove("carried")
    return names


def _points(cfg):
    """Names of the points, and the numbers of those that a layer reads or that are the output."""
    points = maths.stages(cfg.n_layers, cfg.pre_norm)
    names = [p if isinstance(p, str) else f"{p[0]}.L{p[1]}" for p in points]
    read_by_layers = [i for i, p in enumerate(points) if not cfg.pre_norm or "ln" in str(p)]
    return {"points": np.array(names), "read": np.array(read_by_layers)}


def walk(model, document, random_tables, carried, look):
    """A Reading: look(stage, stage with random tables, x) at every point, stacked by name.

    random_tables: [R T D]; they take the place of the positions side by side, all else staying as
    it was. look returns {name: array}, walk {name: [K ...]}. Only one layer's points are held at a
    time.
    """
    how = {"instead": ({}, {"pos_embed": random_tables}), "carried": carried}
    split = residual_stream.walk(model, document, lambda stages, x: look(*stages, x), **how)
    return split._replace(value=lambda x: stats.stacked(split.value(x)))


def _measure_point(stage, random_stage, x, table, names, rng):
    """What is kept of one point of the stream: the parts, with positions and with random tables."""
    part = stage.parts["position"][0]  # [T D]
    random_part = random_stage.parts["position"][0]
    scale = stage.scale[0][:, None]  # [T 1]
    # the wave that no S has touched: what else the norms do is the same for every token
    even = part / scale
    shuffled = rng.permutation(scale) * even
    result = {}
    result["shares"] = _means(maths.projection_shares(stage.parts), names)[0]
    result["ratios"] = _means(maths.ratios(stage.parts), names)[0]
    result["shares_null"] = _means(maths.projection_shares(random_stage.parts), names)
    result["spectra"] = _spectrum(part)
    result["spectra_null"] = _spectrum(random_part)
    result["spectra_even"] = _spectrum(even * scale.mean())
    result["spectra_shuffled"] = _spectrum(shuffled)
    result["scale"] = stage.scale[0]
    result["kept_at"] = maths.squared_cosine(even, part)
    result["kept_at_null"] = maths.squared_cosine(even, shuffled)
    result["formula_at"] = maths.squared_cosine(part, scale * table * stage.gain)
    error = sum(stage.parts.values()) - x
    result["error_at"] = np.linalg.norm(error) / np.linalg.norm(x)
    return result


def _means(by_part, names):
    """Mean over the tokens of {part: [B T]}, 0 for parts that are not in it yet: [B C]."""
    zeros = 0 * by_part["position"].mean(axis=-1)
    columns = [zeros + by_part[name].mean(axis=-1) if name in by_part else zeros for name in names]
    return np.array(columns).T


def _spectrum(x):
    """Mean amplitude over the columns: [T D] -> [F]."""
    return spectra.amplitude(x).mean(axis=1)


def _headline(r):
    out = r["read"][-1]
    parts = r["parts"].tolist()
    result = {"formula": r["formula_at"][out], "error": r["error_at"].max()}
    result["layers"] = len(r["read"]) - 1
    for null, by_part in (("", r["shares"]), ("_null", r["shares_null"].mean(axis=1))):
        positions = by_part[r["read"], parts.index("position")]
        result["share_first" + null] = positions[0]
        result["share" + null] = positions[-1]
        at_least_half = positions[:-1] >= positions[0] / 2
        result["layers_half" + null] = np.cumprod(at_least_half).sum()
        result["kept" + null] = r["kept_at" + null][out]
        result["peak" + null] = _peak(r["spectra" + null][out], r["T"])
        if "carried" in parts:
            result["carried" + null] = by_part[out, parts.index("carried")]
    return result


def _peak(spectrum, T):
    """Highest peak away from 0 over the median amplitude; 0 if there is none."""
    height, _ = spectra.highest_peak(spectrum, spectra.lowest(T))
    return height / np.median(spectrum[1:])


NAMED = {"carried": "position,\ncarried by attention", "mlp": "MLP", "type": "token type"}
NULL = {"color": draw.GREY, "linestyle": "--", "linewidth": 1.1}


def side(r):
    """The share of the output beside those of the random tables, and how many these are."""
    null = r["shares_null"][r["read"][-1], :, r["parts"].tolist().index("position")]
    side = "like {n}"
    if r["share"] < null.min():
        side = "less than any of {n}"
    elif r["share"] > null.max():
        side = "more than any of {n}"
    return filled(side, n=len(null))


def _draw_stack(axes, r):
    """All shares at each point that a layer reads, stacked; negative ones hang below 0."""
    by_part = r["shares"][r["read"]]
    bars = np.arange(len(by_part))
    up, down = np.zeros(len(bars)), np.zeros(len(bars))
    for name, share in zip(r["parts"], by_part.T):
        bottom = np.where(share >= 0, up, down)
        label = NAMED.get(str(name), name)
        axes.bar(bars, share, 0.8, bottom, color=PARTS[str(name)], label=label)
        up = up + np.maximum(share, 0)
        down = down + np.minimum(share, 0)
    axes.axhline(0, color="black", linewidth=0.7)
    axes.set_ylim(min(down.min() * 1.05, -0.02), up.max() * 1.02)
    axes.set(ylabel="share of the stream", title="what the stream consists of")
    axes.legend(**draw.BESIDE, reverse=True)  # as they are stacked
    _label_layers(axes, r)


def _draw_travel(axes, r):
    """The share of positions, with the range of the random tables' shares."""
    points = np.arange(len(r["read"]))
    for name in "position", "carried":
        for part in np.flatnonzero(r["parts"] == name):
            null = r["shares_null"][r["read"], :, part]  # [points R]
            ends = null.min(axis=1), null.max(axis=1)
            axes.fill_between(points, *ends, color=draw.GREY, alpha=0.25, linewidth=0)
            style = {"color": PARTS[name], "markersize": 4, "label": NAMED.get(name, name)}
            axes.plot(points, r["shares"][r["read"], part], "o-", **style)
            axes.plot(points, null.mean(axis=1), **NULL, zorder=3)
    axes.plot([], [], label=f"null: {null.shape[1]} random tables", **NULL)
    half = {"color": "black", "linewidth": 0.9, "linestyle": ":"}
    axes.axhline(r["share_first"] / 2, label="half of layer 0's share", **half)
    axes.axhline(0, color="black", linewidth=0.7)
    axes.set(ylabel="share of the stream", title="how far positions travel")
    axes.legend(**draw.BESIDE)
    _label_layers(axes, r)


def _label_layers(axes, r):
    stream_layers(axes, len(r["read"]))
    axes.set_xlabel("layer that reads the stream")


def _lines(r):
    """(point, label, colour) of few points, the first and the last among them."""
    n = len(r["read"])
    for i in few(n):
        label = "output" if i == n - 1 else f"read by layer {i}"
        yield r["read"][i], label, draw.shade(i, n)


def _draw_waves(axes, r):
    """Spectra of the position part; at its two ends those of a random table."""
    f = r["frequency"][1:]
    lines = [*_lines(r)]
    for point, label, color in lines:
        axes.plot(f, r["spectra"][point, 1:], color=color, linewidth=1.2, label=label)
    for line, i in ("--", 0), (":", -1):
        point, label, _ = lines[i]
        style = NULL | {"linestyle": line, "label": f"null, {label}"}
        axes.plot(f, r["spectra_null"][point, 1:], **style)
    _label_frequencies(axes, int(r["T"]))
    axes.set_title("the position part\n(null: a random table)")
    axes.legend(loc="upper right", ncols=2, columnspacing=1)


def _label_frequencies(axes, T):
    """A frequency axis with the periods above it, and room for a legend."""
    axes.set(yscale="log", xlim=(0, T / 2), xlabel=f"frequency (cycles in {T} tokens)")
    axes.set_ylabel("amplitude, mean over columns")
    axes.set_ylim(top=axes.get_ylim()[1] * 5)
    draw.period_axis(axes, T)


def _draw_scales(axes, r):
    """S, the factors by which the norms have multiplied each token."""
    for point, label, color in _lines(r):
        axes.plot(r["scale_first"][point], color=color, linewidth=0.8, label=label)
    S = r["scale_first"][r["read"]]
    low = 0.7 * np.quantile(S, 0.02)
    title = "factors S of the norms, first document"
    if S.min() < low:
        lowest = S.min(axis=0).argmin()
        axes.plot(lowest, low, "kv", markersize=6, clip_on=False, zorder=5)
        title += f"\n▼ cut off: down to {S.min():.2g} at {lowest}"
    axes.set(yscale="log", xlim=(0, int(r["T"]) - 1), xlabel="position (tokens)")
    axes.set(ylabel="product of 1/σ over the norms passed", title=title)
    axes.set_ylim(low, 1.1 * S.max())
    draw.plain_log(axes.yaxis)


def _draw_jagged(axes, r):
    """Spectra at the output, where S has gathered the most."""
    f = r["frequency"][1:]
    out = r["read"][-1]
    for name, color, line, label in (
        ("spectra", draw.BLUE, "-", "with S"),
        ("spectra_even", "black", ":", "S its mean everywhere"),
        ("spectra_shuffled", draw.GREY, "--", "null: S in random order"),
    ):
        axes.plot(f, r[name][out, 1:], line, color=color, linewidth=1.2, label=label)
    _label_frequencies(axes, int(r["T"]))
    axes.set_title(
        f"does S make the wave jagged?\n{r['kept']:.1%} of it stays\n(null: {r['kept_null']:.1%})"
    )
    axes.legend()


register(
    residual,
    look="With the scale of every norm held at its value, the stream is exactly the sum of what "
    "was written to it, and a part's share is its length along the sum. Positions start as "
    "the blue part; light blue is what attention moves of them to other tokens. Grey dashed lines "
    "with their range are random tables with the same mean and variance in each column: where "
    "positions are below them, the layers write against the positions; where above, along them. "
    "The second figure: the wave of the position part, the factors S by which the norms multiply "
    "each token, and the wave with S, with S replaced by its mean, and with S in random order; "
    "where only one line shows, all three lie on each other. A model that norms before each part "
    "(GPT-2) is shown as its layers read it: there S belongs to one norm. What layers compute "
    "from positions, other than moving them, counts as attention or mlp.",
    published="The blog post on how the paper came about: a norm leaves S P L of the positions P, "
    "and as S multiplies each token by a factor of its own, it may break a periodic wave, so that "
    "positions may not reach the upper layers; or they do, and the model throws them away.",
    figure="blog post, norms",
    numbers="""
        layers_half: consecutive layers, from the first, that read at least half of the share of
            positions that layer 0 reads
            null: consecutive layers that read half of layer 0's share of a random table
        share_first: share of what layer 0 reads that is the position table
            null: share of what layer 0 reads that is a random table with the mean and variance of
            each column of the true one, on average
        share: share of the output that is the position table, on the direct way through the norms
            null: share of the output that is a random table in its place, on average
        carried: share of the output that is position moved there by attention
            null: share of a random table that attention moved there, which, unlike the true table,
            no layer has answered to
        kept: share of the wave's power at the output that would also be there if S were one number
            for all tokens
            null: share of the wave's power that is kept with S in random order over tokens
        peak: highest peak away from 0 of the position part at the output, over its median
            amplitude; 0: none
            null: highest peak away from 0 of a random table at the output, over its median
            amplitude
        formula: share of the power of the blog post's S P L (it leaves out that a norm subtracts
            the mean) that is the exact position part of the output
            no null: how near a formula comes to what is exact; chance has no part in it
        error: what the parts leave out of the stream, relative: rounding
            no null: it is to be 0
    """,
    answer=Asks(
        "consecutive layers whose input keeps at least half of layer 0's share of position "
        "embeddings ({share_first:.1%})",
        value="{layers_half} of {layers} layers",
        chance="{layers_half_null} of {layers}, random tables",
        rule=Of("layers_half", out_of="layers", enough=1),
    ),
    says="The position table makes up {share_first:.1%} of what layer 0 reads and {share:.2%} of "
    "the output, {side} random tables that go the same way ({share_null:.2%} on average). "
    "{kept:.1%} of the power of its wave is still that wave after the factors by which the norms "
    "multiply each token ({kept_null:.1%} with these in random order); the rest is noise that they "
    "add. Its highest peak away from 0 is {peak:.1f} median amplitudes high at the output (that of "
    "a random table: {peak_null:.1f}).",
    draw=figures(
        row(_draw_stack, _draw_travel, widths=(1.2, 1), height=4.3),
        row(_draw_waves, _draw_scales, _draw_jagged, height=4.7),
    ),
    shares_passes=True,
)
