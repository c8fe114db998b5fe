"""The residual stream of a stack as a list of steps: who writes to it, what norms it, who reads it.

Families differ in where a norm stands, and so in the order of these steps. In GPT-2 a norm is part
of a reader, and the stream is a plain sum. In BERT the stream itself passes a norm after each
addition, so what was written before goes through all norms that come after it. Axis letters: see
model.py; N: texts of a batch.
"""

from typing import NamedTuple

import numpy as np

from ..head_weights import columns
from ..kernels import linear
from ..model import CROSS, ENCODER, identity, limited, mlp, norm
from ..positions import turned

# component -> the point that holds what it writes
POINT_OF = {"head": "z", "cross_head": "cross_z", "mlp": "mlp_out"}
POINT_OF |= {f"{ENCODER}{component}": f"{ENCODER}{POINT_OF[component]}" for component in POINT_OF}
EMBEDDINGS = {"word": "embed", "position": "pos_embed", "type": "type_embed"}


class Step(NamedTuple):
    """One step of a stream: "write", "norm", "map" (of the embeddings, in ALBERT) or "read"."""

    kind: str
    name: str  # the component that writes, the norm, or what reads: "attention", "mlp", "logits"
    layer: int | None = None
    norm: str | None = None  # of a reader that norms what it reads


class Stack:
    """A decoder, or an encoder, with the steps of its stream and the arrays of each."""

    def __init__(self, model, prefix=""):
        self.model, self.cfg, self.prefix = model, model.config, prefix
        self.steps = [*_steps(model, "source" if prefix else "logits")]

    def key(self, name, layer=None):
        """A point of this stack."""
        name = self.prefix + name
        return name if layer is None else (name, layer)

    def arrays(self, name, layer=None):
        """The arrays that a step uses: those of the model, of a layer, of cross-attention."""
        if layer is None:
            return self.model.weights
        w = self.model.layers[layer]
        return w.cross if name.startswith((CROSS, "ln_cross")) else w

    def index(self, kind, name, layer=None):
        """The number of a step."""
        wanted = kind, name, layer
        return next(i for i, step in enumerate(self.steps) if step[:3] == wanted)

    def normed(self, x, name, layer):  # [... T D] -> [... T D]
        """x after the norm of a step; None: as it is."""
        if name is None:
            return x
        return norm(name, x, self.arrays(name, layer), self.cfg, identity)

    def written(self, step, trace):  # -> [N T D]
        """All that a step adds to the stream, biases included."""
        if step.name == "embed":
            keys = map(self.key, EMBEDDINGS.values())
            return sum(trace[key] for key in keys if key in trace)
        if step.name == "mlp":
            return trace[self.key("mlp_out", step.layer)]
        out = "attn_out" if step.name == "head" else "cross_out"
        return trace[self.key(out, step.layer)]

    def walk(self, stop, trace, added, recompute_mlps=False):  # -> [... N T D]
        """The stream as step `stop` reads it: that of a trace, with changes to what is written.

        added: {step: [... N T D]}, what is written beside what the trace has. The stream's norms
        are those of the changed stream; MLPs are recomputed from it only if recompute_mlps.
        """
        streams = self.streams(trace, added, recompute_mlps)
        return next(x for i, x in enumerate(streams) if i == stop)

    def streams(self, trace, added, recompute_mlps=False):
        """Yield the stream before each step."""
        x, read_by_mlp = 0.0, None
        for i, step in enumerate(self.steps):
            yield x
            if step.kind == "norm":
                x = self.normed(x, step.name, step.layer)
            elif step.kind == "map":
                x = linear(x, self.model.weights.W_map, self.model.weights.b_map)
            elif step.kind == "read":
                read_by_mlp = x, step
            elif step.name == "mlp" and recompute_mlps:
                x = x + self.mlp_of(*read_by_mlp) + added.get(i, 0.0)
            else:
                x = x + self.written(step, trace) + added.get(i, 0.0)

    def mlp_of(self, x, step):  # [... T D] -> [... T D]
        """What the MLP makes of the stream x that it reads."""
        w = self.model.layers[step.layer]
        return mlp(self.normed(x, step.norm, step.layer), w, self.cfg, identity)


def require_sum(model):
    """Raises ValueError for a model whose heads do not add to the stream one by one."""
    if model.layers[0].attn_out_w is not None:
        raise ValueError(
            f"outputs of attention and MLP are normed before the sum ({model.config.model_type})"
            ", so heads do not add up to the stream; wanted a model without such norms"
        )
    if model.config.qk_norm_all:
        raise ValueError(
            f"queries, and keys, of all heads are normed together ({model.config.model_type}), so "
            "no head reads the stream by itself; wanted a model without such norms"
        )


def _steps(model, last):
    """The steps of a stack, from the embeddings to the reader of the last stream."""
    yield Step("write", "embed")
    if model.weights.ln_embed_w is not None:
        yield Step("norm", "ln_embed")
    if model.weights.W_map is not None:
        yield Step("map", "map")
    for w in model.layers:
        yield from _steps_of_layer(w, model.config)
    if model.config.pre_norm:
        yield Step("norm", "ln_final")
    yield Step("read", last)


def _steps_of_layer(w, cfg):
    """Attention, in a decoder with a source cross-attention, MLP."""
    parts = [("attention", "head", "ln1"), ("mlp", "mlp", "ln2")]
    if w.cross is not None:
        parts.insert(1, ("cross_attention", "cross_head", "ln_cross"))
    if cfg.parallel:
        yield from (Step("read", reader, w.index, ln) for reader, _, ln in parts)
        yield from (Step("write", writer, w.index) for _, writer, _ in parts)
        return
    for reader, writer, ln in parts:
        if cfg.norm_residual:
            yield Step("norm", ln, w.index)
        yield Step("read", reader, w.index, ln if cfg.pre_norm and not cfg.norm_residual else None)
        yield Step("write", writer, w.index)
        if not cfg.pre_norm:
            yield Step("norm", ln, w.index)


def stacks(model):  # -> {prefix: Stack}
    """The stacks of a model: its own, and in an encoder-decoder the encoder's."""
    own = {"": Stack(model)}
    if model.encoder is not None:
        own[ENCODER] = Stack(model.encoder, ENCODER)
    return own


def projected(stack, name, layer, heads, x, angle):  # [R N T D] -> [N R T d]
    """Queries, keys or values of some heads, each of a stream of its own.

    name: "q", "k", "v", or of cross-attention "cross_q" …; angle [N T r]: of the turn, or None.
    """
    w, cfg = stack.arrays(name, layer), stack.cfg
    letter = name[-1]
    W = np.asarray(getattr(w, f"W_{letter.upper()}"))
    b = getattr(w, f"b_{letter.upper()}")
    y = [linear(part, W[:, columns(h, cfg)]) for h, part in zip(heads, x)]
    if b is not None:
        y = [part + b[columns(h, cfg)] for h, part in zip(heads, y)]
    y = np.stack(y, axis=1)
    if cfg.qkv_limit:
        y = limited(y, cfg)
    if letter == "v":
        return y
    if cfg.qk_norm:
        y = norm(f"ln_{letter}", y, w, cfg, identity)
    return y if angle is None else turned(y, angle, cfg.rotary[layer].scale)
