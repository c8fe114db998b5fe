"""Patching every layer and token, or head, in turn: against what must come out, and by hand."""

import numpy as np
import pytest
import tiny

import minitx
from minitx import circuits

VARIANTS = [*(name for name in tiny.ONE_EACH if "bare" not in name), "gpt2-sequence"]


@pytest.fixture(params=VARIANTS)
def model(request):
    return tiny.load(request.param)


def pair(model, T=5, changed=2):
    """Tokens [1 T] and the same with another word in one place."""
    text = tiny.ids(model, 1, T)
    source = text.copy()
    source[0, changed] = tiny.ids(model, 1, seed=9)[0]
    assert source[0, changed] != text[0, changed]
    return text, source


def last(y):
    """One number of logits, [B T V] or [B C]."""
    return y.ravel()[-1]


def same(x, y):
    """Whether two arrays differ by rounding alone: runs side by side are products of more rows."""
    return np.abs(np.subtract(x, y)).max() < 1e-12


def test_the_changed_token_before_the_first_layer_is_the_whole_difference(model):
    text, source = pair(model)
    effect = minitx.sweep(model, text, source, last)
    ends = [last(minitx.run(model, tokens)["logits"]) for tokens in (text, source)]
    assert effect.shape == (model.config.n_layers, 5)
    assert ends[0] != ends[1]
    assert same(effect[0], [ends[0], ends[0], ends[1], ends[0], ends[0]])


def test_a_source_that_is_the_text_changes_nothing(model):
    text, _ = pair(model)
    plain = last(minitx.run(model, text)["logits"])
    for point in ("resid_mid", "mlp_out", "z", "pattern"):
        assert same(minitx.sweep(model, text, text, last, point), plain)


@pytest.mark.parametrize("point", ["q", "z", "pattern"])
def test_heads_are_swept_one_by_one(model, point):
    text, source = pair(model)
    values = minitx.run(model, source, [point])
    effect = minitx.sweep(model, text, source, last, point)
    expected = np.empty((model.config.n_layers, model.config.n_heads))
    for layer, head in np.ndindex(*expected.shape):
        x = minitx.run(model, text, [point])[point, layer].copy()
        x[0, head] = values[point, layer][0, head]
        expected[layer, head] = last(minitx.run(model, text, edits={(point, layer): x})["logits"])
    assert same(effect, expected)
    assert len(np.unique(effect)) > 1


@pytest.mark.parametrize(
    ("name", "point"), [("bloom-three", "pos_bias"), ("deberta2-masked", "k_pos")]
)
def test_a_point_without_an_axis_of_texts_is_patched_one_at_a_time(name, point):
    model = tiny.load(name)
    text = tiny.ids(model, 1, 5)
    assert same(minitx.sweep(model, text, text, last, "z"), last(minitx.run(model, text)["logits"]))
    pairs = np.tile(text, (3, 1)), np.tile(pair(model)[1], (3, 1))
    effects = circuits.patch(model, *pairs, lambda y: y[:, -1, 3], point, null=False)
    assert same(effects.effects, 0)  # the same table in both


def test_a_measure_knows_the_order_of_the_texts_whose_copies_are_patched_at_once():
    model = tiny.load("gpt2-causal")
    clean = tiny.ids(model, 3, 5)
    corrupt = clean.copy()
    corrupt[:, 2] = (clean[:, 2] + 7) % 50
    ids = np.array([3, 5, 6])
    by_function = circuits.patch(model, clean, corrupt, lambda y: y[np.arange(3), -1, ids])
    by_tokens = circuits.patch(model, clean, corrupt, [(i, None) for i in ids.tolist()])
    assert same(by_function.effects, by_tokens.effects)


def test_progress_is_told_after_every_run():
    model = tiny.load("gpt2-causal")
    calls = []
    minitx.sweep(model, *pair(model), last, "z", progress=lambda *numbers: calls.append(numbers))
    n = model.config.n_layers * model.config.n_heads
    assert calls == [(i, n) for i in range(1, n + 1)]


def test_texts_points_and_measures_that_do_not_fit():
    model = tiny.load("gpt2-causal")
    text, source = pair(model)
    with pytest.raises(ValueError, match=r"source has tokens \[1, 4\], the text \[1, 5\]"):
        minitx.sweep(model, text, source[:, :4], last)
    with pytest.raises(ValueError, match="point is 'embed'; a sweep takes one of: resid_pre, "):
        minitx.sweep(model, text, source, last, "embed")
    with pytest.raises(ValueError, match=r"point is \('q', 1\); a sweep takes one of"):
        minitx.sweep(model, text, source, last, ("q", 1))
    with pytest.raises(ValueError, match=r"the measure returns an array \[2\]; wanted one number"):
        minitx.sweep(model, text, source, lambda y: y[0, -1, :2])
    with pytest.raises(ValueError, match="measure is 3.0; wanted a function of logits"):
        minitx.sweep(model, text, source, 3.0)
    with pytest.raises(ValueError, match="edits is 5; wanted a dictionary"):
        minitx.sweep(model, text, source, last, edits=5)
    for value in (None, "3.5", 1j, np.complex128(1)):
        with pytest.raises(ValueError, match="the measure returns .*; wanted one number per run"):
            minitx.sweep(model, text, source, lambda y, value=value: value)
    with pytest.raises(ValueError, match="has no head that gives logits"):
        minitx.sweep(tiny.load("gpt2-bare"), text, source, last)
