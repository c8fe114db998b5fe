"""A model that has learned nothing gets no yes and no partly to a question about what it learned.

Nor does one whose heads have a direction by words, to a question about positions.

On models of the bundles' size: `python tests/tools/null_models.py`.
"""

import json

import directed
import null_models
import pytest

from minitx import analysis, weights
from minitx.analysis.contract import registry, verdict

OWN = {"heads": {"tokens": 12}}  # said twice in 32 places
NOT_FOR_IT = "alignment", "relearn"  # of an encoder-decoder, of a masked model
COUNTED = ("shapes",)  # from sizes, whatever the weights are
ABOUT_MODELS = [name for name, x in analysis.EXPERIMENTS.items() if x.about == "model"]
LEARNED = [name for name in ABOUT_MODELS if name not in (*NOT_FOR_IT, *COUNTED)]
ON_POSITIONS = [
    *("positions", "profiles", "conditions", "kernel", "sources", "queries-keys", "components"),
    *("rotation", "cca", "probe", "dial", "notch", "shift"),
]


def known(name, **options):
    """Those options that an experiment has."""
    return {key: x for key, x in options.items() if key in analysis.EXPERIMENTS[name].option_names}


@pytest.fixture(scope="module")
def by_words():
    """Models whose heads have a direction that words alone make, two layers of them in one."""
    return {kind: directed.by_words(kind) for kind in ("words", "copied")}


@pytest.mark.parametrize("kind", ["words", "copied"])
@pytest.mark.parametrize("name", ON_POSITIONS)
def test_a_direction_by_words_is_no_answer_on_positions(name, kind, by_words):
    """Neither of these models has learned a position; `conditions` finds the heads' directions."""
    result = analysis.run(name, by_words[kind], **known(name, documents=8, tokens=64))
    assert result.answer.verdict not in verdict.EFFECTS, result.answer
    if name == "conditions":
        assert result.arrays["n_directed"] == {"words": 3, "copied": 5}[kind]


def test_random_weights_are_as_large_as_the_configs_say():
    for base in null_models.BASES:
        config = json.loads((weights.find(base) / "config.json").read_text())
        assert config["initializer_range"] == null_models.STD


@pytest.mark.parametrize("name", LEARNED)
def test_a_random_model_has_learned_nothing(name, causal):
    few = known(name, documents=16, tokens=30) | OWN.get(name, {})
    answer = analysis.run(name, causal, **few).answer
    assert answer is None or answer.verdict not in verdict.EFFECTS, answer


def test_what_is_left_out_does_not_apply(causal):
    for name in NOT_FOR_IT:
        with pytest.raises(registry.NotApplicable):
            analysis.run(name, causal)
