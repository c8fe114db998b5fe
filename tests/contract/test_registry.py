"""Registration: names, options and help from the function; an unknown name suggests others."""

import numpy as np
import pytest

from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.contract.options import AtLeast, Option


def test_an_unknown_experiment_suggests_the_near_ones():
    message = "experiment 'profile'; did you mean profiles.*available: positions"
    with pytest.raises(ValueError, match=message):
        registry.get("profile")
    message = r"unknown experiment 'zzz' \(available: positions, models"
    with pytest.raises(ValueError, match=message):
        registry.get("zzz")


def test_a_name_is_given_once():
    def predict(model):
        """Another one."""

    with pytest.raises(ValueError, match="there is already an experiment 'predict'"):
        registry.register(predict, question="Which?", draw=None)


def test_options_and_help_come_from_the_function():
    by_name = {option.name: option for option in registry.get("profiles").options}
    assert by_name["clusters"] == Option("clusters", int, 6, "number of clusters", range=AtLeast(1))
    names = "text pairs documents tokens clustered clusters reach seed".split()
    assert list(by_name) == names


def test_one_function_is_enough(monkeypatch):
    """Question and drawing are all that an experiment must give."""
    monkeypatch.setattr(registry, "EXPERIMENTS", {})

    def layers(model, run=None, *, times: int = 2):
        return {"layers": np.array(times * model.config.n_layers)}

    experiment = registry.register(layers, question="How many layers?", draw=None)
    assert experiment is registry.get("layers")
    assert experiment.summary == "How many layers?"
    assert experiment.options == (Option("times", int, 2),)
    assert registry.headline(experiment, {"layers": np.array(4)}) == {}


def test_a_seed_is_a_number_also_without_a_sample():
    """`report --seed` hands it on to every experiment."""
    assert registry.with_text({"seed": "3"}, is_text=True) == {"seed": 3}
    with pytest.raises(ValueError, match="seed is -1; wanted 0 or more"):
        registry.with_text({"seed": "-1"}, is_text=True)
