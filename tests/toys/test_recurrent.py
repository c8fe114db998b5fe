"""The recurrent toy: its forward pass is torch's, and attention holds where a vector does not."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from minitx import weights
from minitx.analysis import __main__ as cli
from minitx.analysis.toys import gru, recurrent

MODELS = gru.load()
NAMES = "fixed", "bahdanau", "additive", "dot", "fixed-wide"
GOLDEN = Path(__file__).parents[1] / "golden/recurrent-toy/recurrent.safetensors"


@pytest.fixture(scope="module")
def measured():
    """The arrays of a small run: 60 sequences of each length up to 24."""
    return recurrent.recurrent(sequences=60, longest=24)


def of(measured, name, model):
    """The value of a result [n] for one model, or [A] for one kind of attention."""
    label = "attention" if name.startswith("looks") else "models"
    return measured[name][measured[label].tolist().index(model)]


@pytest.mark.parametrize("name", NAMES)
def test_the_forward_pass_is_the_references(name):
    golden = load_file(GOLDEN)
    source = golden["source"]
    decoded = gru.decode(name, MODELS[name], source, target=source)
    # measured 4e-14, logits up to 17
    np.testing.assert_allclose(decoded.logits, golden[f"{name}.logits"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(decoded.pattern, golden[f"{name}.pattern"], rtol=0, atol=1e-10)


def test_bahdanaus_state_before_asks_and_the_step_reads_what_it_gets():
    """s_t = GRU([W_E[y_{t-1}], c_t], s_{t-1}), where a_t comes from s_{t-1}."""
    w = MODELS["bahdanau"]
    source = recurrent.draw_sequences(3, 6, 0)
    decoded = gru.decode("bahdanau", w, source, target=source)
    keys = gru.encode(w, source)
    before, symbol = keys[:, -1], np.full(3, 16)
    for t in range(6):
        pattern = gru.additive(w, before, keys)
        context = np.einsum("bs,bsd->bd", pattern, keys)
        both = np.concatenate([w["W_E"][symbol], context], axis=1)
        np.testing.assert_allclose(decoded.queries[:, t], before, rtol=1e-12)
        np.testing.assert_allclose(decoded.pattern[:, t], pattern, rtol=1e-12)
        before, symbol = gru.step(w, "decoder", both, before), source[:, t]
        np.testing.assert_allclose(decoded.states[:, t], before, rtol=1e-12)


@pytest.mark.parametrize("name", ["additive", "dot"])
def test_elsewhere_the_new_state_asks(name):
    source = recurrent.draw_sequences(3, 6, 0)
    decoded = gru.decode(name, MODELS[name], source)
    assert np.array_equal(decoded.queries, decoded.states)


def test_greedy_decoding_reads_what_it_wrote():
    """A decoder given its own output writes it again; given the source, it goes on otherwise."""
    source = recurrent.draw_sequences(20, 15, 0)
    free = gru.decode("fixed", MODELS["fixed"], source)
    forced = gru.decode("fixed", MODELS["fixed"], source, target=free.output)
    assert (forced.output == free.output).all()
    taught = gru.decode("fixed", MODELS["fixed"], source, target=source)
    assert (taught.output != free.output).any()
    assert gru.decode("dot", MODELS["dot"], source, n=3).output.shape == (20, 3)


def test_the_fixed_vector_fails_within_the_trained_lengths(measured):
    """200 sequences: 0.30 of the symbols right at 20 (wide: 0.47), all of them with attention."""
    assert of(measured, "right_longest", "fixed") < 0.4  # here 0.31
    assert of(measured, "right_longest", "fixed-wide") < 0.6  # 0.52
    assert of(measured, "exact_longest", "fixed-wide") == 0
    for name in recurrent.ATTENTION:
        assert of(measured, "right_longest", name) > 0.99  # 1.00
        assert of(measured, "exact_longest", name) > 0.95  # 1.00
    for name in ("additive", "dot"):
        assert of(measured, "right_beyond", name) > 0.97  # at 24: 0.99 and 1.00


def test_bahdanaus_query_does_not_go_on_beyond_the_trained_lengths():
    """200 sequences: 0.54 of 40 symbols right, 0.99 where the new state asks."""
    source = recurrent.draw_sequences(60, 40, 0)
    right = [(gru.decode(n, MODELS[n], source).output == source).mean() for n in NAMES[1:4]]
    assert right[0] < 0.65  # measured 0.54
    assert min(right[1:]) > 0.97  # 0.99 and 0.99


def test_all_models_copy_short_sequences(measured):
    assert measured["right"][:, :3].min() > 0.97  # up to 4 symbols; measured 1.00


def test_width_moves_the_limit(measured):
    assert of(measured, "holds", "fixed") == 7
    assert of(measured, "holds", "fixed-wide") == 11
    assert of(measured, "holds", "dot") == 24  # the longest here


def test_a_fixed_vector_loses_the_end_first(measured):
    place = measured["place"][measured["models"].tolist().index("fixed")]
    assert place[:3].mean() > 0.8  # measured 0.89
    assert place[-3:].mean() < 0.2  # 0.06; by chance as much


def test_the_place_that_is_looked_at_is_the_right_one(measured):
    """And, where the new state asks, not by counting alone: not on another sequence."""
    for name, most in (("additive", 0.25), ("dot", 0.45)):
        assert of(measured, "looks", name) > 0.99  # measured 1.00
        assert 1 / 20 < of(measured, "looks_null", name) < most  # 0.13, 0.29
    assert of(measured, "looks", "bahdanau") > 0.95  # 0.97
    assert of(measured, "looks_null", "bahdanau") > 0.7  # 0.77: it counts


def test_the_words_say_who_counts(measured):
    words = recurrent.says(measured)
    assert "additive and dot mostly by what stands there" in words
    assert "bahdanau mostly by counting its steps" in words
    compared = measured | {"looks_null": np.full(3, 0.1)}
    assert "by counting" not in recurrent.says(compared)


def test_the_maps_are_rows_of_weights(measured):
    maps = measured["maps"]
    np.testing.assert_allclose(maps.sum(axis=-1), 1)
    assert (maps.argmax(axis=-1) == np.arange(recurrent.DRAWN)).all()
    assert {measured["source"]} == {measured["written"][i] for i in (2, 3, 4)}


def test_the_parameters_are_those_of_the_file(measured):
    assert measured["parameters"].tolist() == [34480, 133456, 46048, 39136, 34480]


def test_no_sequence_is_a_batch_of_the_training():
    drawn = recurrent.draw_sequences(128, 20, 0)
    trained = np.random.default_rng([0, 20]).integers(0, 16, (128, 20))
    assert not (drawn == trained).all()


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "yes"),
        ({"right_low": 0.7}, "partly"),
        ({"right_high": 0.95}, "partly"),
        ({"right_high": 1.0}, "no"),
    ],
    ids=["as measured", "attention loses some", "the fixed vector holds most", "it holds all"],
)
def test_the_answer_can_fail(measured, changed, verdict):
    other = {name: np.full_like(measured[name], value) for name, value in changed.items()}
    assert recurrent.answer(measured | other).verdict == verdict


def test_the_bundle_is_no_model_of_the_list_and_its_card_is_its_own():
    assert gru.FOLDER.name not in weights.bundled()
    card = (gru.FOLDER / "README.md").read_text(encoding="utf-8")
    file = gru.FOLDER / "model.safetensors"
    stated = re.search(r"sha256 \| `([0-9a-f]{64})`", card)[1]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == stated
    assert sum(path.stat().st_size for path in gru.FOLDER.iterdir()) < 600_000
    assert {x.dtype for x in load_file(file).values()} == {np.dtype(np.float16)}


def test_the_command_writes_figure_arrays_and_record(tmp_path, capsys):
    options = ["--sequences", "5", "--longest", "20", "--out", str(tmp_path)]
    assert cli.main(["toy", *options]) == 0
    record = json.loads((tmp_path / "recurrent.json").read_text())
    assert record["settings"]["options"] == {"sequences": 5, "longest": 20, "seed": 0}
    assert "additive attention" in (tmp_path / "recurrent.svg").read_text()
    assert np.load(tmp_path / "recurrent.npz")["maps"].shape == (3, 12, 12)


def test_an_option_out_of_range_is_refused(tmp_path, capsys):
    assert cli.main(["toy", "--longest", "19", "--out", str(tmp_path)]) == 2
    assert "longest is 19; wanted 20 or more" in capsys.readouterr().err
