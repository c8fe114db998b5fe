"""Models and results that tests of several experiments share."""

from dataclasses import replace

import encoder_decoders
import pytest
import tiny
from outcomes import small

import minitx
from minitx import weights
from minitx.analysis.contract import registry


@pytest.fixture(scope="session")
def outcomes(bundled, causal, tmp_path_factory):
    """(experiment, model) -> result, each computed when it is first asked for.

    Some are of other models.
    """
    random = minitx.load(encoder_decoders.bart(tmp_path_factory.mktemp("bart")))
    both = {"bundled": bundled, "causal": causal}
    others = {
        "alignment": {"bundled": minitx.load("tiny-bart"), "causal": random},
        "relearn": both | {"causal": minitx.load("tiny-bert")},  # of masked models alone
    }

    class Outcomes(dict):
        def __missing__(self, key):
            name, kind = key
            experiment = registry.get(name)
            self[key] = experiment.run(others.get(name, both)[kind], **small(experiment))
            return self[key]

    return Outcomes()


@pytest.fixture(scope="session")
def models(bundled):
    """The bundles, and one of them as a classifier of three classes."""
    bundles = {name: minitx.load(weights.find(name)) for name in ("tiny-bert", "tiny-gpt2")}
    config = replace(bundled.config, task_head="sequence")
    head = {"W_U": bundled.weights.W_U[:, :3], "b_U": bundled.weights.b_U[:3]}
    classifier = tiny.with_weights(replace(bundled, config=config), **head)
    of_tokens = replace(classifier, config=replace(config, task_head="token"))
    return bundles | {"tiny-roberta": bundled, "classifier": classifier, "of tokens": of_tokens}
