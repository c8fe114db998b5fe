"""The figure of a training: table, heads, loss, stream and dial against the step, and the seeds.

S snapshots, F frequencies, L layers, H heads.
"""

import numpy as np

from ..drawing import draw
from ..machine.language import filled, translated
from ..maths import onsets, profiles
from ..measures import heads
from . import seeds, words

WIDTH, HEIGHT = 12.5, 7.6  # inches
LAYERS = draw.BLUE, draw.VERMILION, draw.GREEN, draw.PURPLE
SAMPLE = {"color": draw.GREY, "linestyle": "--", "linewidth": 1.0}


def picture(r, compared=None):
    """The figure of results, and of a Compared where there is one."""
    figure = draw.figure(WIDTH, HEIGHT)
    panels = figure.subplots(2, 3).ravel()
    paints = [_loss, _heads]
    if "amplitude" in r:
        paints += [_waves, _stream, _dial]
    leaves = words.onset(r, seeds.LEAVES)
    for axes, paint in zip(panels, paints):
        paint(axes, r)
        _steps(axes, r)
        if np.isfinite(leaves):
            axes.axvline(_places(leaves), color="black", linewidth=0.8, linestyle=":")
    for axes in panels[len(paints) :]:
        axes.set_axis_off()
    if compared is not None:
        panels[-1].set_axis_on()
        _kinds(panels[-1], compared)
    return figure


def _places(steps):
    """Where steps stand: log(1 + step), so that step 0 has a place."""
    return np.log1p(np.asarray(steps, np.float64))


def _steps(axes, r):
    """Ticks of the steps."""
    last = r["steps"][-1]
    ticks = [0, *(10**k for k in range(8) if 10**k <= last)]
    axes.set_xticks(_places(ticks), [f"{tick:,}" for tick in ticks])
    axes.set(xlabel="steps", xlim=(0, _places(last)))


def _loss(axes, r):
    x = _places(r["steps"])
    axes.plot(x, r["loss"], "o-", color=draw.BLUE, markersize=3, label="loss, held out")
    axes.plot(x, r["loss"] + r["gain"], color=draw.ORANGE, label="without positions")
    axes.plot(x, r["loss_null"], **SAMPLE, label="null: token frequencies")
    axes.set(title="The loss (dotted: it leaves its plateau)", ylabel="nats")
    axes.legend()


def _heads(axes, r):
    """Of each head, the attention to the offset that it ends with."""
    last = r["looks"][-1]  # [L H R]
    best = last.argmax(axis=-1)
    for layer, head in np.ndindex(best.shape):
        values = r["looks"][:, layer, head, best[layer, head]]
        style = {"color": LAYERS[layer % len(LAYERS)], "linewidth": 1.3}
        axes.plot(_places(r["steps"]), values, **style)
        offset = draw.offset(profiles.offsets()[best[layer, head]])
        if values[-1] >= heads.SHARP:
            point = _places(r["steps"][-1]), values[-1]
            text = f"{heads.name(layer, head)} {offset}"
            axes.annotate(text, point, xytext=(-3, -10), textcoords="offset points", ha="right")
    axes.plot(_places(r["steps"]), r["sharp_null"], **SAMPLE, label="null: all keys alike")
    for layer in range(len(last)):
        axes.plot([], [], color=LAYERS[layer % len(LAYERS)], label=f"heads of layer {layer}")
    axes.set(title="Attention to the offset a head ends with", ylim=(0, 1.02))
    axes.legend(loc="upper left")


def _waves(axes, r):
    """Amplitude of each frequency: an image whose columns are as wide as their steps."""
    edges = _places(r["steps"])
    edges = np.r_[edges[0], (edges[1:] + edges[:-1]) / 2, edges[-1]]
    image = r["amplitude"][:, 1:].T  # [F-1 S]
    rows = np.arange(0.5, len(image) + 1)
    drawn = axes.pcolormesh(edges, rows, image, cmap="Blues", rasterized=False)
    axes.figure.colorbar(drawn, ax=axes, label="amplitude")
    rows = 2 * (r["amplitude"].shape[1] - 1)
    axes.set(title="Waves of the position table", ylabel=f"cycles in {rows} rows")


def _stream(axes, r):
    x = _places(r["steps"])
    for i, values in enumerate(r["cca"].T):
        name = f"before layer {i}" if i < r["cca"].shape[1] - 1 else "output"
        axes.plot(x, values, color=LAYERS[i % len(LAYERS)], label=name)
    axes.plot(x, r["cca_null"][:, -1], **SAMPLE, label="null of the output: positions shuffled")
    axes.set(title="Positions in the stream (CCA)", ylabel="mean correlation", ylim=(-0.1, 1.02))
    axes.legend()


def _dial(axes, r):
    x = _places(r["steps"])
    for name, color, text in (
        ("follow", draw.BLUE, "attention that follows moved positions"),
        ("sharp", draw.ORANGE, "attention of the sharpest head"),
    ):
        axes.plot(x, r[name], color=color, label=text)
    axes.plot(x, r["follow_null"], **SAMPLE, label="null: each key moved at random")
    axes.set(title="The dial", ylim=(0, 1.25))
    axes.legend()


SEEDS = "{kind}, seeds: {n}"


def _kinds(axes, compared):
    """Loss against steps: mean over seeds, with its interval."""
    for kind in compared.kinds:
        if kind not in DRAWN:
            continue
        r = compared.kinds[kind]
        mean, low, high = onsets.interval(r["loss"])
        x = r["steps"][0]
        color, name = DRAWN[kind], filled(SEEDS, kind=translated(kind), n=len(r["loss"]))
        axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
        axes.plot(x, mean, color=color, label=name)
    title = "Kinds of positions, mean and 95% over seeds"
    axes.set(title=title, xlabel="steps", ylabel="loss, held out")
    axes.legend()


DRAWN = {
    "learned": draw.BLUE,
    "rotary": draw.VERMILION,
    "sinusoidal": draw.GREEN,
    "frozen": draw.GREY,
}
