"""The position table: the rows that a token can reach, beside shuffles of them."""

import numpy as np
import tiny
from outcomes import SMALL, run, says


def test_the_bundles_positions_are_waves(bundled):
    result = run("positions", bundled)
    assert result["peak_at"] == 89
    assert result["peak"] > 1.3 * result["peak_null"]  # measured 1.41 times
    assert result["words_peak"] < 1.05 * result["words_peak_null"]  # measured 1.003 times
    assert result["explained_12"] > result["explained_12_null"]


def test_positions_reads_only_rows_that_a_token_can_reach(bundled, outcomes):
    cfg = bundled.config
    result = outcomes["positions", "bundled"]
    assert result["T"] == cfg.n_ctx == len(bundled.weights.W_pos) - cfg.offset
    rows = bundled.weights.W_pos[cfg.offset :].astype(np.float64)
    direct = np.abs(np.fft.rfft(rows, axis=0)).mean(axis=1)
    difference = np.abs(result["position_mean"] - direct).max() / direct.max()
    assert difference < 1e-5  # float32 input: measured 1.1e-7


def test_positions_are_compared_with_the_largest_of_each_shuffle(outcomes):
    result = outcomes["positions", "bundled"]
    assert len(result["shuffled_largest"]) == SMALL["positions"]["shuffles"]
    assert result["amplitude_null"] == np.quantile(result["shuffled_largest"], 0.99)
    assert result["amplitude_null"] > 0.9 * result["shuffled_largest"].max()


def test_noise_has_no_low_frequencies(bundled):
    """A table whose amplitudes are alike at all frequencies; a drift has low ones only."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(bundled.weights.W_pos.shape).astype(np.float32)
    drift = noise / 20 + np.linspace(-1, 1, len(noise), dtype=np.float32)[:, None]
    for table, is_low in ((noise, False), (drift, True)):
        r = run("positions", tiny.with_weights(bundled, {}, W_pos=table), shuffles=50)
        assert not r["rise"] > r["rise_null"]
        assert ("low frequencies only" in says("positions", r)) == is_low
