"""A pass of a circuit: its edges carry what is written in this pass, all others the corrupt run's.

So every receiver reads a stream of its own: that of the corrupt run, and on it, for each sender
from which an edge of the circuit comes, what this sender writes more than there. The pass is that
of `forward`; a hook puts what receivers make of their streams in the place of its own values. N
pairs of texts, R receivers, S senders.
"""

from typing import NamedTuple

import numpy as np

from ..head_weights import outputs
from ..model import forward, logits
from .graph import Graph, Node, Place
from .stream import POINT_OF, projected


class Reading(NamedTuple):
    """What is read at one point of a pass: who reads, and where."""

    receivers: list[Node]
    place: Place


class Routes:
    """Passes of circuits over the same pairs of texts."""

    def __init__(self, graph: Graph, pairs, traces, number):
        self.graph, self.pairs, self.number = graph, pairs, number
        self.clean, self.corrupt = traces
        self.readings = _readings(graph)
        self.writers = _writers(graph)
        self.carried: set = set()  # edges of the present circuit
        self.more: dict[Place, np.ndarray] = {}  # [S N T D]: what is written beside the corrupt run
        self.embedded = {}
        for node, place in graph.senders.items():
            if node.layer is None:
                more = graph.more(node, self.clean, self.corrupt)
                self.embedded[place] = more[None]

    def values(self, edges) -> np.ndarray:  # -> [N]
        """The measure of each pair in a pass in which only these edges are clean."""
        self.carried = {*edges}
        self.more = dict(self.embedded)
        model, inputs = self.graph.model, self.pairs.clean
        batch = inputs.batch
        x = forward(model, batch.tokens, hook=self, **inputs.options())
        y = logits(model, x, valid=inputs.head_tokens(model), hook=self)
        return self.number.values(y)

    def __call__(self, name, x, layer=None):
        """The hook of the pass."""
        key = name, layer
        if key in self.readings:
            x = self.received(key)
        if key in self.writers:
            self.record(key, x)
        return x

    def received(self, key):
        """What the receivers of a point make of their streams."""
        receivers, place = self.readings[key]
        stack = self.graph.stack_of(place)
        added = self.added(receivers, place)
        streams = stack.walk(place.step, self.corrupt, added)
        R = len(receivers)
        streams = np.broadcast_to(streams, (R, *streams.shape[-3:]))
        if receivers[0].head is None:
            asked_at = self.pairs.clean.head_tokens(self.graph.model)
            return self.graph.value(receivers[0], streams[0], asked_at)
        step = stack.steps[place.step]
        reader = self.graph.stacks[""] if step.name == "source" else stack
        x = stack.normed(streams, step.norm, step.layer)
        angle = self.graph.angle(receivers[0], self.clean)
        name = receivers[0].name.removeprefix(stack.prefix)
        return projected(reader, name, key[1], range(R), x, angle)

    def added(self, receivers, place):  # -> {step: [R N T D]}
        """What the circuit adds to the corrupt stream of each receiver, step by step."""
        added = {}
        for where, senders in self.by_place(place).items():
            pairs = [[(s, r) in self.carried for s in senders] for r in receivers]
            if np.any(pairs):
                more = self.more[where]
                weights = np.array(pairs, more.dtype)
                added[where.step] = np.tensordot(weights, more, 1)
        return added

    def by_place(self, place):
        """The senders that write to a stream before a place, by the place where they write."""
        senders = {}
        for node, where in self.graph.senders.items():
            if where.stack == place.stack and where.step < place.step:
                senders.setdefault(where, []).append(node)
        return senders

    def record(self, key, x):
        """Keep what the senders of a point write more than in the corrupt run."""
        stack, name, place = self.writers[key]
        more = x - self.corrupt[key]
        if name == "mlp":
            self.more[place] = more[None]
            return
        W_O = outputs(stack.arrays(name, key[1]).W_O, stack.cfg.n_heads)
        self.more[place] = (more @ W_O).swapaxes(0, 1)


def _readings(graph):  # -> {(point, layer): Reading}
    """Who reads at each point of a pass."""
    readings = {}
    for node, place in graph.receivers.items():
        name = f"{node.name}_out" if node.name.endswith("mlp") else node.name
        reading = readings.setdefault((name, node.layer), Reading([], place))
        reading.receivers.append(node)
    return readings


def _writers(graph):  # -> {(point, layer): (stack, component, place)}
    """Who writes from each point of a pass."""
    writers = {}
    for node, place in graph.senders.items():
        if node.layer is not None:
            stack = graph.stack_of(place)
            name = node.name.removeprefix(stack.prefix)
            writers[POINT_OF[node.name], node.layer] = stack, name, place
    return writers
