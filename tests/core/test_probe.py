"""Probes on own labels: planted directions, texts that are split, and chance."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import tiny

import minitx
from minitx.learning import saved
from minitx.research.labelled import read_labels, split
from minitx.research.probe import verdict


def planted(K=2, size=4.0, variant="gpt2-causal"):
    """A silent GPT-2 whose token v has the direction of class v % K, and these directions [K D]."""
    model = tiny.load(variant)
    V, D = np.shape(model.weights.W_E)
    rng = np.random.default_rng(5)
    directions = np.linalg.qr(rng.standard_normal((D, D)))[0][:K]
    W_E = rng.standard_normal((V, D)) + size * directions[np.arange(V) % K]
    silent = {name: 0 * getattr(model.layers[0], name) for name in ("W_O", "b_O", "W_out", "b_out")}
    layers = {layer.index: silent for layer in model.layers}
    return tiny.with_weights(model, layers=layers, W_E=W_E), directions


def rows_of(model, n=200, T=3, seed=0):
    return [*tiny.ids(model, n, T, seed=seed)]


def labels_by_chance(n, seed):
    return np.random.default_rng((7, seed)).permutation(np.arange(n) % 2)


def test_a_planted_direction_comes_back():
    model, directions = planted()
    rows = rows_of(model)
    labels = [("even", "odd")[row[-1] % 2] for row in rows]
    probe = minitx.fit_probe(model, rows, labels, at=("resid_post", 0))
    assert probe.accuracy > 0.95 and probe.null < 0.75 and probe.verdict == "above chance"
    assert probe.interval[0] < probe.accuracy <= probe.interval[1]
    assert probe.untrained < 0.8 < probe.accuracy  # random embeddings tell some of the tokens
    assert probe.selectivity == probe.accuracy - np.mean(probe.shuffled) > 0.3
    left_out = minitx.fit_probe(model, rows, labels, at=("resid_post", 0), untrained=False)
    assert left_out.untrained is None and left_out.accuracy == probe.accuracy
    u = (directions[1] - directions[0]) / np.sqrt(2)
    # measured 0.81; a random direction: 0.24. The penalty counts in each number's deviation, to
    # which the planted direction itself adds
    assert probe.direction @ u > 0.75
    other = rows_of(model, 50, seed=1)
    expected = np.array([("even", "odd")[row[-1] % 2] for row in other])
    assert (probe.predict(other) == expected).mean() > 0.95
    assert np.linalg.norm(probe.direction) == pytest.approx(1)


def test_three_classes_have_three_directions():
    model, directions = planted(3)
    rows = rows_of(model, 300)
    probe = minitx.fit_probe(model, rows, [int(row[-1]) % 3 for row in rows], at="embed")
    assert probe.classes == [0, 1, 2] and probe.accuracy > 0.9 and probe.null < 0.6
    centred = directions - directions.mean(axis=0)
    cosines = (probe.direction * centred).sum(axis=1) / np.linalg.norm(centred, axis=1)
    assert cosines.min() > 0.7  # measured 0.74 to 0.83


def test_labels_of_tokens_and_their_mean():
    model, _ = planted(variant="gpt2-causal")
    rows = rows_of(model, 120, 4)
    of_tokens = [row % 2 for row in rows]
    probe = minitx.fit_probe(model, rows, of_tokens, at=("resid_pre", 1), token="each")
    predicted = probe.predict(rows[:3])
    assert probe.accuracy > 0.95 and [len(x) for x in predicted] == [4, 4, 4]
    assert np.mean(np.array(predicted) == np.array(of_tokens[:3])) > 0.9
    words = [[("even", "odd")[x] for x in row] for row in of_tokens]
    named = minitx.fit_probe(model, rows, words, at=("resid_pre", 1), token="each")
    assert named.classes == ["even", "odd"] and named.accuracy == probe.accuracy
    most = [int(sum(row % 2) > 2) for row in rows]
    mean = minitx.fit_probe(model, rows, most, at=("resid_pre", 1), token="mean")
    assert mean.accuracy > 0.8 > mean.null
    whole = minitx.fit_probe(model, rows, most, at=("resid_pre", 1), token="each")
    assert whole.predict(rows[:1])[0].shape == (4,)  # the label of a text is that of its tokens


def test_random_labels_are_at_chance_even_of_equal_texts():
    """Each text four times with one label: were rows split, all of them would be known."""
    model = tiny.load("bert-masked")
    above, accuracies = 0, []
    for seed in range(12):
        rows = rows_of(model, 24, 5, seed) * 4
        labels = np.tile(labels_by_chance(24, seed), 4)
        probe = minitx.fit_probe(model, rows, labels, at=("resid_post", 0), seed=seed)
        above += probe.accuracy > probe.null
        accuracies.append(probe.accuracy)
    assert above <= 4  # at most one in 20 is expected; five of 12 have p < 0.001
    assert 0.3 < np.mean(accuracies) < 0.7


def test_tokens_of_a_text_are_not_split():
    """The mean that BERT's attention adds tells a text's tokens; labels of texts mean nothing."""
    model, accuracies = tiny.load("bert-masked"), []
    for seed in range(6):
        rows = rows_of(model, 24, 8, seed)
        labels = labels_by_chance(24, seed)
        point = ("attn_out", 0)
        probe = minitx.fit_probe(model, rows, labels, at=point, token="each", seed=seed)
        accuracies.append(probe.accuracy)
    assert 0.3 < np.mean(accuracies) < 0.7


def test_what_is_held_out_chooses_nothing():
    """Other labels of the texts that are held out: the same probe, bit for bit."""
    model, _ = planted()
    rows = rows_of(model, 40, 4)
    labels = np.array([row % 2 for row in rows])
    batches = [model_batch(row) for row in rows]
    side = split(batches, labels, True, np.random.default_rng(0), [0, 1])
    changed = np.where((side == 2)[:, None], 1 - labels, labels)
    how = {"at": ("resid_pre", 1), "token": "each"}
    probes = [minitx.fit_probe(model, rows, [*x], **how) for x in (labels, changed)]
    assert np.array_equal(probes[0].direction, probes[1].direction)
    assert probes[0].penalty == probes[1].penalty
    assert probes[1].accuracy == pytest.approx(1 - probes[0].accuracy)


def model_batch(row):
    return minitx.Batch(np.atleast_2d(row), None, None)


def test_equal_texts_are_on_one_side_and_each_class_on_all():
    rows = np.repeat(np.arange(24), 3)
    y = rows % 3
    batches = [model_batch([row]) for row in rows]
    for seed in range(10):
        side = split(batches, y, False, np.random.default_rng(seed), ["a", "b", "c"])
        assert all(len({*side[rows == row]}) == 1 for row in range(24))
        assert all({*side[y == k]} == {0, 1, 2} for k in range(3))


def test_too_few_texts_are_undecided_and_enough_are_not():
    model, _ = planted(size=0.0)
    few, many = rows_of(model, 20), rows_of(model, 1600)
    probe = minitx.fit_probe(model, few, labels_by_chance(20, 0), at=("resid_post", 0))
    said = re.fullmatch(r"undecided: needs (\d+) texts, 20 were given", probe.verdict)
    assert 20 < int(said[1]) < 1600 and probe.verdict in repr(probe)
    probe = minitx.fit_probe(model, many, labels_by_chance(1600, 2), at=("resid_post", 0))
    assert probe.verdict == "not above chance"


@pytest.mark.parametrize("variant", tiny.SINGLE)
def test_every_single_stack_has_features(variant):
    model = tiny.single(variant)
    rows = rows_of(model, 16, 5)
    cfg = model.config
    for point, width in {
        ("post", 0): cfg.d_mlp,
        ("z", -1): cfg.n_heads * cfg.d_head,
        ("attn_out", 1): cfg.d_model,
    }.items():
        probe = minitx.fit_probe(model, rows, np.arange(16) % 2, at=point, token="mean")
        assert probe.direction.shape == (width,) and isinstance(probe.accuracy, float)


def test_a_saved_probe_predicts_the_same(tmp_path):
    model, _ = planted()
    rows = rows_of(model, 60)
    probe = minitx.fit_probe(model, rows, [bool(row[-1] % 2) for row in rows], at=("resid_post", 1))
    probe.save(tmp_path / "p.safetensors")
    again = minitx.Probe.from_file(tmp_path / "p.safetensors", model)
    assert repr(again) == repr(probe) and again.shuffled == probe.shuffled
    assert np.array_equal(again.predict(rows), probe.predict(rows))
    assert again.predict(rows).dtype == bool and again.point == ("resid_post", 1)
    wider = minitx.Probe.from_file(tmp_path / "p.safetensors", "tiny-gpt2")
    with pytest.raises(ValueError, match=r"has 128 numbers a token; the probe was fitted to \d+"):
        wider.predict([[1, 2]])
    with pytest.raises(ValueError, match="is not a saved probe: 'sha256'"):
        minitx.Probe.from_file(tiny.GOLDEN / "gpt2-causal" / "model.safetensors", model)
    whole = (tmp_path / "p.safetensors").read_bytes()
    for match, content in (
        ("is not a saved probe: ", whole[:50]),
        ("any more: its sha256 differs", whole.replace(b"resid_post", b"resid_mid ")),
        ("probe any more: its sha256", whole[:-1] + bytes([whole[-1] ^ 64])),
    ):
        (tmp_path / "damaged").write_bytes(content)
        with pytest.raises(ValueError, match=match):
            minitx.Probe.from_file(tmp_path / "damaged", model)


@pytest.mark.parametrize(
    "stated, arrays, match",
    [
        ({"model": 1}, {}, "is damaged: it has 'model'"),
        ({"untrained": ...}, {}, "is damaged: it has no 'untrained'"),
        ({"token": "x"}, {}, "is damaged: 'token' is 'x'"),
        ({"classes": [1]}, {}, "is damaged: 'classes' is"),
        ({"interval": None}, {}, "is damaged: 'interval' is None"),
        ({}, {"W": None}, r"is damaged: arrays are {'mean': .*; wanted {'W': \(4, 2\)"),
        ({}, {"W": np.ones((3, 2))}, r"arrays are {'W': \(3, 2\).*; wanted {'W': \(4, 2\)"),
        ({}, {"W": np.full((4, 2), np.nan)}, "W is not float64, or not finite"),
        ({}, {"scale": np.zeros(3)}, "scale has numbers that are not above 0"),
    ],
)
def test_a_probe_that_is_signed_and_wrong_is_refused(stated, arrays, match, tmp_path):
    right = {"W": np.ones((4, 2)), "mean": np.zeros(3), "scale": np.ones(3)}
    numbers = dict(accuracy=1.0, null=0.5, shuffled=[0.5], untrained=None, penalty=1.0)
    words = dict(point=["post", 0], token="last", classes=[0, 1], interval=[0.5, 1.0], verdict="")
    whole = {"format": "minitx probe 1"} | numbers | words

    def written(stated, arrays):
        arrays = {name: x for name, x in (right | arrays).items() if x is not None}
        stated = {name: x for name, x in (whole | stated).items() if x is not ...}
        content = saved.pack_state(arrays, json.dumps(stated))
        (tmp_path / "p.safetensors").write_bytes(content)
        return tmp_path / "p.safetensors"

    model = tiny.load("gpt2-causal")
    assert minitx.Probe.from_file(written({}, {}), model).point == ("post", 0)
    with pytest.raises(ValueError, match=rf"p.safetensors .*{match}"):
        minitx.Probe.from_file(written(stated, arrays), model)
    with pytest.raises(FileNotFoundError, match="no file .*; wanted a saved probe"):
        minitx.Probe.from_file(tmp_path, model)


@pytest.mark.parametrize(
    "given, match",
    [
        ({"labels": [0, 1] * 7}, "14 labels for 16 texts"),
        ({"seed": -1}, "seed=-1; wanted a whole number of at least 0"),
        ({"labels": 5}, "labels are 5; expected one for each text"),
        ({"labels": [0] * 16}, "all labels are 0; expected two classes"),
        ({"labels": [0.5, 1.5] * 8}, "labels are float; expected words, or whole numbers"),
        ({"labels": ["a", "b" * 1001] * 8}, "a label has 1001 letters; expected words of at most"),
        ({"labels": [0, "a"] * 8}, "labels are int, str"),
        ({"labels": [0] * 13 + [1] * 3}, "class 1 has 3 different texts; expected 4"),
        ({"labels": [[0, 1, 0]] * 16}, "labels of tokens, and token is 'last'"),
        ({"labels": [[0, 1]] * 16, "token": "each"}, "text 0 has 3 tokens, special .* 2 labels"),
        ({"token": "first"}, "token is 'first'; expected one of: last, mean, each"),
        ({"at": "resid_post"}, "'resid_post' is 2 points; expected one"),
        ({"at": ("pattern", 0)}, r"\[B H T S\]; expected a point with one vector for each token"),
        ({"at": ("resid_past", 0)}, "unknown point 'resid_past'"),
        ({"at": None}, "None is .* points; expected one"),
    ],
)
def test_what_does_not_fit_is_said(given, match):
    model = tiny.load("gpt2-causal")
    given = {"texts": rows_of(model, 16), "labels": [0, 1] * 8, "at": ("resid_post", 0)} | given
    with pytest.raises(ValueError, match=match):
        minitx.fit_probe(model, **given)


def test_classes_are_in_order_and_a_last_nul_counts():
    for labels in (["b", "a\0", "a", "Ä", "a"], [3, -1, 3], [True, False]):
        classes, numbers, _ = read_labels(labels, [1] * len(labels), "last")
        assert classes == sorted({*labels})
        assert [classes[i] for i in numbers] == labels


def test_a_table_is_read_by_its_columns(tmp_path):
    words = "dog cat man boy king bird bear girl".split()
    texts = [f"The {word} was {mood}." for word in words for mood in ("sad", "glad")]
    lines = [f"{text},{'low' if 'sad' in text else 'high'},{i}" for i, text in enumerate(texts)]
    file = tmp_path / "t.csv"
    file.write_text("text,mood,number\n" + "\n".join(lines) + "\n")
    given = minitx.fit_probe("tiny-gpt2", texts, ["low", "high"] * 8, at=("resid_post", 1))
    for name in (file, str(file)):
        probe = minitx.fit_probe("tiny-gpt2", name, "mood", at=("resid_post", 1))
        assert repr(probe) == repr(given) and probe.classes == ["high", "low"]
    file.write_text("text,mood,number\n" + "\n".join(lines).replace(",low", ", low ") + "\n")
    assert repr(minitx.fit_probe("tiny-gpt2", file, "mood", at=("resid_post", 1))) == repr(given)
    with pytest.raises(ValueError, match="no column 'humour'|humour"):
        minitx.fit_probe("tiny-gpt2", file, "humour", at=("resid_post", 1))
    with pytest.raises(ValueError, match="expected labels to be the name of its column"):
        minitx.fit_probe("tiny-gpt2", file, [0, 1], at=("resid_post", 1))
    file.write_text("text,mood\nA dog, \nA cat,low\n")
    with pytest.raises(ValueError, match=r"t.csv.* has no label; expected one for each text"):
        minitx.fit_probe("tiny-gpt2", file, "mood", at=("resid_post", 1))


def test_an_interval_that_contains_the_null_is_undecided():
    train = SimpleNamespace(x=np.random.default_rng(0).standard_normal((500, 2)))
    stated = {"accuracy": 1.0, "interval": (0.72, 1.0), "null": 0.9, "untrained": 0.5}
    assert verdict(stated, train, 500).startswith("undecided: its interval contains the null")
    assert verdict(stated | {"null": 0.7}, train, 500) == "above chance"
    assert verdict(stated | {"null": 1.0}, train, 500).startswith("undecided")  # no room is left
    assert verdict(stated | {"accuracy": 0.85}, train, 500) == "not above chance"
    at_random = verdict(stated | {"null": 0.7, "untrained": 0.8}, train, 500)
    assert at_random == "above shuffled labels, but not above random weights"
    few = SimpleNamespace(x=train.x[:12])
    assert verdict(stated | {"null": 0.7}, few, 12).startswith("undecided: needs")
