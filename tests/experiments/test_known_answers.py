"""What a mechanism computes is known by construction: the analyses must give it back."""

import numpy as np
import pytest
import tiny

import minitx
from minitx import analysis, positions, weights
from minitx.analysis.contract.registry import NotApplicable
from minitx.analysis.maths import lags, positional_kernel, rotation, spectra

OFFSETS = (-1, -3, 0, -5)  # where the four heads of the planted layer look
WITHOUT_A_TABLE = {
    "zoo/causal-rotary": "queries and keys are turned",
    "zoo/causal-alibi": "a term of the scores",
}


def planted():
    """A rotary model whose first layer reads no words: each head's keys are its queries, turned.

    A key is behind its query by the angle that a token at the head's offset is ahead.
    """
    model = minitx.load("zoo/causal-rotary", dtype=np.float64)
    omega = np.array(model.config.rotary[0].frequencies)
    r = len(omega)
    query = 3 * np.concatenate([np.ones(r), np.zeros(r)])
    keys = [3 * np.concatenate([np.cos(omega * o), -np.sin(omega * o)]) for o in OFFSETS]
    nothing = np.zeros_like(model.layers[0].W_Q)
    arrays = {"W_Q": nothing, "W_K": nothing}
    arrays |= {"b_Q": np.tile(query, len(OFFSETS)), "b_K": np.concatenate(keys)}
    return tiny.with_weights(model, {0: arrays})


@pytest.mark.skipif("zoo/causal-rotary" not in weights.zoo(), reason="is not in this copy")
def test_a_shift_built_into_turned_queries_and_keys_comes_back():
    model = planted()
    r = analysis.run("kernel", model, documents=3).arrays
    assert r["lag_of_heads"][0].tolist() == r["offset_of_heads"][0].tolist() == [*OFFSETS]
    assert r["error"] < 1e-12  # 2e-15
    trace = minitx.run(model, np.arange(5, 69), ["q", "k"])
    q, k = trace["q", 0][0], trace["k", 0][0]  # [H T d], turned
    by_lag = lags.xcov(q, k).sum(axis=-1)  # [H 2T - 1]
    pairs = 64 - abs(lags.all_lags(64))
    best = np.where(pairs > 32, by_lag / pairs, -np.inf).argmax(axis=-1)
    assert lags.all_lags(64)[best].tolist() == [*OFFSETS]
    omega = model.config.rotary[0].frequencies
    for head, offset in enumerate(OFFSETS):
        assert rotation.fit(q[head], k[head]) > 0.999999
        preferred = positional_kernel.preferred(q[head, 0], k[head, 0], omega)
        fast = np.array(omega) * 5 < np.pi
        np.testing.assert_allclose(preferred[fast], offset, atol=1e-9)


@pytest.mark.parametrize("name", [x for x in WITHOUT_A_TABLE if x in weights.zoo()])
@pytest.mark.parametrize("experiment", ["positions", "singular-values"])
def test_what_reads_a_table_says_what_stands_in_its_place(name, experiment):
    with pytest.raises(NotApplicable, match=WITHOUT_A_TABLE[name]):
        analysis.run(experiment, name)


def test_rotation_reads_turned_pairs_and_says_where_nothing_is_turned():
    turned = analysis.run("rotation", "zoo/causal-rotary", documents=4, tokens=32)
    assert turned.answer.verdict == "undecided"  # no head has a direction in so few tokens
    assert "so that no basis is chosen" in turned.says
    biased = analysis.run("rotation", "zoo/causal-alibi", documents=4, tokens=32)
    assert biased.answer.verdict == "nothing"
    assert "a bias by distance turns no query" in biased.says


def test_lags_reads_turned_queries_and_keys_and_no_bias_of_scores():
    assert "n_positions" in analysis.run("lags", "zoo/causal-rotary", documents=4).numbers
    with pytest.raises(NotApplicable, match="a term of the scores"):
        analysis.run("lags", "zoo/causal-alibi", documents=4)


def test_a_sinusoidal_table_has_one_line_per_column_and_a_shift_is_one_rotation():
    T, D = 512, 64
    table = positions.sinusoids(T, D).astype(np.float64)
    omega = 10000 ** (-np.arange(0, D, 2) / D)
    own = omega * T / (2 * np.pi)  # cycles in T tokens
    amplitude = spectra.amplitude(table)  # [F D]
    fast = own > 4  # slower ones are drift: not a whole wave in each quarter of the table
    assert fast.sum() == 11
    for half in (amplitude[:, : D // 2], amplitude[:, D // 2 :]):
        highest = 1 + half[1:].argmax(axis=0)
        assert (abs(highest - own)[fast] <= 0.5 + 1e-9).all()
        power = np.square(half)
        beside = abs(np.arange(len(power))[:, None] - own) <= 4
        within = (power * beside).sum(axis=0) / power.sum(axis=0)
        assert (within[fast] > 0.94).all()  # the rest leaks, as no wave ends where it began
    z = table[:, D // 2 :] + 1j * table[:, : D // 2]  # exp(i omega t)
    for shift in (1, 5):
        turn = z[shift:] / z[:-shift]
        np.testing.assert_allclose(turn, turn[:1].repeat(len(turn), 0), atol=1e-6)
        delta = np.angle(turn[0]) / omega
        is_told = omega * shift < np.pi
        np.testing.assert_allclose(delta[is_told], shift, atol=2e-3)  # float32 of the slowest
        assert rotation.fit(table[:-shift], table[shift:]) > 0.99


@pytest.mark.skipif("zoo/causal-sinusoidal" not in weights.zoo(), reason="is not in this copy")
def test_the_zoos_sinusoidal_table_shifts_by_one_angle_a_frequency():
    model = minitx.load("zoo/causal-sinusoidal")
    table = model.weights.W_pos.astype(np.float64)
    z = table[:, 1::2] + 1j * table[:, ::2]
    angle = np.angle((z[1:] * z[:-1].conj()).mean(axis=0))
    omega = 10000 ** (-np.arange(0, 128, 2) / 128)
    np.testing.assert_allclose(angle, omega, atol=1e-4)  # float16
