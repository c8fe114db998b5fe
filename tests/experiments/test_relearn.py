"""A table learned anew: words spread apart, attention read between words, what is frozen."""

import numpy as np

from minitx import analysis
from minitx.analysis.experiments import _relearn_table
from minitx.analysis.maths import profiles
from minitx.analysis.measures import position_tables
from minitx.learning.parameters import parameters


def test_words_stand_apart(bundled):
    rows = np.array([[0, 10, 11, 12, 2], [0, 20, 21, 22, 2]])
    spread = _relearn_table.Spread(bundled, rows, 2, share=0.5)
    assert spread.rows.tolist()[0] == [0, 10, 3, 3, 11, 3, 3, 12, 3, 3, 2]
    assert spread.words.tolist() == [1, 4, 7]
    tokens, targets = spread.batch(np.array([1, 0]), np.random.default_rng(0))
    is_told = targets != -100
    assert is_told.any()
    assert not np.delete(is_told, spread.words, axis=1).any()
    assert (tokens[is_told] == 4).all()
    assert (targets[is_told] == spread.rows[[1, 0]][is_told]).all()
    assert (tokens == spread.rows[[1, 0]])[~is_told].all()


def test_attention_is_read_at_the_words():
    """A head that looks three back, from three queries of ten."""
    queries = np.array([1, 4, 7])
    pattern = np.zeros((1, 10, 10))
    pattern[0, np.arange(3, 10), np.arange(7)] = 1
    by_offset = _relearn_table.at_offsets(pattern[:, queries], queries, 4)[0]
    assert dict(zip(profiles.offsets(4), by_offset))[-3] == 1
    assert by_offset.sum() == 1


def test_only_the_table_is_new(bundled):
    before = {key: x.copy() for key, x in parameters(bundled).items()}
    copy, arrays = _relearn_table.fresh(bundled, 0)
    table = arrays["W_pos"]
    assert table is copy.weights.W_pos
    assert not table[:2].any()
    assert abs(table[2:].std() - 0.02) < 1e-3
    assert all((x == before[key]).all() for key, x in arrays.items() if key != "W_pos")
    assert position_tables.with_table(bundled, table).layers is bundled.layers
    assert all((x == before[key]).all() for key, x in parameters(bundled).items())


def test_what_the_experiment_returns(bundled):
    result = analysis.run("relearn", bundled, documents=5, steps=3, batch=1)
    r = result.arrays
    assert r["plain"].shape == (4, 4, 7)
    assert r["learned"].shape == (4, 4, 25)
    assert len(r["losses"]) == 3
    assert r["loss"] != r["loss_null"]
    sharp = r["offset"][0, 3], r["directed"][0, 3]
    assert sharp == (-1, True)  # L0H3 looks at the word before
    assert {"L0H3"} <= {*r["heads"]} and len(r["heads"]) == r["n_directed"]
    # with the old table the head looks one token back, on a filler
    assert r["kept"][0, 3].argmax() - 12 == -1
    assert 0 <= r["follow_null"] <= 1 and "follow" in result.numbers
    assert result.answer.verdict in ("yes", "partly", "no")
