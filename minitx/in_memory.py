"""A model that Hugging Face transformers holds in memory -> a Model, without files in between.

Torch is not imported: tensors and settings are read through the methods that the objects have.
Read downward: `from_transformers`, its settings, its tensors, its tokenizer.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .arrays import Model
from .checkpoint import check_dtype, model_of
from .families import from_hf
from .files import one_line
from .memory import keep_freed_memory
from .text import Wrapped

FLOATS = "torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"


def from_transformers(
    model: Any,
    tokenizer: Any = None,
    dtype: DTypeLike = "float32",
    head: str | None = None,
) -> Model:
    """Model from a Hugging Face transformers model in memory; its arrays are copies.

    model: a PreTrainedModel of a type that `load` reads. tokenizer: its fast tokenizer, if text is
    wanted; without one the model takes token ids. dtype, head: as for `load`. Later changes of the
    library's model have no effect here. Raises ValueError for another object, weights that are
    quantised or not in memory, and for anything that `load` rejects.

        import transformers, minitx
        theirs = transformers.AutoModelForCausalLM.from_pretrained("gpt2")
        model = minitx.from_transformers(theirs, transformers.AutoTokenizer.from_pretrained("gpt2"))
        minitx.run(model, "The dog ran", keep="pattern")

    Any other object is rejected:

    >>> import minitx
    >>> minitx.from_transformers("gpt2")
    Traceback (most recent call last):
    ValueError: model is a str; wanted a PreTrainedModel of transformers
    """
    check_dtype(dtype)
    settings, generation = _settings(model)
    keep_freed_memory()
    config = from_hf(settings, generation)
    loaded = model_of(config, _tensors(model), dtype, head=head)
    wrapped = None if tokenizer is None else Wrapped(_fast(tokenizer), config.model_type)
    if loaded.encoder is None:
        return replace(loaded, tokenizer=wrapped)
    return replace(loaded, tokenizer=wrapped, encoder=replace(loaded.encoder, tokenizer=wrapped))


def _settings(model):
    """What config.json and generation_config.json of this model would say."""
    wanted = "config", "state_dict", "get_output_embeddings"
    if not all(hasattr(model, name) for name in wanted) or not hasattr(model.config, "to_dict"):
        given = type(model).__name__
        raise ValueError(f"model is a {given}; wanted a PreTrainedModel of transformers")
    settings = json.loads(model.config.to_json_string())
    settings["architectures"] = [type(model).__name__]
    generation = getattr(model, "generation_config", None)
    return settings, None if generation is None else json.loads(generation.to_json_string())


def _tensors(model):
    """{name: function of dtype that gives the array}; of tied tensors one, as a file has them.

    An output embedding is the one that is left out.
    """
    tensors, seen = {}, set()
    output = model.get_output_embeddings()
    outputs = tuple(name for name, module in model.named_modules() if module is output)
    stored = model.state_dict()
    for name in sorted(stored, key=lambda name: name.startswith(outputs)):
        tensor = stored[name]
        if tensor.device.type == "meta":
            text = f"tensor {name!r} is on the device 'meta'"
            raise ValueError(f"{text}: it has no numbers; wanted weights in memory")
        place = tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride())
        if tensor.numel() and place in seen:
            continue
        seen.add(place)
        tensors[name] = _Tensor(name, tensor)
    return tensors


class _Tensor:
    """One of the library's tensors; called with a dtype it gives a read-only copy."""

    def __init__(self, name, tensor):
        self.name, self.tensor = name, tensor

    def __call__(self, dtype):
        given = str(self.tensor.dtype)
        if given not in FLOATS:
            text = f"tensor {self.name!r} holds {given}"
            raise ValueError(f"{text}; wanted one of {', '.join(FLOATS)}, not quantised")
        tensor = self.tensor.detach().cpu()
        is_double = np.dtype(dtype) == np.float64
        array = np.array((tensor.double() if is_double else tensor.float()).numpy())
        array.flags.writeable = False
        return array


def _fast(tokenizer):
    """The `tokenizers.Tokenizer` behind one of the library's tokenizers, as a copy."""
    import tokenizers

    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not isinstance(backend, tokenizers.Tokenizer):
        given = type(tokenizer).__name__
        raise ValueError(f"tokenizer is a {given}; wanted a fast one (PreTrainedTokenizerFast)")
    try:
        return tokenizers.Tokenizer.from_str(backend.to_str())
    except Exception as error:
        raise ValueError(f"the tokenizer cannot be copied: {one_line(error)}") from None
