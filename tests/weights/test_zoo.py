"""The zoo: every folder is what its card says, and its places enter as its name says."""

import hashlib
import re

import numpy as np
import pytest
from safetensors.numpy import load_file

import minitx
from minitx import weights
from minitx.analysis.texts import corpus
from minitx.loading.files import read_json

STORED = {  # how a place enters: model types, and the table or bias that the file must have
    "causal-learned": ("gpt2", "wpe.weight"),
    "causal-sinusoidal": ("gpt2", "wpe.weight"),
    "causal-none": ("gpt2", "wpe.weight"),
    "causal-rotary": ("gpt_neox", None),
    "causal-alibi": ("bloom", None),
    "masked-learned": ("roberta", "position_embeddings.weight"),
    "masked-sinusoidal": ("roberta", "position_embeddings.weight"),
    "masked-none": ("roberta", "position_embeddings.weight"),
    "masked-rotary": ("modernbert", None),
    "masked-buckets": ("mpnet", "position_embeddings.weight"),
    "masked-disentangled": ("deberta", None),
    "masked-disentangled-buckets": ("deberta-v2", None),
}
MECHANISMS = {  # of the config, where the place does not say it
    "none": ("learned",),
    "sinusoidal": ("learned",),
    "buckets": ("learned", "buckets"),  # MPNet has a table, too: here it is 0
    "disentangled-buckets": ("disentangled",),
}
TRAINED = 64  # tokens of an input


def files(name):
    """Folder, config and tensors of a model."""
    folder = weights.find(name)
    config = read_json(folder / "config.json")
    return folder, config, load_file(folder / "model.safetensors")


def card(name):
    """What a model's card says."""
    return (weights.find(name) / "README.md").read_text(encoding="utf-8")


def loss(model, n):
    """Mean loss of a causal model on the first n inputs of the sample, in nats per token."""
    tokens = corpus.documents(model, "sample", n).first(n)
    y = minitx.logits(model, minitx.forward(model, tokens)).astype(np.float64)[:, :-1]
    y -= y.max(-1, keepdims=True)
    right = np.take_along_axis(y, tokens[:, 1:, None], -1)[..., 0]
    return -(right - np.log(np.exp(y).sum(-1))).mean()


def test_the_zoo_is_found_and_is_none_of_the_bundled():
    assert weights.zoo() and not {*weights.zoo()} & {*weights.bundled()}
    assert all(weights.find(name).parent.name == "zoo" for name in weights.zoo())
    assert weights.fetch(weights.zoo()[0]) == weights.find(weights.zoo()[0])
    with pytest.raises(FileNotFoundError, match=r"Did you mean zoo/causal-learned"):
        weights.find("zoo/causal-learnt")


@pytest.mark.parametrize("name", weights.zoo())
def test_the_card_is_the_files_own(name):
    folder, config, tensors = files(name)
    stated = re.search(r"sha256 \| `([0-9a-f]{64})`", card(name))[1]
    file = folder / "model.safetensors"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == stated
    assert file.stat().st_size < 2_000_000
    table = (folder.parent / "README.md").read_text(encoding="utf-8")
    assert f"[{folder.name}]({folder.name}/README.md)" in table
    family, ending = STORED[folder.name]
    assert config["model_type"] == family
    tables = [key for key in tensors if key.endswith(("wpe.weight", "position_embeddings.weight"))]
    assert [key.endswith(ending) for key in tables] == [True] * (ending is not None)


@pytest.mark.parametrize("name", weights.zoo())
def test_places_enter_as_the_name_says(name):
    folder, _, tensors = files(name)
    kind, _, place = folder.name.partition("-")
    offset = 0 if kind == "causal" else 2
    for key, table in tensors.items():
        if key.endswith(("wpe.weight", "position_embeddings.weight")):
            rows = table[offset:].astype(np.float64)
            assert len(rows) == TRAINED
            if place in ("none", "buckets"):
                assert not table.any()
            elif place == "sinusoidal":  # every pair of columns goes round a circle of one size
                radius = np.hypot(rows[:, ::2], rows[:, 1::2])
                np.testing.assert_allclose(radius, radius[0, 0], atol=2e-4)  # float16: 8e-5
            else:
                assert np.linalg.matrix_rank(rows) == TRAINED
    assert any("relative_attention_bias" in key for key in tensors) == (place == "buckets")


@pytest.mark.parametrize("name", weights.zoo())
def test_a_model_loads_and_predicts_as_its_card_says(name):
    model = minitx.load(name)
    minitx.check(model)
    place = name.partition("-")[2]
    assert model.config.mechanisms == MECHANISMS.get(place, (place,))
    if model.config.causal:
        stated = float(re.search(r"sample.txt` \|.*\| ([\d.]+) \|", card(name))[1])
        assert abs(loss(model, 100) - stated) < 0.1  # of 6,300 tokens, not of all: 0.02


@pytest.mark.skipif("zoo/causal-rotary" not in weights.zoo(), reason="is not in this copy")
def test_rotary_goes_further_than_it_was_trained_and_a_table_does_not():
    """The cards: at twice the trained length +0.01 nats and +0.61."""
    change = {}
    for name in ("zoo/causal-rotary", "zoo/causal-learned"):
        row = re.search(r"\| `analysis/texts/sample.txt`(?:, `again`)? \| [^|]+\(.*", card(name))[0]
        change[name] = float(re.findall(r"\(([+-][\d.]+),", row)[1])
    assert abs(change["zoo/causal-rotary"]) < 0.1
    assert change["zoo/causal-learned"] > 0.4
