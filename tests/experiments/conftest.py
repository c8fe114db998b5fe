"""Models and results that tests of several experiments share."""

from dataclasses import replace

import constructed
import encoder_decoders
import numpy as np
import pytest
import tiny
from outcomes import run, small

import minitx
from minitx.analysis.contract import registry


@pytest.fixture(scope="session")
def bert():
    return minitx.load("tiny-bert")


@pytest.fixture(scope="session")
def causal64(causal):
    """The small random causal model in float64."""
    return minitx.load(causal.tokenizer.folder, dtype=np.float64)


@pytest.fixture(scope="session")
def bart(tmp_path_factory):
    """A random encoder-decoder."""
    return minitx.load(encoder_decoders.bart(tmp_path_factory.mktemp("bart") / "bart"))


@pytest.fixture(scope="session", params=encoder_decoders.MAKERS)
def pair(request, tmp_path_factory):
    """A random encoder-decoder of each family."""
    folder = tmp_path_factory.mktemp(request.param) / request.param
    return minitx.load(encoder_decoders.MAKERS[request.param](folder))


@pytest.fixture(scope="session")
def of_constructed():
    """What an experiment gives on each constructed model, by its name and options."""
    built = {name: getattr(constructed, name)() for name in ("waves", "copies", "neither")}

    def on_each(name, **options):
        return {key: run(name, model, **options) for key, model in built.items()}

    return on_each


@pytest.fixture(scope="session")
def outcomes(bundled, causal, bert, bart):
    """(experiment, model) -> result, each computed when it is first asked for.

    Some are of other models.
    """
    both = {"bundled": bundled, "causal": causal}
    others = {
        "alignment": {"bundled": minitx.load("tiny-bart"), "causal": bart},
        "relearn": both | {"causal": bert},  # of masked models alone
    }

    class Outcomes(dict):
        def __missing__(self, key):
            name, kind = key
            self[key] = run(name, others.get(name, both)[kind], **small(registry.get(name)))
            return self[key]

    return Outcomes()


@pytest.fixture(scope="session")
def models(bundled, bert):
    """The bundles, and one of them as a classifier of three classes."""
    bundles = {"tiny-bert": bert, "tiny-gpt2": minitx.load("tiny-gpt2")}
    config = replace(bundled.config, task_head="sequence")
    head = {"W_U": bundled.weights.W_U[:, :3], "b_U": bundled.weights.b_U[:3]}
    classifier = tiny.with_weights(replace(bundled, config=config), **head)
    of_tokens = replace(classifier, config=replace(config, task_head="token"))
    return bundles | {"tiny-roberta": bundled, "classifier": classifier, "of tokens": of_tokens}
