"""The records with which a family's file says how the family names things.

`Key` is a key of config.json, `Tensor` a tensor of the file; `dense`, `norm`, `third` and `part`
write the pairs of weight and bias that every family has. How a fused matrix is laid out is one of
the functions `by_part`, `by_half`, `by_head`, `by_kind`, `by_group`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...machine.mapped import rows_of

REQUIRED = (
    object()
)  # a missing key is an error: a library's defaults are often not the checkpoint's


class Key(NamedTuple):
    """A key of config.json; with a default it may be missing or null."""

    name: str
    default: object = REQUIRED
    other: str = ""  # the key that is read where this one is missing


def by_part(cfg):
    """A fused matrix is all queries, all keys, all values.

    As all of these: how often its pattern repeats, and how many units wide each part of that is.
    """
    return 1, (1, 1, 1)


def by_half(cfg):
    """It has two parts."""
    return 1, (1, 1)


def by_head(cfg):
    """Each head has its query, key and value, one head after the other (GPT-NeoX)."""
    return cfg.n_heads, (1, 1, 1)


def by_kind(cfg):
    """All queries, then the keys and values that heads share (Phi-3)."""
    return 1, (cfg.n_heads, cfg.n_kv, cfg.n_kv)


def by_group(cfg):
    """The queries of the heads that share a key and a value, then these two (Falcon)."""
    return cfg.n_kv, (cfg.n_heads // cfg.n_kv, 1, 1)


class Tensor(NamedTuple):
    """Where one of our arrays lies in a checkpoint."""

    names: tuple  # the first of these that the file has; (): ones, which no file has
    transposed: bool = False  # stored [out, in], used [in, out]
    part: int | None = None  # the array is that one of the parts of the last axis, from 0
    layout: Callable = by_part  # of a fused matrix: Config -> its parts
    neighbours: bool = False  # pairs of features that are turned together stand side by side
    plus: float = 0.0  # what is added to what is stored
    times: str = ""  # field of Config by which it is multiplied
    only: str = ""  # field of Config that must be true for the array to be there
    optional: bool = False  # an array that may be absent
    others: tuple = ()  # names of further tensors that the array is made of
    join: Callable | None = None  # the tensor as it is stored, the others -> the array
    shapes: Callable | None = None  # Config -> shapes of the tensor and of the others, in a file

    def whole(self, size, cfg):
        """The last axis of the fused array, of whose parts this one has that size."""
        _, widths = self.layout(cfg)
        return size * sum(widths) // widths[self.part]

    def used(self, array, cfg):
        """The array as a model uses it: a view where that can be, or a copy."""
        if self.part is not None:
            array = self._own_part(array, cfg)
        if self.neighbours:
            array = rows_of(array.T, halves_of_heads(cfg)).T
        if self.plus:
            array = array + array.dtype.type(self.plus)
            array.flags.writeable = False  # as arrays of a file are
        if self.factor(cfg) != 1:
            array = array * array.dtype.type(self.factor(cfg))
            array.flags.writeable = False
        return array

    def factor(self, cfg):
        """By which it is multiplied."""
        return getattr(cfg, self.times) if self.times else 1

    def is_copied(self, cfg):
        """Whether a change of the array would not be one of the file's tensor."""
        is_scattered = self.part is not None and self.layout(cfg)[0] > 1
        is_changed = bool(self.plus) or self.factor(cfg) != 1 or self.join is not None
        return is_scattered or self.neighbours or is_changed or not self.names

    def _own_part(self, array, cfg):
        groups, widths = self.layout(cfg)
        of_units = np.arange(array.shape[-1]).reshape(groups, sum(widths), -1)
        first = sum(widths[: self.part])
        where = of_units[:, first : first + widths[self.part]].ravel()
        if groups == 1:
            where = slice(where[0], where[-1] + 1)
        return rows_of(array.T, where).T


def halves_of_heads(cfg):  # -> [A]
    """Where features lie that are turned as neighbours (GPT-J), in the order of `turned`.

    There feature i is turned with feature i + r. The same order for queries and keys changes no
    score.
    """
    r = len(cfg.rotary[0].frequencies)
    of_head = np.arange(cfg.d_head)
    of_head[: 2 * r] = of_head[: 2 * r].reshape(r, 2).T.ravel()
    heads = np.arange(cfg.n_heads)[:, None]
    return (heads * cfg.d_head + of_head).ravel()


def no_more(values):
    """No further fields."""
    return {}


def none_withheld(cfg, names):
    """No head that is left out."""
    return {}


def no_layers(raw, values):
    """Nothing that a layer has by itself."""
    return {}


ONES = Tensor(())  # the gain of a norm that has none


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
    knows: tuple = ()  # further keys that its functions read, or that have no effect in it
    withheld: Callable = none_withheld  # Config, names in the file -> {head not read: why}
    lacks: tuple = ()  # (our name, layer) of arrays that a layer lacks
    cross: dict | None = None  # our name -> Tensor of one layer's cross-attention
    encoder: "Family | None" = None  # the other stack of an encoder-decoder
    sizes: Callable = no_more  # config.json -> fields that others follow from
    inside: str = ""  # key of config.json whose object has the keys
    text: "Family | None" = None  # the text side of a model of pictures and texts
    head_reads: dict = {}  # noqa: RUF012  head -> what it reads, of heads.READS


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


def part(ours, theirs, number, layout=by_part, bias_only=""):
    """Weight and bias that are one of the parts of a fused matrix [sum of out, in]."""
    own = Tensor((f"{theirs}.weight",), True, number, layout)
    bias = own._replace(names=(f"{theirs}.bias",), transposed=False, only=bias_only)
    return {f"W_{ours}": own, f"b_{ours}": bias}
