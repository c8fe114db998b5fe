"""A model that has learned nothing: arrays of a config.json's shapes, drawn by a seed.

All that learns lies in one vector, `flat`: matrices first, which shrink in each step (adamw.py),
then biases and the gains of norms. The model's arrays are views of it. A file has another order: it
holds some matrices transposed, some as parts of larger ones. `Start.tensors` writes it.
"""

import copy
import functools
import math
from typing import NamedTuple

import numpy as np

from ..arrays import Model
from ..loading.checkpoint import model_of
from ..loading.families import FAMILIES, from_hf
from ..loading.stored_shapes import axes_of, layer_prefix, sizes_of
from ..memory import keep_freed_memory
from .parameters import is_tied_output, owners, parameters, with_arrays

LAYOUTS = {  # model_type -> the reference library's class; what stands before names of its body
    "bert": ("BertForMaskedLM", "bert."),
    "roberta": ("RobertaForMaskedLM", "roberta."),
    "xlm-roberta": ("XLMRobertaForMaskedLM", "roberta."),
    "camembert": ("CamembertForMaskedLM", "roberta."),
    "distilbert": ("DistilBertForMaskedLM", "distilbert."),
    "mpnet": ("MPNetForMaskedLM", "mpnet."),
    "deberta": ("DebertaForMaskedLM", "deberta."),
    "deberta-v2": ("DebertaV2ForMaskedLM", "deberta."),
    "modernbert": ("ModernBertForMaskedLM", "model."),
    "gpt2": ("GPT2LMHeadModel", "transformer."),
    "llama": ("LlamaForCausalLM", "model."),
    "mistral": ("MistralForCausalLM", "model."),
    "qwen2": ("Qwen2ForCausalLM", "model."),
    "qwen3": ("Qwen3ForCausalLM", "model."),
    "gpt_neox": ("GPTNeoXForCausalLM", "gpt_neox."),
    "bloom": ("BloomForCausalLM", "transformer."),
    "bart": ("BartForConditionalGeneration", "model."),
    "vit": ("ViTForImageClassification", "vit."),
}
SPREAD = 0.02  # deviation of a matrix where config.json says none
WRITERS = "W_O", "W_out"  # what writes to the stream


class Start(NamedTuple):
    """A model, and the vector that all of its arrays are views of."""

    model: Model
    arrays: dict  # {name or (name, layer): view of `flat`}, each array that learns, once
    flat: np.ndarray  # [n]
    n_matrices: int  # how many numbers of `flat` belong to matrices
    settings: dict  # config.json

    def tensors(self):
        """{name in a file: array}, as the reference library lays them out."""
        n_classes = self.model.weights.W_U.shape[1]
        file_shapes = shapes(self.model.config, n_classes)
        n = sum(map(math.prod, file_shapes.values()))
        order = named_parts(np.arange(n), file_shapes)
        places = parameters(joined(self.model.config, order, order[next(iter(order))].dtype))
        whole = np.empty(n, self.flat.dtype)
        for key, x in parameters(self.model).items():
            whole[places[key]] = x
        return named_parts(whole, file_shapes)


def start(settings, seed, dtype):
    """The Start of a config.json's settings. Raises ValueError for a model that is not trained."""
    config = from_hf(copy.deepcopy(settings))
    if config.model_type not in LAYOUTS:
        known = ", ".join(LAYOUTS)
        text = f"{config.model_type} cannot be trained from scratch here; wanted one of: {known}"
        raise ValueError(text)
    keep_freed_memory()
    architecture = LAYOUTS[config.model_type][0]
    settings = settings | {"architectures": [architecture], "dtype": np.dtype(dtype).name}
    settings.pop("torch_dtype", None)
    config = from_hf(copy.deepcopy(settings))
    n_classes = len(settings.get("id2label", ())) or 2  # of a head for pictures
    file_shapes = shapes(config, n_classes)
    tensors = {name: np.empty(shape, dtype) for name, shape in file_shapes.items()}
    model = joined(config, tensors, dtype)
    spread = settings.get("initializer_range", settings.get("init_std", SPREAD))
    draw_(model, spread, np.random.default_rng((seed, 0)))
    return in_one_vector(model, settings, dtype)


def shapes(config, n_classes=0):
    """{name in a file: shape} of all that a model has."""
    family = FAMILIES[config.model_type]
    prefix = LAYOUTS[config.model_type][1]
    tables = stack(family, config, prefix)
    tables.append(("", family.heads[head_of(family)], config))
    if config.encoder is not None:
        tables += stack(family.encoder, config.encoder, prefix)
    named = {}
    for before, table, own in tables:
        for ours, tensor in table.items():
            if not is_stored(ours, tensor, own):
                continue
            if tensor.shapes is not None:  # an array that is made of several
                names = (before + name for name in (tensor.names[0], *tensor.others))
                named |= zip(names, tensor.shapes(own))
                continue
            name = before + file_name(ours, tensor, own)
            named.setdefault(name, stored_shape(ours, tensor, own, n_classes))
    return named


def stack(family, config, prefix):
    """[(what stands before its names, table, config)] of a body and of its layers."""
    tables = [(prefix, family.body, config)]
    for i in range(config.n_layers):
        table = {name: t for name, t in family.layer.items() if (name, i) not in family.lacks}
        before = prefix + layer_prefix(family, config, i)
        tables += [(before, part, config) for part in (table, family.cross or {})]
    return tables


def head_of(family):
    """The head that words, or classes of pictures, are learned with."""
    return next(head for head in ("masked", "causal", "image") if head in family.heads)


def is_stored(ours, tensor, config):
    """Whether a file has the tensor: one that is tied to the embedding is not in it."""
    if ours == "W_U" and config.tied:
        return False
    return not tensor.optional and (not tensor.only or getattr(config, tensor.only))


def file_name(ours, tensor, config):
    """Of its names, that of new files; what is shared, and the bias of a tied output, has the last.

    The one is shared by the two stacks of an encoder-decoder, the other has kept an older name.
    """
    if ours in ("b_U", "W_E") and config.tied:
        return tensor.names[-1]
    return tensor.names[0]


def stored_shape(ours, tensor, config, n_classes):
    """The shape of a tensor in a file: with its parts side by side, perhaps transposed."""
    sizes = sizes_of(config) | {"C": n_classes}
    head = None if config.picture is None else "image"
    shape = [sizes[axis] for axis in axes_of(ours, head)]
    if tensor.part is not None:
        shape[-1] = tensor.whole(shape[-1], config)
    return tuple(shape[::-1] if tensor.transposed else shape)


def joined(config, tensors, dtype):
    """The model of a file's tensors."""
    takers = {name: functools.partial(as_it_is, x) for name, x in tensors.items()}
    return model_of(config, takers, dtype)


def as_it_is(array, dtype):
    """The array: it has its dtype already."""
    return array


def named_parts(flat, file_shapes):
    """A vector cut into arrays, by their names."""
    parts, begin = {}, 0
    for name, shape in file_shapes.items():
        end = begin + math.prod(shape)
        parts[name] = flat[begin:end].reshape(shape)
        begin = end
    return parts


def draw_(model, spread, rng):
    """Matrices from a normal distribution, biases 0, gains 1; in place.

    Where nothing norms the stream between layers, what writes to it begins smaller, by the root of
    the number of writers (Radford et al. 2019). Rows of positions that are no token's own stay 0.
    """
    cfg = model.config
    for key, own in owners(model).items():
        if key != own:
            continue
        x = parameters(model)[key]
        name = key if isinstance(key, str) else key[0]
        if x.ndim == 1:
            x[...] = name.endswith("_w")
            continue
        x[...] = spread * rng.standard_normal(x.shape)
        if name in WRITERS:
            x *= size_of_writers(cfg)
        if name == "W_pos":
            x[: cfg.offset] = 0


def size_of_writers(config):
    """How small the matrices that write to the stream begin, beside the others."""
    return (2 * config.n_layers) ** -0.5 if config.pre_norm else 1.0


def in_one_vector(model, settings, dtype, fixed=()):
    """The Start whose vector holds the model's arrays but those that are `fixed`: they stay."""
    named, owner = parameters(model), owners(model)
    own = [key for key in dict.fromkeys(owner.values()) if key not in fixed]
    own.sort(key=lambda key: named[key].ndim == 1)
    flat = np.empty(sum(named[key].size for key in own), dtype)
    arrays, begin = {}, 0
    for key in own:
        end = begin + named[key].size
        arrays[key] = flat[begin:end].reshape(named[key].shape)
        arrays[key][...] = named[key]
        begin = end
    held = {key: named[key] for key in fixed} | arrays
    every = {key: held[owned_by] for key, owned_by in owner.items()}
    if is_tied_output("W_U", owner.get("W_U", "W_U")):
        every["W_U"] = every["W_U"].T
    n_matrices = sum(x.size for x in arrays.values() if x.ndim > 1)
    return Start(with_arrays(model, every, ""), arrays, flat, n_matrices, settings)
