"""A circuit as a graph: senders below, what reads them above, an arrow for each edge.

Queries, keys and values of a head are one box; the colour of an arrow says which of them reads.
"""

import numpy as np

from ..runner import draw
from ..runner.files import as_json, finite, write_all

COLOURS = {"q": draw.BLUE, "k": draw.VERMILION, "v": draw.GREEN}
MEANING = {"q": "queries", "k": "keys", "v": "values", "": "MLP or logits"}
SHOWN = 60  # edges at most; more cannot be told apart
PARTS = "attention", "cross-attention", "MLP"  # of a layer, from below


def figure(circuit):
    """The circuit's largest edges, layer above layer: a matplotlib Figure."""
    with draw.style():
        edges = list(zip(circuit.edges, circuit.scores))[:SHOWN]
        places = _places([edge for edge, _ in edges])
        width = 2.5 + max(abs(x) for x, _ in places.values()) * 2
        rows = sorted({y for _, y in places.values()})
        picture = draw.figure(max(5.0, width), 1.4 + 0.75 * len(rows))
        axes = picture.add_subplot()
        axes.axis("off")
        _draw_edges(axes, edges, places)
        for name, (x, y) in places.items():
            box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "#222222"}
            axes.text(x, y, name, ha="center", va="center", bbox=box, zorder=3)
        axes.set_xlim(-width / 2, width / 2)
        axes.set_ylim(min(rows) - 0.5, max(rows) + 0.5)
        return draw.headed(picture, title(circuit, len(edges)))


def title(circuit, n_shown):
    """What the circuit carries, beside chance, in a line."""
    n = len(circuit.edges)
    edges = f"{n} edges" if n_shown == n else f"the largest {n_shown} of {n} edges"
    carried = f"faithfulness {circuit.faithfulness:.2f}, random circuits {circuit.null:.2f} (99 %)"
    return f"{edges}: {carried}"


def save(circuit, folder):
    """Write circuit.json and circuit.svg into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    text = as_json(finite(circuit.to_dict())) + "\n"
    with draw.style():
        picture = draw.svg(figure(circuit))
    write_all({folder / "circuit.json": text, folder / "circuit.svg": picture})
    return folder


def box_of(node):
    """The box that a sender or receiver is drawn in: a head's z, q, k and v are one."""
    prefix = "encoder " if node.name.startswith("enc_") else ""
    name = node.name.removeprefix("enc_")
    if node.layer is None:
        return prefix + name
    if node.head is None:
        return f"{prefix}MLP {node.layer}"
    cross = "cross " if name.startswith("cross_") else ""
    return f"{prefix}{cross}L{node.layer}H{node.head}"


def _height(node):
    """The number of a node's row, from the embeddings up; an encoder lies below."""
    name = node.name.removeprefix("enc_")
    below = -1000 if node.name.startswith("enc_") else 0
    if name == "embed":
        return below - 1
    if name == "logits":
        return below + 900
    part = PARTS.index("attention")
    if name == "mlp":
        part = PARTS.index("MLP")
    elif name.startswith("cross_"):
        part = PARTS.index("cross-attention")
    return below + len(PARTS) * node.layer + part


def _places(edges):
    """{box: (x, y)}: rows from below, the boxes of a row side by side around 0."""
    rows = {}
    for node in {node for edge in edges for node in edge}:
        rows.setdefault(_height(node), set()).add((node.head or 0, box_of(node)))
    places = {}
    for y, height in enumerate(sorted(rows)):
        boxes = [name for _, name in sorted(rows[height])]
        shift = 0.35 * (y % 2)  # so that arrows pass between boxes
        for x, name in enumerate(dict.fromkeys(boxes)):
            places[name] = (1.3 * (x - (len(boxes) - 1) / 2) + shift, y)
    return places


def _draw_edges(axes, edges, places):
    """Arrows, wider for a larger score, dashed below 0; and what their colours mean."""
    largest = max(np.max(np.abs([score for _, score in edges])), 1e-30)
    kinds = set()
    for (sender, receiver), score in edges:
        kind = receiver.name[-1] if receiver.head is not None else ""
        ends = places[box_of(receiver)], places[box_of(sender)]
        arrow = _arrow(kind, score / largest)
        axes.annotate("", *ends, arrowprops=arrow)
        kinds.add(kind)
    for kind, meaning in MEANING.items():
        if kind in kinds:
            axes.plot([], [], color=_colour(kind), label=meaning)
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0), ncols=len(kinds), title="read as")


def _arrow(kind, size):
    """How an edge is drawn, by what reads it and its score as a share of the largest."""
    bend = 0.08 * ("qkv".find(kind) - 1)  # so that three arrows between two boxes lie side by side
    style = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}"}
    style |= {"linestyle": "-" if size >= 0 else "--", "linewidth": 0.6 + 2.4 * abs(size)}
    return style | {"color": _colour(kind), "shrinkA": 12, "shrinkB": 12}


def _colour(kind):
    return COLOURS.get(kind, draw.GREY)
