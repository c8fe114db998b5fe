"""Where a feature is largest: planted tokens come back, and order is told from words."""

from dataclasses import replace

import numpy as np
import pytest
import tiny

import minitx
from minitx.analysis.measures import document_features
from minitx.research import examples as module

GOOD, LONG = 7, 9
CASES = [  # point, feature, the numbers of a trace
    (("post", 1), 3, lambda x: x["post", 1][0, :, 3]),
    (("z", 1), 1, lambda x: np.linalg.norm(x["z", 1][0, 1], axis=1)),
    (("z", 1), (1, 2), lambda x: x["z", 1][0, 1, :, 2]),
    (("k", 0), (0, 1), lambda x: x["k", 0][0, 0, :, 1]),
]


def planted(at_first=0.0):
    """A GPT-2 with a direction that says 1 at the token GOOD, and more of it at position 0."""
    model = tiny.load("gpt2-causal")
    W_E, W_pos = 0 * model.weights.W_E, 0 * model.weights.W_pos
    W_E[GOOD, 3] = 1.0
    W_pos[0, 3] = at_first
    return tiny.with_weights(model, W_E=W_E, W_pos=W_pos), np.eye(W_E.shape[1])[3]


def rows_of(model, n=12, T=LONG, seed=0):
    """Random ids without the token GOOD."""
    rows = tiny.ids(model, n, T, seed=seed)
    return np.where(rows == GOOD, GOOD + 1, rows)


def test_planted_tokens_come_back():
    model, direction = planted()
    rows = rows_of(model)
    for text, position in ((2, 0), (5, 8), (11, 4)):
        rows[text, position] = GOOD
    rows[5, 3] = GOOD  # one example for each text, at the first of equal values
    examples = minitx.top_examples(model, iter(rows), "embed", direction, n=3)
    assert [(x.document, x.position) for x in examples.largest] == [(2, 0), (5, 3), (11, 4)]
    assert [*examples.values] == [*examples.null] == [1, 1, 1]  # words alone: order is nothing
    assert "order does not matter" in repr(examples)
    assert examples.counts.sum() == examples.n_tokens == rows.size
    assert examples.counts[-1] == 4 and len(examples.edges) == len(examples.counts) + 1
    assert {x.document for x in examples.random} <= {*range(12)} and len(examples.random) == 3
    token = f"<{GOOD}>"
    assert all(x.token == token and f"«{token}»" in x.context for x in examples.largest)
    around = [f"<{i}>" for i in rows[11]]
    assert examples.largest[2].context.split() == [*around[:4], f"«{token}»", *around[5:]]


def test_a_feature_of_order_is_above_its_null():
    model, direction = planted(at_first=1.0)
    rows = rows_of(model, 40)
    rows[:6, 0] = GOOD
    examples = minitx.top_examples(model, rows, ("resid_pre", 0), direction, n=6)
    assert [*examples.values] == [2] * 6
    assert examples.null.mean() < 2 and examples.null.shape == (6,)
    assert "order does not matter" not in repr(examples)


def test_random_weights_do_not_know_planted_tokens():
    """The direction of the embedding of GOOD: 1 in this model, noise of its spread in another."""
    model, direction = planted()
    rows = rows_of(model, 20)
    rows[:5, 4] = GOOD
    given = model, rows, "embed", direction
    examples = minitx.top_examples(*given, n=5, untrained=True)
    noise = document_features.untrained(model, np.random.default_rng(0))
    largest = sorted(minitx.run(noise, row, "embed")["embed"][0, :, 3].max() for row in rows)
    assert [*examples.untrained] == largest[:-6:-1]
    assert examples.untrained.max() < 0.5 * examples.values.min()  # measured 0.28
    assert f"with random weights: {examples.untrained.mean():.4g}; order" in repr(examples)
    assert minitx.top_examples(*given, n=5).untrained is None


def test_random_tokens_in_random_order_are_the_same():
    """The mean of the largest is above its null half of the time."""
    model, above = tiny.load("gpt2-causal"), 0
    for seed in range(20):
        rows = tiny.ids(model, 12, 6, seed=seed)
        examples = minitx.top_examples(model, rows, ("post", 0), 5, n=4, seed=seed)
        above += examples.values.mean() > examples.null.mean()
    assert 4 <= above <= 16  # outside: p < 0.003


def test_special_tokens_stay_where_they_are(monkeypatch):
    seen = []
    original = module.vectors

    def noted(model, batch, keys):
        seen.append(batch.tokens[0])
        return original(model, batch, keys)

    monkeypatch.setattr(module, "vectors", noted)
    text = "The dog ran after the cat."
    minitx.top_examples("tiny-bert", [text] * 3, ("post", 0), 1, n=1)
    ids = minitx.load("tiny-bert").tokenizer.encode(text)
    for plain, mixed in zip(seen[::2], seen[1::2]):
        assert np.array_equal(plain, ids) and sorted(mixed) == sorted(ids)
        assert mixed[0] == ids[0] and mixed[-1] == ids[-1]
    assert any(not np.array_equal(x, ids) for x in seen)


@pytest.mark.parametrize("variant", tiny.SINGLE)
def test_neurons_heads_and_directions_of_every_single_stack(variant):
    model = tiny.single(variant)
    rows = [*tiny.ids(model, 3, 5)]
    traces = [minitx.run(model, row, [("post", 1), ("z", 1), ("k", 0)]) for row in rows]
    direction = np.random.default_rng(0).standard_normal(model.config.d_mlp)
    along = ("post", 1), direction, lambda x: x["post", 1][0] @ direction
    for point, feature, values in [*CASES, along]:
        examples = minitx.top_examples(model, rows, point, feature, n=3)
        largest = sorted((values(trace).max() for trace in traces), reverse=True)
        assert np.abs(examples.values - largest).max() < 1e-12
    function = minitx.top_examples(model, rows, ("post", 1), lambda x: x @ direction, n=3)
    assert [*function.values] == [*examples.values]


def test_a_page_and_a_table(tmp_path):
    texts = ["The dog ran to the house.", "She was sad.", "<b>Tom</b> was here."]
    examples = minitx.top_examples("tiny-stories", texts, ("post", 3), 17, n=2)
    assert "number 17 of ('post', 3): the largest in 2 of 3 texts" in repr(examples)
    assert "with tokens in random order" in repr(examples) and "«" in repr(examples)
    examples.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.count('class="bar"') == 30
    assert "<b>" not in page and "Texts drawn at random" in page
    assert "number of tokens" in page and ">value<" in page


@pytest.mark.parametrize(
    "given, match",
    [
        ({"documents": "A dog"}, "documents are 'A dog'; expected a list of texts"),
        ({"documents": []}, "no documents; expected at least one"),
        ({"at": "post"}, "'post' is 2 points; expected one"),
        ({"at": ("scores", 0)}, "expected a point with one vector for each token"),
        ({"feature": 999}, "feature: 999 is out of range; wanted 0 to"),
        ({"feature": -1}, "feature: -1 is out of range"),
        ({"feature": "neuron"}, "feature are .*; wanted whole numbers"),
        ({"feature": [0.5, 1.5]}, r"the direction is \[2\]; .*: expected \[\d+\]"),
        ({"at": ("z", 0), "feature": 99}, "head: 99 is out of range"),
        ({"at": ("z", 0), "feature": (0, 99)}, "column: 99 is out of range"),
        ({"at": ("z", 0), "feature": (0, 1, 2)}, r"feature is \[0, 1, 2\]; expected a head, or"),
        ({"feature": lambda x: x}, "the feature returns float64 .*one number for each token"),
        ({"n": 0}, "n is 0; expected a number of texts"),
    ],
)
def test_what_does_not_fit_is_said(given, match):
    given = {"documents": [[1, 2]], "at": ("post", 0), "feature": 1} | given
    with pytest.raises(ValueError, match=match):
        minitx.top_examples(tiny.load("gpt2-causal"), **given)


def test_a_text_that_is_too_long_is_named_by_its_number():
    texts = ["She was sad.", "He ran.", "the " * 200]
    with pytest.raises(ValueError, match="text 2 is 200 tokens long; this model reads at most 96"):
        minitx.top_examples("tiny-stories", texts, ("post", 1), 0)


def test_ids_need_no_tokenizer():
    model = replace(tiny.load("gpt2-causal"), tokenizer=None)
    examples = minitx.top_examples(model, [[1, 2, 3]], ("post", 0), 1)
    assert examples.n_tokens == 3
