"""A model of the reference library in memory, here of objects that have the methods it has."""

import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file

import minitx
from minitx import weights
from minitx.learning.parameters import parameters
from minitx.names import others_of, point_of


class Tensor:
    """What `from_transformers` asks of a tensor."""

    def __init__(self, array, dtype="torch.float32", device="cpu"):
        self.array, self.dtype = array, dtype
        self.device = type("Device", (), {"type": device})
        self.shape = array.shape

    def stride(self):
        return self.array.strides

    def data_ptr(self):
        return self.array.ctypes.data

    def numel(self):
        return self.array.size

    def detach(self):
        return self

    cpu = detach

    def float(self):
        return self.array.astype(np.float32, copy=False)[...].view(Numbers)

    def double(self):
        return self.array.astype(np.float64).view(Numbers)


class Numbers(np.ndarray):
    """An array that gives itself as one."""

    def numpy(self):
        return np.asarray(self)


class Settings:
    """What it asks of a config."""

    def __init__(self, settings):
        self.settings = settings

    def to_dict(self):
        return self.settings

    def to_json_string(self):
        return json.dumps(self.settings)


class GPT2LMHeadModel:
    """What it asks of a model; the output embedding is the word embedding, as torch ties them."""

    def __init__(self, folder):
        self.config = Settings(json.loads((folder / "config.json").read_text()) | {"junk": 1})
        self.generation_config = None
        arrays = load_file(folder / "model.safetensors")
        self.tensors = {name: Tensor(x.astype(np.float32)) for name, x in arrays.items()}
        embedding = next(x for name, x in self.tensors.items() if name.endswith("wte.weight"))
        self.tensors = {"lm_head.weight": embedding} | self.tensors  # first, as in RoBERTa

    def state_dict(self):
        return self.tensors

    def get_output_embeddings(self):
        return self.tensors["lm_head.weight"]

    def named_modules(self):
        return [("lm_head", self.tensors["lm_head.weight"])]


@pytest.fixture
def theirs():
    return GPT2LMHeadModel(weights.find("tiny-gpt2"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_the_model_of_the_files(theirs, dtype):
    model, own = minitx.from_transformers(theirs, dtype=dtype), minitx.load("tiny-gpt2", dtype)
    ours, of_files = parameters(model), parameters(own)
    assert ours.keys() == of_files.keys()
    for name, x in of_files.items():
        assert x.dtype == ours[name].dtype
        np.testing.assert_array_equal(x, ours[name], err_msg=str(name))
    assert np.shares_memory(model.weights.W_U, model.weights.W_E)  # tied, so a gradient is whole
    tokens = [[5, 6, 7]]
    logits = [minitx.run(each, tokens)["logits"] for each in (model, own)]
    np.testing.assert_array_equal(*logits)


def test_later_changes_of_the_library_model_change_nothing(theirs):
    model = minitx.from_transformers(theirs)
    before = model.weights.W_E.copy()
    theirs.tensors["lm_head.weight"].array[:] = 0
    np.testing.assert_array_equal(model.weights.W_E, before)
    assert not model.weights.W_E.flags.writeable


def test_its_fast_tokenizer_reads_texts(theirs):
    import tokenizers

    file = str(weights.find("tiny-gpt2") / "tokenizer.json")
    own = tokenizers.Tokenizer.from_file(file)
    own.enable_truncation(2)
    model = minitx.from_transformers(theirs, type("Fast", (), {"backend_tokenizer": own}))
    ids = model.tokenizer.encode("The dog ran")
    np.testing.assert_array_equal(ids, minitx.load("tiny-gpt2").tokenizer.encode("The dog ran"))
    assert len(own.encode("The dog ran").ids) == 2  # the library's own tokenizer stays as it was
    assert repr(model.tokenizer) == "Tokenizer (gpt2) of memory"
    with pytest.raises(ValueError, match="the tokenizer in memory does not decode"):
        model.tokenizer.decode([-1])


def test_what_is_no_model_is_refused(theirs):
    with pytest.raises(ValueError, match="model is a list; wanted a PreTrainedModel"):
        minitx.from_transformers([])
    with pytest.raises(ValueError, match="tokenizer is a str; wanted a fast one"):
        minitx.from_transformers(theirs, "gpt2")
    with pytest.raises(ValueError, match="dtype is float16; a model runs in"):
        minitx.from_transformers(theirs, dtype="float16")
    name = "transformer.h.1.mlp.c_fc.bias"
    array = theirs.tensors[name].array
    theirs.tensors[name] = Tensor(array, device="meta")
    with pytest.raises(ValueError, match=rf"tensor '{name}' is on the device 'meta'"):
        minitx.from_transformers(theirs)
    theirs.tensors[name] = Tensor(array, "torch.int8")
    with pytest.raises(ValueError, match=rf"tensor '{name}' holds torch.int8; wanted one of"):
        minitx.from_transformers(theirs)
    theirs.config.settings["model_type"] = "mamba"
    with pytest.raises(ValueError, match="mamba"):
        minitx.from_transformers(theirs)


NAMES = {
    "hook_embed": "embed",
    "blocks.11.hook_resid_mid": ("resid_mid", 11),
    "blocks.2.attn.hook_rot_q": ("q", 2),
    "blocks.2.attn.hook_attn_scores": ("scores", 2),
    "blocks.2.mlp.hook_pre_linear": ("pre_linear", 2),
    "ln_final.hook_out": "ln_final",
    "blocks.2.mlp.in.hook_out": ("pre", 2),
    "ln_final.hook_in": ("resid_post", -1),
    "roberta.encoder.layer.7.attention.self.key": ("k", 7),
    "transformer.h.3.mlp.c_fc": ("pre", 3),
    "model.decoder.layers.1.encoder_attn.out_proj": ("cross_out", 1),
    "transformer.wte": "embed",
    "blocks.3.attn.hook_result": ("head_out", 3),
    "encoder_blocks.1.attn.hook_result": ("enc_head_out", 1),
    "decoder_blocks.1.self_attn.hook_result": ("head_out", 1),
    "decoder_blocks.1.cross_attn.hook_result": ("cross_head_out", 1),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_other_libraries_are_points(name):
    assert point_of(name) == NAMES[name]


@pytest.mark.parametrize("point", minitx.POINTS)
def test_a_point_is_found_by_every_name_it_has_elsewhere(point):
    hooks, ends = others_of(point)
    modules = [re.sub(r"(^|\.)N\.", r"\1h.7.", end) for end in ends]
    for name in [*(hook.replace(".N.", ".7.") for hook in hooks), *modules]:
        has_layer = "7" in name and minitx.POINTS[point].per_layer
        assert point_of(name) == ((point, 7) if has_layer else point)


def test_what_others_call_a_point_is_asked_of_points():
    assert all(all(others_of(point)) for point in ("q", "mlp_out", "embed", "ln_final"))
    with pytest.raises(ValueError, match="'Q' is no point; wanted one of minitx.POINTS"):
        others_of("Q")


@pytest.mark.parametrize("name", ["blocks.1.hook_foo", "transformer.h.0.attn.c_attn", "q", ""])
def test_a_name_without_point_is_refused(name):
    with pytest.raises(ValueError, match="names no point; wanted a hook of TransformerLens"):
        point_of(name)
