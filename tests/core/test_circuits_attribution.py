"""Logit attribution: writers' parts sum to the logit, in every family, and are what they say."""

import numpy as np
import pytest
import tiny

import minitx
from minitx import circuits
from minitx.heads import is_pooled

VARIANTS = sorted(path.parent.name for path in tiny.GOLDEN.glob("*/model*.safetensors"))
LIMIT = 1e-10  # of the largest part; measured: 2e-15
PLACE = 3


def given(model):
    """A random text, and what an encoder-decoder's decoder has said."""
    ids = tiny.ids(model, 7)
    if model.encoder is None:
        return ids, {}
    if is_pooled(model.config.task_head):  # it reads the decoder at the source's end token
        ids[4] = model.config.read_id
        return ids, {"prefix": tiny.ids(model, 7, seed=3)}
    return ids, {"prefix": tiny.ids(model, 5, seed=3)}


def logits(model, ids, options, edits=None):
    """The logits at PLACE, or of the whole text: [V]."""
    if options:
        trace = minitx.run(model, options["prefix"], "logits", edits, source=ids)
    else:
        trace = minitx.run(model, ids, "logits", edits)
    return trace["logits"][0] if is_pooled(model.config.task_head) else trace["logits"][0, PLACE]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_parts_sum_to_the_logit(variant):
    """Where the head is linear; where not, the gap and the sum are the logit, and it is said so."""
    model = tiny.load(variant)
    if not model.config.task_head:
        pytest.skip("without a task head")
    ids, options = given(model)
    y = logits(model, ids, options)
    has_more = model.weights.W_head is not None or model.weights.ln_head_w is not None
    is_linear = not has_more and not model.config.logit_cap
    for other in [None, 1][: len(y)]:
        for by_place in (False, True):
            table = circuits.logit_attribution(
                model, ids, 0, other, place=PLACE, by_place=by_place, **options
            )
            expected = y[0] if other is None else y[0] - y[1]
            assert table.linear == is_linear
            assert abs(table.logit - expected) < 1e-12
            assert abs(table.logits.sum() + table.gap - expected) < 1e-12
            error = abs(table.gap) / abs(table.logits).max()
            assert (error < LIMIT) == is_linear, error


@pytest.mark.parametrize("variant", ["gpt2-causal", "llama-grouped", "bert-token", "bart-causal"])
def test_a_heads_parts_by_key_sum_to_its_part(variant):
    model = tiny.load(variant)
    ids, options = given(model)
    whole = circuits.logit_attribution(model, ids, 0, 1, place=PLACE, **options)
    parts = circuits.logit_attribution(model, ids, 0, 1, place=PLACE, by_place=True, **options)
    assert len(parts.logits) > len(whole.logits)
    assert abs(whole.heads - parts.heads).max() < 1e-13 and whole.heads.all()
    for layer, head in np.ndindex(whole.heads.shape):
        mine = (parts.component == "head") & (parts.layer == layer) & (parts.head == head)
        assert (parts.place[mine] == np.arange(len(parts.place[mine]))).all()
    if model.config.causal:
        late = (parts.component == "head") & (parts.place > PLACE)
        assert not parts.logits[late].any()


def test_a_part_is_what_is_lost_with_its_writer():
    """With the final norm frozen: each head's and MLP's part, by taking it out."""
    model = tiny.load("gpt2-causal")
    ids = tiny.ids(model, 7)
    table = circuits.logit_attribution(model, ids, 5, 9, place=PLACE)
    trace = minitx.run(model, ids, ["ln_final_mean", "ln_final_scale", "z", "mlp_out", "logits"])
    w = model.weights
    direction = (w.W_U[:, 5] - w.W_U[:, 9]) * w.ln_final_w
    scale = trace["ln_final_scale"][0, PLACE]
    for layer, head in np.ndindex(2, 3):
        W_O = model.layers[layer].W_O[head * 6 : head * 6 + 6]
        out = trace["z", layer][0, head, PLACE] @ W_O
        assert abs((out - out.mean()) @ direction * scale - table.heads[layer, head]) < 1e-14
    mlp = table.logits[(table.component == "mlp") & (table.layer == 1)][0]
    out = trace["mlp_out", 1][0, PLACE]
    assert abs((out - out.mean()) @ direction * scale - mlp) < 1e-14


def test_components_of_a_decoder_with_a_source():
    model = tiny.load("bart-causal")
    ids, options = given(model)
    table = circuits.logit_attribution(model, ids, 5, **options)
    names = {*map(str, table.component)}
    biases = {"ln_embed_b", "ln1_b", "ln_cross_b", "ln2_b", "b_O", "cross_b_O", "b_U"}
    assert names == {"word", "position", "head", "cross_head", "mlp"} | biases
    by_source = circuits.logit_attribution(model, options["prefix"], 5, source=ids)
    assert (by_source.logits == table.logits).all()


def test_the_null_is_of_other_tokens():
    """Random weights prefer no token: most parts stay below what drawn pairs give."""
    model = minitx.load("tiny-gpt2", dtype=np.float64)
    table = circuits.logit_attribution(model, "The man said that", " he", " she")
    again = circuits.logit_attribution(model, "The man said that", " he", " she")
    other = circuits.logit_attribution(model, "The man said that", " he", " she", seed=1)
    assert (table.null == again.null).all() and (table.null != other.null).any()
    assert table.null.shape == table.logits.shape and (table.null > 0).all()
    alone = circuits.logit_attribution(tiny.load("gpt2-sequence-one"), [5, 6], 0)
    assert np.isnan(alone.null).all()


def test_a_masked_model_is_asked_at_its_mask():
    model = minitx.load("tiny-roberta", dtype=np.float64)
    text = "The man said that<mask> was late."
    table = circuits.logit_attribution(model, text, " he", " she")
    batch = model.encode([text])
    mask = int(np.argmax(batch.tokens[0] == model.tokenizer.encode("<mask>", special=False)[0]))
    y = minitx.logits(model, minitx.forward(model, batch.tokens))[0, mask]
    he, she = (model.tokenizer.encode(word, special=False)[0] for word in (" he", " she"))
    assert abs(table.logit - (y[he] - y[she])) < 1e-12
    assert set(table.place[table.component == "mlp"]) == {mask} and not table.linear
    assert "not linear" in repr(table) and "mlp" in table._repr_html_()


def test_float32_is_within_its_rounding():
    table = circuits.logit_attribution(minitx.load("tiny-gpt2"), "The man said that", " he")
    assert abs(table.gap) < 1e-6 * abs(table.logits).max() * 10  # measured: 2e-6


WRONG = {
    "'a man ran' is 4 tokens, .*; wanted one": dict(target="a man ran"),
    "target tokens: 5000 is out of range": dict(target=5000),
    "2 texts; wanted one": dict(text=["A man", "A man"]),
    "has no encoder": dict(prefix="A man"),
    "this model .* has a single stack|has no encoder": dict(source="A man"),
    "place is \\[9\\]; the texts have \\[4\\] tokens": dict(place=9),
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_requests_are_refused(message):
    asked = {"text": [5, 6, 7, 8], "target": 3} | WRONG[message]
    with pytest.raises(ValueError, match=message):
        circuits.logit_attribution(minitx.load("tiny-gpt2"), asked.pop("text"), **asked)


def test_masks_and_heads_that_are_missing_are_refused():
    model = minitx.load("tiny-roberta")
    for text, n in (("A man ran.", 0), ("A<mask> ran<mask>.", 2)):
        with pytest.raises(ValueError, match=f"text 0 has {n} masks; wanted one <mask>"):
            circuits.logit_attribution(model, text, " he")
    with pytest.raises(ValueError, match="has no head that gives logits"):
        circuits.logit_attribution(tiny.load("gpt2-bare"), [5, 6], 3)
