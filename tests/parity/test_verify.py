"""minitx verify: conversions with a mistake are named by the first point that differs.

The references in golden/parity were recorded from the reference library (tools/make_references.py).
"""

import json
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
import tiny
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import minitx
from minitx import testing, weights
from minitx.analysis.__main__ import main
from minitx.analysis.parity import batches, compare, models, reference
from minitx.loading.files import read_json

PARITY = tiny.GOLDEN / "parity"
OF_A_PAGE = "page-on-ci"  # whose model the page makes; docs/test_ci.py compares them
RECORDED = sorted(path.stem for path in PARITY.glob("*.safetensors") if path.stem != OF_A_PAGE)


def folder_of(name):
    """The folder that a reference was recorded from."""
    return weights.find(name) if name == "tiny-roberta" else tiny.GOLDEN / name


def outcome(folder, name, dtype="float64"):
    """The Parity of a folder with a recorded reference."""
    recorded = reference.read_file(PARITY / f"{name}.safetensors")
    return compare.verify(minitx.load(folder, dtype), recorded)


# --- sound models


@pytest.mark.parametrize("name", RECORDED)
def test_a_sound_model_agrees(name):
    exact, fast = (outcome(folder_of(name), name, dtype) for dtype in ("float64", "float32"))
    assert exact.agrees and max(row.share for row in exact.rows) < 1e-13  # measured 2.2e-14
    assert fast.agrees and max(row.share for row in fast.rows) < 5e-5  # measured 1.1e-5
    assert exact.notes == []
    assert {row.batch for row in exact.rows} == {0, 1, 2, 3}  # each text, and all of them padded
    testing.assert_parity(folder_of(name), PARITY / f"{name}.safetensors")


def test_rows_stand_in_the_order_of_the_forward_pass():
    model = minitx.load(tiny.GOLDEN / "bart-causal")
    order = list(minitx.run(model, [2, 7, 9], source=[5, 6]))
    rows = outcome(tiny.GOLDEN / "bart-causal", "bart-causal").rows
    places = [(order.index(row.point), row.batch) for row in rows]
    assert places == sorted(places)
    assert {"enc_q", "cross_k", "cross_pattern", "q", "ln_cross"} <= {row.point[0] for row in rows}


def test_a_source_whose_class_is_wanted_ends_with_its_only_end_token():
    """There, and nowhere else, the library reads the class."""
    model = minitx.load(tiny.GOLDEN / "t5-sequence")
    end = model.config.end_id
    inputs = batches.of_group([[5, end, 7, 8], [6, 9]], model)
    assert inputs.source.tolist() == [[5, 7, end], [6, end, 0]]
    words = minitx.load(tiny.GOLDEN / "t5-relu")
    assert batches.of_group([[5, 6]], words).source.tolist() == [[5, 6]]


# --- mistakes in a conversion


def transposed(x):
    return x.T.copy()


def zero(x):
    return np.zeros_like(x)


def rolled(x):
    return np.roll(x, 1, 0)


def swapped(a, b):
    """A change that exchanges two tensors, named without what begins all names."""

    def change(tensors):
        first, second = (next(name for name in tensors if name.endswith(end)) for end in (a, b))
        tensors[first], tensors[second] = tensors[second], tensors[first]

    return change


def replaced(end, function):
    """A change of the one tensor whose name ends so."""

    def change(tensors):
        (name,) = (name for name in tensors if name.endswith(end))
        tensors[name] = function(tensors[name])

    return change


def thirds(x):
    """GPT-2's q, k and v, stored as k, q and v."""
    q, k, v = np.split(x, 3, -1)
    return np.concatenate([k, q, v], -1)


def by_head(x):
    """GPT-2's q, k and v as GPT-NeoX stores them: side by side within each head."""
    return x.reshape(len(x), 3, 3, -1).swapaxes(1, 2).reshape(x.shape).copy()


def halved(tensors):
    return {name: x.astype("<f2") for name, x in tensors.items()}


B = "encoder.layer.0.attention.self."
# golden model | the first point that differs | what is wrong with the tensors, or with config.json
MISTAKES = [
    ("bert-masked", "q.L0", replaced(f"{B}query.weight", transposed), {}),
    ("bert-masked", "q.L0", swapped(f"{B}query.weight", f"{B}key.weight"), {}),
    (
        "bert-masked",
        "v.L0",
        swapped(f"{B}value.weight", "layer.0.attention.output.dense.weight"),
        {},
    ),
    ("bert-masked", "k.L0", replaced(f"{B}key.bias", zero), {}),
    ("bert-masked", "q.L0", swapped(f"{B}query.bias", "layer.1.attention.self.query.bias"), {}),
    ("bert-masked", "ln_embed_scale", None, {"layer_norm_eps": 1e-5}),
    ("bert-masked", "post.L0", None, {"hidden_act": "gelu_new"}),
    ("bert-masked", "pattern.L0", None, {"num_attention_heads": 6}),
    ("bert-masked", "pos_embed", replaced("position_embeddings.weight", rolled), {}),
    ("bert-masked", "type_embed", replaced("token_type_embeddings.weight", rolled), {}),
    (
        "bert-masked",
        "ln1.L0",
        swapped("0.attention.output.LayerNorm.weight", "0.attention.output.LayerNorm.bias"),
        {},
    ),
    ("bert-masked", "logits", replaced("cls.predictions.bias", zero), {}),
    ("bert-masked", "embed", halved, {}),
    ("bert-sequence", "logits", replaced("classifier.weight", rolled), {}),
    ("roberta-masked", "pos_embed", None, {"pad_token_id": 0}),
    ("roberta-masked", "embed", replaced("word_embeddings.weight", rolled), {}),
    ("roberta-masked", "type_embed", replaced("token_type_embeddings.weight", zero), {}),
    ("distilbert-masked", "post.L0", None, {"activation": "relu"}),
    ("gpt2-causal", "attn_out.L0", replaced("h.0.attn.c_proj.weight", transposed), {}),
    ("gpt2-causal", "q.L0", replaced("h.0.attn.c_attn.weight", thirds), {}),
    ("gpt2-causal", "q.L0", replaced("h.0.attn.c_attn.weight", by_head), {}),
    ("gpt2-causal", "ln1_scale.L0", None, {"layer_norm_epsilon": 1e-12}),
    ("gpt2-causal", "pattern.L0", None, {"scale_attn_weights": False}),
    ("gpt2-causal", "pattern.L1", None, {"scale_attn_by_inverse_layer_idx": True}),
    ("gpt2-causal", "ln_final", replaced("ln_f.weight", np.ones_like), {}),
    ("bart-causal", "enc_pos_embed", replaced("encoder.embed_positions.weight", rolled), {}),
    (
        "bart-causal",
        "cross_k.L0",
        swapped("decoder.layers.0.encoder_attn.k_proj.weight", "0.encoder_attn.v_proj.weight"),
        {},
    ),
    ("bart-causal", "enc_embed", None, {"scale_embedding": True}),
    ("bart-causal", "logits", replaced("final_logits_bias", zero), {}),
    ("marian-shared", "enc_embed", None, {"scale_embedding": False}),
    ("t5-gated", "enc_pattern.L0", None, {"relative_attention_max_distance": 20}),
    ("t5-gated", "logits", None, {"tie_word_embeddings": True}),
    ("t5-gated", "post.L0", None, {"feed_forward_proj": "gated-silu", "dense_act_fn": "silu"}),
]


@pytest.mark.parametrize("name, first, change, settings", MISTAKES)
def test_the_first_point_that_a_mistake_changes_is_named(name, first, change, settings, tmp_path):
    wrong = outcome(tiny.make(tmp_path / "wrong", name, change, **settings), name)
    assert not wrong.agrees
    assert wrong.differing[0].name.removeprefix("enc_") == first.removeprefix("enc_")
    for key, value in settings.items():
        assert any(line.startswith(f"config.json: {key} is {value!r}") for line in wrong.notes)
    assert "the weights are other bytes than those recorded" in wrong.notes


def test_the_place_of_a_difference_is_where_it_was_made(tmp_path):
    """One row of one head's values: the head, and the dimension, and nothing before it."""

    def moved(bias):
        bias = bias.copy()
        bias[6 + 2] += 0.5  # head 1 of width 6
        return bias

    name, change = "bert-masked", replaced(f"{B}value.bias", moved)
    recorded = reference.read_file(PARITY / f"{name}.safetensors")
    model = minitx.load(tiny.make(tmp_path / "wrong", name, change), "float64")
    wrong = compare.verify(model, recorded)
    first = wrong.differing[0]
    assert first.point == ("v", 0)
    assert (first.place["head"], first.place["dimension"]) == (1, 2)
    assert first.far == pytest.approx(0.5)
    assert first.values[0] - first.values[1] == pytest.approx(0.5)
    inputs = recorded.batches[first.batch]
    x = minitx.run(model, inputs.tokens, ["v"], valid=inputs.valid)["v", 0]
    place = first.place
    index = place["text"], place["head"], place["token"], place["dimension"]
    assert x[index] == first.values[0]


# --- what is said


def test_the_outcome_in_words(tmp_path):
    sound = compare.says(outcome(tiny.GOLDEN / "bert-masked", "bert-masked"))
    assert sound.startswith("equal: ") and "4 batches" in sound
    wrong = outcome(tiny.make(tmp_path / "a", "bert-masked", hidden_act="relu"), "bert-masked")
    lines = compare.says(wrong).splitlines()
    assert lines[0].startswith("first difference: post.L0, by ")
    assert "the last pre.L0" in lines[2]
    assert f"{len(wrong.differing)} of {len(wrong.rows)} arrays" in lines[3]
    table = compare.table(wrong).splitlines()
    assert table[0].split() == "layer resid_pre ln1 q k v pattern attn_out pre mlp_out".split()
    assert [line.split()[0] for line in table[1:3]] == ["0", "1"]


def test_nan_is_a_difference(tmp_path):
    change = replaced(f"{B}key.bias", lambda x: x * np.nan)
    wrong = outcome(tiny.make(tmp_path / "nan", "bert-masked", change), "bert-masked")
    assert wrong.differing[0].name == "k.L0"
    record = json.loads(json.dumps(compare.as_dict(wrong), allow_nan=False))
    assert record["first"] == "k.L0" and record["equal"] is False


def test_other_ids_of_the_texts_are_said(tmp_path):
    folder = shutil.copytree(weights.find("tiny-roberta"), tmp_path / "model")
    tokenizer = read_json(folder / "tokenizer.json")
    tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:50]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (note,) = outcome(folder, "tiny-roberta").notes
    assert note.startswith("the tokenizers differ: 3 of 3 texts have other ids")


def test_a_model_of_other_sizes_is_refused(tmp_path):
    def wider(tensors):
        for end in "word_embeddings.weight", "cls.predictions.bias":
            replaced(end, lambda x: np.concatenate([x, x]))(tensors)

    folder = tiny.make(tmp_path / "wider", "bert-masked", wider, vocab_size=122)
    wrong = outcome(folder, "bert-masked")
    assert wrong.differing[0].name == "logits"
    assert wrong.differing[0].place == {"shape": "[1 12 122], the reference has another"}
    with pytest.raises(ValueError, match="no point 'ln_final' .bert; it needs a final norm."):
        outcome(tiny.GOLDEN / "bert-masked", "gpt2-causal")


def test_assert_parity_names_the_point(tmp_path):
    folder = tiny.make(tmp_path / "a", "gpt2-causal", layer_norm_epsilon=1e-3)
    path = PARITY / "gpt2-causal.safetensors"
    with pytest.raises(AssertionError, match="(?s)first difference: ln1_scale.L0.*layer_norm_eps"):
        testing.assert_parity(folder, path)
    testing.assert_parity(minitx.load(folder), path, bound=1e9)


# --- two checkpoints


def test_two_checkpoints_that_are_equal_and_one_that_moved(tmp_path):
    a = minitx.load("tiny-bert", "float64")
    parity, moved = models.verify(a, a, texts=2, tokens=16)
    assert parity.agrees and moved == [] and all(row.far == 0 for row in parity.rows)
    W_Q = a.layers[2].W_Q * 1.01
    b = tiny.with_weights(a, {2: {"W_Q": W_Q}})
    parity, moved = models.verify(b, a, texts=2, tokens=16)
    assert parity.differing[0].name == "q.L2"
    assert [entry.name for entry in moved] == ["layers[2].W_Q"]
    assert moved[0].share == pytest.approx(0.01)
    assert models.says(moved) == "weights that moved, |A - B| / |B|: layers[2].W_Q 1.0e-02"
    assert models.says([]) == "all weights are equal"


def test_two_checkpoints_of_other_sizes_are_refused():
    a, b = (minitx.load(name) for name in ("tiny-bert", "tiny-gpt2"))
    with pytest.raises(ValueError, match="different sizes cannot be .*: n_layers 4 and 2"):
        models.verify(a, minitx.load("tiny-bart"))
    with pytest.raises(ValueError, match="n_heads 4 and 8, d_head 32 and 16"):
        models.verify(b, minitx.load("deep-roberta"))
    bare = tiny.load("bert-bare-prefix")
    extra = tiny.with_weights(bare, W_pooled=np.ones(3))
    assert [entry.name for entry in models.moved(bare, extra)] == ["W_pooled"]


# --- files


def test_files_that_are_no_references_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    with pytest.raises(FileNotFoundError, match="no reference file"):
        reference.read_file(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is truncated or not a safetensors file"):
        reference.read_file(path)
    with pytest.raises(ValueError, match="is not a reference file; minitx record writes them"):
        reference.read_file(tiny.GOLDEN / "bert-masked" / "model.safetensors")
    whole = reference.read_file(PARITY / "bert-masked.safetensors")
    reference.write(path, whole)
    assert reference.read_file(path).about == whole.about
    content = path.read_bytes().replace(b'\\"format\\": 1', b'\\"format\\": 7')
    path.write_bytes(content)
    with pytest.raises(ValueError, match="has format 7, this minitx reads 1; record it again"):
        reference.read_file(path)


def renamed(old, new):
    """A change of a record that gives a tensor another name."""
    return lambda tensors, about: tensors.update({new: tensors.pop(old)})


def shaped(name, change):
    """A change of a record's tensor."""
    return lambda tensors, about: tensors.update({name: change(tensors[name])})


def stated(name, value):
    """A change of what a record says of itself."""
    return lambda tensors, about: about.update({name: value})


def without_arrays(tensors, about):
    """A change of a record that leaves nothing but its ids."""
    for name in [name for name in tensors if name.partition(".")[2] not in ("tokens", "valid")]:
        tensors.pop(name)


DAMAGE = [  # a change of the tensors and of what is said | the error
    (renamed("0.tokens", "99999999999999.tokens"), "0.tokens or 0.valid is missing"),
    (renamed("3.q.1", "7.q.1"), "no batch 4; available"),
    (renamed("0.q.1", "0.q.x"), "'q.x' is not a point"),
    (renamed("0.q.1", "0.hit()"), "'hit..' is not a point"),
    (renamed("0.valid", "0.vali"), "0.tokens or 0.valid is missing"),
    (shaped("1.valid", lambda x: x.astype("f4")), "'1.valid' is float32"),
    (shaped("1.tokens", lambda x: x[0]), "'1.tokens' is int"),
    (shaped("1.q.0", lambda x: x[:, None]), r"'1.q.0' is float64 .\d+, 1."),
    (shaped("1.q.0", lambda x: x[:0]), "'1.q.0' is float64 .0,."),
    (without_arrays, "it holds no arrays to compare with"),
    (stated("dtype", "../../hit"), "its 'dtype' is '../../hit', wanted one of"),
    (stated("texts", [7]), "its 'texts' are .7."),
    (stated("texts", 1e308), "its 'texts' is 1e.308"),
    (stated("config", None), "its 'config' is None"),
    (stated("weights", []), "its 'weights' is "),
]


@pytest.mark.parametrize("change, error", DAMAGE)
def test_a_damaged_record_is_refused_by_name(change, error, tmp_path):
    """Of 2,500 records damaged at random none ended in another way than a sound one does."""
    path = PARITY / "bert-masked.safetensors"
    about = json.loads(safe_open(path, "np").metadata()["minitx"])
    tensors = load_file(path)
    change(tensors, about)
    save_file(tensors, tmp_path / "a.safetensors", {"minitx": json.dumps(about)})
    with pytest.raises(ValueError, match=f"cannot be read: .*{error}.*; record it again"):
        reference.read_file(tmp_path / "a.safetensors")


@pytest.mark.parametrize("places", [[-1], [10**6]])
def test_places_outside_an_array_are_refused(places):
    with pytest.raises(ValueError, match="'sample.9' has indices outside the array"):
        reference.sample_of("sample.9", np.array(places))


def test_a_reference_says_what_it_was_made_with():
    about = reference.read_file(PARITY / "tiny-roberta.safetensors").about
    assert {"torch", "transformers", "tokenizers", "numpy", "minitx"} <= about["versions"].keys()
    assert len(about["texts"]) == 3 and about["dtype"] == "float64"
    assert len(about["weights"]["model.safetensors"]) == 64


# --- commands


def test_verify_as_a_command(tmp_path, capsys):
    path = str(PARITY / "bert-masked.safetensors")
    sound = str(tiny.GOLDEN / "bert-masked")
    assert main(["verify", sound, path]) == 0
    assert "equal: " in capsys.readouterr().out
    wrong = str(tiny.make(tmp_path / "wrong", "bert-masked", hidden_act="gelu_new"))
    xml = tmp_path / "parity.xml"
    assert main(["verify", wrong, path, "--junit", str(xml)]) == 1
    out = capsys.readouterr().out
    assert "first difference: post.L0" in out
    assert "config.json: hidden_act is 'gelu_new', recorded 'gelu'" in out
    suite = ElementTree.parse(xml).getroot()
    cases = {case.get("name"): case.find("failure") for case in suite}
    assert cases["embed"] is None and "post.L0 differs" in cases["layer 0"].get("message")
    assert int(suite.get("tests")) == len(cases) and int(suite.get("failures")) == 3
    assert main(["verify", wrong, path, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["first"] == "post.L0" and record["moved"] == []
    assert main(["verify", sound, path, "--bound", "1e-20"]) == 1
    capsys.readouterr()
    for bound in ("inf", "nan", "-1"):
        assert main(["verify", wrong, path, f"--bound={bound}"]) == 2
        assert "wanted a finite number of at least 0" in capsys.readouterr().err
    assert main(["verify", sound, str(tmp_path / "nothing")]) == 2
    assert "not a bundled model" in capsys.readouterr().err


def test_verify_of_two_checkpoints_as_a_command(tmp_path, capsys):
    folder = shutil.copytree(weights.find("tiny-bert"), tmp_path / "b")
    settings = read_json(folder / "config.json")
    (folder / "config.json").write_text(json.dumps(settings | {"layer_norm_eps": 1e-3}))
    assert main(["verify", str(folder), "tiny-bert"]) == 1
    out = capsys.readouterr().out
    assert "first difference: ln_embed_scale" in out and "all weights are equal" in out
    assert "config: eps is 0.001, in the other 1e-12" in out


def test_checkpoints_without_a_tokenizer_are_compared_on_random_ids():
    a = tiny.load("t5-gated")
    parity, moved = models.verify(a, a, texts=3, tokens=10)
    assert parity.agrees and not moved and len(parity.labels) == 4


def test_record_without_the_library_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    out = tmp_path / "ref.safetensors"
    assert main(["record", "tiny-bert", "--out", str(out)]) == 2
    assert "pip install 'minitx[torch]'" in capsys.readouterr().err
    assert not out.exists()
