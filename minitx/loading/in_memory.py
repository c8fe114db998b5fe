"""A model in memory, arrays or one of Hugging Face transformers -> a Model, without files between.

Torch is not imported: tensors and settings are read through the methods that the objects have.
Read downward: `from_arrays`, `from_transformers`, its settings, its tensors, its tokenizer.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..arrays import Model
from ..memory import keep_freed_memory
from ..weights import states
from ..words.text import Tokenizer, Wrapped
from .checkpoint import check_dtype, model_of, tell_unread
from .families import from_hf
from .files import as_floats, one_line

FLOATS = "torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"


def from_arrays(
    config: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    tokenizer: Any = None,
    dtype: DTypeLike = "float32",
    head: str | None = None,
) -> Model:
    """Model from settings and arrays in memory, in the form of a checkpoint's files.

    config: the contents of its config.json. arrays: {tensor name: array}, named as in its
    safetensors file, of 16, 32 or 64 bits; they are copied. tokenizer: a
    `tokenizers.Tokenizer`, a fast one of transformers, or another model's `.tokenizer`; without
    one the model takes token ids. dtype, head: as for `load`. Warns of arrays that are not read.
    Raises ValueError for whatever `load` rejects, and for values that are not arrays.

    A model without the first head of its first layer:

    >>> import json
    >>> import minitx
    >>> from safetensors.numpy import load_file
    >>> folder = minitx.weights.find("tiny-gpt2")
    >>> config = json.loads((folder / "config.json").read_text())
    >>> arrays = load_file(folder / "model.safetensors")
    >>> arrays["transformer.h.0.attn.c_proj.weight"][:32] = 0
    >>> model = minitx.from_arrays(config, arrays, minitx.load("tiny-gpt2").tokenizer)
    >>> trace = minitx.run(model, "A dog", keep="head_out")
    >>> bool(trace["head_out", 0][:, 0].any()), bool(trace["head_out", 0][:, 1].any())
    (False, True)
    """
    check_dtype(dtype)
    for name, value in {"config": config, "arrays": arrays}.items():
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} is a {type(value).__name__}; expected a dictionary")
    states.check_not_quantized(Path("config"), states.stated_quantization(config))
    keep_freed_memory()
    tensors = {name: _Array(name, x) for name, x in arrays.items()}
    states.check_tensors(Path("arrays"), {name: x.array.dtype for name, x in tensors.items()})
    model = model_of(from_hf(dict(config)), tensors, dtype, head=head)
    tell_unread(model, "arrays")
    return _with_tokenizer(model, tokenizer)


class _Array:
    """One of the arrays; called with a dtype it gives a read-only copy."""

    def __init__(self, name, array):
        if not isinstance(array, np.ndarray):
            given = type(array).__name__
            raise ValueError(f"arrays[{name!r:.80}] is a {given}; expected a NumPy array")
        self.name, self.array = name, array

    def __call__(self, dtype):
        given = self.array.dtype
        if given.kind != "f" or given.itemsize > 8:
            text = f"arrays[{self.name!r:.80}] holds {given}"
            raise ValueError(f"{text}; expected float16, float32 or float64")
        try:
            with np.errstate(over="raise", invalid="ignore"):  # NaN stays NaN
                array = as_floats(self.array, given.str, np.dtype(dtype)).copy()
        except FloatingPointError:
            text = f"arrays[{self.name!r:.80}] has numbers beyond {np.dtype(dtype)}"
            raise ValueError(f"{text}, which dtype=float64 reads") from None
        array.flags.writeable = False
        return array


def from_transformers(
    model: Any,
    tokenizer: Any = None,
    dtype: DTypeLike = "float32",
    head: str | None = None,
) -> Model:
    """Model from a Hugging Face transformers model in memory; its arrays are copies.

    model: a PreTrainedModel of a type that `load` reads. tokenizer: its fast tokenizer; without
    one the model takes token ids only. dtype, head: as for `load`. Later changes of the library's
    model have no effect here. Raises ValueError for any other object, for weights that are
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
    return _with_tokenizer(loaded, tokenizer)


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


def _with_tokenizer(model, tokenizer):
    """The model with a tokenizer, in both stacks of an encoder-decoder; None: as it is."""
    if tokenizer is None:
        return model
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = Wrapped(_fast(tokenizer), model.config.model_type)
    encoder = model.encoder
    if encoder is not None:
        encoder = replace(encoder, tokenizer=tokenizer)
    return replace(model, tokenizer=tokenizer, encoder=encoder)


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
