"""Losses by strided windows against the reference library's; chunks and conditions."""

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file
from scipy.special import log_softmax

import minitx
from minitx.analysis.measures import losses
from minitx.analysis.texts import corpus

LIBRARY = load_file(tiny.GOLDEN / "losses.safetensors")
DOCUMENTS = [LIBRARY[f"{i}.tokens"] for i in range(4)]
KEYS = [key.split(".")[1:] for key in LIBRARY if key[0] == "0" and "tokens" not in key]
WINDOWS = sorted((int(window), int(stride)) for window, stride in KEYS)


@pytest.fixture(scope="module")
def golden():
    return tiny.load("gpt2-causal")


@pytest.fixture(scope="module")
def roberta():
    return minitx.load("tiny-roberta", dtype=np.float64)


@pytest.mark.parametrize("window, stride", WINDOWS)
def test_losses_are_the_librarys_on_the_same_windows(golden, window, stride):
    """It takes logits to float32 for its loss: bound 1e-6; measured 9e-8."""
    for i, tokens in enumerate(DOCUMENTS):
        ours = losses.causal(golden, tokens, window, stride)
        assert len(ours) == len(tokens) - 1
        assert ours.dtype == np.float64
        assert ours.mean() == pytest.approx(LIBRARY[f"{i}.{window}.{stride}"], rel=1e-6)


@pytest.mark.parametrize("window, stride", WINDOWS)
def test_a_padded_batch_of_unequal_documents_is_one_at_a_time(golden, window, stride):
    together = losses.batch(golden, DOCUMENTS, window, stride)
    for tokens, in_batch in zip(DOCUMENTS, together):
        alone = losses.causal(golden, tokens, window, stride)
        assert np.abs(in_batch - alone).max() < 1e-12  # measured 2e-15


def test_a_padded_batch_has_the_librarys_loss(golden):
    ours = np.concatenate(losses.batch(golden, DOCUMENTS[1:]))
    assert ours.mean() == pytest.approx(LIBRARY["batch"].item(), rel=1e-6)  # measured 5e-8


def test_windows_are_enough_for_any_length(golden):
    """Every token once, in the window with the longest past: what the stride leaves, or more."""
    for T in (1, 2, 11, 12, 13, 40):
        for window, stride in (*WINDOWS, (0, 0), (2, 1)):
            windows = losses.windows(golden, np.arange(T), window, stride)
            size = window or 12
            assert np.concatenate([w.where for w in windows]).tolist() == list(range(T))
            for w in windows:
                assert np.array_equal(w.tokens[w.places], w.where) and len(w.tokens) <= size
            assert all(w.places.min() >= size - (stride or size // 2) for w in windows[1:])


def test_windows_of_a_masked_model_keep_special_ends_and_context_on_both_sides(roberta):
    document = corpus.documents(roberta, "sample", 1).first()[0]
    whole = losses.windows(roberta, document)
    assert [len(w.tokens) for w in whole] == [256]
    more = roberta.tokenizer.encode("a" * 900)
    tokens = np.r_[document[:-1], more[1:]]
    windows = losses.windows(roberta, tokens, 40, 20)
    assert np.concatenate([w.where for w in windows]).tolist() == list(range(len(tokens)))
    for w in windows:
        assert w.tokens[0] == tokens[0] and w.tokens[-1] == tokens[-1] and len(w.tokens) <= 40
        assert np.array_equal(w.tokens[w.places], tokens[w.where])
    # the middle of 1 ... 38
    assert all(9 <= w.places.min() and w.places.max() <= 30 for w in windows[1:-2])


@pytest.mark.parametrize("window, stride", [(13, 0), (1, 1), (12, 12), (12, -1)])
def test_windows_that_would_miss_a_token_are_refused(golden, window, stride):
    wanted = f"window {window} and stride {stride or 6}: wanted a window of 2 to 12 tokens"
    with pytest.raises(ValueError, match=wanted):
        losses.causal(golden, DOCUMENTS[0], window, stride)


def test_chunks_change_no_loss(golden, monkeypatch):
    whole = losses.causal(golden, DOCUMENTS[0])
    for rows, columns in ((5, 7), (1, 1), (100, 60)):
        monkeypatch.setattr(losses, "ROWS", rows)
        monkeypatch.setattr(losses, "COLUMNS", columns)
        assert np.abs(losses.causal(golden, DOCUMENTS[0]) - whole).max() < 1e-12  # measured 4e-15


def test_conditions_and_keywords_reach_every_window(golden):
    def zero(model):
        return lambda name, x, layer=None: np.zeros_like(x) if name == "pos_embed" else x

    flat = tiny.with_weights(golden, W_pos=np.zeros_like(golden.weights.W_pos))
    without = losses.causal(golden, DOCUMENTS[0], 8, 3, condition=zero)
    assert np.array_equal(without, losses.causal(flat, DOCUMENTS[0], 8, 3))
    assert not np.allclose(without, losses.causal(golden, DOCUMENTS[0], 8, 3))
    tokens = DOCUMENTS[1][:8]
    moved = losses.causal(golden, tokens, positions=np.arange(8) + 4)
    trace = minitx.run(golden, tokens, keep=["logits"], positions=np.arange(8) + 4)
    direct = -log_softmax(trace["logits"][0, :-1], axis=1)[np.arange(7), tokens[1:]]
    assert np.abs(moved - direct).max() < 1e-12  # measured 2e-15


def test_pseudo_losses_hide_one_token_at_a_time(roberta):
    tokens = roberta.encode(["Then he went out of the room."]).tokens[0]
    mask = losses.mask_token(roberta.tokenizer)
    ours = losses.masked(roberta, tokens)
    direct = []
    for place in range(1, len(tokens) - 1):
        masked = tokens.copy()
        masked[place] = mask
        logits = minitx.run(roberta, masked, keep=["logits"])["logits"][0, place]
        direct.append(-log_softmax(logits)[tokens[place]])
    assert np.abs(ours - direct).max() < 1e-10  # measured 5e-15
    assert np.array_equal(losses.masked(roberta, tokens, every=3, start=1), ours[1::3])


def test_pseudo_losses_of_a_long_document_pay_for_each_token_once(roberta):
    tokens = corpus.documents(roberta, "sample", 1, 100).first()[0]
    ours = losses.masked(roberta, tokens, window=30, stride=14)
    assert len(ours) == 98 and np.isfinite(ours).all()
    # the last window of 28 ordinary tokens
    last = losses.masked(roberta, np.r_[tokens[:1], tokens[-29:]], every=1)
    assert np.abs(ours[-8:] - last[-8:]).max() < 1e-10  # measured 4e-15


def test_the_head_must_fit(golden, roberta):
    message = "wanted a masked language model; this checkpoint's head is causal"
    with pytest.raises(ValueError, match=message):
        losses.masked(golden, DOCUMENTS[0])
    message = "wanted a causal language model; this checkpoint's head is masked"
    with pytest.raises(ValueError, match=message):
        losses.causal(roberta, np.arange(5))


def test_a_vocabulary_without_a_mask_is_named(roberta, monkeypatch):
    monkeypatch.setattr(losses, "MASKS", ("<none>", "[NONE]"))
    with pytest.raises(ValueError, match=r"vocabulary has neither <none> nor \[NONE\]"):
        losses.masked(roberta, np.arange(9))


def test_gaps_are_hidden_all_at_once_and_one_alone_as_masked_does():
    model = minitx.load("tiny-roberta")
    tokens = np.array(model.tokenizer.encode("The cat sat on the mat, and then it ran away."))
    places = np.arange(1, len(tokens) - 1)[2::4]
    hidden = tokens.copy()
    hidden[places] = losses.mask_token(model.tokenizer)
    y = minitx.run(model, hidden)["logits"][0, places].astype(float)
    expected = -log_softmax(y, axis=1)[np.arange(len(places)), tokens[places]]
    np.testing.assert_allclose(losses.gaps(model, tokens, every=4, start=2), expected, atol=1e-5)
    n = len(tokens)  # so that one token is asked
    for loss_of in (losses.masked, losses.gaps):
        alone = loss_of(model, tokens, every=n, start=3)
        np.testing.assert_allclose(alone, losses.masked(model, tokens)[3:4], atol=1e-5)
    with pytest.raises(ValueError, match="wanted a masked language model"):
        losses.gaps(minitx.load("tiny-gpt2"), tokens)
