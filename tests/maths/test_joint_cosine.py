"""The quick search for the scale, beside the one that goes scale by scale."""

import numpy as np
import pytest

from minitx.analysis.maths import joint, joint_cosine


def drawn(far, causal, seed=0):
    """Queries, keys as far from 0 as `far`, their means, weights and what is seen."""
    draw = np.random.default_rng(seed)
    q = draw.standard_normal((2, 3, 14, 6)) + far / 3
    k = draw.standard_normal((2, 3, 11, 6)) + far * draw.standard_normal((2, 3, 1, 6))
    seen = np.tri(14, 11, dtype=bool) if causal else np.ones((14, 11), bool)
    weights = seen * draw.random((2, 3, 14, 11))
    means = q.mean(axis=-2), k.mean(axis=-2)
    return q, k, means, weights, seen


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("far", [0, 5])
def test_all_scales_at_once_give_what_each_gives_alone(far, causal):
    given = drawn(far, causal)
    quick, plain = joint_cosine.scan(*given), joint.scan(*given, "cosine", "centred")
    assert quick.shape == plain.shape == (1 + len(joint.SCALES), 2, 3, 6)
    # measured 2e-14 of the largest sum; sums of 154 pairs in another order
    assert abs(quick - plain).max() < 1e-12 * abs(plain).max()
    correlations = joint.correlation(quick), joint.correlation(plain)
    assert abs(correlations[0] - correlations[1]).max() < 1e-11  # 5e-14
    assert np.ptp(correlations[0]) > 0.1
    numbers = [joint.best(x, "head") for x in correlations]
    assert np.array_equal(*numbers)


def test_a_key_at_zero_is_at_a_right_angle_to_all():
    q, k = np.random.default_rng(1).standard_normal((2, 1, 8, 4))
    k[0, 3] = 0
    seen = np.ones((8, 8), bool)
    given = q, k, (q.mean(axis=-2), k.mean(axis=-2)), seen * 1.0, seen
    quick, plain = joint_cosine.scan(*given), joint.scan(*given, "cosine", "centred")
    assert np.allclose(quick, plain, rtol=0, atol=1e-9)
