"""Seeing and changing two stacks: points of encoder, decoder and cross-attention, edits, errors.

As test_trace.py has it of one stack. Float64; another order of the same sums: bound 1e-12.
"""

import numpy as np
import pytest
import tiny

import minitx
from minitx.model import identity
from minitx.points import name_of

VARIANTS = [*tiny.PAIRS, "bart-scaled", "bart-bare", "t5-gated-tied", "t5-relu"]
CLOSE = dict(rtol=0, atol=1e-12)


@pytest.fixture(params=VARIANTS)
def model(request):
    return tiny.load(request.param)


# --- norms


def test_a_norm_of_t5_takes_no_mean_off_and_an_edited_scale_is_used():
    model = tiny.load("t5-gated")
    tokens, given = tiny.texts(model)
    t = minitx.run(model, tokens, **given)
    for name, before in (("ln1", "resid_pre"), ("ln_cross", "resid_mid"), ("ln2", "resid_cross")):
        gain = (vars(model.layers[1]) | vars(model.layers[1].cross))[f"{name}_w"]
        x = t[before, 1]
        scale = 1 / np.sqrt((x * x).mean(-1) + model.config.eps)
        np.testing.assert_allclose(t[f"{name}_scale", 1], scale, rtol=1e-12)
        np.testing.assert_allclose(t[name, 1], x * scale[..., None] * gain, **CLOSE)
        assert not any(f"{name}_mean" in key for key in t)
        doubled = minitx.run(model, tokens, **given, edits={(f"{name}_scale", 1): lambda s: 2 * s})
        np.testing.assert_allclose(doubled[name, 1], 2 * t[name, 1], **CLOSE)


# --- edits


EDITED = ["enc_z", "enc_pattern", "enc_resid_mid", "z", "resid_mid", "ln_cross_scale"]
EDITED += [f"cross_{name}" for name in ("q", "k", "v", "pattern", "z", "out")] + ["resid_cross"]


@pytest.mark.parametrize("name", EDITED)
def test_an_edit_reaches_what_comes_after_and_nothing_before(model, name):
    tokens, given = tiny.texts(model, (7, 7), (8, 8))
    plain = minitx.run(model, tokens, **given)
    order = list(plain)
    edited = minitx.run(model, tokens, **given, edits={(name, 0): lambda x: x * 1.5})
    assert (edited[name, 0] == plain[name, 0] * 1.5).all()
    changed = [key for key in order if not np.array_equal(edited[key], plain[key])]
    first = order.index((name, 0))
    assert changed and set(changed) <= set(order[first:])
    after = {key for key in order[first:] if key[0] in ("cross_out", "resid_post", "mlp_out")}
    assert after <= set(changed) and (not name.startswith("enc_") or ("cross_k", 0) in changed)


def test_the_encoder_is_untouched_by_edits_of_the_decoder(model):
    tokens, given = tiny.texts(model)
    plain = minitx.run(model, tokens, **given)
    edited = minitx.run(
        model, tokens, **given, edits={"q": np.zeros_like, "cross_z": np.zeros_like}
    )
    for key, x in edited.items():
        if name_of(key).startswith("enc_"):
            assert np.array_equal(x, plain[key])
    assert not edited["q", 0].any() and not edited["cross_z", 0].any() and edited["enc_q", 0].any()


def test_the_source_of_another_text_patched_in(model):
    """Keys and values of the source, put in, give that source's output."""
    tokens, given = tiny.texts(model, (7, 7), (8, 8))
    other = minitx.run(model, tokens, **given | {"source": given["source"][::-1]})
    edits = {key: x for key, x in other.items() if key[0] in ("cross_k", "cross_v")}
    assert len(edits) == 2 * model.config.n_layers
    patched = minitx.run(model, tokens, **given, edits=edits)
    assert np.array_equal(patched["resid_post", -1], other["resid_post", -1])


def test_a_t5_without_positions():
    """Its bias zeroed in each stack is a model whose table of distances is zeros."""
    model = tiny.load("t5-relu")
    tokens, given = tiny.texts(model)
    edits = {"pos_bias": np.zeros_like, "enc_pos_bias": np.zeros_like}
    trace = minitx.run(model, tokens, **given, edits=edits)
    assert not trace["pos_bias"].any() and not trace["enc_pos_bias"].any()
    raw = trace["enc_q", 1] @ trace["enc_k", 1].swapaxes(-1, -2)
    seen = np.isfinite(trace["enc_scores", 1])
    np.testing.assert_allclose(trace["enc_scores", 1][seen], raw[seen], **CLOSE)


# --- what is asked for ends the pass


def test_the_pass_ends_with_the_last_point_that_is_asked_for(model, monkeypatch):
    tokens, given = tiny.texts(model)
    passed = []

    def recorded(self, name, x, layer=None, original=minitx.Trace.__call__):
        passed.append(name if layer is None else (name, layer))
        return original(self, name, x, layer)

    monkeypatch.setattr(minitx.Trace, "__call__", recorded)
    for key in ("enc_embed", ("enc_q", 0), ("q", 0), ("cross_k", 0), ("cross_pattern", 0)):
        passed.clear()
        trace = minitx.run(model, tokens, [key], **given)
        assert [*trace] == [key] and passed[-1] == key
        decoder = [x for x in passed if not name_of(x).startswith("enc_")]
        assert bool(decoder) == (not name_of(key).startswith("enc_"))
    hooked = []

    def watch(name, x, layer=None):
        hooked.append(name)
        return identity(name, x, layer)

    minitx.forward(model, tokens, **given, hook=watch)
    half = sum(name.startswith("enc_") for name in hooked)
    assert all(name.startswith("enc_") for name in hooked[:half])  # the encoder runs first


@pytest.mark.parametrize(
    "variant,n_encoder,n_decoder", [("bart-scaled", 1, 3), ("t5-gated-tied", 2, 3)]
)
def test_layer_minus_one_is_the_last_of_the_stack_in_which_the_point_lies(
    variant, n_encoder, n_decoder
):
    model = tiny.load(variant)
    tokens, given = tiny.texts(model)
    trace = minitx.run(model, tokens, **given)
    for name, n in (("enc_z", n_encoder), ("z", n_decoder), ("cross_z", n_decoder)):
        assert trace[name, -1] is trace[name, n - 1] and (name, -n) in trace
        assert (name, -n - 1) not in trace and (name, n) not in trace
        assert [*minitx.run(model, tokens, (name, -1), **given)] == [(name, n - 1)]
        edited = [{(name, layer): np.zeros_like} for layer in (-1, n - 1)]
        ends = [
            minitx.run(model, tokens, "resid_post", e, **given).stack("resid_post") for e in edited
        ]
        assert np.array_equal(*ends)
        message = rf"no point \('{name}', {n}\) \(.*, layers 0 to {n - 1}"
        with pytest.raises(ValueError, match=message):
            minitx.run(model, tokens, [(name, n)], **given)
