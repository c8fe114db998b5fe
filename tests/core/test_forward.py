"""What must hold of every forward pass: padding, masks, positions, types, precision; bad input.

Distances are of float64 runs unless said otherwise. Numbers of values up to about 10 pass some
twenty roundings, in an order that may differ with the shape of a batch: measured at most 2e-15 of
the largest value, bound 1e-12.
"""

import warnings

import numpy as np
import parity
import pytest
import tiny

import minitx

ALL = [
    *tiny.ONE_EACH,
    "bert-sequence",
    "roberta-sequence",
    "gpt2-sequence",
    "gpt2-inverse-layer",
    "distilbert-bare",
    "bert-question",
    "electra-choice",
]
CLOSE = dict(rtol=0, atol=1e-12)


@pytest.fixture(params=ALL)
def model(request):
    return tiny.load(request.param)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing(model, side):
    """Texts of unequal length in one batch = each alone: residual stream, attention and logits."""
    rows = [tiny.ids(model, n, seed=n) for n in (4, 9, 1, 7)]
    # wider than any text may be long
    tokens, valid, where = tiny.padded(rows, side, fill=9, width=15)
    batch = minitx.run(model, tokens, valid=valid)
    for i, row in enumerate(rows):
        alone = minitx.run(model, row)
        for key, x in alone.items():
            part = parity.text_only(batch[key][i], key, {"T": where[i]})
            np.testing.assert_allclose(part, x[0], **CLOSE, err_msg=str(key))


@pytest.mark.parametrize("side", ["left", "right"])
def test_what_lies_under_the_padding_changes_no_bit(model, side):
    rows = [tiny.ids(model, n, seed=n) for n in (3, 8, 5)]
    outputs = []
    for fill in (0, 33):
        tokens, valid, _ = tiny.padded(rows, side, fill)
        outputs.append(minitx.forward(model, tokens, valid=valid)[valid])
    assert (outputs[0] == outputs[1]).all()


def test_padding_inside_a_text_takes_no_position_either(model):
    row = tiny.ids(model, 8)
    valid = np.array([0, 1, 1, 0, 0, 1, 1, 0], bool)
    x = minitx.forward(model, row, valid=valid)
    alone = minitx.forward(model, row[valid])
    np.testing.assert_allclose(x[0, valid], alone[0], **CLOSE)


def near(q, k):
    return abs(q - k) < 3


def test_a_mask_function_is_its_array_and_counts_tokens_not_columns(model):
    rows = [tiny.ids(model, n, seed=n) for n in (9, 5)]
    for side in ("left", "right"):
        tokens, valid, where = tiny.padded(rows, side)
        batch = minitx.run(model, tokens, valid=valid, mask=near)
        for i, row in enumerate(rows):
            number = np.arange(len(row))
            mask = near(number[:, None], number)
            alone = minitx.run(model, row, mask=mask)
            pattern = batch["pattern", 1][i][:, where[i], where[i]]
            np.testing.assert_allclose(pattern, alone["pattern", 1][0], **CLOSE)
            resid_post = batch["resid_post", 1][i, where[i]]
            np.testing.assert_allclose(resid_post, alone["resid_post", 1][0], **CLOSE)
            assert not alone["pattern", 1][0][:, ~mask].any()
    free = minitx.run(model, rows[0])["resid_post", 1]
    masked = minitx.run(model, rows[0], mask=near)["resid_post", 1]
    assert abs(free - masked).max() > 1e-3


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (7, 7), (1, 7, 7), (3, 7, 7), (2, 1, 1, 7), (2, 3, 7, 7)]
)
def test_masks_of_every_shape_that_broadcasts(shape):
    model = tiny.load("bert-masked")
    tokens = tiny.ids(model, 2, 7)
    mask = np.random.default_rng(0).random(shape) < 0.6
    full = np.broadcast_to(mask, (2, 3, 7, 7))
    scores = minitx.run(model, tokens, mask=mask)["scores", 0]
    assert (np.isneginf(scores) == ~full).all()
    assert (scores[full] == minitx.run(model, tokens)["scores", 0][full]).all()


def test_attention_rows_sum_to_one_or_see_nothing(model):
    """A hidden key has score -inf and attention 0; a row without keys is zeros; nothing is NaN."""
    tokens, valid, _ = tiny.padded([tiny.ids(model, n, seed=n) for n in (8, 3)], "left")
    mask = np.ones((8, 8), bool)
    mask[5] = mask[2] = False
    trace = minitx.run(model, tokens, valid=valid, mask=mask)
    seen = np.broadcast_to(valid[:, None, None] & mask, trace["pattern", 0].shape)
    if model.config.causal:
        seen = seen & np.tri(8, dtype=bool)
    for i in range(2):
        assert (np.isneginf(trace["scores", i]) == ~seen).all()
        assert not trace["pattern", i][~seen].any()
        np.testing.assert_allclose(trace["pattern", i].sum(-1), seen.any(-1), **CLOSE)
        assert not trace["z", i][:, :, [2, 5]].any()
        assert (trace["attn_out", i][:, 5] == model.layers[i].b_O).all()
    nothing = minitx.run(model, tokens, valid=np.zeros_like(valid))  # even a batch of padding alone
    for run in (trace, nothing):
        assert all(np.isfinite(x).all() for key, x in run.items() if key[0] != "scores")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_precision_from_end_to_end(dtype):
    """Every point has the model's precision, with padding and a mask too."""
    for variant in (*ALL, *tiny.PAIRS, "bart-scaled", "marian-odd", "t5-relu", "t5-gated-tied"):
        model = tiny.load(variant, dtype)
        tokens, given = tiny.texts(model)
        trace = minitx.run(model, tokens, **given, mask=near)
        assert {x.dtype for x in trace.values()} == {np.dtype(dtype)}
        assert minitx.forward(model, tokens, **given).dtype == dtype


# --- positions and types


def test_explicit_positions(model):
    """The default positions change no bit, shifted ones equal a shifted table, all can be read."""
    cfg, W_pos = model.config, model.weights.W_pos
    rows = [tiny.ids(model, n, seed=n) for n in (5, 8)]
    tokens, valid, where = tiny.padded(rows, "left")
    x = minitx.forward(model, tokens, valid=valid)
    default = np.maximum(np.cumsum(valid, 1) - 1, 0)
    explicit = minitx.forward(model, tokens, valid=valid, positions=default)
    assert all((x[i, where[i]] == explicit[i, where[i]]).all() for i in range(2))
    slid = tiny.with_weights(model, W_pos=np.roll(W_pos, -1, 0))
    shifted = minitx.forward(model, rows[1], positions=np.arange(8) + 1)
    assert (shifted == minitx.forward(slid, rows[1])).all()
    order = np.random.default_rng(3).permutation(cfg.n_ctx)
    tokens = tiny.ids(model, 2, cfg.n_ctx)
    pos_embed = minitx.run(model, tokens, ["pos_embed"], positions=order)["pos_embed"]
    assert (pos_embed == W_pos[order + cfg.offset]).all()
    pos_embed = minitx.run(model, [5, 6], ["pos_embed"])["pos_embed"]
    assert pos_embed[0, 0].tolist() == W_pos[cfg.offset].tolist()


@pytest.mark.parametrize("variant", ["roberta-masked", "roberta-relu-pad3", "roberta-bare"])
def test_a_roberta_pad_id_takes_no_position_even_where_it_is_valid(variant):
    model = tiny.load(variant)
    pad = model.config.no_position_id
    W_pos = model.weights.W_pos
    pos_embed = minitx.run(model, [pad, 9, pad, 8, 7], ["pos_embed"])["pos_embed"][0]
    assert (pos_embed == W_pos[[pad, pad + 1, pad, pad + 2, pad + 3]]).all()


@pytest.mark.parametrize("variant", ["bert-masked", "roberta-masked", "roberta-sequence"])
def test_type_row_0_is_added_when_no_types_are_given(variant):
    model = tiny.load(variant)
    W_type = model.weights.W_type
    tokens = tiny.ids(model, 2, 5)
    trace = minitx.run(model, tokens)
    with_zeros = minitx.forward(model, tokens, types=np.zeros((2, 5), int))
    assert (minitx.forward(model, tokens) == with_zeros).all()
    assert (trace["type_embed"] == W_type[0]).all() and W_type[0].any()
    total = trace["embed"] + trace["pos_embed"] + trace["type_embed"]
    np.testing.assert_allclose(trace["ln_embed_mean"], total.mean(-1), **CLOSE)
    if len(W_type) > 1:
        other = minitx.run(model, tokens, types=[[0, 0, 1, 1, 1], [0, 1, 0, 1, 0]])
        assert (other["type_embed"][0, 2] == W_type[1]).all()
        assert abs(trace["ln_embed"] - other["ln_embed"]).max() > 0.1


def test_gpt2_types_add_word_embeddings_only_when_given():
    model = tiny.load("gpt2-causal")
    tokens, types = tiny.ids(model, 5), tiny.ids(model, 5, seed=4)
    added = model.weights.W_E[types]
    with_types = minitx.run(model, tokens, types=types)
    without = minitx.run(model, tokens)
    assert (with_types["type_embed"][0] == added).all()
    assert "type_embed" not in without
    assert (without["resid_pre", 0] == without["embed"] + without["pos_embed"]).all()
    expected = without["resid_pre", 0] + added
    np.testing.assert_allclose(with_types["resid_pre", 0], expected, **CLOSE)


# --- input that no model can take


def test_a_roberta_of_514_rows_reads_512_tokens(tmp_path):
    table = np.random.default_rng(0).normal(size=(514, 18)).astype(np.float32)
    longer = tiny.edited(roberta__embeddings__position_embeddings__weight=table)
    folder = tiny.make(tmp_path, "roberta-masked", longer, max_position_embeddings=514)
    model = minitx.load(folder)
    assert (minitx.run(model, [5] * 512, ["pos_embed"])["pos_embed"][0] == table[2:]).all()
    with pytest.raises(ValueError, match="513 tokens; this model reads at most 512"):
        minitx.forward(model, [5] * 513)


@pytest.mark.parametrize("variant", [*ALL, *tiny.PAIRS])
def test_input_is_not_changed(variant):
    model = tiny.load(variant)
    tokens, given = tiny.texts(model)
    given |= {"mask": np.ones((7, 7), bool), "positions": np.arange(7)}
    if model.encoder is not None:
        given |= {"cross_mask": np.ones((7, 8), bool), "enc_mask": np.ones((8, 8), bool)}
    arrays = [tokens, *given.values()]
    copies = [x.copy() for x in arrays]
    minitx.run(model, tokens, **given)
    assert all((x == copy).all() for x, copy in zip(arrays, copies))


def test_models_run_from_every_integer_type_and_from_lists(model):
    tokens = tiny.ids(model, 2, 6)
    expected = minitx.forward(model, tokens)
    assert (minitx.forward(model, tokens.tolist()) == expected).all()
    assert (minitx.forward(model, np.asfortranarray(tokens)) == expected).all()
    for dtype in ("u1", "i1", "u8", "i4"):
        assert (minitx.forward(model, tokens.astype(dtype)) == expected).all()
    assert (minitx.forward(model, tokens[0]) == minitx.forward(model, tokens[:1])).all()


@pytest.mark.parametrize(
    "variant, factor, place",
    [
        ("bert-masked", 1e18, "ln1 of layer 0"),
        ("bert-masked", 1e30, "ln_embed"),
        ("gpt2-causal", 1e18, "ln2 of layer 0"),
        ("t5-gated", 1e18, "ln2 of layer 0"),
    ],
)
def test_a_stream_that_overflows_is_an_error_that_names_the_layer(tmp_path, variant, factor, place):
    """Its variance is infinite, and the norm gave its bias alone: finite, and wrong."""

    def larger(tensors):
        return {name: (x * np.float32(factor)).astype("<f4") for name, x in tensors.items()}

    model = minitx.load(tiny.make(tmp_path, variant, larger))
    source = {} if model.encoder is None else {"source": [5, 6]}
    text = rf"the stream before {place} is NaN, infinite, or overflows float32 .* token \(0, 0\)"
    with np.errstate(over="ignore", invalid="warn"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=text):
            minitx.forward(model, [5, 6, 7], **source)


def test_a_head_that_overflows_is_an_error_of_its_norm(tmp_path):
    """Its norm would give its bias alone, the same scores for every word of every text."""
    large = tiny.edited(cls__predictions__transform__dense__weight=lambda x: x * np.float32(1e25))
    model = minitx.load(tiny.make(tmp_path, "bert-masked", large))
    x = minitx.forward(model, [5, 6, 7])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="the stream before ln_head is NaN, infinite, or over"):
            minitx.logits(model, x)


def test_the_second_text_s_overflow_is_found_in_its_layer():
    model = tiny.load("gpt2-causal")
    poison = {("resid_post", 1): lambda x: np.where(np.arange(2)[:, None, None] == 1, np.nan, x)}
    with pytest.raises(ValueError, match=r"before ln_final is NaN, .* token \(1, 0\)"):
        minitx.run(model, [[5, 6], [7, 8]], edits=poison)
    with np.errstate(invalid="ignore"):  # NaN to see who reads what
        x = minitx.run(model, [[5, 6], [7, 8]], edits=poison)["logits"]
    assert np.isfinite(x[0]).all() and np.isnan(x[1]).all()
