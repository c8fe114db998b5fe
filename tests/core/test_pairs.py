"""What must hold of a forward pass of two stacks: padding, masks, precision; inputs refused.

As test_forward.py has it of one stack. Distances are of float64 runs: measured at most 4e-15 of
values up to about 10, bound 1e-12.
"""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import parity
import pytest
import tiny
from spelling import spelling

import minitx
from minitx.points import name_of

ALL = [*tiny.PAIRS, "bart-scaled", "marian-odd", "t5-relu", "t5-gated-tied"]
CLOSE = dict(rtol=0, atol=1e-12)
SIDES = [*product(["left", "right"], repeat=2)]  # of the target's and of the source's padding


@pytest.fixture(params=ALL)
def model(request):
    return tiny.load(request.param)


@pytest.mark.parametrize("side,source_side", SIDES)
def test_what_lies_under_the_padding_changes_no_bit(model, side, source_side):
    outputs = []
    tokens, given = tiny.texts(model, side=side, source_side=source_side)
    for fill in (0, 33):
        filled = np.where(given["valid"], tokens, fill)
        source = np.where(given["source_valid"], given["source"], fill)
        x = minitx.forward(model, filled, **given | {"source": source})
        outputs.append(x[given["valid"]])
    assert (outputs[0] == outputs[1]).all()


def test_padding_of_the_source_hides_keys_in_the_encoder_and_in_cross_attention(model):
    """That of the decoder hides keys in its self-attention only."""
    tokens, given = tiny.texts(model)
    trace = minitx.run(model, tokens, **given)
    source = given["source_valid"][:, None, None]
    own = given["valid"][:, None, None] & np.tri(7, dtype=bool)
    visible = {"enc_": source, "cross_": source, "": own}
    for part, keys in visible.items():
        stack = model.encoder if part == "enc_" else model
        for i in range(stack.config.n_layers):
            scores, pattern = trace[f"{part}scores", i], trace[f"{part}pattern", i]
            assert (np.isneginf(scores) == ~np.broadcast_to(keys, scores.shape)).all()
            assert not pattern[np.isneginf(scores)].any()
            some = np.broadcast_to(keys.any(-1), pattern.shape[:-1])
            np.testing.assert_allclose(pattern.sum(-1), some, **CLOSE)
    # rows of padding look at the source too, and nothing comes of it
    assert trace["cross_pattern", 0][1, :, 0].any() and not given["valid"][1, 0]


def near(q, k):
    return abs(q - k) < 2


MASKS = {"mask": ("", 7, 7), "enc_mask": ("enc_", 8, 8), "cross_mask": ("cross_", 7, 8)}


@pytest.mark.parametrize("name", MASKS)
def test_each_mask_hides_keys_in_its_own_attention(model, name):
    tokens, given = tiny.texts(model, (7, 7), (8, 8))
    part, T, S = MASKS[name]
    stack = model.encoder if part == "enc_" else model
    mask = np.random.default_rng(0).random((2, stack.config.n_heads, T, S)) < 0.6
    plain = minitx.run(model, tokens, **given)
    masked = minitx.run(model, tokens, **given, **{name: mask})
    for other in ("", "enc_", "cross_"):
        scores, before = masked[f"{other}scores", 0], plain[f"{other}scores", 0]
        hidden = ~mask if other == part else np.zeros(scores.shape, bool)
        assert (np.isneginf(scores) == (hidden | np.isneginf(before))).all()
    hidden = ~mask & np.isfinite(plain[f"{part}scores", 0])
    assert hidden.any() and not masked[f"{part}pattern", 0][~mask].any()
    assert abs(masked["resid_post", -1] - plain["resid_post", -1]).max() > 1e-3


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_function_counts_tokens_of_each_text(model, name):
    """In cross-attention q counts the decoder's tokens, k the source's, padding left out."""
    part, _, _ = MASKS[name]
    tokens, given = tiny.texts(model, source_side="right")
    trace = minitx.run(model, tokens, **given, **{name: near})
    number = {n: np.arange(n) for n in (7, 4, 5, 8)}
    for i, (T, S) in enumerate(((7, 5), (4, 8))):
        own, of_source = slice(7 - T, 7), slice(S)
        q, k = {"": (T, T), "enc_": (S, S), "cross_": (T, S)}[part]
        mask = near(number[q][:, None], number[k])
        row = {"source": given["source"][i, of_source], name: mask}
        alone = minitx.run(model, tokens[i, own], **row)
        for key in ((f"{part}pattern", 0), ("resid_post", model.config.n_layers - 1)):
            x = parity.text_only(trace[key][i], key, {"T": own, "S": of_source})
            np.testing.assert_allclose(x, alone[key][0], **CLOSE)
        assert not alone[f"{part}pattern", 0][0][:, ~mask].any()


def test_a_row_that_sees_nothing_of_the_source_takes_nothing(model):
    tokens, given = tiny.texts(model)
    mask = np.ones((7, 8), bool)
    mask[2] = False
    trace = minitx.run(model, tokens, **given, cross_mask=mask)
    for i, layer in enumerate(model.layers):
        assert not trace["cross_pattern", i][:, :, 2].any()
        assert not trace["cross_z", i][:, :, 2].any()
        bias = 0 if layer.cross.b_O is None else layer.cross.b_O
        assert (trace["cross_out", i][:, 2] == bias).all()
    assert all(np.isfinite(x).all() for key, x in trace.items() if "scores" not in key[0])


def test_a_decoder_sees_no_later_token_and_all_of_the_source(model):
    tokens, source = tiny.ids(model, 7), tiny.ids(model.encoder, 8, seed=1)
    x = minitx.forward(model, tokens, source=source)[0]
    later = tokens.copy()
    later[4:] = (later[4:] + 7) % 50
    np.testing.assert_allclose(minitx.forward(model, later, source=source)[0, :4], x[:4], **CLOSE)
    for i in (0, 7):
        other = source.copy()
        other[i] = (other[i] + 7) % 50
        assert (abs(minitx.forward(model, tokens, source=other)[0] - x).max(-1) > 1e-6).all()


# --- the encoder by itself


def test_the_encoder_is_a_model_of_its_own(model):
    """It gives, run alone, what it gives inside; it has no head and reads no source."""
    encoder = model.encoder
    tokens, given = tiny.texts(model)
    inside = minitx.run(model, tokens, **given)
    alone = minitx.run(encoder, given["source"], valid=given["source_valid"])
    assert len(alone) == sum(name_of(key).startswith("enc_") for key in inside)
    for key, x in alone.items():
        name = f"enc_{key}" if isinstance(key, str) else (f"enc_{key[0]}", key[1])
        assert np.array_equal(inside[name], x), key
    x = minitx.forward(encoder, given["source"], valid=given["source_valid"])
    last = "enc_ln_final" if encoder.config.pre_norm else ("enc_resid_post", -1)
    assert np.array_equal(inside[last], x)
    assert encoder.config == model.config.encoder and encoder.encoder is None
    assert not encoder.config.causal and encoder.config.task_head is None
    with pytest.raises(ValueError, match="no head that gives logits"):
        minitx.logits(encoder, x)


def test_what_the_decoder_reads_is_the_encoders_last_stream(model):
    """Put into the place of another source's, it gives that source's outputs."""
    tokens, given = tiny.texts(model, (7, 7), (8, 8))
    other = given | {"source": given["source"][::-1]}
    last = "enc_ln_final" if model.config.pre_norm else ("enc_resid_post", -1)
    expected = minitx.run(model, tokens, **other)
    patched = minitx.run(model, tokens, **given, edits={last: expected[last]})
    for key in (("cross_k", 0), ("cross_v", -1), ("resid_post", -1)):
        assert np.array_equal(patched[key], expected[key])


# --- positions


@pytest.mark.parametrize("variant", ["bart-causal", "bart-untied", "marian-shared"])
def test_positions_begin_at_the_familys_row_in_both_stacks(variant):
    """BART's at row 2, whatever the padding id is; and its id inside a text takes a position."""
    model = tiny.load(variant)
    first = 2 if model.config.model_type == "bart" else 0
    pad = model.config.pad_id
    trace = minitx.run(model, [2, pad, 5], source=[pad, 7, 8, pad])
    assert (trace["pos_embed"][0] == model.weights.W_pos[first:][:3]).all()
    assert (trace["enc_pos_embed"][0] == model.encoder.weights.W_pos[first:][:4]).all()
    assert abs(trace["pos_embed"][0] - trace["enc_pos_embed"][0, :3]).max() > 0.1 or first == 0
    moved = minitx.run(model, [2, pad, 5], source=[7, 8], positions=[4, 0, 9])
    assert (moved["pos_embed"][0] == model.weights.W_pos[[first + 4, first, first + 9]]).all()
    assert (moved["enc_pos_embed"][0] == model.encoder.weights.W_pos[first:][:2]).all()


def test_t5_reads_texts_of_any_length_the_others_say_how_many_tokens_they_read():
    long = np.arange(5, 35)
    assert minitx.forward(tiny.load("t5-relu"), long, source=long).shape == (1, 30, 18)
    for variant in ("bart-causal", "marian-shared"):
        for tokens, source in ((long, [4]), ([4], long)):
            with pytest.raises(ValueError, match="30 tokens; this model reads at most 12"):
                minitx.forward(tiny.load(variant), tokens, source=source)


# --- targets


def test_a_target_of_text_is_shifted_ids_are_taken_as_they_are():
    """The decoder says each token from those before it: start token, text, no end token."""
    model = spelling("bart-causal", start_id=9)
    trace = minitx.run(model, ["5 6 7", "8"], source=["11 12", "13 14 15"])
    assert trace.tokens.tolist() == [[9, 5, 6, 7], [9, 8, 1, 1]]
    assert trace.valid.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert trace.source.tolist() == [[11, 12, 2, 1], [13, 14, 15, 2]]
    ids = minitx.run(model, [[9, 5, 6, 7]], source=[[11, 12, 2]])
    assert ids.tokens.tolist() == [[9, 5, 6, 7]]
    np.testing.assert_allclose(ids["logits"][0], trace["logits"][0], **CLOSE)
    nothing = minitx.run(model, None, source=["11 12", "13 14 15"])
    assert nothing.tokens.tolist() == [[9], [9]]
    np.testing.assert_allclose(nothing["logits"][:, 0], trace["logits"][:, 0], **CLOSE)
    assert trace.source_labels.tolist() == [["11", "12", "2", "1"], ["13", "14", "15", "2"]]
    assert trace.labels[1].tolist() == ["9", "8", "1", "1"]
    encoded = model.encode(["11 12"])
    assert encoded.tokens.tolist() == [[11, 12, 2]]


def test_a_classifier_reads_the_source_again_and_judges_its_last_token():
    """As the library, whose target is the source behind the start token: the end token's row."""
    model = spelling("bart-sequence", start_id=9)
    trace = minitx.run(model, None, source=["11 12", "13 14 15"])
    assert trace.tokens.tolist() == [[9, 11, 12, 1], [9, 13, 14, 15]]
    assert trace["logits"].shape == (2, 4)
    head = minitx.logits(model, trace["resid_post", -1][:1, 2:3])
    np.testing.assert_allclose(trace["logits"][0], head[0], **CLOSE)
    ids = minitx.run(model, None, source=[[11, 12, 2]])
    np.testing.assert_allclose(ids["logits"][0], trace["logits"][0], **CLOSE)


@pytest.mark.parametrize(
    "tokens,source,message",
    [
        (None, [[11, 12], [13, 2]], r"the texts have 0 or 1 end tokens \(id 2\); the head reads"),
        (None, [[11, 12]], r"the texts have 0 end tokens \(id 2\)"),
        ([9, 11], [11, 12, 2], r"sources have \[3\] tokens, the decoder's texts \[2\]"),
    ],
)
def test_a_classifier_without_one_end_to_read_says_so(tokens, source, message):
    """The library raises an error for each of these too."""
    with pytest.raises(ValueError, match=message):
        minitx.run(tiny.load("bart-sequence"), tokens, source=source)


# --- input that is refused


def test_an_empty_target_is_refused():
    model = spelling("bart-causal", start_id=9)
    model = replace(model, tokenizer=SimpleNamespace(encode=lambda text: np.array([], int)))
    trace = minitx.run(model, "", source=[[5, 6]])
    assert trace.tokens.tolist() == [[9]]  # the start token is always there
    with pytest.raises(ValueError, match="valid and types are for token ids; a text has its own"):
        minitx.run(model, "5", source=[[5, 6]], valid=[[1]])
