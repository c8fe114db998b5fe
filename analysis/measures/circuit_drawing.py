"""A circuit drawn as a graph: senders below, what reads them above, an arrow for each edge.

Queries, keys and values of a head are one box; the colour of an arrow says which of them reads.
"""

import numpy as np

from ..drawing import draw

COLOURS = {"q": draw.BLUE, "k": draw.VERMILION, "v": draw.GREEN}
MEANING = {"q": "queries", "k": "keys", "v": "values", "": "MLP or logits"}
SHOWN = 30  # edges at most; more cannot be told apart
HALF_BOX = 0.24  # height of a box, in rows: arrows begin and end at its edge
ENTRY = {"q": -0.2, "k": 0.0, "v": 0.2}  # where they enter it, in widths
ABREAST = 12  # boxes of a line at most


def graph(axes, edges, scores):
    """Draw edges (sender, receiver) with their scores on axes, layer above layer."""
    axes.axis("off")
    places = places_of(edges)
    _draw_edges(axes, list(zip(edges, scores)), places)
    for name, (x, y) in places.items():
        box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "#222222"}
        axes.text(x, y, name, ha="center", va="center", bbox=box, zorder=3)
    rows = [y for _, y in places.values()]
    width = width_of(places)
    axes.set_xlim(-width / 2, width / 2)
    axes.set_ylim(min(rows) - 0.5, max(rows) + 0.5)


def width_of(places):
    """How wide a graph is, in widths of a box."""
    return 2.5 + max(abs(x) for x, _ in places.values()) * 2


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
    part = 2 if name == "mlp" else int(name.startswith("cross_"))
    return below + 3 * node.layer + part  # attention, cross-attention, MLP


def places_of(edges):
    """{box: (x, y)}: rows from below, boxes side by side around 0, so that few arrows cross."""
    rows = {}
    for node in {node for edge in edges for node in edge}:
        rows.setdefault(_height(node), set()).add((node.head or 0, box_of(node)))
    lines = [*_lines(rows)]
    ends = list({(box_of(sender), box_of(receiver)) for sender, receiver in edges})
    while _exchanged(lines, ends):
        pass
    return _spread(lines)


def _exchanged(lines, ends):
    """Exchange neighbours in a line wherever fewer arrows cross then; whether any were."""
    first = fewest = crossings(ends, _spread(lines))
    for line in lines:
        for i in range(len(line) - 1):
            line[i], line[i + 1] = line[i + 1], line[i]
            n = crossings(ends, _spread(lines))
            if n >= fewest:  # back
                line[i], line[i + 1] = line[i + 1], line[i]
            fewest = min(n, fewest)
    return fewest < first


def _spread(lines):
    """{box: (x, y)} of the boxes of each line, from below."""
    places = {}
    for y, boxes in enumerate(lines):
        shift = 0.35 * (y % 2)  # so that arrows pass between boxes
        for x, name in enumerate(boxes):
            places[name] = (1.3 * (x - (len(boxes) - 1) / 2) + shift, y)
    return places


def crossings(ends, places):
    """How many pairs of straight arrows (box, box) cross between boxes at these places."""
    start, end = np.moveaxis(np.array([[places[box] for box in pair] for pair in ends]), 1, 0)
    along = end - start  # [n 2]

    def sides(points):  # [n 2] -> [n n]
        """On which side of each arrow, in a row, points lie."""
        x, y = np.moveaxis(points[None] - start[:, None], -1, 0)
        return np.sign((along[:, :1] * y - along[:, 1:] * x).round(9))

    parts = sides(start) * sides(end) < 0
    return int((parts & parts.T).sum()) // 2


def _lines(rows):
    """Names of boxes, line by line from below; a row of many fills several lines."""
    for height in sorted(rows):
        names = [*dict.fromkeys(name for _, name in sorted(rows[height]))]
        for start in range(0, len(names), ABREAST):
            yield names[start : start + ABREAST]


def _draw_edges(axes, edges, places):
    """Arrows, wider for a larger score, dashed below 0; and what their colours mean."""
    largest = max(np.max(np.abs([score for _, score in edges])), 1e-30)
    kinds = set()
    for (sender, receiver), score in edges:
        kind = receiver.name[-1] if receiver.head is not None else ""
        arrow = _arrow(kind, score / largest)
        (x, y), (x_sender, y_sender) = places[box_of(receiver)], places[box_of(sender)]
        bottom = x + ENTRY.get(kind, 0.0), y - HALF_BOX
        axes.annotate("", bottom, (x_sender, y_sender + HALF_BOX), arrowprops=arrow)
        kinds.add(kind)
    for kind, meaning in MEANING.items():
        if kind in kinds:
            axes.plot([], [], color=_colour(kind), label=meaning)
    if any(score < 0 for _, score in edges):
        axes.plot([], [], "--", color=draw.GREY, label="against the answer")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0), ncols=len(kinds) + 1, title="read as")


def _arrow(kind, size):
    """How an edge is drawn, by what reads it and its score as a share of the largest."""
    bend = 0.08 * ("qkv".find(kind) - 1)  # so that three arrows between two boxes lie side by side
    style = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}"}
    style |= {"linestyle": "-" if size >= 0 else "--", "linewidth": 0.6 + 2.4 * abs(size)}
    return style | {"color": _colour(kind), "shrinkA": 0, "shrinkB": 0}


def _colour(kind):
    return COLOURS.get(kind, draw.GREY)
