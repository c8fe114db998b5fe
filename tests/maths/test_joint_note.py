"""The note's own search: one number for all keys, and c; by hand, and what it cannot do."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from minitx import analysis
from minitx.analysis.maths import joint_note

T, d = 9, 6
SEEN = np.ones((T, T), bool)


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, 3, T, d)) + 0.4  # queries and keys of three heads


def by_hand(q, k, a, c):
    """Correlation of products and cosine distances of one head."""
    x, y = c * q, (k + a) / c
    products, distances = x @ y.T, cdist(x, y, "cosine")
    return np.corrcoef(products.ravel(), distances.ravel())[0, 1]


@pytest.mark.parametrize("a, c", [(0, 1), (0.7, 1), (-3, 2.5)])
def test_the_notes_correlation_by_hand(pair, a, c):
    q, k = pair
    expected = [by_hand(q[h], k[h], a, c) for h in range(3)]
    assert joint_note.of_scalar(q, k, a, SEEN, c) == pytest.approx(expected, abs=1e-12)


def test_keys_that_are_not_seen_do_not_count(pair):
    q, k = pair
    seen = np.tri(T, dtype=bool)
    far = k.copy()
    far[:, -1] *= 50  # the last query alone sees it
    seen[-1, -1] = False
    of_near, of_far = (joint_note.of_scalar(q, x, 0.5, seen) for x in (k, far))
    assert of_near == pytest.approx(of_far, abs=1e-12)


def test_c_cancels_in_the_notes_order(pair):
    """So that it hardly had any effect there: it can have none."""
    a = np.array([0.0, 0.3, 8])
    assert joint_note.effect_of_scale(*pair, a, SEEN).max() < 1e-12  # measured 4e-16


def test_the_search_takes_the_strongest_correlation_of_either_sign(pair):
    q, k = pair
    a, strongest = joint_note.search(q, k, 10, SEEN)
    tried = [joint_note.of_scalar(q, k, x, SEEN) for x in np.linspace(-10, 10, joint_note.STEPS)]
    assert np.array_equal(abs(strongest), np.max(np.abs(tried), axis=0))
    expected = [by_hand(q[h], k[h], a[h], 1) for h in range(3)]
    assert strongest == pytest.approx(expected, abs=1e-12)


def test_far_out_the_query_alone_decides_and_all_queries_stand_on_one_spot(pair):
    """There a product is a times the sum of the query, a cosine that sum over its length."""
    q, k = pair
    total = q.sum(axis=-1)
    cosine = total / np.linalg.norm(q, axis=-1)
    limit = [-np.corrcoef(x, y)[0, 1] for x, y in zip(total, cosine)]
    assert joint_note.of_scalar(q, k, 1e5, SEEN) == pytest.approx(limit, abs=1e-4)
    spreads = [joint_note.gathered(q, k + a) for a in (0, 10, 1000)]
    assert spreads[0].min() > 1 and spreads[1].max() < 0.15 and spreads[2].max() < 0.0015


def test_in_the_plane_c_does_choose(pair):
    q, k = pair
    curve = joint_note.by_scale(q, k, SEEN)
    assert curve.shape == (len(joint_note.SCALES), 3)
    assert np.ptp(curve, axis=0).min() > 0.1  # measured 0.3
    sides = q[0], k[0]
    flat = np.concatenate([x - x.mean(axis=0) for x in sides])
    _, _, V = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    points = flat @ V[:2].T
    far = np.linalg.norm(points[:T, None] - points[None, T:], axis=-1)
    moved = q[0] @ (k[0] - k[0].mean(axis=0) + q[0].mean(axis=0)).T
    product = moved - moved.mean(axis=1, keepdims=True)
    unscaled = np.searchsorted(joint_note.SCALES, 1)
    expected = np.corrcoef(product.ravel(), far.ravel())[0, 1]
    assert curve[unscaled, 0] == pytest.approx(expected, abs=1e-9)


def test_the_option_of_joint_space(bundled):
    plain = analysis.run("joint-space", bundled, head="L0H0")
    result = analysis.run("joint-space", bundled, head="L0H0", note=True)
    assert not [name for name in plain.numbers if name.startswith("note")]
    assert result.arrays["note_effect_of_c"] < 1e-9
    assert result.arrays["note_gathered_wide"] < result.arrays["note_gathered_narrow"]
    assert "With the note's own a" in result.says and "<svg" in result.svg
    same = [
        name for name in plain.arrays if np.array_equal(plain.arrays[name], result.arrays[name])
    ]
    assert same == [*plain.arrays]
