"""Attribution patching: the effects of all components, or of all edges, from one backward pass.

What each would restore if the rest were linear: the gradient of the measure in the corrupt run
times (clean - corrupt). Beside it stands what patching each of them measures. N pairs of texts, E
edges or nodes.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ..arrays import Model
from ..machine import show
from .agreement import Agreement, agreement
from .effects import check_differ
from .exact import exact_edges, exact_nodes
from .graph import Graph, Node
from .measure import Measure, read_measure
from .patching import Texts
from .paths import Runs, kept
from .slopes import READ, WRITTEN, Slopes, changes, embedded
from .texts import Pairs, read_pairs

NUMBERS = 1 << 26  # of gradients that are held at once
Edge = tuple[Node, Node]


class Scored(show.Shown):
    """Estimated effects of nodes or edges: scored.names [E], scored.scores [E], their agreement.

    Scores are shares of the clean answer that would be restored, as the effects of `patch`.
    `.exact` [E]: the effects measured by patching; `.agreement`: an Agreement of scores with these;
    both are None after `exact=False`. scored[(0, 1), ("q", 1, 2)] is the score of an edge,
    scored[0, 1] that of a head among nodes; `.largest(k)`: names of the k largest absolute scores.

    >>> import minitx
    >>> from minitx import circuits
    >>> pairs = "He said that", "She said that", (" he", " she")
    >>> edges = circuits.attribute(minitx.load("tiny-gpt2"), *pairs, exact=False)
    >>> isinstance(edges, circuits.Scored), len(edges), type(edges[(0, 1), ("q", 1, 2)])
    (True, 479, <class 'float'>)
    """

    def __init__(
        self,
        graph: Graph,
        names: list,
        scores: np.ndarray,
        exact: np.ndarray | None,
    ):
        self.graph = graph
        self.names = names
        self.scores = scores
        self.exact = exact
        self.agreement: Agreement | None = None
        if exact is not None:
            self.agreement = agreement(scores, exact)
        self._index = {name: i for i, name in enumerate(names)}

    def __getitem__(self, name: Any) -> float:
        if isinstance(self.names[0], Node):
            wanted: Any = self.graph.sender(name)
        else:
            sender, receiver = name
            wanted = self.graph.sender(sender), self.graph.receiver(receiver)
        if wanted not in self._index:
            raise KeyError(f"no edge from {wanted[0]} to {wanted[1]}: it is not read there")
        return float(self.scores[self._index[wanted]])

    def __len__(self) -> int:
        return len(self.names)

    def largest(self, k: int) -> list:
        """The names with the k largest scores in size, the largest first."""
        order = np.argsort(-abs(self.scores), kind="stable")
        return [self.names[i] for i in order[:k]]

    def _summary(self):
        kind = "nodes" if isinstance(self.names[0], Node) else "edges"
        title = f"Attribution patching of {len(self)} {kind}"
        if self.agreement is None:
            return show.Summary(f"{title}, not compared with patching (exact=False)", [], (), [])
        title += f"; rank correlation with patching {self.agreement.rank_correlation:.2f}"
        lines = []
        for k, share in self.agreement.overlap.items():
            chance = self.agreement.chance[k]
            lines.append(f"of the first {k}: {share:.2f} in common (chance {chance:.2f})")
        rows = [self._cells(name) for name in self.largest(10)]
        lines += ["  ".join(cells) for cells in rows]
        return show.Summary(title, lines, ("name", "score", "by patching"), rows)

    def _cells(self, name):
        i = self._index[name]
        return [text(name), f"{self.scores[i]:+.3f}", f"{self.exact[i]:+.3f}"]


def text(name: Node | Edge) -> str:
    """A node, or an edge with an arrow, as text."""
    return str(name) if isinstance(name, Node) else f"{name[0]} -> {name[1]}"


def attribute(
    model: Model,
    clean: Texts,
    corrupt: Texts,
    measure: Measure,
    by: Literal["node", "edge"] = "edge",
    steps: int = 1,
    *,
    exact: bool = True,
    prefix: Texts | None = None,
    place: int | None = None,
) -> Scored:
    """Linear estimates of the effect of each node or edge, compared with patching.

    clean, corrupt, measure, prefix, place: as for `patch`; the gradient of a function of the logits
    is computed by finite differences, unless it has a method slope(logits).
    by: "edge", from each sender to each receiver of `path_patch` (EAP), or "node", each head, MLP
    and embedding along all of its paths. steps: gradients are the mean over this number of
    midpoints on the straight line between the embeddings of the corrupt and clean texts (EAP-IG);
    1: the gradient in the corrupt run itself. exact: also patch each edge or node, clean into
    corrupt, to measure the agreement; this takes a run for each receiver and earlier layer.

    Returns Scored: shares of the clean answer [E], with their agreement with patching on the same
    pairs: Spearman's rank correlation, and the overlap of the largest 10, 50 and 200. Raises
    ValueError as `patch` does, for other `by`, or steps below 1. Source: Nanda 2023; Syed et al.
    2023; Hanna et al. 2024.

    >>> import minitx
    >>> from minitx import circuits
    >>> model = minitx.load("tiny-gpt2")
    >>> clean, corrupt = ["He said that", "His house was"], ["She said that", "Her house was"]
    >>> nodes = circuits.attribute(model, clean, corrupt, (" he", " she"), by="node")
    >>> len(nodes), nodes.exact.shape, nodes.agreement.rank_correlation > 0
    (21, (21,), True)
    """
    if by not in ("node", "edge"):
        raise ValueError(f"by is {by!r}; wanted 'node' or 'edge'")
    if steps < 1:
        raise ValueError(f"steps is {steps}; wanted at least 1")
    pairs = read_pairs(model, clean, corrupt, prefix)
    number = read_measure(model, measure, pairs.clean, place)
    graph = Graph(model)
    return scored(graph, pairs, number, by, steps, exact)


def scored(graph: Graph, pairs: Pairs, number, by, steps, exact) -> Scored:
    """The same for texts and a measure that were read before."""
    keep = kept(graph.model, pairs.clean)
    traces = [side.run(graph.model, keep) for side in pairs]
    clean, corrupt = (number.values(trace["logits"]) for trace in traces)
    check_differ(clean, corrupt)
    whole = (clean - corrupt).sum()
    estimated = estimates(graph, pairs, number, by, steps)
    scores = np.array([x.sum() / whole for x in estimated.values()])
    measured = None
    if exact:
        patch_all = exact_edges if by == "edge" else exact_nodes
        values = patch_all(Runs(graph, number), pairs, traces)
        totals = [(values[name] - corrupt).sum() for name in estimated]
        measured = np.array(totals) / whole
    return Scored(graph, list(estimated), scores, measured)


def estimates(graph, pairs, number, by, steps) -> Mapping:  # -> {name: [N]}
    """Gradient times difference of each node or edge, some of the pairs at a time."""
    stream = pairs.corrupt.texts.tokens[0].size * graph.model.config.d_model
    size = max(1, NUMBERS // (stream * len(graph.receivers)))
    parts: dict = {}
    for start in range(0, len(pairs), size):
        rows = np.arange(len(pairs))[start : start + size]
        some = Pairs(*(side.rows(rows) for side in pairs))
        effects = _estimates(graph, some, number.rows(rows), by, steps)
        for name, effect in effects.items():
            parts.setdefault(name, []).append(effect)
    return {name: np.concatenate(effects) for name, effects in parts.items()}


def _estimates(graph, pairs, number, by, steps):
    """The mean over the steps from the corrupt to the clean texts."""
    keep = kept(graph.model, pairs.clean)
    clean, corrupt = (side.run(graph.model, keep) for side in pairs)
    changed = changes(graph, clean, corrupt)
    names = READ if by == "edge" else WRITTEN
    total = {}
    for k in range(steps):
        edits = None
        if steps > 1:
            edits = embedded(graph, clean, corrupt, (k + 0.5) / steps)
        slopes = Slopes(graph, number, pairs.corrupt, names, edits)
        effects = slopes.edges(changed) if by == "edge" else slopes.nodes(changed)
        for name, effect in effects.items():
            total[name] = total.get(name, 0.0) + effect / steps
    return total
