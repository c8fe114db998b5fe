"""The tape of a backward pass: what the forward pass recorded, and the gradients that are kept."""

import copy

import numpy as np

from ..model import CROSS, ENCODER
from ..points import name_of
from .parameters import is_tied_output

# the points that a backward pass reads; `scores` and `logits` are not among them
TAPE = set(
    "embed pos_embed type_embed ln_embed pos_bias dist_embed pos_row pos_angle resid_pre ln1 q k "
    "k_pos q_pos v pattern z attn_out out "
    "resid_mid ln_cross resid_cross ln2 pre pre_linear post mlp_out resid_post ln_final".split()
)
AFTER_LAYERS = set(
    "logits W_U b_U W_head b_head ln_head_w ln_head_b "
    "ln_final ln_final_mean ln_final_scale ln_final_w ln_final_b".split()
)
NOWHERE = 1 << 30  # above all layers


def on_tape(available):
    """Those points that a backward pass reads."""

    def is_read(name):
        plain = name.removeprefix(ENCODER).removeprefix(CROSS)
        return plain in TAPE or plain.endswith(("_mean", "_scale"))

    return [key for key in available if is_read(name_of(key))]


class Back:
    """One place of a backward pass: its arrays, what was recorded there, and what is kept.

    A place is a stack, one of its layers, or that layer's cross-attention. All places of a pass
    share `trace`, `wanted`, `owner`, `edited` and `kept`.
    """

    def __init__(self, model, trace, wanted, owner, edited):
        self.cfg, self.w = model.config, model.weights
        self.trace = trace
        self.wanted = wanted  # names of points, and owners of arrays
        self.owner = owner  # {name of an array: the first name of the same memory}
        self.edited = edited  # points that an edit replaced: nothing before them matters
        self.kept = {}  # {name: gradient}
        self.prefix, self.layer = "", None

    def of_encoder(self, encoder):
        """The place of the encoder's stack."""
        return self._elsewhere(prefix=ENCODER, cfg=encoder.config, w=encoder.weights)

    def of_layer(self, layer):
        """The place of one layer of this stack."""
        return self._elsewhere(layer=layer.index, w=layer)

    def of_cross(self):
        """The place of this layer's cross-attention."""
        return self._elsewhere(prefix=CROSS, w=self.w.cross)

    def of_stack(self):
        """The place of this layer's stack."""
        return self._elsewhere(layer=None)

    def _elsewhere(self, **changed):
        place = copy.copy(self)
        vars(place).update(changed)
        return place

    def key(self, name):
        """The name here, or (name, layer)."""
        name = self.prefix + name
        return name if self.layer is None else (name, self.layer)

    def array(self, name):
        """An array of this place; cross-attention holds those of its norm."""
        held = self.w.cross if name.startswith("ln_cross") else self.w
        return getattr(held, name)

    def has(self, name):
        """Whether the forward pass recorded a point here."""
        return self.key(name) in self.trace.arrays

    def value(self, name):
        """What the forward pass recorded at a point of this place."""
        return self.trace[self.key(name)]

    def point(self, name, dx):
        """The gradient dx by a point -> that by what the pass computed there."""
        key = self.key(name)
        if key in self.wanted:
            self.kept[key] = dx
        if key in self.edited:
            return np.zeros_like(dx)
        return dx

    def add(self, name, dx):
        """A part of the gradient by something that is read in several places."""
        key = self.key(name)
        if key in self.kept:
            dx = self.kept[key] + dx
        self.kept[key] = dx

    def weight(self, name, derivative, *given):
        """A part of the gradient by an array, computed if it is wanted."""
        key = self.key(name)
        owner = self.owner.get(key)
        if owner not in self.wanted:
            return
        dW = derivative(*given)
        if is_tied_output(key, owner):
            dW = dW.T
        if owner in self.kept:
            dW = self.kept[owner] + dW
        self.kept[owner] = dW

    def lowest(self):
        """The first layer of this stack in which anything is wanted; -1: something before it."""
        return min(map(self._depth, self.wanted), default=NOWHERE)

    def _depth(self, key):
        """How far back this stack must be walked for one name."""
        name = name_of(key)
        in_encoder = name.startswith(ENCODER)
        if in_encoder and not self.prefix:
            return -1  # through all layers that read the source
        if key == name:
            return NOWHERE if name.removeprefix(ENCODER) in AFTER_LAYERS else -1
        return key[1] if in_encoder == bool(self.prefix) else NOWHERE
