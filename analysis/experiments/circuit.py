"""Are a few edges between components sufficient for the answer?

Edges go from what writes to the stream to what reads it. They are ordered by attribution on one
half of the pairs; on the other half the first of them are run, while all others carry what they
carry in the corrupt text. Beside it random circuits of as many edges. N pairs, E edges, R random
circuits.
"""

from typing import Annotated

import numpy as np

from minitx.circuits import search
from minitx.circuits.effects import interval, share
from minitx.circuits.graph import Graph, Node

from ..contract import Asks, Of, options, register
from ..drawing import draw, row
from ..maths import nulls
from ..measures import circuit_drawing
from ..measures import contrast_pairs as questions
from ..running.stream import UNSAVED

NEAR = 0.8  # nearness to the whole answer from which a circuit carries it
KINDS = "random", "random_in_layers"


def circuit(
    model,
    run=UNSAVED,
    *,
    pairs: options.Pairs = "",
    measure: options.Measure = "",
    n_pairs: options.Size = 0,
    edges: options.Size = 0,
    steps: options.Count = 5,
    random: Annotated[int, options.AtLeast(10)] = 100,
    seed: options.Seed = 0,
):
    """Edges that are enough for the answer, and random circuits of as many.

    n_pairs: pairs to read, of which half choose the edges (0: all of a file, 24 of random words)
    edges: how many (0: as few as give 0.9 of the answer on the first half)
    steps: of the integrated gradients that order the edges
    random: random circuits of each kind
    seed: seed of the words, of random circuits and of intervals
    """
    questions.check_sum(model)
    asked = questions.asked(model, "circuit", pairs, measure, n_pairs, seed)
    if len(asked.clean) < 2:
        raise ValueError("one pair; wanted two or more: edges are chosen on half of them")
    graph = Graph(model)
    n_edges = len(graph.edges())
    if edges:
        options.within("edges", edges, 1, n_edges)
    first_half = search.Trial.of(graph, *asked.some(0, None, 2)[:4])
    second_half = search.Trial.of(graph, *asked.some(1, None, 2)[:4])
    ordered, scores = first_half.ordered(steps)
    _, n = first_half.curve(ordered, edges or None)

    def measured(i, _):
        return dict(zip(KINDS, second_half.random(ordered, n, (seed, i))))

    drawn = run.gather(measured, range(random), "random circuits", keep=KINDS)
    clean = np.append(first_half.clean, second_half.clean)
    result = questions.likelier(clean, np.append(first_half.corrupt, second_half.corrupt))
    result |= {"edges": n, "edges_of_model": n_edges}
    result |= _carried(second_half, ordered, n, seed) | drawn
    nears = [np.quantile(search.nearness(x), nulls.CHANCE) for x in drawn.values()]
    result["near_null"] = max(nears)  # of the nearer kind
    for side, nodes in zip(("senders", "receivers"), zip(*ordered[:n])):
        result[side] = np.array([str(node) for node in nodes])
    return result | {"scores": scores[:n]}


def _carried(trial, ordered, n, seed):
    """What the first n edges carry of pairs that did not choose them, and any first edges."""
    values = trial.values(ordered[:n])
    faithfulness = float(share(values, trial.corrupt, trial.clean))
    ends = interval(values, trial.corrupt, trial.clean, seed)
    curve, _ = trial.curve(ordered, n)
    result = {"near": search.nearness(faithfulness), "faithfulness": faithfulness}
    result["near_interval"] = search.nearness_within(ends)
    result["completeness"] = 1 - trial.faithfulness(ordered[n:])
    result["counts"] = np.array([*curve])
    return result | {"curve": np.array([*curve.values()])}


def remaining(r):
    """What is left of the answer without the circuit."""
    return round(1 - float(r["completeness"]), 3) + 0.0  # no -0


def medians(r):
    """What the middle random circuit of each kind carries."""
    return [np.median(r[kind]).round(2) + 0.0 for kind in KINDS]  # no -0


def _height(r):
    rows = {y for _, y in circuit_drawing.places_of(_edges(r)).values()}
    return max(4.6, 1.2 + 0.62 * len(rows))


def _edges(r):
    """The largest edges, as many as can be told apart."""
    edges = [*zip(map(Node.of, r["senders"].tolist()), map(Node.of, r["receivers"].tolist()))]
    return edges[: circuit_drawing.SHOWN]


def _draw_graph(axes, r):
    edges = _edges(r)
    circuit_drawing.graph(axes, edges, r["scores"])
    shown = f"{len(r['scores'])} edges"
    if len(edges) < len(r["scores"]):
        shown = f"the largest {len(edges)} of {shown}"
    axes.set_title(shown)


def _draw_curve(axes, r):
    """Faithfulness of the first edges; random circuits as points at their number of edges."""
    axes.axhline(1, color=draw.GREY, linewidth=0.8, linestyle="--")
    axes.axhline(0, color=draw.GREY, linewidth=0.8)
    styles = {
        "random": (draw.ORANGE, "null: random edges"),
        "random_in_layers": (draw.SKY, "null: random, same layers"),
    }
    for side, (kind, (color, label)) in zip((0.7, 1.4), styles.items()):
        place = r["edges"] * side  # beside each other
        x = np.full(len(r[kind]), place)
        axes.plot(x, r[kind], "_", color=color, markersize=9, label=label)
    axes.plot(r["counts"], r["curve"], "o-", color="black", markersize=3, label="first edges")
    axes.plot(r["edges"], r["faithfulness"], "o", color=draw.VERMILION, label="the circuit")
    axes.set_xscale("log")
    drawn = np.concatenate([r["curve"], *(r[kind] for kind in KINDS)])
    low, high = drawn.min() - 0.1, drawn.max() + 0.5  # above it the legend
    axes.set_ylim(max(low, -1.5), min(max(high, 1.5), 3.0))
    axes.set(xlabel="edges", ylabel="share of the answer (faithfulness)")
    axes.legend(loc="upper left")


register(
    circuit,
    look="Left the circuit, from the embeddings below to the logits above: an arrow is one edge, "
    "wider for a larger score, dashed where it works against the answer; its colour says what "
    "reads it. Right what the first edges carry, from none (0) to the whole answer (1), on pairs "
    "that did not choose them. Marks are random circuits of as many edges: the circuit says "
    "something only where it is nearer to 1 than they are.",
    published="In GPT-2 small 26 heads carry most of naming the indirect object (Wang et al. "
    "2022); edges are ordered as by Syed et al. 2023 and Hanna et al. 2024.",
    numbers=[
        """
        near: 1 - |1 - faithfulness| of the circuit, on pairs that did not choose it
            null: 99% quantile of that of random circuits, of the nearer kind
        fact near_interval by from, to: 95% interval over pairs of the circuit's 1 - |1 -
            faithfulness|
        faithfulness: share of the answer that the circuit carries, on pairs that did not choose it
            no null: how near it is to 1 has one
        completeness: 1 minus the share that all other edges carry
            no null: random circuits are told by how near they are
        fact edges: edges of the circuit
        fact edges_of_model: edges of the model
        """,
        questions.TOLD,
    ],
    answer=Asks(
        "how close a circuit comes to the answer (faithfulness), on pairs that did not select it",
        value="{near:.2f} with {edges} of {edges_of_model} edges",
        chance="{near_null:.2f}, random circuits",
        rule=questions.if_told(Of("near", enough=NEAR)),
    ),
    says=[
        questions.TELLS,
        "{edges} of {edges_of_model} edges were chosen on half of them. On the other half they "
        "carry {faithfulness:.0%} of the answer; without them {remaining:.0%} is left. Of "
        "{random.size} random circuits with as many edges the median carries {medians[0]:.0%}, "
        "of {random.size} between the same layers {medians[1]:.0%}.",
    ],
    draw=row(_draw_graph, _draw_curve, widths=(2.1, 1), height=_height),
    sides=("both", "encoder"),
)
