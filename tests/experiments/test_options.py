"""Options of the experiments: what each may be, and that nothing else reaches an experiment."""

import pytest

from minitx import analysis
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.analysis.contract.options import AtLeast, OrZero, Within
from minitx.analysis.maths import embed_2d, joint, masks
from minitx.analysis.measures import document_features, mask_tap

FROM_ZERO = "tokens", "seed", "low", "high", "stride", "top", "frequency"
FROM_ONE = "shuffles", "clusters", "every", "tables"
RANGES = {  # of numbers that have one of their own; a new option need not be entered
    ("attention", "show"): "2 to 64",
    ("attribution", "documents"): "0, or 2 or more",
    ("bases", "documents"): "0, or 2 or more",
    ("bases", "rotations"): "20 to 1000",
    ("components", "components"): "1 to 64",
    ("components", "documents"): "0, or 2 or more",
    ("chain", "by"): "1 to 4",
    ("dial", "reach"): "1 to 8",
    ("lags", "reach"): "0, or 10 or more",
    ("mask-positions", "documents"): "0, or 2 or more",
    ("mask-positions", "evaluations"): "0, or 8 to 1000",
    ("mechanisms", "documents"): "6 or more",
    ("mechanisms", "every"): "1 or more",
    ("mixing", "show"): "2 to 64",
    ("notch", "bands"): "1 to 8",
    ("notch", "losses"): "0 or more",
    ("predict", "guesses"): "1 to 20",
    ("probe", "documents"): "0, or 6 or more",
    ("queries-keys", "reach"): "0 or more",
    ("queries-keys", "show"): "0, or 8 or more",
    ("relearn", "documents"): "0, or 2 or more",
    ("relearn", "fillers"): "1 to 7",
    ("relearn", "rate"): "0 to 1",
    ("remove-positions", "documents"): "0, or 2 or more",
    ("remove-positions", "every"): "0 or more",
    ("rotation", "gauge"): "2 to 50",
    ("rotation", "compare"): "0 to 1000",
    ("shift", "documents"): "0, or 2 or more",
    ("shift", "steps"): "2 to 64",
    ("singular-values", "components"): "1 or more",
}
SWITCHES = {
    ("joint-grid", "weighted"): False,
    ("joint-space", "weighted"): False,
    ("joint-space", "note"): False,
    ("joint-space", "words"): False,
    ("lags", "bias"): False,
    ("queries-keys", "bias"): False,
    ("remove-positions", "whole"): False,
    ("residual", "carried"): True,
}
CHOICES = {  # the names of a table where there is one, which its maths looks up
    ("components", "method"): {"pca", "ica"},
    ("dial", "move"): {"keys", "queries", "both"},
    ("joint-grid", "distance"): joint.DISTANCES,
    ("joint-grid", "scope"): joint.SCOPES,
    ("joint-grid", "products"): joint.PRODUCTS,
    ("joint-space", "distance"): joint.DISTANCES,
    ("joint-space", "scope"): joint.SCOPES,
    ("joint-space", "products"): joint.PRODUCTS,
    ("joint-space", "method"): embed_2d.METHODS,
    ("mask-positions", "family"): {*masks.FAMILIES, "all"},
    ("mask-positions", "meaning"): {*masks.MEANINGS, "all"},
    ("mask-positions", "positions"): mask_tap.POSITIONS,
    ("probe", "meaning"): masks.MEANINGS,
    ("queries-keys", "input"): {"auto", "text", "positions"},
    ("reviews", "task"): {"auto", "labels", "order"},
    ("reviews", "pool"): document_features.POOLS,
    ("rotation", "completion"): {"mean", "lapack", "procrustes", "thin"},
    ("rotation", "input"): {"text", "positions"},
}
OPTIONS = {(e.name, o.name): o for e in registry.EXPERIMENTS.values() for o in e.options}


def outside(limits):
    if limits is None:
        return []
    if isinstance(limits, OrZero):
        return [-1, *(number for number in outside(limits.others) if number)]
    above = [limits.most + 1] if isinstance(limits, Within) else []
    return [limits.least - 1, *above]


def refused():
    """(experiment, option, value that it may not be, what the error says is wanted)."""
    for (experiment, name), option in OPTIONS.items():
        of_another_kind = {str: 3, bool: 1, int: 2.5, float: "no number"}[option.kind]
        yield experiment, name, of_another_kind, option.wanted
        if option.choices:
            yield experiment, name, f"{option.default}s", option.wanted
        for number in outside(option.range):
            yield experiment, name, number, str(option.range)


# {(option, value, what is wanted): the experiment whose command line refuses it, too}
TYPED = {(name, repr(x), wanted): experiment for experiment, name, x, wanted in refused()}


@pytest.fixture
def no_model(monkeypatch):
    monkeypatch.setattr("minitx.load", lambda *_, **__: pytest.fail("a model was loaded"))


@pytest.mark.parametrize("experiment, name, value, wanted", [*refused()])
def test_no_other_value_reaches_an_experiment(no_model, capsys, experiment, name, value, wanted):
    """From Python, and once for each option on the command line, where a text can say the value."""
    with pytest.raises(ValueError) as error:
        analysis.run(experiment, "tiny-roberta", **{name: value})
    assert str(error.value).startswith(f"{name} is {value!r}")
    assert f"; wanted {wanted}" in str(error.value)
    if OPTIONS[experiment, name].kind is bool or value == 3:
        return
    if TYPED[name, repr(value), wanted] != experiment:
        return
    argv = ["run", experiment, "tiny-roberta", f"--{name.replace('_', '-')}={value}"]
    assert commands.run_command(argv) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"minitx: {name} is ") and line.count("\n") == 1
    assert f"; wanted {wanted}" in line


def test_numbers_have_ranges():
    numbers = {key: option.range for key, option in OPTIONS.items() if option.kind in (int, float)}
    assert None not in numbers.values()
    assert {key: str(numbers[key]) for key in RANGES} == RANGES
    for (experiment, name), limits in numbers.items():
        if name in FROM_ZERO and (experiment, name) not in RANGES:
            assert 0 in limits and -1 not in limits
        if name in FROM_ONE and (experiment, name) not in RANGES:
            assert 1 in limits and 0 not in limits


def test_switches_are_no_numbers():
    switches = {key: option.default for key, option in OPTIONS.items() if option.kind is bool}
    assert {key: switches[key] for key in SWITCHES} == SWITCHES


def test_choices_are_the_names_that_there_are():
    choices = {key: set(OPTIONS[key].choices) for key in CHOICES}
    assert choices == {key: set(names) for key, names in CHOICES.items()}


def test_as_few_documents_as_an_experiment_needs_may_be_asked_for():
    for experiment in registry.EXPERIMENTS.values():
        option = OPTIONS.get((experiment.name, "documents"))
        least = getattr(option and option.range, "others", AtLeast(0)).least
        assert least <= experiment.least_documents


PAIRED = "alignment", "profiles", "patch", "paths", "circuit"


def test_an_option_that_names_files_says_so():
    """A new option that does is entered here; settings hold the sha256 of what it names."""
    named = {key for key, option in OPTIONS.items() if option.files is not None}
    texts = {key for key in OPTIONS if key[1] == "text"}
    with_pairs = {(name, "pairs") for name in PAIRED}
    assert named == texts | with_pairs | {("reviews", "test")}
    pairs = OPTIONS["alignment", "pairs"].files
    assert "mine.jsonl" in pairs and "dates" not in pairs and "" not in pairs
