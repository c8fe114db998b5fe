"""A folder in Hugging Face layout -> a model: named, shape-checked, read-only weights.

Read downward: `read_model`, its task head, its parts, the stored tensors by their names.
"""

import difflib
import functools
import re
import warnings
from dataclasses import replace

import numpy as np

from ..arrays import Cross, Layer, Model, Weights
from ..heads import HEADS, of_classes, why_no_logits
from ..memory import keep_freed_memory
from ..positions import sinusoids
from .families import FAMILIES, from_hf
from .files import listing, read_config, read_json, read_tensors
from .held_heads import with_head
from .joined import joined, ones
from .labels import fitting
from .stored_shapes import axes_of, layer_prefix, sizes_of

# In real files, rightly not read: buffers (GPT-2's causal mask is called `attn.bias`; BART has
# the bias of a head also without a head), Marian's computed positions, and a bias of T5's
# cross-attention that nothing uses.
BUFFERS = re.compile(
    r"(^|\.)(position_ids|token_type_ids|attn\.bias|attn\.masked_bias|embed_positions\.weight"
    r"|EncDecAttention\.relative_attention_bias\.weight"
    r"|rotary_emb\.inv_freq|attention\.bias|attention\.masked_bias|embeddings\.mask_token|final_logits_bias)$"
)
# What wrappers of a model put before its names or inside: torch.compile, DDP, FSDP, PEFT.
WRAPPERS = re.compile(
    r"(^base_model\.model\.|(?<![^.])"
    r"(_orig_mod|module|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.)"
)


class UnreadWarning(UserWarning):
    """A checkpoint holds tensors that the loaded model does not use."""


def read_model(folder, dtype=np.float32, partial=False, head=None, keep_dtype=False):
    """The model in a checkpoint folder; the others as for minitx.load."""
    check_dtype(dtype)
    keep_freed_memory()
    generation = folder / "generation_config.json"
    generated = read_json(generation) if generation.is_file() else None
    config = from_hf(read_config(folder), generated)
    tensors = read_tensors(folder)
    if keep_dtype:
        tensors = {name: tensor.mapped for name, tensor in tensors.items()}
    return model_of(config, tensors, dtype, partial, head)


def check_dtype(dtype):
    """Raises ValueError for number formats in which no model runs."""
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype is {np.dtype(dtype)}; a model runs in float32 or float64")


def model_of(config, tensors, dtype, partial=False, head=None):
    """The model of a Config and of tensors: {name: function of dtype that gives the array}.

    Its arrays are views of those wherever dtype and layout allow.
    """
    family = FAMILIES[config.model_type]
    stored = Stored(tensors, family, dtype, partial)
    encoder = None
    if family.encoder is None:
        model = read_stack(stored, config, family, head)
    elif stored.has_any(family.layer_prefix):
        encoder = read_stack(stored, config.encoder, family.encoder)
        model = read_stack(stored, config, family, head)
    else:  # the file has no decoder
        model = read_stack(stored, config.encoder, family.encoder, head)
    missing = tuple(stored.missing)
    if encoder is not None:
        encoder = replace(encoder, missing=missing)
    text = None
    if family.text is not None and stored.has_any(family.text.layer_prefix):
        text = read_stack(stored, config.text, family.text)
    unused = stored.unused(family)
    return replace(model, encoder=encoder, text=text, unused=unused, missing=missing)


def read_stack(stored, config, family, head=None):
    """The Model of one stack: a whole model, or an encoder-decoder's encoder or decoder."""
    config = with_head(config, family, stored, head)
    take = functools.partial(stored.take, config=config)
    body = take(family.body)
    if config.sinusoids:
        body["W_pos"] = sinusoids(config.n_pos, config.d_model).astype(stored.dtype)
        body["W_pos"].flags.writeable = False  # as arrays of a file are
    layers = []
    for i in range(config.n_layers):
        prefix = layer_prefix(family, config, i)
        cross = {}
        if family.cross is not None:
            cross["cross"] = Cross(index=i, **take(family.cross, prefix=prefix))
        table = {name: t for name, t in family.layer.items() if (name, i) not in family.lacks}
        layers.append(Layer(index=i, **take(table, prefix=prefix), **cross))
    head = _head_weights(config, family, stored, body["W_E"])
    config = replace(config, labels=fitting(config, head.get("W_U")))
    return Model(config, Weights(**body | head), tuple(layers))


def _head_weights(config, family, stored, W_E):
    """{our name: array} of the task head; W_U is tied to W_E if the file has no tensor for it."""
    table = family.heads.get(config.task_head, {})
    tied = config.tied and not of_classes(config.task_head)
    if "W_U" not in table or not tied or W_E is None or stored.find(table["W_U"]):
        return stored.take(table, config)
    own = {ours: tensor for ours, tensor in table.items() if ours != "W_U"}
    return {"W_U": W_E.T, **stored.take(own, config)}


class Stored:
    """The tensors of a checkpoint, given out by our names, converted and checked.

    tensors: {name: function of dtype that gives the array}. A prefix before the family's names,
    such as "roberta.", is removed; errors have the names of the file. `.missing`: names that a
    partial checkpoint lacks.
    """

    def __init__(self, tensors, family, dtype, partial):
        self.dtype = dtype
        self.partial = partial
        self.used = set()
        self.missing = {}  # in the order in which they were asked for
        self.n_classes = {}  # only the file knows this size: {"C": n} once it is read
        self.in_file = _plain_names(tensors, family, partial)  # {name: that of the file}
        self.tensors = {name: tensors[stored] for name, stored in self.in_file.items()}
        self.arrays = {}  # those that were read

    def array(self, name):
        """A tensor as an array, read once."""
        if name not in self.arrays:
            self.arrays[name] = self.tensors[name](self.dtype)
        return self.arrays[name]

    def find(self, tensor, prefix=""):
        """The stored name of a Tensor, or None."""
        names = (prefix + name for name in tensor.names)
        return next((name for name in names if name in self.tensors), None)

    def has_any(self, layers):
        """Whether there is a tensor inside those layers."""
        return any(name.startswith(_before_number(layers)) for name in self.tensors)

    def take(self, table, config, prefix=""):
        """{our name: array} for a table of {our name: Tensor}."""
        arrays = {}
        for ours, tensor in table.items():
            is_there = not tensor.only or getattr(config, tensor.only)
            if is_there and tensor.names:
                arrays[ours] = self._take(ours, tensor, config, prefix)
            elif is_there:
                arrays[ours] = ones(config.d_model, self.dtype)
        return arrays

    def _take(self, ours, tensor, config, prefix):
        name = self.find(tensor, prefix)
        if name is None and tensor.optional:
            return None
        if name is None:
            return self._lack(ours, prefix + "|".join(tensor.names))
        self.used.add(name)
        array = self.array(name)
        array = array if array.ndim else array.reshape(1)
        if tensor.join is not None:
            array = joined(array, tensor, prefix, self)
        if tensor.transposed:
            array = array.T
        axes = axes_of(ours, config.task_head)
        if len(axes) == 1 and array.ndim == 2 and len(array) == 1:
            array = array[0]  # BART's bias of the logits is [1 V]
        sizes = sizes_of(config) | self.n_classes
        if "C" in axes:
            n_classes = len(HEADS[config.task_head].classes) or array.shape[-1]
            self.n_classes.setdefault("C", n_classes)
            sizes |= self.n_classes
        wanted = tuple(sizes[axis] for axis in axes)
        if tensor.part is not None:
            wanted = (*wanted[:-1], tensor.whole(wanted[-1], config))
        if array.shape != wanted:
            raise ValueError(
                f"{self.in_file[name]!r}, read as {ours} [{' '.join(axes)}], has shape "
                f"{list(array.shape)}; config.json makes it {list(wanted)}"
            )
        return tensor.used(array, config)

    def _lack(self, ours, name):
        """None for a tensor that a partial checkpoint lacks; ValueError in a whole one."""
        if self.partial:
            return self.missing.setdefault(name)
        close = [self.in_file[near] for near in difflib.get_close_matches(name, self.tensors, 3)]
        close = close or listing(self.in_file.values())
        raise ValueError(f"no tensor for {ours}: wanted {name!r}; closest: {close}")

    def unused(self, family):
        """Names that nobody asked for. Raises ValueError for one inside the layers."""
        left = [n for n in self.tensors if n not in self.used and not BUFFERS.search(n)]
        stacks = [s for s in (family, family.encoder, family.text) if s is not None]
        layers = tuple(_before_number(stack.layer_prefix) for stack in stacks)
        inside = [name for name in left if name.startswith(layers)]
        if inside:
            text = "tensors inside the layers that this architecture has no use for"
            raise ValueError(f"{text}: {listing(self.in_file[name] for name in inside)}")
        return tuple(left)


def _before_number(layers):
    """ "encoder.layer.{}." -> "encoder.layer."."""
    return layers.partition("{}")[0]


def _plain_names(tensors, family, partial):
    """{the family's own name, without a prefix such as "roberta.": the name in the file}."""
    anchors = (family.encoder or family).body["W_E"].names
    if partial and "W_pos" in family.body:
        anchors = (*anchors, family.body["W_pos"].names[0])
    names = _by_name((_unwrapped(name), name) for name in tensors)
    if family.encoder is not None and "embed_tokens.weight" in names:  # an encoder alone
        names = {f"encoder.{name}": stored for name, stored in names.items()}
    prefix = _prefix(names, anchors)
    return _by_name((_plain(full, prefix), stored) for full, stored in names.items())


def _unwrapped(name):
    """A name without what wrappers put into it, in any order and number."""
    while (shorter := WRAPPERS.sub("", name)) != name:
        name = shorter
    return name


def _prefix(stored, anchors):
    """What stands before the family's own names, by the word embedding."""
    prefixes = {}  # prefix -> the tensor that has it
    for anchor in anchors:
        names = (name for name in stored if f".{name}".endswith(f".{anchor}"))
        prefixes |= {name.removesuffix(anchor): name for name in names}
    if len(prefixes) != 1:
        given = [listing(prefixes.values())] if prefixes else f"none in {listing(stored.values())}"
        text = f"wanted one word embedding {anchors[0]!r}, any prefix; found {given}"
        raise ValueError(text)
    return next(iter(prefixes))


def _plain(full, prefix):
    """The family's own name; gamma and beta of old files are weight and bias.

    A head shares the first parts of the body's prefix, or none: "a.bert.…" goes with "a.cls.…".
    """
    parts = re.findall(r"[^.]*\.", prefix)
    starts = ["".join(parts[:n]) for n in range(len(parts) + 1)]
    name = full.removeprefix(max(filter(full.startswith, starts), key=len))
    if "LayerNorm." in name:
        name = name.replace(".gamma", ".weight").replace(".beta", ".bias")
    return name


def _by_name(pairs):
    """{name: that of the file} of pairs. Raises ValueError where a name comes twice."""
    named = {}
    for name, stored in pairs:
        if name in named:
            raise ValueError(f"two tensors have the name {name!r}; one of them is {stored!r}")
        named[name] = stored
    return named


def tell_unread(model, folder):
    """Warn of tensors that were not read, but for those of a pooler or of another known head."""
    known = {*_names_of(FAMILIES[model.config.model_type], model.config.task_head is not None)}
    unread = [n for n in model.unused if n not in known and not n.startswith("pooler.")]
    if unread:
        text = f"{folder}: tensors that were not read: {listing(unread)}"
        reason = why_no_logits(model).partition(";")[0]
        warnings.warn(f"{text}; {reason}" if reason else text, UnreadWarning, stacklevel=3)


def _names_of(family, with_heads):
    """Names of a family's tensors outside its layers, copies of tied ones among them."""
    stacks = [stack for stack in (family, family.encoder, family.text) if stack is not None]
    tables = [stack.body for stack in stacks]
    if with_heads:
        tables += [table for stack in stacks for table in stack.heads.values()]
    for tensor in (tensor for table in tables for tensor in table.values()):
        yield from (*tensor.names, *tensor.others)
