"""Components as a graph: who writes to the stream, who reads it, and what goes from one to another.

A sender is a head, an MLP, or the embeddings; a receiver is the queries, keys or values of a head,
an MLP, or the logits. Every reader of a stream reads every earlier writer: that is an edge. Keys
and values of cross-attention read the encoder's last stream. N: texts, R: receivers, S: senders.
"""

from typing import NamedTuple

import numpy as np

from ..arrays import Model
from ..head_weights import columns
from ..inputs import check_model
from ..model import CROSS, ENCODER, logits
from .stream import POINT_OF, Stack, projected, require_sum, stacks


class Node(NamedTuple):
    """A component: ("head", 0, 1), ("q", 1, 2), ("mlp", 3), ("embed",), ("logits",)."""

    name: str
    layer: int | None = None
    head: int | None = None

    def __str__(self):
        if self.layer is None:
            return self.name
        place = f"L{self.layer}" if self.head is None else f"L{self.layer}H{self.head}"
        return f"{self.name} {place}"

    @classmethod
    def of(cls, text: str) -> "Node":
        """The node that is written so: "q L1H2", "mlp L3", "logits"."""
        name, _, place = text.partition(" L")
        numbers = [int(number) for number in place.split("H") if number]
        return cls(name, *numbers)


class Place(NamedTuple):
    """Where a component stands: its stack, and the step at which it writes or reads."""

    stack: str
    step: int


class Graph:
    """All senders and receivers of a model, each with its Place."""

    def __init__(self, model: Model):
        check_model(model)
        require_sum(model)
        self.model = model
        self.stacks = stacks(model)
        self.senders: dict[Node, Place] = {}
        self.receivers: dict[Node, Place] = {}
        for prefix, stack in reversed(self.stacks.items()):
            for i, step in enumerate(stack.steps):
                place = Place(prefix, i)
                if step.kind == "write":
                    self.senders |= dict.fromkeys(_senders(stack, step), place)
                elif step.kind == "read":
                    self.receivers |= dict.fromkeys(self._receivers(stack, step), place)

    def _receivers(self, stack, step):
        if step.name == "source":
            return _readers_of_source(self.model.config)
        if step.name in ("mlp", "logits"):
            return [Node(stack.prefix + step.name, step.layer)]
        nodes = _heads(f"{stack.prefix}q", step.layer, stack.cfg.n_heads)
        if step.name == "cross_attention":
            return [node._replace(name=f"{CROSS}q") for node in nodes]
        for letter in "kv":
            nodes += _heads(f"{stack.prefix}{letter}", step.layer, stack.cfg.n_kv)
        return nodes

    def sender(self, given) -> Node:
        """A sender by name: (layer, head), ("mlp", layer), "embed", ("cross_head", layer, head)."""
        if isinstance(given, tuple) and given and not isinstance(given[0], str):
            given = ("head", *given)
        return self._node("sender", given, self.senders)

    def receiver(self, given) -> Node:
        """A receiver by name: ("q", layer, head), ("mlp", layer), "logits"."""
        return self._node("receiver", given, self.receivers)

    def _node(self, role, given, available):
        parts = tuple(given) if isinstance(given, tuple | list) else (given,)
        is_named = 0 < len(parts) < 4 and isinstance(parts[0], str)
        node = Node(*parts) if is_named else Node(str(given))
        node = node._replace(layer=self._layer(node))
        if node in available:
            return node
        names = dict.fromkeys(other.name for other in available)
        text = f"the names are {', '.join(names)}"
        if node.name in names:
            same = [other for other in available if other.name == node.name]
            text = f"there are {same[0]} to {same[-1]}"
        name = self.model.config.model_type
        raise ValueError(f"this model ({name}) has no {role} {node}; {text}")

    def _layer(self, node):
        """A layer as counted from 0; -1 is the last."""
        prefix = ENCODER if node.name.startswith(ENCODER) else ""
        stack = self.stacks.get(prefix)
        if stack is None or node.layer is None or node.layer >= 0:
            return node.layer
        return node.layer + stack.cfg.n_layers

    def reaches(self, sender: Node, receiver: Node) -> bool:
        """Whether a sender writes to the stream that a receiver reads, and before it reads."""
        writes, reads = self.senders[sender], self.receivers[receiver]
        return writes.stack == reads.stack and writes.step < reads.step

    def edges(self) -> list[tuple[Node, Node]]:
        """All (sender, receiver) with an edge between them, receiver by receiver."""
        edges = []
        for receiver in self.receivers:
            edges += [(x, receiver) for x in self.senders if self.reaches(x, receiver)]
        return edges

    def stack_of(self, place: Place) -> Stack:
        """The stack of a place."""
        return self.stacks[place.stack]

    def written(self, sender: Node, trace) -> np.ndarray:  # -> [N T D]
        """What a sender adds to its stream in a run; a head without the bias of its layer."""
        place = self.senders[sender]
        stack = self.stack_of(place)
        if sender.head is None:
            return stack.written(stack.steps[place.step], trace)
        z = trace[POINT_OF[sender.name], sender.layer][:, sender.head]
        return self.out_of_head(sender, z)

    def more(self, sender: Node, trace, base_trace) -> np.ndarray:  # -> [N T D]
        """What a sender writes more in one run than in another."""
        return self.written(sender, trace) - self.written(sender, base_trace)

    def out_of_head(self, sender: Node, z) -> np.ndarray:  # [N T d] -> [N T D]
        """What a head's z becomes in the stream."""
        stack = self.stack_of(self.senders[sender])
        w = stack.arrays(sender.name, sender.layer)
        rows = columns(sender.head, stack.cfg)
        return z @ w.W_O[rows]

    def value(self, receiver: Node, x, asked_at, angle=None):  # [N T D] -> what stands at its point
        """What a receiver makes of the stream x: its q, k or v [N T d], mlp_out, or the logits."""
        return self.values([receiver], x, asked_at, angle)[0]

    def values(self, receivers, x, asked_at, angle=None):  # [N T D] -> [what stands at their point]
        """The same for receivers of one name and layer, which all read x."""
        place = self.receivers[receivers[0]]
        stack = self.stack_of(place)
        step = stack.steps[place.step]
        if step.name == "logits":
            return [logits(self.model, x, valid=asked_at)]
        if step.name == "mlp":
            return [stack.mlp_of(x, step)]
        reader = self.stacks[""] if step.name == "source" else stack
        x = stack.normed(x, step.norm, step.layer)
        heads = [receiver.head for receiver in receivers]
        name, layer = receivers[0].name.removeprefix(ENCODER), receivers[0].layer
        streams = [x] * len(heads)
        return [*projected(reader, name, layer, heads, streams, angle).swapaxes(0, 1)]

    def angle(self, receiver: Node, trace):  # -> [N T r], or None
        """By how much queries and keys of a layer are turned."""
        key = f"{self.receivers[receiver].stack}pos_angle", receiver.layer
        if receiver.name.startswith(CROSS) or key not in trace:
            return None
        return trace[key]


def _senders(stack, step):
    """The senders that write in one step."""
    name = stack.prefix + step.name
    if not step.name.endswith("head"):
        return [Node(name, step.layer)]
    return _heads(name, step.layer, stack.cfg.n_heads)


def _readers_of_source(cfg):
    """The keys and values of all layers' cross-attention."""
    nodes = []
    for layer in range(cfg.n_layers):
        nodes += _heads(f"{CROSS}k", layer, cfg.n_kv)
        nodes += _heads(f"{CROSS}v", layer, cfg.n_kv)
    return nodes


def _heads(name, layer, n):
    """The same node of n heads."""
    return [Node(name, layer, h) for h in range(n)]
