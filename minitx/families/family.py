"""The records with which a family's file says how the family names things.

`Key` is a key of config.json, `Tensor` a tensor of the file; `dense`, `norm`, `third` and `part`
write the pairs of weight and bias that every family has.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..mapped import rows_of

REQUIRED = (
    object()
)  # a missing key is an error: a library's defaults are often not the checkpoint's


class Key(NamedTuple):
    """A key of config.json; with a default it may be missing or null."""

    name: str
    default: object = REQUIRED
    other: str = ""  # the key that is read where this one is missing


class Tensor(NamedTuple):
    """Where one of our arrays lies in a checkpoint."""

    names: tuple  # the first of these that the file has
    transposed: bool = False  # stored [out, in], used [in, out]
    part: int | None = None  # the array is that one of equal parts of the last axis, from 0
    parts: int = 3  # how many there are
    per_head: bool = False  # each head has such parts, one head after the other
    only: str = ""  # field of Config that must be true for the array to be there
    optional: bool = False  # an array that may be absent

    def own_part(self, array, n_heads):
        """This array's part of a fused one: a view; where each head has its parts, a copy."""
        if self.part is None:
            return array
        groups = n_heads if self.per_head else 1
        of_parts = np.arange(array.shape[-1]).reshape(groups, self.parts, -1)
        where = of_parts[:, self.part].ravel()
        if not self.per_head:
            where = slice(where[0], where[-1] + 1)
        return rows_of(array.T, where).T


def no_more(values):
    """No further fields."""
    return {}


def no_layers(raw, values):
    """Nothing that a layer has by itself."""
    return {}


class Family(NamedTuple):
    """One family of models: its config keys and its tensors, by our names for both."""

    config: dict  # field of Config -> Key
    fixed: dict  # field of Config -> value that is the same in all models of the family
    body: dict  # our name -> Tensor: embeddings, and the final norm if there is one
    layer: dict  # our name -> Tensor of one layer, behind `layer_prefix`
    layer_prefix: str  # "encoder.layer.{}."
    heads: dict  # task head -> our name -> Tensor
    derived: Callable = no_more  # {field: value} so far -> further fields that follow from them
    places: Callable = no_layers  # config.json, {field: value} -> rotary and windows of each layer
    sequence_act: str | None = None  # activation inside a head for classes
    only: dict = {}  # noqa: RUF012  key of config.json -> the only value that is computed
    lacks: tuple = ()  # (our name, layer) of what a layer has not
    cross: dict | None = None  # our name -> Tensor of one layer's cross-attention
    encoder: "Family | None" = None  # the other stack of an encoder-decoder


def tensor(*names, **more):
    """One array, by the names that it may have; more: fields of Tensor."""
    return Tensor(names, **more)


def dense(ours, theirs, transposed=True, bias_only=""):
    """Weight and bias of a linear layer: W_… and b_…; PyTorch stores [out, in].

    bias_only: field of Config that must be true for the bias to be there.
    """
    weight = tensor(f"{theirs}.weight", transposed=transposed)
    return {f"W_{ours}": weight, f"b_{ours}": tensor(f"{theirs}.bias", only=bias_only)}


def norm(ours, theirs):
    """Gain and bias of a LayerNorm: …_w and …_b."""
    return {f"{ours}_w": tensor(f"{theirs}.weight"), f"{ours}_b": tensor(f"{theirs}.bias")}


def third(ours, theirs, number):
    """Weight and bias that are one third of a fused matrix [in, 3 out]: query, key or value."""
    names = (f"{theirs}.weight",), (f"{theirs}.bias",)
    weight, bias = (Tensor(name, part=number) for name in names)
    return {f"W_{ours}": weight, f"b_{ours}": bias}


def part(ours, theirs, number, parts, per_head=False, bias_only=""):
    """Weight and bias that are one of equal parts of a fused matrix [parts out, in]."""
    own = Tensor((f"{theirs}.weight",), True, number, parts, per_head)
    bias = own._replace(names=(f"{theirs}.bias",), transposed=False, only=bias_only)
    return {f"W_{ours}": own, f"b_{ours}": bias}


def per_head(ours, theirs, number, bias_only=""):
    """Query (0), key (1) or value (2) of a fused matrix in which each head has its three."""
    return part(ours, theirs, number, 3, per_head=True, bias_only=bias_only)
