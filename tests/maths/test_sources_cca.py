"""Terms of scores by source, and canonical correlations: against plain sums and whole matrices.

Distances are of float64 sums in another order, relative to numbers of about 1 to 100: measured at
most 5e-14, bound 1e-10 unless it is said.
"""

import numpy as np
import pytest
from distance import max_error

from minitx.analysis.maths import cca, sources

VISIBLE = {"all": np.ones((20, 20), bool), "causal": np.tri(20, dtype=bool)}


@pytest.fixture
def terms():
    """Queries of 2 sources, keys of 3, three heads; their scores [2 3 H T T]."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 3, 20, 4)), rng.standard_normal((3, 3, 20, 4))
    return q, k, np.einsum("ahid,bhjd->abhij", q, k)


def traces(x, reach):
    """Sums of diagonals -reach ... reach, one after another."""
    diagonals = [np.trace(x, t, axis1=-2, axis2=-1) for t in range(-reach, reach + 1)]
    return np.stack(diagonals, axis=-1)


def test_terms_by_lag_are_sums_of_diagonals(terms):
    q, k, scores = terms
    for reach in (0, 7, 19):
        assert max_error(sources.lag_sums(q, k, reach), traces(scores, reach)) < 1e-10
    assert max_error(sources.diagonal_sums(scores), traces(scores, 19)) < 1e-10


@pytest.mark.parametrize("causal", [False, True])
def test_parts_of_a_peak_sum_to_one(terms, causal):
    q, k, _ = terms
    curves = sources.lag_sums(q, k, 9)
    curves[0, 0, 0, 8] += 100  # a head whose scores rise at -1
    parts = sources.peak_parts(curves, np.array([-1, -1, -1]), causal)
    assert parts[..., 0].sum() == pytest.approx(1, abs=1e-12)
    assert parts[0, 0, 0] > 0.8
    shown = slice(None, 10) if causal else slice(None)
    others = np.delete(curves[0, 1, 2, shown], 8).mean()
    assert sources.rise(curves, -1, causal)[0, 1, 2] == pytest.approx(curves[0, 1, 2, 8] - others)
    assert sources.over(np.ones(2), np.array([0.0, 2.0])).tolist() == [0, 0.5]


@pytest.mark.parametrize("kind", VISIBLE)
def test_shares_of_the_variance_sum_to_one(terms, kind):
    """Within rows: what is added to a whole row of scores changes nothing."""
    q, k, scores = terms
    whole = scores.sum(axis=(0, 1))
    rows = np.random.default_rng(1).standard_normal((3, 20, 1))
    centred = sources.within_rows(whole + 1000 * rows, VISIBLE[kind])
    assert max_error(centred, sources.within_rows(whole, VISIBLE[kind])) < 1e-10
    products = sources.term_products(q, k, centred)
    by_hand = np.einsum("abhij,hij->abh", scores, centred)
    assert max_error(products, by_hand) < 1e-8  # sums of 400 numbers of about 1000
    squares = np.square(centred).sum(axis=(-2, -1))
    assert max_error(products.sum(axis=(0, 1)) / squares, 1) < 1e-10


@pytest.mark.parametrize("kind", VISIBLE)
def test_toeplitz_scores_are_explained_by_the_lag_and_noise_is_not(kind):
    rng = np.random.default_rng(2)
    fit = sources.LagFit(VISIBLE[kind])
    lag = np.arange(20) - np.arange(20)[:, None]
    toeplitz = rng.standard_normal(39)[lag + 19] + rng.standard_normal((20, 1))
    assert explained(fit, toeplitz, kind) == pytest.approx(1, abs=1e-10)
    # 38 or 19 numbers are free, of 380 or 190
    noise = np.mean([explained(fit, x, kind) for x in rng.standard_normal((200, 20, 20))])
    assert 0.08 < noise < 0.12  # measured 0.10 and 0.10


def explained(fit, scores, kind):
    """Share of the variance within rows that the lag explains."""
    centred = sources.within_rows(scores, VISIBLE[kind])
    return fit.explained(sources.diagonal_sums(centred)) / np.square(centred).sum()


@pytest.mark.parametrize("T", [15, 64, 256])
def test_bands_of_periods_sum_to_the_table(T):
    names, band = sources.bands(T)
    x = np.random.default_rng(3).standard_normal((T, 5))
    parts = sources.in_bands(x, band, len(names))
    assert len(parts) == len(names) == 1 + band.max()
    assert max_error(parts.sum(axis=0), x - x.mean(axis=0)) < 1e-10
    assert names[0] == "2–2.8" and names[-1].startswith("over ")


@pytest.mark.parametrize("period, name", [(2, "2–2.8"), (4, "4–5.7"), (8, "8–11"), (32, "over 16")])
def test_a_wave_is_in_the_band_of_its_period(period, name):
    names, band = sources.bands(64)
    wave = np.cos(2 * np.pi * np.arange(64) / period)[:, None]
    energy = np.square(sources.in_bands(wave, band, len(names))).sum(axis=(1, 2))
    assert names[energy.argmax()] == name
    assert energy.max() / energy.sum() == pytest.approx(1)


# canonical correlations


def rows(documents, T=40, D=9, seed=0):
    """Documents [N T D] whose columns 0 and 1 hold two waves of the place, the second noisily."""
    x = np.random.default_rng(seed).standard_normal((documents, T, D))
    waves = np.cos(np.arange(T)[:, None] * np.array([0.5, 0.9])) * 3
    x[..., :2] = waves + x[..., :2] * np.array([0.01, 3])
    return x @ np.random.default_rng(9).standard_normal((D, D)), waves


def moments(x):
    """Moments of documents [N T D], added up one by one."""
    xx, places = map(sum, zip(*(cca.sums(document) for document in x)))
    return cca.moments(len(x), xx, places)


def test_correlations_are_those_of_whole_matrices():
    """QR of both, then the singular values of the small product."""
    x, waves = rows(12)
    y = cca.columns(waves @ np.random.default_rng(4).standard_normal((2, 6)), 2)
    sums = moments(x)
    fitted = cca.fit(sums, cca.whitening(sums), y)
    flat, tiled = x.reshape(-1, 9), np.tile(y, (12, 1))
    Q_x, Q_y = (np.linalg.qr(part - part.mean(axis=0))[0] for part in (flat, tiled))
    whole = np.linalg.svd(Q_x.T @ Q_y, compute_uv=False)
    assert max_error(fitted.correlations, whole) < 1e-10
    assert max_error(cca.held_out(fitted, sums, y), whole) < 1e-10
    assert fitted.correlations[0] > 0.99
    assert 0.5 < fitted.correlations[1] < 0.8


def test_other_documents_tell_what_was_fitted_by_chance():
    x, _ = rows(4, D=30)
    y = cca.columns(np.random.default_rng(5).standard_normal((40, 8)), 6)
    fit, test = moments(x[:2]), moments(x[2:])
    fitted = cca.fit(fit, cca.whitening(fit), y)
    assert fitted.correlations.mean() > 0.5  # measured 0.6: 30 directions, 80 rows
    by_hand = []
    for a, b in zip(fitted.a.T, fitted.b.T):
        pair = x[2:].reshape(-1, 30) @ a, np.tile(y @ b, 2)
        by_hand.append(np.corrcoef(*pair)[0, 1])
    held = cca.held_out(fitted, test, y)
    assert max_error(held, by_hand) < 1e-10
    assert abs(held.mean()) < 0.2


def test_a_direction_that_is_constant_breaks_nothing():
    """A norm leaves one: R of X = Q R has no inverse then."""
    x, waves = rows(12)
    y = cca.columns(waves @ np.eye(2, 6), 1)
    wide = np.concatenate([x, x[..., :1] + 5, np.ones_like(x[..., :1])], axis=-1)
    plain, more = moments(x), moments(wide)
    held = [cca.held_out(cca.fit(s, cca.whitening(s), y), s, y) for s in (plain, more)]
    assert max_error(*held) < 1e-8  # directions of little variance: measured 1e-14


def test_a_table_of_few_places_has_few_components():
    with pytest.raises(ValueError, match="12 components requested for 10 positions and 40 columns"):
        cca.columns(np.ones((10, 40)), 12)
