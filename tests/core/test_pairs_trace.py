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
CROSS = "q k v scores pattern z out".split()


@pytest.fixture(params=VARIANTS)
def model(request):
    return tiny.load(request.param)


# --- what is recorded


def test_shapes_are_what_the_table_says(model):
    """Of different numbers of source and target tokens, layers and heads; and the cost is exact."""
    tokens, given = tiny.texts(model)
    trace = minitx.run(model, tokens, **given)
    sizes = {}
    for part, stack, T, S in (
        ("", model, 7, 7),
        ("enc_", model.encoder, 8, 8),
        ("cross_", model, 7, 8),
    ):
        cfg = stack.config
        sizes[part] = {"1": 1, "B": 2, "T": T, "S": S, "H": cfg.n_heads, "d": cfg.d_head}
        sizes[part] |= {"G": cfg.n_kv, "D": cfg.d_model, "M": cfg.d_mlp, "V": cfg.n_vocab}
        sizes[part]["E"] = cfg.d_model
    for key, x in trace.items():
        name = name_of(key)
        part = "enc_" * name.startswith("enc_") or "cross_" * name.startswith("cross_")
        axes = minitx.POINTS[name].axes.split()
        shape = tuple(sizes[part][axis] for axis in axes)
        assert x.shape == shape, key
    assert (trace.source == given["source"]).all() and (trace.tokens == tokens).all()
    L = model.config.n_layers
    assert trace.stack("cross_pattern").shape == (L, 2, model.config.n_heads, 7, 8)
    assert len(trace.stack("enc_q")) == model.encoder.config.n_layers


@pytest.mark.parametrize(
    "keep",
    [
        None,
        [],
        "enc_q",
        "cross_pattern",
        "pos_bias",
        ("cross_k", -1),
        ["enc_pattern", "logits", "q"],
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_cost_is_known_before(keep, dtype):
    for variant in VARIANTS:
        if keep == "pos_bias" and not variant.startswith("t5"):
            continue  # no bias by distance
        model = tiny.load(variant, dtype)
        for T, S in ((7, 4), (3, 9), (1, 1)):
            tokens, source = tiny.ids(model, 2, T), tiny.ids(model.encoder, 2, S)
            trace = minitx.run(model, tokens, keep, source=source)
            assert trace.nbytes == sum(x.nbytes for x in trace.values())
            assert trace.nbytes == minitx.cost(model, tokens, keep, source=source)
            assert bool(trace.nbytes) == (keep != [])


def test_points_are_the_values_that_their_formulas_give(model):
    """Queries from the decoder's stream, keys and values from the encoder's last; residuals."""
    tokens, given = tiny.texts(model)
    t = minitx.run(model, tokens, **given)
    last = "enc_ln_final" if model.config.pre_norm else ("enc_resid_post", -1)
    for i, layer in enumerate(model.layers):
        w = layer.cross
        asking = {True: "ln_cross", False: "resid_mid"}[model.config.pre_norm]
        for name, x in (("q", t[asking, i]), ("k", t[last]), ("v", t[last])):
            expected = heads(x, w, name, model.config)
            np.testing.assert_allclose(t[f"cross_{name}", i], expected, **CLOSE)
        raw = t["cross_q", i] @ t["cross_k", i].swapaxes(-1, -2) * model.config.attn_scale(i)
        seen = np.broadcast_to(given["source_valid"][:, None, None], raw.shape)
        np.testing.assert_allclose(t["cross_scores", i][seen], raw[seen], **CLOSE)
        z = t["cross_pattern", i] @ t["cross_v", i]
        np.testing.assert_allclose(t["cross_z", i], z, **CLOSE)
        bias = 0 if w.b_O is None else w.b_O
        joined = z.swapaxes(1, 2).reshape(2, 7, -1)
        np.testing.assert_allclose(t["cross_out", i], joined @ w.W_O + bias, **CLOSE)
        assert_streams(model, t, i)


def heads(x, w, name, cfg):
    """x W + b of one of q, k, v, by heads [B H T d]."""
    b = getattr(w, f"b_{name.upper()}")
    y = x @ getattr(w, f"W_{name.upper()}") + (0 if b is None else b)
    return y.reshape(*x.shape[:2], cfg.n_heads, -1).swapaxes(1, 2)


def assert_streams(model, t, i):
    """What attention, cross-attention and MLP write, added to the stream one after the other."""
    parts = (
        ("resid_pre", "attn_out", "resid_mid", "ln1"),
        ("resid_mid", "cross_out", "resid_cross", "ln_cross"),
    )
    for before, write, after, ln in (*parts, ("resid_cross", "mlp_out", "resid_post", "ln2")):
        total = t[before, i] + t[write, i]
        if model.config.pre_norm:
            assert (t[after, i] == total).all()
        else:
            assert (t[after, i] == t[ln, i]).all()
            np.testing.assert_allclose(t[f"{ln}_mean", i], total.mean(-1), **CLOSE)
    if model.config.gated:
        w = model.layers[i]
        np.testing.assert_allclose(t["pre", i], t["ln2", i] @ w.W_gate, **CLOSE)
        np.testing.assert_allclose(t["pre_linear", i], t["ln2", i] @ w.W_in, **CLOSE)


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


def test_zeroing_a_cross_head_is_a_model_without_its_rows_of_W_O(model):
    tokens, given = tiny.texts(model)
    d = model.config.d_head

    def silence(z):
        z[:, 1] = 0
        return z

    t = minitx.run(model, tokens, **given, edits={("cross_z", 0): silence})
    w = model.layers[0].cross
    W_O = w.W_O.copy()
    W_O[d : 2 * d] = 0
    plain = minitx.run(model, tokens, **given)
    joined = plain["cross_z", 0].swapaxes(1, 2).reshape(2, 7, -1)
    expected = joined @ W_O + (0 if w.b_O is None else w.b_O)
    np.testing.assert_allclose(t["cross_out", 0], expected, **CLOSE)
    assert abs(t["resid_post", -1] - plain["resid_post", -1]).max() > 1e-3


def test_the_source_of_another_text_patched_in(model):
    """Keys and values of the source, put in, give that source's output."""
    tokens, given = tiny.texts(model, (7, 7), (8, 8))
    other = minitx.run(model, tokens, **given | {"source": given["source"][::-1]})
    edits = {key: x for key, x in other.items() if key[0] in ("cross_k", "cross_v")}
    assert len(edits) == 2 * model.config.n_layers
    patched = minitx.run(model, tokens, **given, edits=edits)
    assert np.array_equal(patched["resid_post", -1], other["resid_post", -1])


def test_edited_cross_scores_go_through_softmax_and_edited_patterns_do_not(model):
    tokens, given = tiny.texts(model, (7, 7), (8, 8))

    def only_first(scores):
        scores[..., 1:] = -np.inf
        return scores

    forced = minitx.run(model, tokens, **given, edits={"cross_scores": only_first})
    assert (forced["cross_pattern", 0][..., 0] == 1).all()
    first = np.broadcast_to(forced["cross_v", 0][:, :, :1], forced["cross_z", 0].shape)
    np.testing.assert_allclose(forced["cross_z", 0], first, **CLOSE)
    flat = minitx.run(model, tokens, **given, edits={"cross_pattern": lambda p: p * 0 + 1 / 8})
    mean = np.broadcast_to(flat["cross_v", 0].mean(2, keepdims=True), flat["cross_z", 0].shape)
    np.testing.assert_allclose(flat["cross_z", 0], mean, **CLOSE)


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


def test_an_edit_that_does_not_fit_names_its_point():
    message = (
        r"the edit of \('cross_q', 1\) returns float64 \[3, 3\]; wanted float64 \[1, 3, 2, 6\]"
    )
    edits = {("cross_q", 1): np.zeros((3, 3))}
    with pytest.raises(ValueError, match=message):
        minitx.run(tiny.load("bart-causal"), [5, 6], edits=edits, source=[7])


def test_cross_points_have_a_name_in_the_table_each():
    for name in CROSS:
        assert minitx.POINTS[f"cross_{name}"].needs == ("an encoder",)
        assert f"enc_cross_{name}" not in minitx.POINTS
