"""One score element by element: against NumPy, by words and positions, with nulls and refusals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import minitx
from minitx.analysis.measures import neurons

TEXT = "The old man said that he"
ZOO = Path(__file__).parents[2] / "weights/zoo"


def of_pair(model, *pair, **options):
    return neurons.of_pair(model, model.tokenizer.encode(TEXT), *pair, **options)


def total(pair):
    return float(np.dot(np.array(pair["q"]), pair["k"]) * pair["scale"])


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-roberta", "tiny-stories"])
def test_products_and_shares_sum_to_the_score(name):
    """To float32, in every layer; shares are there in each."""
    model = minitx.load(name)
    for layer in range(model.config.n_layers):
        pair = of_pair(model, layer, 1, 4, 2)
        assert total(pair) == pytest.approx(pair["score"], abs=4e-6)  # measured 7e-7
        assert np.sum(pair["shares"]) == pytest.approx(pair["score"], abs=2e-5)  # measured 3e-6


def test_shares_are_products_of_the_tables_rows():
    """In layer 0 of tiny-gpt2: rows through the norm at its scale, times W_Q and W_K."""
    model = minitx.load("tiny-gpt2")
    ids, w, d = model.tokenizer.encode(TEXT), model.layers[0], model.config.d_head
    words, places = model.weights.W_E[ids].astype(float), model.weights.W_pos[: len(ids)]
    scale = 1 / np.sqrt((words + places).var(axis=1) + model.config.eps)
    own = slice(d, 2 * d)  # head 1

    def through(x, n, W):
        return (x[n] - x[n].mean()) * scale[n] * w.ln1_w @ W[:, own]

    held = of_pair(model, 0, 1, 4, 2)["shares"]
    for a, query in enumerate((words, places)):
        for b, key in enumerate((words, places)):
            wanted = through(query, 4, w.W_Q) @ through(key, 2, w.W_K) / np.sqrt(d)
            assert held[a][b] == pytest.approx(wanted, abs=1e-5)


def test_positions_of_nothing_hold_nothing():
    """With rows of zeros: the null."""
    model = minitx.load("tiny-gpt2")
    table = np.zeros((6, model.config.d_model), np.float32)
    held = np.array(of_pair(model, 0, 1, 4, 2, edits={"pos_embed": table})["shares"])
    assert abs(held[1]).max() < 1e-12 and abs(held[:, 1]).max() < 1e-12
    assert abs(held[0, 0]) > 0.01


def test_a_model_without_a_table_has_products_alone():
    """Rotary: queries and keys are turned; by distance: a term is beside the products."""
    pair = of_pair(minitx.load(ZOO / "causal-rotary"), 1, 0, 4, 2)
    assert pair["shares"] is None
    assert total(pair) == pytest.approx(pair["score"], abs=4e-6)
    pair = of_pair(minitx.load(ZOO / "causal-alibi"), 1, 0, 4, 2)
    assert pair["shares"] is None
    assert total(pair) - pair["score"] > 1e-3  # the distance takes from it


def test_what_is_no_sum_of_products_is_refused():
    model = minitx.load("tiny-gpt2")
    with pytest.raises(ValueError, match="query 2 does not see key 4"):
        of_pair(model, 0, 1, 2, 4)
    model = replace(model, config=replace(model.config, score_cap=50.0))
    with pytest.raises(ValueError, match="caps its scores at 50"):
        of_pair(model, 0, 1, 4, 2)
