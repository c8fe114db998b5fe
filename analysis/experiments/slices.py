"""Is the embedding split into slices, one for each head?

Two interventions. The D dimensions are put in another order, together with the rows of every matrix
that reads them and the columns of every one that writes them: then no head may notice, so no
dimension has a place of its own. And what a layer's attention reads loses a slice of D/H
dimensions, as many as a head has: if heads read slices, only one head changes. N documents, T
tokens, L layers, H heads.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from minitx import forward
from minitx import run as run_model
from minitx.arrays import Weights
from minitx.model import Start
from minitx.trace import Complete

from ..contract import Asks, Below, NotApplicable, options, register
from ..drawing import Part, When, beside, draw, row
from ..measures import heads
from ..running.stream import UNSAVED
from ..texts import corpus

# the axis of an array that runs along the stream; that of the output: `_axis_of`
STREAM_AXIS = {
    **dict.fromkeys(("W_E", "W_pos", "W_type", "W_O", "W_out"), 1),
    **dict.fromkeys(("W_Q", "W_K", "W_V", "W_in", "W_head", "b_O", "b_out"), 0),
    **dict.fromkeys(("ln_embed_w", "ln_embed_b", "ln_final_w", "ln_final_b"), 0),
    **dict.fromkeys(("ln1_w", "ln1_b", "ln2_w", "ln2_b"), 0),
}
EMBEDDING = "W_E", "W_pos", "W_type", "ln_embed_w", "ln_embed_b"
MAPPED = dict.fromkeys(EMBEDDING) | {"W_map": 1, "b_map": 0}  # where these have their own width
WRITES = "W_E", "W_pos", "W_type", "W_map"  # what the control moves alone
ROUNDING = 1e-4  # attention that goes to other keys: with less, a head has not changed
LABELLED = 12  # heads, at most, that all get their label


def slices(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.Documents = 4,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Attention with the dimensions of the stream in another order, and with a slice at zero."""
    cfg = model.config
    if cfg.n_heads < 2:
        raise NotApplicable("slices needs two heads or more, and this model has one")
    document_set = corpus.documents(model, text, documents, tokens)
    order = np.random.default_rng(seed).permutation(cfg.d_model)
    orders = None, WRITES

    def measure(i, document):
        rng = np.random.default_rng((seed, i))
        layers = _attend(model, document)
        largest = [
            _largest_change(reordered(model, order, only), document, layers) for only in orders
        ]
        moved = _without_slices(model, document, layers, rng)
        return {"reordered": np.array(largest), "moved": moved}

    sums = run.gather(measure, document_set, "documents", keep=("reordered",))
    moved = sums["moved"] / len(document_set)  # [H+1 L H]
    result = {"documents": len(document_set), "T": document_set.T}
    result["d_head"], result["D"] = cfg.d_head, cfg.d_model
    largest = sums["reordered"].max(axis=0)
    result |= {"reordered": largest[0].max(), "reordered_null": largest[1].max()}
    result["by_slice"], result["random_of_heads"] = moved[:-1], moved[-1]
    return result | _own_and_others(moved[:-1], moved[-1])


def reordered(model, order, only=None):
    """The same model with the D dimensions of its stream in another order [D].

    only: names of the arrays that follow it, and no others (None: all).
    """

    def follow(name, x):
        axis = _axis_of(name, model)
        is_moved = isinstance(x, np.ndarray) and axis is not None and (only is None or name in only)
        return np.take(x, order, axis) if is_moved else x

    weights = {name: follow(name, x) for name, x in vars(model.weights).items()}
    layers = tuple(Following(layer, follow) for layer in model.layers)
    return replace(model, weights=Weights(**weights), layers=layers)


class Following:
    """A layer whose arrays are put in order when they are read: no second model is held."""

    def __init__(self, layer, follow):
        self._layer, self._follow = layer, follow

    def __getattr__(self, name):
        return self._follow(name, getattr(self._layer, name))


def _axis_of(name, model):
    """The axis of an array along the stream, or None; W_U reads it where W_head does not."""
    if name == "W_U" and model.weights.W_head is None:
        return 0
    if model.weights.W_map is not None:
        return (STREAM_AXIS | MAPPED).get(name)
    return STREAM_AXIS.get(name)


def _largest_change(other, document, layers):
    """By how much another model's attention differs at most from that of these layers: [L H]."""
    trace = run_model(other, document, "pattern")
    own = [layer["pattern"].astype(np.float64) for layer in layers]
    changes = [abs(trace["pattern", i] - x)[0] for i, x in enumerate(own)]
    return np.array([change.max(axis=(-2, -1)) for change in changes])


def _without_slices(model, document, layers, rng):
    """How much of each head's attention goes to other keys without each slice: [H+1 L H].

    The last is without D/H dimensions drawn at random. Half of the sum of absolute differences,
    mean over queries: 0 if nothing moves, 1 if all does. What every other layer reads stays.
    """
    H, D = model.config.n_heads, model.config.d_model
    ways = [*np.arange(D).reshape(H, -1), rng.permutation(D)[: D // H]]
    moved = []
    for dimensions in ways:
        patterns = [_without(model, document, dimensions, *layer) for layer in enumerate(layers)]
        changes = [abs(x - layer["pattern"]) for x, layer in zip(patterns, layers)]
        moved.append([change[0].sum(axis=-1).mean(axis=-1) / 2 for change in changes])
    return np.array(moved)


def _read_by(model):
    """The point that attention reads."""
    return "ln1" if model.config.pre_norm else "resid_pre"


def _attend(model, document):
    """The stream before each layer, what its attention reads, and its pattern: [{point: array}]."""
    wanted = {"resid_pre", _read_by(model), "pattern"}
    layers = []

    def hook(name, x, layer=None):
        if name == "resid_pre":
            layers.append({})
        if name in wanted:
            layers[-1][name] = x
        return x

    forward(model, document, hook=hook)
    return layers


def _without(model, document, dimensions, index, layer):
    """A layer's pattern [1 H T T] where these dimensions of what it reads are 0."""
    point = _read_by(model)
    without = layer[point].copy(order="K")
    without[..., dimensions] = 0
    patterns = []

    def hook(name, x, layer=None):
        if name == "pattern":
            patterns.append(x)
            raise Complete
        return without if name == point else x

    with suppress(Complete):
        forward(model, document, start=Start(index, layer["resid_pre"]), hook=hook)
    return patterns[0]


def _own_and_others(by_slice, at_random):
    """Change of each head without its own slice and without others' [L H], and their means."""
    H = len(by_slice)
    own = np.einsum("hlh->lh", by_slice)
    others = (by_slice.sum(axis=0) - own) / (H - 1)
    result = {"own_of_heads": own, "others_of_heads": others}
    result |= {"own": own.mean(), "others": others.mean()}
    result["own_null"] = result["others_null"] = at_random.mean()
    result["n_changed"], result["n_heads"] = (others > ROUNDING).sum(), own.size
    result["least"] = others.min()
    return result


def kept(r):
    """How many heads stay as they are without another head's slice."""
    return r["n_heads"] - r["n_changed"]


def least_changed(r):
    """Which head changes least without the slices of others."""
    by_head = r["others_of_heads"]
    return heads.name(*np.unravel_index(by_head.argmin(), by_head.shape))


def _draw_maps(figure, r):
    """The first and the last layer: a row for each slice, a column for each head."""
    H, L, _ = r["by_slice"].shape
    shown = sorted({0, L - 1})
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    ticks = range(0, H, -(-H // LABELLED))
    for axes, layer in zip(panels, shown):
        moved = r["by_slice"][:, layer]
        image = axes.imshow(moved, cmap="Blues", vmin=0, vmax=r["by_slice"].max())
        axes.set(xlabel="head", title=f"layer {layer}", xticks=ticks, yticks=ticks)
    panels[0].set_ylabel(f"slice of {r['d_head']} dimensions at zero")
    bar = figure.colorbar(image, ax=panels, shrink=0.8, location="bottom")
    bar.set_label("attention that goes elsewhere (1: all)")


def _draw_heads(axes, r):
    """Every head: its change without others' slices, its own, and dimensions at random."""
    for name, marker, color, label in (
        ("own", "D", draw.VERMILION, "its own slice"),
        ("others", "o", draw.BLUE, "slices of other heads, mean"),
        ("random", "_", "black", f"null: {r['d_head']} dimensions at random"),
    ):
        axes.plot(r[f"{name}_of_heads"].ravel(), marker, color=color, markersize=6, label=label)
    L, H = r["own_of_heads"].shape
    for layer in range(1, L):
        axes.axvline(layer * H - 0.5, color=draw.GREY, linewidth=0.6)
    axes.set_xticks(np.arange(L) * H + (H - 1) / 2, range(L))
    axes.set(xlabel="heads, layer by layer", ylabel="attention that goes elsewhere", ylim=(0, None))
    axes.legend(**draw.STACKED)


register(
    slices,
    look="If the embedding were cut into pieces, one for each head, the maps would be blue on "
    "their diagonal and white elsewhere: a head would change with its own slice alone. On the "
    "right each head has three marks; where they are about equally high, its own slice matters no "
    "more than other dimensions. In order for nothing to depend on it, the order of the "
    "dimensions is changed in all matrices at once: rounding is all that is left.",
    published="Drawings of attention with several heads often show the embedding cut into pieces, "
    "one for each. What is cut is the output of W_Q, W_K and W_V: every head projects the whole "
    "embedding (Vaswani et al. 2017, 3.2.2).",
    numbers="""
        others: attention that moves elsewhere without the slice of another head, mean of heads
            null: attention that moves elsewhere without as many dimensions, drawn at random from
            all
        own: attention that moves elsewhere without the head's own slice, mean over heads
            null: attention that moves elsewhere without as many dimensions as a head has, at random
        n_changed: heads that change without the slices of other heads
            no null: a head that reads a slice of its own changes by rounding alone
        least: change of the head that changes least without the slices of others
            no null: it is compared with rounding
        reordered: largest change of any weight of attention, all dimensions in another order
            null: largest change if the embeddings alone are in that order
        fact n_heads: heads of the model
    """,
    answer=Asks(
        "heads whose attention changes without the slice of another head",
        value="{n_changed} of {n_heads} (by {others:.2f}; their own: {own:.2f})",
        chance="dimensions drawn: {own_null:.2f}",
        rule=Below("n_changed", null="n_heads", out_of="n_heads", enough=1, margin=0),
    ),
    says=[
        "With the {D} dimensions in another order, in every matrix that reads or writes them, no "
        "weight of attention changes by more than {reordered:.1g} (with the embeddings alone in "
        "that order: by up to {reordered_null:.2f}). Without a slice of {d_head} dimensions that "
        "is another head's, {n_changed} of {n_heads} heads change: {others:.3f} of their attention "
        "moves elsewhere on average, of {least_changed} the least ({least:.3f}). Without their own "
        "slice it is {own:.3f}, without {d_head} dimensions drawn at random {own_null:.3f}. ",
        When("kept", "{kept} do not change.", "Each head projects the whole stream."),
    ],
    draw=beside(Part(_draw_maps), row(_draw_heads), widths=(1.4, 1), height=5),
    per_head=("own_of_heads", "others_of_heads"),
)
