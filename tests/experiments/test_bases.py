"""Positions in four bases: planted in two directions of a head, and on a model."""

import dataclasses

import numpy as np
import pytest
import tiny
from distance import max_error
from outcomes import says

from minitx import analysis
from minitx.analysis.experiments import bases as experiment
from minitx.analysis.maths import bases, factors

T, D, d, N = 60, 24, 8, 40


def planted(rng):
    """W_Q, W_K whose SVD has positions in its first 2 directions, and the X of N documents.

    The weights are turned inside the head, so that every raw column is a mixture.
    """
    axes = np.linalg.qr(rng.standard_normal((D, d)))[0]
    S = np.linspace(3, 1, d)
    turn = bases.random(1, d, rng)[0]
    W_Q, W_K = axes * S @ turn, axes @ turn
    t = np.arange(T) / T
    waves = np.column_stack([np.cos(2 * np.pi * (3 + i) * t) for i in range(2)])
    X = rng.standard_normal((N, T, D))
    X -= X @ axes[:, :2] @ axes[:, :2].T  # words stand beside positions
    return W_Q, W_K, X + 2 * waves @ axes[:, :2].T


def test_columns_count_those_that_are_filled():
    rows = np.array([[4.0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]])
    assert bases.columns(rows).tolist() == [1, 2, 4]
    assert bases.accumulated(rows)[1].tolist() == [0.5, 1, 1, 1]
    assert bases.purity(np.array([1.0, 0]), np.array([4.0, 1])) == 0.25


def test_the_basis_of_the_svd_gives_the_papers_queries_and_keys():
    W_Q, W_K, X = planted(np.random.default_rng(0))
    U_Q, _, U_K = factors.svd(W_Q, W_K)
    M_Q, M_K = bases.svd(W_Q, W_K)
    assert max_error(X @ W_Q @ M_Q, X @ U_Q) < 1e-10  # measured 1e-14
    assert max_error(X @ W_K @ M_K, X @ U_K) < 1e-10


def test_the_svd_gathers_planted_positions_and_rotations_spread_them():
    rng = np.random.default_rng(1)
    W_Q, W_K, X = planted(rng)
    Q = X @ W_Q
    position = bases.of_position(Q[::2].mean(axis=0), Q[1::2].mean(axis=0))
    whole = np.cov(Q.reshape(-1, d).T)
    svd, _ = bases.svd(W_Q, W_K)
    gathered = bases.variances(position, svd)
    assert bases.columns(gathered) == pytest.approx(2, abs=0.05)
    assert bases.purity(gathered, bases.variances(whole, svd)) > 0.98
    turned = [bases.variances(position, turn) for turn in bases.random(20, d, rng)]
    assert np.mean(bases.columns(np.array(turned))) > 3
    raw = bases.variances(position, bases.raw(W_Q))
    assert bases.columns(raw) > 3
    assert bases.purity(raw, bases.variances(whole, bases.raw(W_Q))) < 0.9


def test_the_svd_pairs_columns_and_unrelated_rotations_do_not():
    rng = np.random.default_rng(3)
    W_Q, W_K, X = planted(rng)
    M_Q, M_K = bases.svd(W_Q, W_K)
    turns = bases.random(400, d, rng)
    assert bases.paired(M_Q, M_K) == pytest.approx(1, abs=1e-9)
    assert bases.paired(turns, turns) == pytest.approx(1, abs=1e-9)
    assert bases.paired(turns[::2], turns[1::2]).mean() == pytest.approx(1 / d, abs=0.01)
    scores = (X[0] @ W_Q @ M_Q) * factors.svd(W_Q, W_K)[1] @ (X[0] @ W_K @ M_K).T
    assert max_error(scores, X[0] @ W_Q @ (X[0] @ W_K).T) < 1e-10


def test_words_are_no_part_of_position():
    """Halves of the documents have positions in common, not words; one mean has both."""
    rng = np.random.default_rng(2)
    words = rng.standard_normal((200, N, T, d))  # 200 trials
    a, b = words[:, ::2].mean(axis=1), words[:, 1::2].mean(axis=1)
    across = np.trace(bases.of_position(a, b), axis1=1, axis2=2)
    within = np.trace(bases.of_position(a, a), axis1=1, axis2=2)
    assert abs(across.mean()) < 0.02  # measured 0.001
    assert within.mean() == pytest.approx(d / (N / 2), rel=0.05)


def test_rotations_are_rotations():
    turns = bases.random(5, d, np.random.default_rng(0))
    assert max_error(turns @ turns.swapaxes(1, 2), np.eye(d)) < 1e-12


def test_on_a_model(bundled):
    result = analysis.run("bases", bundled, documents=4, tokens=40, rotations=20)
    arrays, numbers = result.arrays, result.numbers
    assert 0 < arrays["n_carry"] <= arrays["n_heads"] == 16
    for name in experiment.BASES:
        assert 1 <= arrays[f"columns_{name}"] <= arrays["d"]
        assert arrays[f"columns_{name}_null"] == numbers["columns_svd"].null
    assert numbers["paired_svd"].value == pytest.approx(1, abs=1e-6)
    assert numbers["paired_pca"].value < 0.9
    assert arrays["curves"].shape == (4, 2, experiment.DRAWN, 38)
    assert "<svg" in result.svg


def test_a_partial_checkpoint_reads_positions_alone(bundled):
    w = dict.fromkeys(("W_Q", "W_K", "b_Q", "b_K"))
    partial = tiny.with_weights(bundled, layers={0: w})
    partial = dataclasses.replace(partial, missing=["layer 0"])
    result = experiment.bases(partial, rotations=20)
    assert result["n_carry"] == result["n_heads"] == 12
    assert result["documents"] == 0
    assert result["purity_raw"] == pytest.approx(1)
    assert result["head"] in {f"L{layer}H{head}" for layer in (1, 2, 3) for head in range(4)}
    assert says("bases", result).startswith("Of positions alone: ")


def test_one_head_is_drawn(bundled):
    result = analysis.run("bases", bundled, documents=2, tokens=20, rotations=20, head="L1H2")
    assert result.arrays["head"] == "L1H2"
