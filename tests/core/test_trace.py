"""Seeing and changing: what a trace holds and costs, what an edit does, and which keys are refused.

Edits that change nothing must change no bit; ablations are compared with a model whose weights say
the same (float64, another order of the same sums: measured at most 1e-14, bound 1e-12).
"""

from collections.abc import Mapping

import numpy as np
import parity
import pytest
import tiny

import minitx
from minitx import circuits
from minitx.heads import axes_of_logits
from minitx.points import name_of

VARIANTS = [*tiny.ONE_EACH, "bert-sequence", "gpt2-sequence", "roberta-sequence", "gpt2-bare"]
VARIANTS += ["bert-question", "gpt2-token", "electra-choice", "mpnet-masked"]
PAIRED = [*tiny.PAIRS, "bart-scaled", "bart-bare", "t5-gated-tied", "t5-relu"]
PLACES = [name for name, *_ in parity.ROWS["make_golden_places"]] + parity.DECODERS
CLOSE = dict(rtol=0, atol=1e-12)


@pytest.fixture(params=VARIANTS)
def model(request):
    return tiny.load(request.param)


@pytest.fixture(params=[*VARIANTS, *PAIRED])
def either(request):
    """A single stack, or an encoder-decoder."""
    return tiny.load(request.param)


def inputs(model):
    """(tokens, what goes with them): a padded batch, and texts without padding."""
    yield tiny.texts(model, source_side="right")
    for shape in ((1, 6), (3, 1), (1,)):
        source = {} if model.encoder is None else {"source": tiny.ids(model.encoder, *shape)}
        yield tiny.ids(model, *shape), source


def batch(model):
    """Left-padded tokens of unequal length, and their valid."""
    return tiny.padded([tiny.ids(model, n, seed=n) for n in (7, 4)], "left")[:2]


def same_bits(trace, other):
    """Two traces hold the same points, bit for bit."""
    if trace.keys() != other.keys():
        return False
    return all(np.array_equal(x, other[key]) for key, x in trace.items())


# --- changing nothing


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("variant", [*VARIANTS, *PAIRED])
def test_an_edit_that_changes_nothing_changes_no_bit(variant, dtype):
    """Every point of every family, as a function, as an array, one at a time and all at once."""
    model = tiny.load(variant, dtype)
    for tokens, given in inputs(model):
        plain = minitx.run(model, tokens, **given)
        assert list(plain) and set(plain) == tiny.computed(model)
        for name in set(map(name_of, plain)):
            edited = minitx.run(model, tokens, edits={name: lambda x: x}, **given)
            assert same_bits(edited, plain), name
        arrays = dict(plain)
        functions = dict.fromkeys(plain, np.array)
        contiguous = {key: np.ascontiguousarray(x) for key, x in plain.items()}
        for edits in (arrays, functions, contiguous):
            assert same_bits(minitx.run(model, tokens, edits=edits, **given), plain)


def test_watching_changes_no_bit(either):
    tokens, given = tiny.texts(either)
    trace = minitx.run(either, tokens, **given)
    x = minitx.forward(either, tokens, **given)
    last = "ln_final" if either.config.pre_norm else ("resid_post", -1)
    assert np.array_equal(x, trace[last])
    if either.config.task_head:
        assert np.array_equal(minitx.logits(either, x, valid=given["valid"]), trace["logits"])
    for key in trace:  # and a point is the same whether others are kept or not
        single = minitx.run(either, tokens, [key], **given)
        assert list(single) == [key]
        assert np.array_equal(single[key], trace[key])


# --- what is recorded


@pytest.mark.parametrize(
    "variants,keep,expected",
    [
        (VARIANTS, None, set(minitx.POINTS)),
        (VARIANTS, [], set()),
        (VARIANTS, ["q"], {"q"}),
        (VARIANTS, [("pattern", 1)], {"pattern"}),
        (VARIANTS, "resid_pre", {"resid_pre"}),
        (VARIANTS, ["embed", "scores", ("q", 0), "q"], {"embed", "scores", "q"}),
        (VARIANTS, ("ln1_scale", ("post", 1)), {"ln1_scale", "post"}),
        (PAIRED, "enc_q", {"enc_q"}),
        (PAIRED, ("cross_k", -1), {"cross_k"}),
        (PAIRED, ["enc_pattern", "cross_pattern", "q"], {"enc_pattern", "cross_pattern", "q"}),
        (["t5-gated-tied", "t5-relu"], "pos_bias", {"pos_bias"}),
    ],
    ids=range(11),
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_trace_holds_what_was_asked_and_the_cost_is_known_before(variants, keep, expected, dtype):
    for variant in variants:
        model = tiny.load(variant, dtype)
        for tokens, given in inputs(model):
            trace = minitx.run(model, tokens, keep, **given)
            assert trace.nbytes == sum(x.nbytes for x in trace.values())
            assert trace.nbytes == minitx.cost(model, tokens, keep, source=given.get("source"))
            kept = set(map(name_of, trace))
            assert kept == expected or (keep is None and kept < expected)
            if keep:
                single = [key for key in trace if key[0] in ("pattern", "post")]
                assert all(layer == 1 for _, layer in single)


@pytest.mark.parametrize("variant", [*VARIANTS, *PAIRED, *PLACES])
def test_shapes_are_what_the_table_says_and_the_cost_is_exact(variant):
    """Of different numbers of source and target tokens, layers and heads."""
    model = tiny.load(variant)
    tokens, given = tiny.texts(model, (7, 7), (8, 8))
    trace = minitx.run(model, tokens, **given)
    assert {*trace} == tiny.computed(model)
    sizes = {"": tiny.sizes(model, 2, 7, 7)}
    if model.encoder is not None:
        sizes |= {"enc_": tiny.sizes(model.encoder, 2, 8, 8), "cross_": tiny.sizes(model, 2, 7, 8)}
        assert (trace.source == given["source"]).all()
    for key, x in trace.items():
        axes = minitx.POINTS[name_of(key)].axes.split()
        if key == "logits":
            axes = axes_of_logits(model.config.task_head)
        part = name_of(key).partition("_")[0] + "_"
        own = sizes.get(part, sizes[""])
        assert x.shape == tuple(own[axis] for axis in axes), key
        assert x.dtype == np.float64, key
    assert (trace.tokens == tokens).all() and (trace.valid == given["valid"]).all()
    assert trace.nbytes == minitx.cost(model, tokens, source=given.get("source"))
    q = trace.stack("q")
    assert len(q) == model.config.n_layers and np.array_equal(q[-1], trace["q", -1])


def test_scores_are_products_of_queries_and_keys(either):
    """All other points are compared with the reference library's, in test_parity.py."""
    tokens, given = tiny.texts(either)
    t = minitx.run(either, tokens, **given)
    parts = [""] if either.encoder is None else ["", "enc_", "cross_"]
    for part in parts:
        cfg = either.encoder.config if part == "enc_" else either.config
        for i in range(cfg.n_layers):
            q, k, scores = (t[f"{part}{name}", i] for name in ("q", "k", "scores"))
            raw = q @ k.swapaxes(-1, -2) * cfg.attn_scale(i)
            if f"{part}pos_bias" in t:
                raw = raw + t[f"{part}pos_bias"]
            seen = np.isfinite(scores)
            np.testing.assert_allclose(scores[seen], raw[seen], **CLOSE)


def test_what_is_recorded_is_nobody_elses_memory(either):
    tokens, given = tiny.texts(either)
    trace = minitx.run(either, tokens, **given)
    weights = [x for stack in filter(None, (either, either.encoder)) for _, x in tiny.walk(stack)]
    for key, x in trace.items():
        assert not any(np.shares_memory(x, w) for w in weights if w.size), key
        np.add(x, 1, out=x)  # writable, and nothing of it comes back in the next run
    again = minitx.run(either, tokens, **given)
    assert not same_bits(trace, again)
    assert same_bits(again, minitx.run(either, tokens, **given))


# --- edits


def test_an_edit_reaches_what_comes_after_and_nothing_before(model):
    tokens, valid = batch(model)
    plain = minitx.run(model, tokens, valid=valid)
    order = list(plain)
    for name in ("z", "resid_mid", "ln2_scale", "pre"):
        edited = minitx.run(model, tokens, valid=valid, edits={(name, 1): lambda x: x * 1.5})
        changed = [key for key in order if not np.array_equal(edited[key], plain[key])]
        assert (edited[name, 1] == plain[name, 1] * 1.5).all()
        assert changed == order[order.index((name, 1)) :]


def test_a_whole_point_one_layer_and_the_special_over_the_general(model):
    tokens, _ = batch(model)
    plain = minitx.run(model, tokens)
    whole = minitx.run(model, tokens, edits={"attn_out": np.zeros_like})
    assert not whole.stack("attn_out").any() and plain.stack("attn_out").all(axis=-1).any()
    single = minitx.run(model, tokens, edits={("attn_out", 1): np.zeros_like})
    assert (single["attn_out", 0] == plain["attn_out", 0]).all()
    assert not single["attn_out", 1].any()
    general = {"v": lambda x: x * 0.5}
    special = {("v", 0): lambda x: x * 2}
    by_layer = minitx.run(model, tokens, edits=special | {("v", 1): general["v"]})
    for edits in (general | special, special | general):
        trace = minitx.run(model, tokens, edits=edits)
        assert (trace["v", 0] == plain["v", 0] * 2).all()
        assert same_bits(trace, by_layer)


def test_patching_one_text_into_another(model):
    """The residual stream of a second text, put in before layer 1, gives that text's output."""
    a, b = tiny.ids(model, 6, seed=1), tiny.ids(model, 6, seed=2)
    other = minitx.run(model, b)
    patched = minitx.run(model, a, edits={("resid_pre", 1): other["resid_pre", 1]})
    assert (patched["resid_post", 1] == other["resid_post", 1]).all()
    assert (patched["resid_post", 0] == minitx.run(model, a)["resid_post", 0]).all()


def test_a_model_without_positions(model):
    tokens, _ = batch(model)
    blank = tiny.with_weights(model, W_pos=np.zeros_like(model.weights.W_pos))
    edited = minitx.run(model, tokens, edits={"pos_embed": np.zeros_like})
    assert same_bits(edited, minitx.run(blank, tokens))


def test_edited_scores_go_through_softmax_and_edited_patterns_do_not(either):
    """In an encoder-decoder those of the source."""
    tokens, given = tiny.texts(either, (7, 7), (7, 7))
    part = "" if either.encoder is None else "cross_"
    pattern, v, z = (f"{part}{name}" for name in ("pattern", "v", "z"))

    def only_first(scores):
        scores[..., 1:] = -np.inf
        return scores

    forced = minitx.run(either, tokens, edits={f"{part}scores": only_first}, **given)
    assert (forced[pattern, 0][..., 0] == 1).all() and not forced[pattern, 0][..., 1:].any()
    first = np.broadcast_to(forced[v, 0][:, :, :1], forced[z, 0].shape)
    np.testing.assert_allclose(forced[z, 0], first, **CLOSE)
    flat = minitx.run(either, tokens, edits={pattern: lambda p: np.full_like(p, 1 / 7)}, **given)
    mean = np.broadcast_to(flat[v, 0].mean(2, keepdims=True), flat[z, 0].shape)
    np.testing.assert_allclose(flat[z, 0], mean, **CLOSE)


def test_norms_use_the_mean_and_the_scale_that_they_are_given(model):
    outside = "ln_final" if model.config.pre_norm else "ln_embed"
    assert_norm(model, model.weights, outside, f"{outside}_mean", f"{outside}_scale")
    for name, layer in (("ln1", 0), ("ln2", 1)):
        mean, scale = (f"{name}_mean", layer), (f"{name}_scale", layer)
        assert_norm(model, model.layers[layer], (name, layer), mean, scale)


def assert_norm(model, weights, norm, mean, scale):
    """One norm's output is that of the mean and the scale that are put in; its points by key."""
    name = name_of(norm)
    w, b = getattr(weights, f"{name}_w"), getattr(weights, f"{name}_b")
    tokens = tiny.ids(model, 2, 6)
    plain = minitx.run(model, tokens)
    x = (plain[norm] - b) / w / plain[scale][..., None] + plain[mean][..., None]
    frozen = minitx.run(model, tokens, edits={scale: 2.0, mean: np.full((2, 6), 0.25)})
    expected = (x - 0.25) * 2 * w + b
    np.testing.assert_allclose(frozen[norm], expected, rtol=0, atol=1e-10)  # x was divided by w
    assert (frozen[scale] == 2).all() and (frozen[mean] == 0.25).all()


def test_an_edit_function_gets_a_copy_of_its_own(model):
    tokens = tiny.ids(model, 5)
    calls = []

    def spoil(x):
        before = x.copy()
        calls.append(before)
        x += 9
        return before

    edited = minitx.run(model, tokens, edits={"resid_pre": spoil, "q": spoil})
    assert same_bits(edited, minitx.run(model, tokens))
    assert len(calls) == 4


def test_logits_can_be_edited_too():
    for variant in ("gpt2-causal", "bert-sequence"):
        model = tiny.load(variant)
        assert not minitx.run(model, [4, 5], ["logits"], {"logits": np.zeros_like})["logits"].any()


# --- keys and values that are refused


ABSENT = {  # variant -> key, and what is said
    "bert-masked": [
        ("patern", "unknown point 'patern'; closest: pattern.*; this model has: embed, .*logits$"),
        ("resid", "unknown point 'resid'; closest: .*resid_pre"),
        (("Q", 0), "unknown point 'Q'"),
        (7, "unknown point 7"),
        ("blocks.0.attn.hook_z", r"point 'blocks.0.attn.hook_z'; minitx calls it \('z', 0\)"),
        ("bert.encoder.layer.1.output.dense", r"minitx calls it \('mlp_out', 1\)"),
        (("q", 2), r"no point \('q', 2\) \(bert, layers 0 to 1\)"),
        (("q", -3), r"no point \('q', -3\) \(bert, layers 0 to 1\)"),
        (("q", "0"), r"no point \('q', '0'\)"),
        (("embed", 0), r"no point \('embed', 0\) \(bert\)"),
        ("ln_final", r"no point 'ln_final' \(bert; it needs a final norm\)"),
        ("cross_q", r"no point 'cross_q' \(bert, layers 0 to 1; it needs an encoder\)"),
        ("enc_q", r"no point 'enc_q' \(bert, layers 0 to 1; it needs an encoder\)"),
    ],
    "gpt2-causal": [
        ("ln_embed_scale", r"no point 'ln_embed_scale' \(gpt2; it needs a norm of the embeddin"),
        ("type_embed", r"no point 'type_embed' \(gpt2; it needs token types\)"),
    ],
    "distilbert-masked": [
        ("type_embed", r"no point 'type_embed' \(distilbert; it needs token types\)")
    ],
    "bert-bare": [("logits", r"this checkpoint \(BertModel\) has no head that gives logits")],
    "t5-relu": [
        ("ln1_mean", r"no point 'ln1_mean' \(t5, layers 0 to 1; it needs norms with a mean"),
        ("pos_embed", r"no point 'pos_embed' \(t5; it needs a position table\)"),
        ("pre_linear", r"no point 'pre_linear' \(t5, layers 0 to 1; it needs a gated MLP"),
    ],
    "bart-causal": [
        ("pos_bias", r"no point 'pos_bias' \(bart; it needs a bias by distance\)"),
        ("enc_logits", "unknown point 'enc_logits'; closest: "),
        ("cross_mlp_out", "unknown point 'cross_mlp_out'; closest: .*mlp_out"),
        ("enc_cross_q", "unknown point 'enc_cross_q'; closest: .*cross_q"),
    ],
    "marian-odd": [
        ("enc_ln_embed", r"no point 'enc_ln_embed' \(marian; it needs a norm of the em")
    ],
    "t5-encoder": [("logits", r"checkpoint \(T5EncoderModel\) has no head that gives logits")],
}


@pytest.mark.parametrize("variant, row", [(x, row) for x in ABSENT for row in ABSENT[x]])
def test_points_that_are_not_there(variant, row):
    """In a single stack and in an encoder-decoder."""
    key, message = row
    model = tiny.load(variant)
    inputs = {} if model.encoder is None else {"source": [7, 8]}
    for call in (
        lambda: minitx.run(model, [5, 6], [key], **inputs),
        lambda: minitx.run(model, [5, 6], [], {key: np.zeros_like}, **inputs),
        lambda: minitx.cost(model, [5, 6], [key], **inputs),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    "edit,message",
    [
        (
            np.zeros((3, 3)),
            r"the edit of \('q', 1\) returns float64 \[3, 3\]; wanted float64 \[1, 3, 2, 6\]",
        ),
        (lambda x: x[:, :2], r"returns float64 \[1, 2, 2, 6\]; wanted float64 \[1, 3, 2, 6\]"),
        (
            lambda x: x[:, 1:2],
            r"returns float64 \[1, 1, 2, 6\]; wanted float64 \[1, 3, 2, 6\], \[3, 2, 6\] for all",
        ),
        (
            lambda x: np.ma.masked_less(x, 0),
            r"edit of \('q', 1\): \d+ entries .* are masked",
        ),
        (lambda x: x[0, 0], r"returns float64 \[2, 6\]; wanted .*, or one number"),
        (lambda x: [0.0], r"returns float64 \[1\]; wanted float64 \[1, 3, 2, 6\]"),
        (lambda x: [[1], [2, 3]], r"returns object \[2\]; wanted float64 \[1, 3, 2, 6\]"),
        (lambda x: x.astype(object), r"returns object \[1, 3, 2, 6\]; wanted float64"),
        (lambda x: None, r"the edit of \('q', 1\) returns object \[\]; wanted float64"),
        (None, r"returns object \[\]; wanted"),
        ("zero", r"returns <U4 \[\]; wanted float64"),
        (lambda x: x + 1j, r"returns complex128 .*; wanted float64"),
        (lambda x: np.zeros((2, *x.shape)), r"returns float64 \[2, 1, 3, 2, 6\]; wanted"),
    ],
)
def test_edits_that_do_not_fit(edit, message):
    with pytest.raises(ValueError, match=message):
        minitx.run(tiny.load("bert-masked"), [5, 6], edits={("q", 1): edit})


def test_one_number_stands_for_all_of_a_point():
    model = tiny.load("gpt2-causal")
    for number in (0, 2.5, np.float32(1), np.array(True)):
        trace = minitx.run(model, [5, 6], ["z", "logits"], {("z", 0): number})
        assert (trace["z", 0] == number).all() and not (trace["z", 1] == number).any()
        array = {("z", 0): np.full((1, 3, 2, 6), float(number))}
        assert same_bits(trace, minitx.run(model, [5, 6], ["z", "logits"], array))
    rows = model.weights.W_pos[3:5]
    trace = minitx.run(model, [[5, 6], [7, 8]], edits={"pos_embed": rows})
    assert (trace["pos_embed"] == rows).all() and trace["pos_embed"].shape == (2, *rows.shape)


def test_a_pair_is_one_point_where_a_list_is_expected():
    model = tiny.load("gpt2-causal")
    assert [*minitx.run(model, [5, 6], ("q", 1))] == [("q", 1)]
    for keep, message in (
        (("q", 7), r"no point \('q', 7\) \(gpt2, layers 0 to 1\)"),
        (("patern", 1), "unknown point 'patern'; closest: pattern"),
        (7, "keep is 7; wanted names of points, or pairs"),
        ([["q", 1]], r"unknown point \['q', 1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            minitx.run(model, [5, 6], keep)
    with pytest.raises(ValueError, match=r"edits is \['z'\]; wanted a dictionary"):
        minitx.run(model, [5, 6], [], ["z"])


def test_a_name_is_loaded_where_a_model_runs():
    model = minitx.load("tiny-gpt2")
    by_name = minitx.run("tiny-gpt2", "A dog", "logits")
    assert same_bits(by_name, minitx.run(model, "A dog", "logits"))
    ids = minitx.generate(minitx.weights.find("tiny-gpt2"), "A dog", 3)
    assert ids.tolist() == minitx.generate(model, "A dog", 3).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda model: minitx.forward(model, [5]),
        lambda model: minitx.logits(model, np.zeros((1, 1, 128))),
        lambda model: minitx.final_norm(model, np.zeros((1, 1, 128))),
        lambda model: minitx.gradients(model, [5], [6]),
        lambda model: minitx.sweep(model, [5], [6], np.max),
        lambda model: minitx.cost(model, [5]),
        minitx.check,
        lambda model: minitx.similarity(model, [], "A cat"),
        lambda model: minitx.resized(model, 16, 24),
        circuits.detect_heads,
        circuits.composition,
        circuits.in_context_score,
        lambda model: circuits.logit_attribution(model, [5, 6], 7),
        lambda model: circuits.patch(model, [5], [6], (7, 8)),
        lambda model: circuits.path_patch(model, [5], [6], (7, 8), "embed"),
        lambda model: circuits.attribute(model, [5], [6], (7, 8)),
        lambda model: circuits.find(model, [([5], [6])], (7, 8)),
    ],
)
def test_a_name_in_place_of_a_model_is_told(call):
    message = r"model is 'tiny-gpt2' \(str\); expected a Model, as minitx.load gives it"
    with pytest.raises(ValueError, match=message):
        call("tiny-gpt2")


def test_what_is_no_model_is_told():
    for call in (minitx.run, minitx.generate):
        with pytest.raises(ValueError, match=r"model is None \(NoneType\); expected a Model"):
            call(None, "A dog")
    with pytest.raises(TypeError, match=r"minitx.trace is a module; minitx.run\(model, text\)"):
        minitx.trace(minitx.load("tiny-gpt2"), "A dog")


def test_asking_a_trace_for_what_it_does_not_hold():
    trace = minitx.run(tiny.load("gpt2-causal"), [5, 6], ["z", ("q", 1), "embed"])
    layers = r"recorded in layers \[0, 1\]: trace\['z', layer\] or trace.stack\('z'\)"
    for key in ("z", ("z", 2), ("z", -3)):
        with pytest.raises(KeyError, match=layers):
            trace[key]
    with pytest.raises(KeyError, match=r"\('k', 0\) is not in this trace; recorded: embed, z, q"):
        trace["k", 0]
    with pytest.raises(KeyError, match=r"'logits' is not in this trace; recorded: nothing"):
        minitx.run(tiny.load("gpt2-causal"), [5, 6], [])["logits"]
    with pytest.raises(KeyError, match=r"'q' was kept in layers \[1\]; stack needs all of them"):
        trace.stack("q")
    with pytest.raises(KeyError, match=r"'embed' was kept in layers \[\]"):
        trace.stack("embed")


def test_a_trace_is_a_mapping_from_points_to_arrays():
    trace = minitx.run(tiny.load("gpt2-causal"), [5, 6], ["z", ("q", 1), "embed"])
    keys = ["embed", ("z", 0), ("q", 1), ("z", 1)]
    assert isinstance(trace, Mapping) and len(trace) == 4
    assert [*trace] == [*trace.keys()] == keys
    assert [id(trace[key]) for key in keys] == [*map(id, trace.values())]
    assert [(key, id(x)) for key, x in trace.items()] == [(key, id(trace[key])) for key in keys]
    assert trace.get("k") is None and trace.get(("q", 0)) is None
    other = minitx.run(tiny.load("gpt2-causal"), [5, 6], ["z", ("q", 1), "embed"])
    assert trace != other and len({trace, other}) == 2


def test_a_point_is_in_a_trace_if_it_was_recorded_in_that_layer_or_by_name_in_any():
    trace = minitx.run(tiny.load("gpt2-causal"), [5, 6], ["z", ("q", 1), "embed"])
    for key in ("embed", "z", "q", ("q", 1), ("q", -1), ("z", 0), ("z", -2)):
        assert key in trace
    for key in ("k", "logits", ("q", 0), ("q", -2), ("z", 2), ("z", -3), ("embed", 0), "", 7):
        assert key not in trace


def test_layer_minus_one_is_the_models_last():
    model = tiny.load("gpt2-causal")
    trace = minitx.run(model, [5, 6], ["z"])
    assert trace["z", -1] is trace["z", 1] and trace["z", -2] is trace["z", 0]
    first = minitx.run(model, [5, 6], keep=("z", -2))
    assert [*first] == [("z", 0)]
    with pytest.raises(KeyError, match=r"\('z', -1\) is not in this trace"):
        first["z", -1]  # the last layer of the model, not the last that was recorded
    edits = [{("z", layer): np.zeros_like} for layer in (-1, 1)]
    ends = [minitx.run(model, [5, 6], "logits", edits=edit)["logits"] for edit in edits]
    assert np.array_equal(*ends)
    assert not np.array_equal(ends[0], minitx.run(model, [5, 6])["logits"])


def test_labels_are_the_pieces_of_the_tokens(bundled):
    trace = minitx.run(bundled, ["The dog ran.", "It rained all day."], keep=[])
    assert trace.labels.shape == trace.tokens.shape
    for labels, tokens in zip(trace.labels, trace.tokens, strict=True):
        assert labels.tolist() == bundled.tokenizer.pieces(tokens)
    assert "".join(trace.labels[1][trace.valid[1]]) == "<s>It rained all day.</s>"
    with pytest.raises(FileNotFoundError, match="no tokenizer in .*gpt2-causal"):
        _ = minitx.run(tiny.load("gpt2-causal"), [5, 6], keep=[]).labels


def test_types_have_their_cost():
    model = tiny.load("gpt2-causal")
    trace = minitx.run(model, [1, 2], types=[0, 3])
    assert "type_embed" in trace
    assert trace.nbytes == minitx.cost(model, [1, 2], types=[0, 3])


def test_a_text_brings_its_own_padding_and_types():
    """Arguments that would be ignored are refused."""
    model = tiny.load("roberta-masked")
    message = "valid and types are for token ids; a text has its own"
    with pytest.raises(ValueError, match=message):
        minitx.run(model, "a text", valid=[True])
