"""A folder in Hugging Face layout -> a model: named, shape-checked, read-only weights.

Read downward: `read_model`, its task head, its parts, the stored tensors by their names.
"""

import difflib
import functools
import re
from dataclasses import replace

import numpy as np

from .families import FAMILIES, from_hf
from .files import listing, read_json, read_tensors
from .memory import keep_freed_memory
from .model import Layer, Model, Weights

SHAPES = {  # our name -> axes; letters: see model.py
    "W_E": "VD",
    "W_pos": "PD",
    "W_type": "ND",
    "ln_embed_w": "D",
    "ln_embed_b": "D",
    "ln1_w": "D",
    "ln1_b": "D",
    "W_Q": "DD",
    "b_Q": "D",
    "W_K": "DD",
    "b_K": "D",
    "W_V": "DD",
    "b_V": "D",
    "W_O": "DD",
    "b_O": "D",
    "ln2_w": "D",
    "ln2_b": "D",
    "W_in": "DM",
    "b_in": "M",
    "W_out": "MD",
    "b_out": "D",
    "ln_final_w": "D",
    "ln_final_b": "D",
    "W_head": "DD",
    "b_head": "D",
    "ln_head_w": "D",
    "ln_head_b": "D",
    "W_U": "DV",
    "b_U": "V",
}
# In real files, and rightly not read: buffers (GPT-2's causal mask is called `attn.bias`).
BUFFERS = re.compile(r"(^|\.)(position_ids|token_type_ids|attn\.bias|attn\.masked_bias)$")


def read_model(folder, dtype=np.float32, partial=False):
    """The model in a checkpoint folder; dtype float32 or float64, partial as for minitx.load."""
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype is {np.dtype(dtype)}; a model runs in float32 or float64")
    keep_freed_memory()
    config = from_hf(read_json(folder / "config.json"))
    family = FAMILIES[config.model_type]
    stored = Stored(read_tensors(folder), family.body, config, dtype, partial)
    config = with_head(config, family, stored)
    body = stored.take(family.body)
    layers = []
    for i in range(config.n_layers):
        arrays = stored.take(family.layer, prefix=family.layer_prefix.format(i))
        layers.append(Layer(index=i, **arrays))
    head = _head_weights(config, family, stored, body["W_E"])
    absent = dict.fromkeys(name for name in SHAPES if name not in vars(layers[0]))
    weights = Weights(**absent | body | head)
    unused = stored.unused(family.layer_prefix.format("")[:-1])
    missing = tuple(stored.missing)
    return Model(config, weights, tuple(layers), unused=unused, missing=missing)


def with_head(config, family, stored):
    """The config with the task head that the file holds, and that head's activation."""
    task_head = _task_head(config, family, stored)
    if task_head == "sequence":
        return replace(config, task_head=task_head, head_act=family.sequence_act)
    return replace(config, task_head=task_head)


def _task_head(config, family, stored):
    """ "masked", "causal", "sequence" or None."""
    saved_from = config.architecture
    classifier = family.heads["sequence"].values()
    if saved_from.endswith("ForSequenceClassification"):
        return "sequence"
    if not saved_from and all(stored.find(tensor) for tensor in classifier):
        return "sequence"
    if "masked" in family.heads:
        return "masked" if stored.find(family.heads["masked"]["W_head"]) else None
    # GPT2LMHeadModel, not GPT2Model
    tied = config.tied and (not saved_from or "Head" in saved_from)
    return "causal" if tied or stored.find(family.heads["causal"]["W_U"]) else None


def _head_weights(config, family, stored, W_E):
    """{our name: array} of the task head; without a tensor of its own W_U is tied to W_E."""
    table = family.heads.get(config.task_head, {})
    tied = config.tied and config.task_head != "sequence"
    if "W_U" not in table or not tied or W_E is None or stored.find(table["W_U"]):
        return stored.take(table)
    own = {ours: tensor for ours, tensor in table.items() if ours != "W_U"}
    return {"W_U": W_E.T, **stored.take(own)}


def check(model: Model) -> None:
    """Raises ValueError that names every weight with NaN or infinity. Reads the whole file.

    A sound checkpoint:

    >>> import minitx
    >>> minitx.check(minitx.load("tiny-bert")) is None
    True
    """
    parts = {"": model.weights} | {f"layers[{w.index}].": w for w in model.layers}
    wrong = []
    for prefix, part in parts.items():
        for name, array in vars(part).items():
            if isinstance(array, np.ndarray) and not np.isfinite(array).all():
                wrong.append(prefix + name)
    if wrong:
        raise ValueError(f"NaN or infinity in: {', '.join(wrong)}")


class Stored:
    """The tensors of a checkpoint, given out by our names, converted and checked.

    tensors: {name: function of dtype that gives the array}. What precedes the family's names, such
    as "roberta.", is taken off. `.missing`: names that a partial checkpoint lacks.
    """

    def __init__(self, tensors, body, config, dtype, partial):
        self.partial = partial
        self.used = set()
        self.missing = {}  # in the order in which they were asked for
        self.sizes = {"V": config.n_vocab, "P": config.n_pos, "N": config.n_types}
        self.sizes |= {"D": config.d_model, "M": config.d_mlp}
        self.tensors = _without_prefix(tensors, _prefix(tensors, body, partial))
        self.array = functools.cache(lambda name: self.tensors[name](dtype))

    def find(self, tensor, prefix=""):
        """The stored name of a Tensor, or None."""
        names = (prefix + name for name in tensor.names)
        return next((name for name in names if name in self.tensors), None)

    def take(self, table, prefix=""):
        """{our name: array} for a table of {our name: Tensor}."""
        return {ours: self._take(ours, tensor, prefix) for ours, tensor in table.items()}

    def _take(self, ours, tensor, prefix):
        name = self.find(tensor, prefix)
        if name is None:
            return self._lack(ours, prefix + "|".join(tensor.names))
        self.used.add(name)
        array = np.atleast_1d(self.array(name))
        if tensor.transposed:
            array = array.T
        wanted = self._shape(ours, name, array)
        if tensor.third is not None:
            wanted = (*wanted[:-1], 3 * wanted[-1])
        if array.shape != wanted:
            given, axes = list(array.shape), " ".join(self._axes(ours, name))
            raise ValueError(
                f"{name!r}, read as {ours} [{axes}], has shape {given}; config.json makes it "
                f"{list(wanted)}"
            )
        if tensor.third is None:
            return array
        width = wanted[-1] // 3
        return array[..., tensor.third * width :][..., :width]

    def _lack(self, ours, name):
        """None for a tensor that a partial checkpoint lacks; ValueError in a whole one."""
        if self.partial:
            return self.missing.setdefault(name)
        close = difflib.get_close_matches(name, self.tensors, 3) or listing(self.tensors)
        raise ValueError(f"no tensor for {ours}: wanted {name!r}; near to it: {close}")

    def _axes(self, ours, name):
        """Letters of an array's axes; a classifier gives C classes in place of V words."""
        if name.startswith(("classifier", "score")):
            return SHAPES[ours].replace("V", "C")
        return SHAPES[ours]

    def _shape(self, ours, name, array):
        axes = self._axes(ours, name)
        self.sizes.setdefault(axes[-1], array.shape[-1])  # only the file knows the number C
        return tuple(self.sizes[axis] for axis in axes)

    def unused(self, layers):
        """Names that nobody asked for. Raises ValueError for one inside the layers.

        layers: how the names inside the layers begin.
        """
        left = [n for n in self.tensors if n not in self.used and not BUFFERS.search(n)]
        inside = [name for name in left if name.startswith(layers)]
        if inside:
            text = "tensors inside the layers that this architecture has no use for"
            raise ValueError(f"{text}: {listing(inside)}")
        return tuple(left)


def _prefix(tensors, body, partial):
    """What precedes the family's own names, found by the word embedding."""
    anchors = [body["W_E"].names[0]]
    if partial:
        anchors.append(body["W_pos"].names[0])
    prefixes = set()
    for anchor in anchors:
        names = (name for name in tensors if f".{name}".endswith(f".{anchor}"))
        prefixes |= {name.removesuffix(anchor) for name in names}
    if len(prefixes) != 1:
        given = [prefix + anchors[0] for prefix in sorted(prefixes)]
        given = given or f"none in {listing(tensors)}"
        text = f"wanted one word embedding {anchors[0]!r}, any prefix; found {given}"
        raise ValueError(text)
    return prefixes.pop()


def _without_prefix(tensors, prefix):
    """The same tensors by plain names; gamma and beta of old files are weight and bias."""
    plain = {}
    for stored, array in tensors.items():
        name = stored.removeprefix(prefix)
        if "LayerNorm." in name:
            name = name.replace(".gamma", ".weight").replace(".beta", ".bias")
        if name in plain:
            raise ValueError(f"two tensors go by the name {name!r}; one of them is {stored!r}")
        plain[name] = array
    return plain
