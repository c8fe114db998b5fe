"""What the page says of a model's outputs, beside minitx's own logits and streams."""

import numpy as np
import pytest
import tiny
from scipy import special

import minitx
from minitx.analysis.measures import decoder_texts, outputs
from minitx.analysis.pages import attention

SENTENCE = "The brown capybara is sleeping now."


def softmax(x):
    """In float64, along the last axis."""
    return special.softmax(x.astype(np.float64), axis=-1)


@pytest.fixture(scope="module", params=["tiny-roberta", "tiny-bert", "tiny-gpt2"])
def case(request):
    """A model, the ids of the sentence, a whole trace, and Outputs."""
    model = minitx.load(request.param)
    tokens = model.tokenizer.encode(SENTENCE)
    return model, tokens, minitx.run(model, tokens), attention.of_text(model, tokens).outputs


def test_guesses_are_the_likeliest_tokens_of_the_models_logits(case):
    _, _, trace, given = case
    p = softmax(trace["logits"][0])
    order = np.argsort(-p, axis=-1)[:, : outputs.GUESSES]
    assert np.array_equal(given.guesses.ids, order)
    wanted = np.take_along_axis(p, order, -1)
    assert abs(given.guesses.probabilities - wanted).max() < 1e-12  # the same logits: 0
    assert (np.diff(given.guesses.probabilities) <= 0).all()


def test_the_texts_own_token_is_the_next_one_in_a_causal_model(case):
    model, tokens, trace, given = case
    p = softmax(trace["logits"][0])
    if model.config.causal:
        assert np.array_equal(given.own, [*tokens[1:], -1])
        assert np.isnan(given.actual[-1])
        wanted = p[np.arange(len(tokens) - 1), tokens[1:]]
        assert given.actual[:-1] == pytest.approx(wanted, rel=1e-12)
    else:
        assert np.array_equal(given.own, tokens)
        assert given.actual == pytest.approx(p[np.arange(len(tokens)), tokens], rel=1e-12)


def test_guesses_by_layer_are_the_logit_lens_and_end_at_the_models_own(case):
    model, tokens, trace, given = case
    assert given.lens.ids.shape == (model.config.n_layers + 1, len(tokens), outputs.LENS)
    for layer in range(model.config.n_layers):
        lens = minitx.logits(model, minitx.final_norm(model, trace["resid_pre", layer]))[0]
        assert np.array_equal(given.lens.ids[layer][:, 0], lens.argmax(axis=-1))
        likeliest = softmax(lens).max(axis=-1)
        # a stream by itself or among others: float32 of the products
        assert abs(given.lens.probabilities[layer][:, 0] - likeliest).max() < 1e-5
    assert np.array_equal(given.lens.ids[-1], given.guesses.ids[:, : outputs.LENS])
    assert (given.lens.ids[0][:, 0] != given.lens.ids[-1][:, 0]).any()


def test_lengths_are_those_of_the_stream_and_of_what_is_written(case):
    model, _, trace, given = case
    for layer in range(model.config.n_layers):
        for name in ("attn_out", "mlp_out"):
            length = np.linalg.norm(trace[name, layer][0].astype(np.float64), axis=-1)
            assert given.writes[name][layer] == pytest.approx(length, rel=1e-6)
        stream = np.linalg.norm(trace["resid_post", layer][0].astype(np.float64), axis=-1)
        assert given.stream[layer + 1] == pytest.approx(stream, rel=1e-6)
    first = np.linalg.norm(trace["resid_pre", 0][0].astype(np.float64), axis=-1)
    assert given.stream[0] == pytest.approx(first, rel=1e-6)


def test_lens_can_be_left_out(case):
    model, tokens, _, given = case
    without = attention.of_text(model, tokens, lens=False).outputs
    assert without.lens is None and np.array_equal(without.guesses.ids, given.guesses.ids)


def test_a_changed_run_has_its_own_outputs(case):
    model, tokens, _, given = case
    edits = {"pos_embed": np.zeros_like}
    changed = attention.of_text(model, tokens, edits=edits)
    trace = minitx.run(model, tokens, ["logits", "pattern"], edits)
    assert np.array_equal(changed.outputs.guesses.ids[:, 0], trace["logits"][0].argmax(axis=-1))
    assert np.array_equal(changed.pattern, trace.stack("pattern")[:, 0])
    assert (changed.outputs.guesses.ids != given.guesses.ids).any()


def test_a_mask_takes_keys_out_of_sight():
    model = minitx.load("tiny-roberta")
    tokens = model.tokenizer.encode(SENTENCE)
    near = attention.of_text(model, tokens, mask=lambda q, k: abs(q - k) < 2)
    assert np.array_equal(near.sees, abs(np.subtract.outer(*[np.arange(len(tokens))] * 2)) < 2)


def test_scores_come_back_from_weights_and_the_total_of_their_row(case):
    """score = log(weight) + total, as the page reads softmax backwards."""
    model, tokens, trace, _ = case
    look = attention.of_text(model, tokens)
    scores = trace.stack("scores")[:, 0].astype(np.float64)
    is_large = look.pattern > 1e-3
    back = np.log(np.where(is_large, look.pattern, 1)) + look.total[..., None]
    assert abs(back - scores)[is_large].max() < 1e-4  # float32: scores reach 40


def test_a_decoder_guesses_what_it_says():
    model = minitx.load("tiny-bart")
    said = decoder_texts.greedy(model, model.encoder.tokenizer.encode("the 3rd of May, 1912"))
    parts = attention.of_parts(model, said)
    given = parts["decoder"].outputs
    assert np.array_equal(given.guesses.ids[:, 0], said.outputs)
    assert np.array_equal(given.own, said.outputs)
    assert parts["cross"].outputs is None and parts["encoder"].outputs.guesses is None
    assert set(given.writes) == {"attn_out", "cross_out", "mlp_out"}
    assert set(parts["encoder"].outputs.writes) == {"attn_out", "mlp_out"}


def test_a_classifier_has_classes_and_no_head_has_neither():
    for variant, has_classes in (("bert-sequence", True), ("xlm-roberta-bare", False)):
        model = tiny.load(variant, np.float32)
        tokens = tiny.ids(model, 1, 6)[0]
        given = attention.of_text(model, tokens).outputs
        assert given.guesses is None and given.lens is None
        assert (given.classes is not None) == has_classes
        if has_classes:
            y = minitx.run(model, tokens, "logits")["logits"][0]
            assert given.classes == pytest.approx(softmax(y), abs=1e-6)
