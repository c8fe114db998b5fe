"""What each head writes: its sum over heads, as an edit, its gradient, in every golden model.

Float64; another order of the same sums, of values up to 25: measured at most 9.2e-14
(t5-gated-tied), bound 1e-12.
"""

import numpy as np
import parity
import pytest
import tiny

import minitx
from minitx.hooks import asks
from minitx.points import name_of

CLOSE = dict(rtol=1e-12, atol=1e-12)


def inputs(variant):
    """A golden text of a model, for `run`: its tokens, and what goes with them."""
    arrays, _ = parity.batch(parity.texts(variant)[:2], {"T": "right", "S": "right"}, 0)
    return arrays.pop("tokens"), arrays


def heads(model):
    """(point of what heads write, of what they write together, arrays, bias, gain of a norm)."""
    for layer in model.layers:
        gain = getattr(layer, "attn_out_w", None)
        yield ("head_out", layer.index), ("attn_out", layer.index), layer, gain
        if layer.cross is not None:
            yield ("cross_head_out", layer.index), ("cross_out", layer.index), layer.cross, None
    if model.encoder is None:
        return
    for layer in model.encoder.layers:
        yield ("enc_head_out", layer.index), ("enc_attn_out", layer.index), layer, None


@pytest.mark.parametrize("variant", parity.VARIANTS)
def test_heads_sum_to_what_attention_writes(variant):
    model = tiny.load(variant)
    tokens, given = inputs(variant)
    names = {name_of(point) for pair in heads(model) for point in pair[:2]}
    scales = [("attn_out_scale", w.index) for w in model.layers if w.attn_out_w is not None]
    before = [name.replace("head_out", "z") for name in names if name.endswith("head_out")]
    trace = minitx.run(model, tokens, [*names, *before, *scales], **given)
    for point, together, w, gain in heads(model):
        by_head = trace[point]
        z = trace[point[0].replace("head_out", "z"), point[1]]
        assert by_head.shape == (*z.shape[:3], model.config.d_model)
        W_O = w.W_O.reshape(z.shape[1], z.shape[3], -1)
        np.testing.assert_allclose(by_head, np.einsum("bhtd,hde->bhte", z, W_O), **CLOSE)
        total = by_head.sum(axis=1) + (0 if w.b_O is None else w.b_O)
        if gain is not None:
            total = total * trace["attn_out_scale", point[1]][..., None] * gain
        np.testing.assert_allclose(total, trace[together], **CLOSE)


@pytest.mark.parametrize("variant", parity.VARIANTS)
def test_an_edit_of_a_head_is_an_edit_of_its_mean_of_values(variant):
    """Nothing changed, at any point, is no bit changed; without its output a head has z = 0."""
    model = tiny.load(variant)
    tokens, given = inputs(variant)
    plain = minitx.run(model, tokens, **given)
    assert not any(name_of(point).endswith("head_out") for point in plain)
    edits = dict.fromkeys([*plain, *(point for point, *_ in heads(model))], lambda x: x)
    same = minitx.run(model, tokens, edits=edits, **given)
    assert all(np.array_equal(same[key], x) for key, x in plain.items())

    def without_last(x):
        x[:, -1] = 0
        return x

    for point, together, *_ in heads(model):
        z = point[0].replace("head_out", "z"), point[1]
        keep = [together, ("resid_post", -1)]
        by_output = minitx.run(model, tokens, keep, {point: without_last}, **given)
        by_values = minitx.run(model, tokens, keep, {z: without_last}, **given)
        assert not np.array_equal(by_output[together], plain[together])
        for key in by_output:
            np.testing.assert_allclose(by_output[key], by_values[key], **CLOSE)


LEARNS = [
    name for name in parity.VARIANTS if tiny.load(name).config.task_head in ("masked", "causal")
]


@pytest.mark.parametrize("variant", LEARNS)
def test_the_gradient_by_a_head_gives_that_by_its_mean_of_values(variant):
    """d loss / d z is d loss / d head_out W_O^T; an edited head_out is a constant."""
    model = tiny.load(variant)
    tokens, given = inputs(variant)
    targets = tiny.ids(model, *tokens.shape, seed=3)
    names = [point for point, *_ in heads(model)]
    by_values = [(name.replace("head_out", "z"), layer) for name, layer in names]
    grads = minitx.gradients(model, tokens, targets, [*names, *by_values], **given)
    largest = max(abs(grads[z]).max() for z in by_values)
    for (point, _, w, _), z in zip(heads(model), by_values, strict=True):
        H, d = grads[z].shape[1], grads[z].shape[3]
        W_O = w.W_O.reshape(H, d, -1)
        ours = np.einsum("bhte,hde->bhtd", grads[point], W_O)
        assert abs(ours - grads[z]).max() < 1e-12 * largest
    point, z = names[0], by_values[0]
    off = {point: np.zeros_like}
    fixed = minitx.gradients(model, tokens, targets, [point, z], edits=off, **given)
    assert fixed[point].any() and not fixed[z].any()


def test_the_bias_learns_where_heads_are_constants():
    model = tiny.load("gpt2-causal")
    tokens, off = tiny.ids(model, 1, 6), {"head_out": np.zeros_like}
    wrt = [("b_O", 0), ("attn_out", 0), ("W_O", 0)]
    grads = minitx.gradients(model, tokens, tiny.ids(model, 1, 6, seed=2), wrt, edits=off)
    np.testing.assert_allclose(grads["b_O", 0], grads["attn_out", 0].sum(axis=(0, 1)), **CLOSE)
    assert grads["b_O", 0].any() and not grads["W_O", 0].any()


def test_the_gradient_is_a_finite_difference():
    model = tiny.load("gemma2-all")
    tokens = tiny.ids(model, 1, 6)
    targets = tiny.ids(model, 1, 6, seed=2)
    grads = minitx.gradients(model, tokens, targets, [("head_out", 0), ("head_out", 1)])
    for layer, (head, token, i) in enumerate([(0, 2, 3), (1, 5, 0)]):
        losses = []
        for step in (1e-5, -1e-5):

            def moved(x, step=step, entry=(0, head, token, i)):
                x[entry] += step
                return x

            edits = {("head_out", layer): moved}
            losses.append(minitx.gradients(model, tokens, targets, [], edits=edits).loss)
        slope = (losses[0] - losses[1]) / 2e-5
        grad = grads["head_out", layer][0, head, token, i]
        assert abs(slope - grad) < 1e-8 * abs(grads["head_out", layer]).max()


def test_it_is_computed_for_those_who_ask():
    """By `run` where it is kept or edited, by no hook that is a function."""
    model, seen = tiny.load("bart-causal"), []
    tokens, given = tiny.texts(model)

    def hook(name, x, layer=None):
        seen.append(name)
        return x

    minitx.forward(model, tokens, hook=hook, **given)
    assert "cross_z" in seen and "head_out" not in seen and "cross_head_out" not in seen
    trace = minitx.run(model, tokens, [("cross_head_out", 1)], **given)
    assert [*trace] == [("cross_head_out", 1)]
    assert asks(trace, "cross_head_out", layer=1) and not asks(trace, "cross_head_out", layer=0)
    all_layers = minitx.run(model, tokens, "head_out", **given)
    assert minitx.cost(model, tokens, "head_out", source=given["source"]) == all_layers.nbytes


def test_weights_may_stay_in_their_file():
    model, mapped = (minitx.load("tiny-gpt2", keep_dtype=keep) for keep in (False, True))
    ours, theirs = (minitx.run(x, "A dog", ("head_out", 2))["head_out", 2] for x in (model, mapped))
    np.testing.assert_array_equal(ours, theirs)
