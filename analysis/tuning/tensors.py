"""A checkpoint whose arrays may be changed: the model's are views of the file's tensors.

So whatever the file holds transposed, or as a third of a larger tensor, is written back under its
own name with nothing to undo. Read downward: a checkpoint, one with new classes, its folder.
"""

import copy
import functools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import save

import minitx
from minitx.learning.parameters import owners, parameters
from minitx.loading.checkpoint import BUFFERS, model_of
from minitx.loading.families import FAMILIES, from_hf
from minitx.loading.files import read_config, read_tensors
from minitx.weights import local

from ..machine.files import write

NEW = 0.02  # deviation of a new matrix
BODY = "pooler."  # the part of a head that stands in files with the body's prefix
KINDS = "For.*|LMHeadModel|MTModel|Model$"  # how names of the reference library's classes end


class Checkpoint(NamedTuple):
    """A model and the tensors of its file, which are the same memory."""

    model: minitx.Model
    tensors: dict  # {name in the file: array}
    settings: dict  # config.json
    folder: Path

    def learned(self):
        """{name or (name, layer): array} of all that lies in the file, each array once.

        A computed table, such as Marian's positions, is not among them.
        """
        named = parameters(self.model)
        own = dict.fromkeys(owners(self.model).values())
        return {key: named[key] for key in own if named[key].flags.writeable}


def opened(folder, dtype=np.float32):
    """The checkpoint in a folder, its tensors copied into memory; constants are left out."""
    settings = read_config(folder)
    taken = {name: copied(name, take, dtype) for name, take in read_tensors(folder).items()}
    return joined(folder, settings, {name: x for name, x in taken.items() if x is not None})


def copied(name, take, dtype):
    """A tensor that may be written; None for a constant of another kind, such as a mask."""
    try:
        return take(dtype).copy()
    except ValueError:
        if BUFFERS.search(name):
            return None
        raise


def joined(folder, settings, tensors):
    """The Checkpoint of these settings and tensors, with the folder's tokenizer."""
    config = from_hf(copy.deepcopy(settings))
    check_views(FAMILIES[config.model_type], config)
    share(tensors, FAMILIES[config.model_type], config)
    takers = {name: functools.partial(as_it_is, x) for name, x in tensors.items()}
    dtype = next(iter(tensors.values())).dtype
    model = model_of(config, takers, dtype)
    whole = minitx.load(folder, dtype, partial=True)
    return Checkpoint(replace(model, tokenizer=whole.tokenizer), tensors, settings, folder)


def check_views(family, config):
    """Raises ValueError for a family whose arrays are copies: changes would not be in the file."""
    tables = (family.body, family.layer)
    copied = [ours for table in tables for ours, x in table.items() if x.is_copied(config)]
    if copied:
        kind = config.model_type
        text = f"{', '.join(copied[:4])} of a {kind} do not lie in its file as they are used"
        raise ValueError(f"{text}, so what is learned could not be written back; not tuned here")


def as_it_is(array, dtype):
    """The array; what `model_of` asks for has its dtype already."""
    return array


def share(tensors, family, config):
    """Makes of tensors that a file holds twice, equal under two names, one array, in place."""
    groups = [tensor.names for head in family.heads.values() for tensor in head.values()]
    if config.tied:
        for head in ("masked", "causal"):
            output = family.heads.get(head, {}).get("W_U")
            names = output.names if output else ()
            groups.append((*family.body["W_E"].names, *names))
    for names in groups:
        held = [name for name in tensors if f".{name}".endswith(tuple(f".{n}" for n in names))]
        for name in held[1:]:
            if np.array_equal(tensors[name], tensors[held[0]]):
                tensors[name] = tensors[held[0]]


def with_classes(checkpoint, classes, rng):
    """The checkpoint with a head for these classes of a text.

    A pooler that the file holds is kept, other matrices are drawn, biases 0. Raises ValueError for
    a family without such a head.
    """
    config = checkpoint.model.config
    family = FAMILIES[config.model_type]
    if "sequence" not in family.heads or checkpoint.model.encoder is not None:
        raise ValueError(f"a {config.model_type} gets no head for classes of a text here")
    kept = dict(checkpoint.tensors)
    anchor = family.body["W_E"].names[0]
    prefix = next(n for n in kept if f".{n}".endswith(f".{anchor}")).removesuffix(anchor)
    for head, table in family.heads.items():
        if head != "sequence":
            drop(kept, table, family.heads["sequence"])
    for ours, tensor in family.heads["sequence"].items():
        name = tensor.names[0]
        name = prefix + name if name.startswith(BODY) else name
        if ours in ("W_U", "b_U") or name not in kept:
            kept[name] = drawn(ours, config.d_model, len(classes), rng, kept)
    return joined(checkpoint.folder, with_labels(checkpoint.settings, classes), kept)


def drop(tensors, table, other):
    """Takes a head's tensors out, in place, but for those of the other head."""
    stays = {name for tensor in other.values() for name in tensor.names}
    names = {name for tensor in table.values() for name in tensor.names}
    for name in names - stays:
        tensors.pop(name, None)


def drawn(ours, width, n, rng, tensors):
    """A new array of a head: a matrix [out in], or a bias."""
    dtype = next(iter(tensors.values())).dtype
    n_out = n if ours.endswith("_U") else width
    if ours.startswith("b_"):
        return np.zeros(n_out, dtype)
    return (NEW * rng.standard_normal((n_out, width))).astype(dtype)


def with_labels(settings, classes):
    """config.json of a model with a head for these classes."""
    settings = copy.deepcopy(settings)
    saved_from = (settings.get("architectures") or [settings["model_type"].title()])[0]
    settings["architectures"] = [re.sub(KINDS, "", saved_from) + "ForSequenceClassification"]
    settings["id2label"] = {str(i): name for i, name in enumerate(classes)}
    settings["label2id"] = {name: i for i, name in enumerate(classes)}
    return settings


def save_checkpoint(checkpoint, out):
    """Write config.json, model.safetensors and the tokenizer's files: a folder that loads."""
    settings = dict(checkpoint.settings)
    dtype = str(next(iter(checkpoint.tensors.values())).dtype)
    settings |= {key: dtype for key in ("dtype", "torch_dtype") if key in settings}
    for name in local.TEXTS:
        source = checkpoint.folder / name
        if name != "config.json" and source.is_file():
            shutil.copyfile(source, out / name)
    write(out / "config.json", json.dumps(settings, indent=2, sort_keys=True) + "\n")
    whole = {name: np.ascontiguousarray(x) for name, x in checkpoint.tensors.items()}
    write(out / "model.safetensors", save(whole, metadata={"format": "pt"}))
