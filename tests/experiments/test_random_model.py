"""A model that has learned nothing gets no yes and no partly to a question about what it learned.

Whole reports on models of the bundles' size: `python tests/tools/null_models.py FOLDER`.
"""

import pytest

from minitx import analysis
from minitx.analysis.contract import registry, verdict

FEW = {"documents": 16, "tokens": 30}  # for those experiments that have them
OWN = {"heads": {"tokens": 12}}  # said twice in 32 places
NOT_FOR_IT = "alignment", "relearn"  # of an encoder-decoder, of a masked model
COUNTED = ("shapes",)  # from sizes, whatever the weights are
ABOUT_MODELS = [name for name, x in analysis.EXPERIMENTS.items() if x.about == "model"]
LEARNED = [name for name in ABOUT_MODELS if name not in (*NOT_FOR_IT, *COUNTED)]


@pytest.mark.parametrize("name", LEARNED)
def test_a_random_model_has_learned_nothing(name, causal):
    own = {option.name for option in analysis.EXPERIMENTS[name].options}
    few = {key: value for key, value in FEW.items() if key in own} | OWN.get(name, {})
    answer = analysis.run(name, causal, **few).answer
    assert answer is None or answer.verdict not in verdict.EFFECTS, answer


def test_what_is_left_out_does_not_apply(causal):
    for name in NOT_FOR_IT:
        with pytest.raises(registry.NotApplicable):
            analysis.run(name, causal)
