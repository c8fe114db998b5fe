"""How a measure changes with what goes along each edge: gradients, one backward pass for all.

The gradient by what a receiver reads is carried back along the stream, through the norms in it, to
every earlier writer: its product with what that writer changes is the effect of the edge, if all
were linear. N pairs of texts, R receivers, E edges.
"""

import numpy as np

from ..head_weights import columns
from ..kernels import join_heads, linear
from ..learning.backward import limited_back, mlp_back
from ..learning.backward_steps import norm_back
from ..learning.gradients import measure_back
from ..model import CROSS, ENCODER, split_heads
from ..points import name_of, points
from ..positions import turned
from .graph import Graph
from .stream import EMBEDDINGS, POINT_OF

READ = {"q", "k", "v", f"{CROSS}q", f"{CROSS}k", f"{CROSS}v", "mlp_out"}
READ |= {f"enc_{name}" for name in ("q", "k", "v", "mlp_out")}
WRITTEN = {*EMBEDDINGS.values(), *POINT_OF.values()}
WRITTEN |= {f"enc_{name}" for name in EMBEDDINGS.values()}


class Slopes:
    """A backward pass of the corrupt texts, at one point of the way to the clean ones."""

    def __init__(self, graph: Graph, number, inputs, names, edits=None):
        model = graph.model
        available = points(model, inputs.batch.types is not None)
        wanted = [key for key in available if name_of(key) in names]
        last = "resid_post", model.config.n_layers - 1
        wanted.append("ln_final" if model.config.pre_norm else last)
        self.graph = graph
        self.back = measure_back(model, inputs.batch, inputs.source, number.slope, wanted, edits)
        self.last = wanted[-1]

    def kept(self, key):
        """The gradient by a point; zeros where the measure does not depend on it."""
        if key in self.back.kept:
            return self.back.kept[key]
        return np.zeros_like(self.back.trace[key])

    def place(self, stack, name="", layer=None):
        """The place of a norm or an array in the backward pass."""
        back = self.back
        if stack.prefix:
            back = back.of_encoder(stack.model)
        if layer is None:
            return back
        back = back.of_layer(stack.model.layers[layer])
        return back.of_cross() if name.startswith(CROSS) else back

    def edges(self, changed):  # {Node: [N T D], of heads [N T d]} -> {(sender, receiver): [N]}
        """The effect of each edge on each pair, of what its sender changes."""
        effects = {}
        for prefix, stack in self.graph.stacks.items():
            streams = [*stack.streams(self.back.trace, {})]
            receivers, slope = [], None
            for i in reversed(range(len(stack.steps))):
                step = stack.steps[i]
                if step.kind == "read":
                    nodes, new = self.received(stack, i, streams[i])
                    receivers += nodes
                    slope = new if slope is None else np.concatenate([slope, new])
                elif step.kind == "norm":
                    place = self.place(stack, layer=step.layer)
                    slope = norm_back(step.name, slope, streams[i], place)
                elif step.kind == "map":
                    slope = linear(slope, stack.model.weights.W_map.T)
                else:
                    effects |= self.written(prefix, i, receivers, slope, changed)
        return effects

    def written(self, prefix, i, receivers, slope, changed):  # -> {(sender, receiver): [N]}
        """The effects of what is written in one step, on all receivers after it."""
        effects = {}
        for sender, place in self.graph.senders.items():
            if place != (prefix, i):
                continue
            more = changed[sender]
            if sender.head is not None:
                more = self.graph.out_of_head(sender, more)
            products = np.einsum("rntd,ntd->rn", slope, more)
            for receiver, product in zip(receivers, products):
                effects[sender, receiver] = product
        return effects

    def received(self, stack, i, x):  # -> R nodes, [R N T D]
        """The gradients by the stream, through each receiver that reads at a step."""
        step = stack.steps[i]
        place = stack.prefix, i
        nodes = [node for node, where in self.graph.receivers.items() if where == place]
        if step.name == "logits":
            return nodes, self.kept(self.last)[None]
        back = self.place(stack, layer=step.layer)
        normed = stack.normed(x, step.norm, step.layer)
        if step.name == "mlp":
            dy = self.kept(stack.key("mlp_out", step.layer))
            dx = mlp_back(dy, normed, back)[None]
        else:
            dx = self._by_head(nodes, normed)
        if step.norm is not None:
            dx = norm_back(step.norm, dx, x, back)
        return nodes, dx

    def _by_head(self, nodes, x):  # [N T D] -> [R N T D]
        """The gradients by the normed stream x, through queries, keys and values of heads."""
        parts, by_point = [], {}
        for node in nodes:
            key = node.name, node.layer
            if key not in by_point:
                by_point[key] = self._projection(key, x)
            dy, W, cfg = by_point[key]
            own = columns(node.head, cfg)
            parts.append(dy[:, node.head] @ W[:, own].T)
        return np.stack(parts)

    def _projection(self, key, x):
        """The gradient by x W + b of all heads [N H T d]; W; and the config of its stack."""
        name, layer = key
        prefix = ENCODER if name.startswith(ENCODER) else ""
        stack = self.graph.stacks[prefix]
        cfg = stack.cfg
        back = self.place(stack, name, layer)
        dy = self.kept(key)
        letter = name[-1]
        W = back.array(f"W_{letter.upper()}")
        if letter == "v" or name.startswith(CROSS):
            return self._limited(dy, x, letter, back), W, cfg
        if back.has("pos_angle"):
            angle = back.value("pos_angle")
            dy = turned(dy, -angle, cfg.rotary[layer].scale)
        if cfg.qk_norm:
            b = back.array(f"b_{letter.upper()}")
            before = split_heads(linear(x, W, b), cfg)
            dy = norm_back(f"ln_{letter}", dy, before, back)
        return self._limited(dy, x, letter, back), W, cfg

    def _limited(self, dy, x, letter, back):  # [N H T d], [N T D] -> [N H T d]
        """Without what is beyond a limit (OLMo)."""
        if not back.cfg.qkv_limit:
            return dy
        return split_heads(limited_back(letter.upper(), join_heads(dy), x, back), back.cfg)

    def nodes(self, changed):  # {Node: [N T D], of heads [N T d]} -> {sender: [N]}
        """The effect of each sender on each pair, on all that reads it."""
        return {node: self._effect(node, more) for node, more in changed.items()}

    def _effect(self, node, more):
        if node.layer is None:
            dy = self.kept(node.name)
        else:
            dy = self.kept((POINT_OF[node.name], node.layer))
        if node.head is not None:
            dy = dy[:, node.head]
        return np.einsum("ntd,ntd->n", dy, more)


def changes(graph, clean, corrupt):  # -> {Node: [N T D], of heads [N T d]}
    """What each sender writes in the clean run beside the corrupt one; of a head its z."""
    changed = {}
    for node in graph.senders:
        if node.head is None:
            changed[node] = graph.more(node, clean, corrupt)
        else:
            key = POINT_OF[node.name], node.layer
            more = clean[key] - corrupt[key]
            changed[node] = more[:, node.head]
    return changed


def embedded(graph, clean, corrupt, fraction):
    """Edits that put the embeddings on the straight way from corrupt to clean texts."""
    edits = {}
    for stack in graph.stacks.values():
        for key in map(stack.key, EMBEDDINGS.values()):
            if key in corrupt:
                more = clean[key] - corrupt[key]
                edits[key] = corrupt[key] + fraction * more
    return edits
