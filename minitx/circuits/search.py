"""A circuit: the edges that are enough for an answer, beside random circuits of as many.

Edges are taken in the order of their attribution scores. All other edges carry what they carry in
the corrupt text of the pair. N pairs of texts.
"""

import copy
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Model
from ..machine import show
from ..machine.progress import bar, step
from ..sampling import generator
from .edges import Edge, estimates, text
from .effects import check_differ, interval, share
from .graph import Graph
from .measure import Measure, read_measure
from .patching import Texts
from .paths import kept
from .routes import Routes
from .texts import read_pairs

ENOUGH = 0.9  # faithfulness of the circuit that is taken where no number of edges is given
N_RANDOM = 100
BEATEN = 0.99  # of the random circuits, for the answer yes


class Circuit(show.Shown):
    """Edges of a model, and how much of the answer they carry.

    `.edges`: (sender, receiver), the largest score first; `.scores` [E]. `.faithfulness`: the
    measure in a pass in which only these edges are clean, 0 as in the corrupt texts and 1 as in the
    clean ones; `.interval` 95%, pairs resampled. `.completeness`: 1 minus the faithfulness of all
    other edges. `.curve`: {number of edges: faithfulness}. `.random`, `.random_in_layers`
    [n_random]: the faithfulness of random circuits with the same number of edges, and with the same
    number between the same layers. Closeness, 1 - abs(1 - faithfulness), measures the distance to 1
    from either side; `.null` is the larger 99% quantile of both kinds. `.answer`: "yes" if the
    circuit is closer than 99% of each, else "no"; "undecided" with fewer than 100 of each.

    >>> import minitx
    >>> from minitx import circuits
    >>> pairs = [("He said that", "She said that"), ("His house was", "Her house was")]
    >>> model = minitx.load("tiny-gpt2")
    >>> circuit = circuits.find(model, pairs, (" he", " she"), 40, n_random=5)
    >>> len(circuit.edges), circuit.answer, circuit.random.shape
    (40, 'undecided', (5,))
    """

    def __init__(
        self,
        graph: Graph,
        edges: list[Edge],
        scores: np.ndarray,
        numbers: dict[str, Any],
        settings: dict[str, Any],
    ):
        self.graph, self.edges, self.scores, self.settings = graph, edges, scores, settings
        self.faithfulness: float = numbers["faithfulness"]
        self.interval: np.ndarray = numbers["interval"]
        self.completeness: float = numbers["completeness"]
        self.curve: dict[int, float] = numbers["curve"]
        self.random: np.ndarray = numbers["random"]
        self.random_in_layers: np.ndarray = numbers["random_in_layers"]

    @property
    def null(self) -> float:
        """The 99% quantile of random circuits' nearness to 1; of the two kinds the larger one."""
        both = self.random, self.random_in_layers
        return float(max(np.quantile(nearness(x), BEATEN) for x in both))

    @property
    def answer(self) -> str:
        """Whether the circuit beats 99% of the random ones of each kind."""
        if len(self.random) < N_RANDOM:
            return "undecided"
        own = nearness(self.faithfulness)
        beaten = [(nearness(x) < own).mean() for x in (self.random, self.random_in_layers)]
        return "yes" if min(beaten) >= BEATEN else "no"

    def figure(self) -> Any:
        """The circuit as a graph, layer above layer: a matplotlib Figure."""
        from ..analysis.pages import circuit

        return circuit.figure(self)

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write circuit.json and circuit.svg into a folder, each replaced in one step."""
        from ..analysis.pages import circuit

        return circuit.save(self, Path(folder))

    def to_dict(self) -> dict[str, Any]:
        """Edges, scores and all numbers as plain values."""
        values: dict[str, Any] = {"format": 1, "answer": self.answer, "settings": self.settings}
        for name in ("faithfulness", "completeness", "null"):
            values[name] = getattr(self, name)
        for name in ("interval", "random", "random_in_layers"):
            values[name] = getattr(self, name).tolist()
        values["curve"] = {str(n): value for n, value in self.curve.items()}
        values["edges"] = []
        for (sender, receiver), score in zip(self.edges, self.scores):
            edge = {"sender": str(sender), "receiver": str(receiver), "score": float(score)}
            values["edges"].append(edge)
        return values

    def _summary(self):
        n = self.settings["n_edges_of_model"]
        title = f"Circuit of {len(self.edges)} of {n} edges: {self.answer}"
        low, high = self.interval
        lines = [
            f"faithfulness {self.faithfulness:.3f} ({low:.3f} to {high:.3f}), "
            f"99% of random circuits below {self.null:.3f}; completeness {self.completeness:.3f}"
        ]
        rows = [(text(edge), f"{score:+.3f}") for edge, score in zip(self.edges[:10], self.scores)]
        lines += ["  ".join(cells) for cells in rows]
        return show.Summary(title, lines, ("edge", "score"), rows)


def nearness(faithfulness):
    """1 - abs(1 - faithfulness): 1 where a circuit gives the clean answer, less on either side."""
    return 1 - abs(1 - faithfulness)


def nearness_within(ends):  # [2] -> [2]
    """The nearness of all between two ends of faithfulness: up to 1 where 1 is between them."""
    low, high = np.sort(nearness(ends))
    return np.array([low, 1.0 if ends[0] <= 1 <= ends[1] else high])


def find(
    model: Model,
    pairs: Sequence[tuple[Texts, Texts]],
    measure: Measure,
    n_edges: int | None = None,
    *,
    steps: int = 5,
    n_random: int = N_RANDOM,
    prefix: Texts | None = None,
    place: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Circuit:
    """The edges with the largest scores, and whether they carry the answer better than chance.

    pairs: (clean, corrupt) texts, or rows of token ids; measure, prefix, place: as for `patch`.
    n_edges: their number; None: the smallest of 1, 2, 3, 5, 8, 13 … that gives a faithfulness of
    0.9. Edges are ordered by absolute attribution, with integrated gradients in `steps` steps
    (`attribute`). The circuit is then run: its edges carry the values of this run, all others those
    of the corrupt text of the pair (resampling); norms are recomputed.
    n_random: random circuits with as many edges, and with as many between the same layers, drawn
    with `seed`. progress: a bar that counts circuits.

    Returns a Circuit. Edges are selected on the pairs on which they are measured, unlike random
    circuits: before a claim, find on some pairs and measure on others. Raises ValueError as `patch`
    does, or for more edges than the model has. Source: Syed et al. 2023; Hanna et al. 2024; nulls:
    Shi et al. 2024.

    >>> import minitx
    >>> from minitx import circuits
    >>> pairs = [("He said that", "She said that"), ("His house was", "Her house was")]
    >>> model = minitx.load("tiny-gpt2")
    >>> circuit = circuits.find(model, pairs, (" he", " she"), n_random=5)
    >>> circuit.faithfulness >= 0.9, list(circuit.curve)[:5]
    (True, [1, 2, 3, 5, 8])
    """
    if not hasattr(pairs, "__len__"):
        raise ValueError(f"pairs are {pairs!r:.80}; wanted a list of (clean, corrupt)")
    if not len(pairs):
        raise ValueError("no pairs; wanted at least one (clean, corrupt)")
    if n_random < 1:
        raise ValueError(f"n_random is {n_random}; wanted at least 1 random circuit")
    generator(seed)  # refuses what is no seed, before any pass
    clean, corrupt = (list(side) for side in zip(*pairs))
    trial = Trial.of(Graph(model), clean, corrupt, measure, prefix, place)
    n_all = len(trial.edges)
    if n_edges is not None and not 1 <= n_edges <= n_all:
        raise ValueError(f"n_edges is {n_edges}; this model has 1 to {n_all} edges")
    with bar(progress, "circuits"):
        ordered, scores = trial.ordered(steps)
        curve, n_edges = trial.curve(ordered, n_edges)
        numbers = trial.numbers(ordered, n_edges, n_random, seed) | {"curve": curve}
    settings = {"n_pairs": len(pairs), "n_edges_of_model": n_all, "steps": steps, "seed": seed}
    return Circuit(trial.routes.graph, ordered[:n_edges], scores[:n_edges], numbers, settings)


class Trial:
    """Circuits of one model, tried on the same pairs."""

    def __init__(self, routes: Routes):
        self.routes = routes
        number = routes.number
        self.clean, self.corrupt = (
            number.values(trace["logits"]) for trace in (routes.clean, routes.corrupt)
        )
        check_differ(self.clean, self.corrupt)
        self.difference = (self.clean - self.corrupt).sum()

    @classmethod
    def of(cls, graph, clean, corrupt, measure, prefix=None, place=None) -> "Trial":
        """A trial on pairs of texts as users give them."""
        texts = read_pairs(graph.model, clean, corrupt, prefix)
        number = read_measure(graph.model, measure, texts.clean, place)
        keep = kept(graph.model, texts.clean)
        traces = [side.run(graph.model, keep) for side in texts]
        return cls(Routes(graph, texts, traces, number))

    @property
    def edges(self) -> list[Edge]:
        """All edges of the model."""
        return self.routes.graph.edges()

    def ordered(self, steps) -> tuple[list[Edge], np.ndarray]:
        """All edges and their scores by attribution [E], the largest first in size."""
        routes, edges = self.routes, self.edges
        estimated = estimates(routes.graph, routes.pairs, routes.number, "edge", steps)
        scores = np.array([estimated[edge].sum() for edge in edges]) / self.difference
        order = np.argsort(-abs(scores), kind="stable")
        return [edges[i] for i in order], scores[order]

    def values(self, edges) -> np.ndarray:  # -> [N]
        """The measure of each pair in a circuit; several threads may ask."""
        one_pass = copy.copy(self.routes)
        values = one_pass.values(edges)
        step()
        return values

    def faithfulness(self, edges) -> float:
        """Where the measure of a circuit is between the corrupt texts, 0, and the clean ones, 1."""
        return float(share(self.values(edges), self.corrupt, self.clean))

    def random(self, ordered, n, seed) -> tuple[float, float]:
        """Faithfulness of two random circuits of n edges: any, and as many in the same layers."""
        rng = np.random.default_rng(seed)
        drawn = _random(ordered, n, rng), _random_in_layers(ordered, n, rng)
        return self.faithfulness(drawn[0]), self.faithfulness(drawn[1])

    def curve(self, ordered, n_edges):
        """{number of edges: faithfulness}; and the number that is given, or is enough."""
        counts = {*_counts(len(ordered)), *([] if n_edges is None else [n_edges])}
        curve = {n: self.faithfulness(ordered[:n]) for n in sorted(counts)}
        if n_edges is None:
            enough = [n for n, value in curve.items() if value >= ENOUGH]
            n_edges = enough[0] if enough else len(ordered)
        return curve, n_edges

    def numbers(self, ordered, n, n_random, seed) -> dict[str, Any]:
        """What is measured of the first n edges, and of random circuits of as many."""
        values = self.values(ordered[:n])
        numbers: dict[str, Any] = {"completeness": 1 - self.faithfulness(ordered[n:])}
        numbers["faithfulness"] = float(share(values, self.corrupt, self.clean))
        numbers["interval"] = interval(values, self.corrupt, self.clean, seed)
        drawn = np.array([self.random(ordered, n, (seed, i)) for i in range(n_random)])
        return numbers | {"random": drawn[:, 0], "random_in_layers": drawn[:, 1]}


def _counts(most):
    """1, 2, 3, 5, 8, 13 … and all."""
    n, after = 1, 2
    while n < most:
        yield n
        n, after = after, n + after
    yield most


def _random(edges, n, rng):
    """n edges, each as likely."""
    return [edges[i] for i in rng.choice(len(edges), n, replace=False)]


def _random_in_layers(edges, n, rng):
    """As many between each two layers as the first n edges have."""
    by_layers = {}
    for i, (sender, receiver) in enumerate(edges):
        layers = sender.name.startswith("enc_"), sender.layer, receiver.layer
        by_layers.setdefault(layers, []).append(i)
    drawn = []
    for numbers in by_layers.values():
        n_here = sum(i < n for i in numbers)
        drawn += [edges[i] for i in rng.choice(numbers, n_here, replace=False)]
    return drawn
