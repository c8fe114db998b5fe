"""Lesson 9: its checks tell right answers from wrong ones; its prose says what its cells give."""

import numpy as np
import pytest
from answered import answers

from minitx.lessons.checks import Wrong, lesson_09
from minitx.lessons.checks.lesson_09 import check_layer, check_mask, check_meaning

SAID = {
    check_layer: [
        (1, "right"),
        (0, "a sum does not mind the order"),
        (3, "it did so earlier"),
        (4, "4 is no layer: this model has layers 0 to 3"),
    ],
    check_meaning: [
        (0.5, "wanted a function, such as lambda"),
        (lambda s, m: s + np.log(m), "right"),
        (lambda s, m: s + np.log(m) + 7, "right"),  # the same softmax
        (lambda s, m: s * m, "this multiplies the scores"),
        (lambda s, m: s + m, "which number x has e\\^x = m"),
        (lambda s, m: m * np.exp(s) / (m * np.exp(s)).sum(), "these are the weights"),
        (lambda s, m: s - m, "is not the mask times the weights"),
        (lambda s, m: s.sum(), r"the function gives \[\]"),
    ],
    check_mask: [
        (0.5, "wanted a function, such as lambda"),
        (lambda distance: 0.5**distance, "right"),  # 3.72; 4.40, 5.06
        (lambda distance: 1 / (1 + distance), "right"),
        (lambda distance: np.ones(distance.shape), "the same at every distance"),
        (lambda distance: 1 - 0.5 * distance / 127, "should near tokens weigh more"),
        (lambda distance: (1 + distance) / 128, "should near tokens weigh more"),
        (lambda distance: 1.0 - distance, "values are from -126 to 1"),
        (lambda distance: np.where(distance < 4, 1, 0), "wanted above 0"),
    ],
}

test_answers = answers(SAID)


def test_a_mask_has_to_beat_its_own_values_dealt(monkeypatch):
    monkeypatch.setattr(lesson_09, "in_random_order", lambda mask: mask)
    with pytest.raises(Wrong, match="dealt at random its values give 3.72 nats, in order 3.72"):
        check_mask(lambda distance: 0.5**distance)


def test_the_prose_says_what_the_cells_give(names, printed):
    losses, by_token = names["losses"], names["by_token"]
    off = losses["without positions"]
    for text in (names["ONE"], names["OTHER"]):
        assert {"man", "told", "child"} <= {
            token.strip() for token in names["rows"](names["gpt2"], text, {})
        }
    assert likeness(names, "tiny-bert") == pytest.approx(1, abs=1e-5)  # exactly a bag of words
    assert likeness(names, "tiny-gpt2") < 0.97  # 0.87
    assert losses["as it is"] < off < losses["guess by frequency"]  # 3.31, 4.58, 5.27
    assert np.array_equal(by_token["a library, 2023"], by_token["each sees only itself"])
    assert by_token["the library, now"].mean() == pytest.approx(off)  # changes nothing
    assert by_token["a library, 2023"].mean() > off  # "on this model that makes the loss worse"
    assert all(by_token[name].mean() < off for name in [*by_token][:3])
    assert "the last of three tokens: [0.1  0.55 1.  ]" in printed
    assert printed.count("dealt -") == 2  # a mask that gains, while its dealt twin loses


def likeness(names, model):
    """Cosine of *man* in the two sentences without positions."""
    rows = []
    for text in (names["ONE"], names["OTHER"]):
        by_token = names["rows"](names["models"][model], text, names["NO_POSITIONS"])
        rows.append(next(row for token, row in by_token.items() if token.strip() == "man"))
    return names["cosine"](*rows)


def test_the_probe_reads_no_place_in_an_encoder_without_positions(names):
    documents, places = names["read"], names["places"]

    def best(model, options):
        x = names["streams"](names["models"][model], documents, **options)
        return max(names["r2"](layer, places) for layer in x)

    off = {"edits": names["NO_POSITIONS"]}
    assert best("tiny-bert", off) < 0.02
    assert best("tiny-bert", off | names["past"]) > 0.1  # 0.18
    assert best("tiny-gpt2", off) > 0.1  # 0.32
