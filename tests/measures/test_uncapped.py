"""Measures that compute scores from queries and keys refuse a model that caps them."""

import numpy as np
import pytest
import tiny

from minitx.analysis.contract.registry import NotApplicable
from minitx.analysis.measures import heads, joint_fit, mask_tap, mean_kernel
from minitx.analysis.pages import explore

IDS = np.arange(3, 10)
ASKED = {
    "joint space": lambda model: joint_fit.layers(model, IDS, joint_fit.How()),
    "mask": lambda model: mask_tap.tap(model, np.eye(7), "library-now"),
    "mechanism": lambda model: mean_kernel.run_alone(model, IDS, None, None),
    "profiles": lambda model: heads.score_profiles_read(model, IDS),
    "page": lambda model: explore.readable(model, IDS),
}


@pytest.mark.parametrize("name", ASKED)
def test_capped_scores_are_refused(name):
    with pytest.raises(NotApplicable, match="products of queries and keys, and gemma2 caps its sc"):
        ASKED[name](tiny.load("gemma2-capped"))
