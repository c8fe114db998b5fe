"""A model of a dictionary and arrays is the one of a folder that holds them; so are refusals."""

import json

import numpy as np
import parity
import pytest
import tiny

import minitx
from minitx.learning.parameters import parameters
from minitx.loading.checkpoint import UnreadWarning
from minitx.loading.files import read_tensors


def parts(folder):
    """What a folder's config.json and safetensors file hold."""
    config = json.loads((folder / "config.json").read_text())
    tensors = read_tensors(folder)
    arrays = {}
    for name, tensor in tensors.items():
        if tensor.stored in ("F64", "F32", "F16"):
            arrays[name] = np.array(tensor.raw())
        elif tensor.stored == "BF16":
            arrays[name] = np.array(tensor(np.float32))
        else:  # buffers, which are not read
            arrays[name] = np.zeros(tensor.shape, bool)
    return config, arrays


@pytest.mark.parametrize("variant", parity.VARIANTS)
def test_it_is_the_model_of_the_files(variant):
    folder = parity.GOLDEN / variant
    model, own = minitx.from_arrays(*parts(folder), dtype="float64"), tiny.load(variant)
    assert model.config == own.config and model.unused == own.unused
    ours, of_files = parameters(model), parameters(own)
    assert ours.keys() == of_files.keys()
    for key, x in of_files.items():
        assert np.array_equal(ours[key], x) and ours[key].dtype == x.dtype
        assert not x.flags.writeable and not ours[key].flags.writeable


BROKEN = {
    "missing": ("gpt2-causal", {}, {"transformer__h__1__mlp__c_fc__bias": None}),
    "shape": ("gpt2-causal", {}, {"transformer__wpe__weight": lambda x: x[:3]}),
    "inside": ("gpt2-causal", {}, {"transformer__h__0__mlp__gate": np.ones(3, "f4")}),
    "twice": ("gpt2-causal", {}, {"module__transformer__wpe__weight": np.ones((3, 3), "f4")}),
    "type": ("gpt2-causal", {"model_type": "mamba"}, {}),
    "key": ("gpt2-causal", {"scale_attn_weights": "no"}, {}),
    "embedding": ("gpt2-causal", {}, {"transformer__wte__weight": None}),
    "adapter": ("gpt2-causal", {}, {"transformer__h__0__lora_A": np.ones((2, 2), "f4")}),
    "quantized": ("llama-grouped", {"quantization_config": {"quant_method": "gptq"}}, {}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_a_folder_is_refused_for_arrays_are(what, tmp_path):
    variant, settings, change = BROKEN[what]
    folder = tiny.make(tmp_path / "model", variant, tiny.edited(**change), **settings)
    config, arrays = parts(parity.GOLDEN / variant)
    tiny.edited(**change)(arrays)
    with pytest.raises(ValueError) as of_files:
        minitx.load(folder)
    with pytest.raises(ValueError) as of_arrays:
        minitx.from_arrays(config | settings, arrays)
    text = str(of_arrays.value).removeprefix("config ").removeprefix("arrays ")
    assert text[:25] in str(of_files.value)


def test_arrays_that_are_not_read_are_named(tmp_path):
    config, arrays = parts(parity.GOLDEN / "gpt2-causal")
    arrays["transformer.extra"] = np.ones(3, np.float32)
    with pytest.warns(UnreadWarning, match="arrays: tensors that were not read: extra"):
        minitx.from_arrays(config, arrays)


def test_arrays_are_copied_and_converted():
    config, arrays = parts(parity.GOLDEN / "gpt2-causal")
    halves = {name: x.astype(np.float16) for name, x in arrays.items()}
    model = minitx.from_arrays(config, halves)
    expected = halves["transformer.wpe.weight"].astype(np.float32)
    halves["transformer.wpe.weight"][:] = 0
    assert np.array_equal(model.weights.W_pos, expected)
    assert model.weights.W_pos.dtype == np.float32


def test_a_tokenizer_of_a_model_or_of_its_library_reads_texts():
    import tokenizers

    folder = minitx.weights.find("tiny-gpt2")
    own = minitx.load("tiny-gpt2")
    of_file = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for tokenizer in (own.tokenizer, of_file):
        model = minitx.from_arrays(*parts(folder), tokenizer)
        ids, expected = (minitx.run(x, "A dog ran").tokens for x in (model, own))
        assert np.array_equal(ids, expected)


def test_what_is_no_dictionary_of_arrays_is_refused():
    config, arrays = parts(parity.GOLDEN / "gpt2-causal")
    name = "transformer.wpe.weight"
    with pytest.raises(ValueError, match="config is a str; expected a dictionary"):
        minitx.from_arrays("gpt2", arrays)
    with pytest.raises(ValueError, match="arrays is a list; expected a dictionary"):
        minitx.from_arrays(config, [*arrays])
    with pytest.raises(ValueError, match=rf"arrays\['{name}'\] is a list; expected a NumPy array"):
        minitx.from_arrays(config, arrays | {name: [[1.0]]})
    with pytest.raises(ValueError, match=rf"arrays\['{name}'\] holds int8; expected float16"):
        minitx.from_arrays(config, arrays | {name: arrays[name].astype(np.int8)})
    large = arrays | {name: np.full(arrays[name].shape, 1e300)}
    with pytest.raises(ValueError, match="has numbers beyond float32, which dtype=float64 reads"):
        minitx.from_arrays(config, large)
    assert minitx.from_arrays(config, large, dtype="float64").weights.W_pos[0, 0] == 1e300
    with pytest.raises(ValueError, match="tokenizer is a str; wanted a fast one"):
        minitx.from_arrays(config, arrays, "gpt2")
