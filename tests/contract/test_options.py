"""Options: read from annotations, checked once, the same from Python and on the command line."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest

from minitx import analysis
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.analysis.contract.options import WAYS, AtLeast, Option, OrZero, Within, understand
from minitx.analysis.running import settings
from minitx.analysis.texts import storage


def tried(
    model,
    run=None,
    *,
    text: str = "sample",
    distance: Literal["cosine", "euclidean"] = "cosine",
    times: Annotated[int, AtLeast(1)] = 2,
    gauge: Annotated[int, Within(2, 50)] = 8,
    reach: Annotated[int, OrZero(AtLeast(10))] = 0,
    rate: Annotated[float, Within(0.0, 1.0)] = 0.5,
    whole: bool = False,
    a_mean: bool = True,
):
    """Options of all kinds.

    whole: the whole of it
    """
    pytest.fail("the experiment began")


@pytest.fixture
def experiment(monkeypatch):
    """An experiment with options of all kinds, on the list."""
    monkeypatch.setattr(registry, "EXPERIMENTS", dict(registry.EXPERIMENTS))
    return registry.register(tried, question="Which?", draw=None)


def test_annotations_are_understood(experiment):
    options = {option.name: option for option in experiment.options}
    assert options["whole"] == Option("whole", bool, False, "the whole of it")
    assert options["distance"] == Option("distance", str, "cosine", choices=("cosine", "euclidean"))
    assert options["times"] == Option("times", int, 2, range=AtLeast(1))
    assert options["rate"] == Option("rate", float, 0.5, range=Within(0.0, 1.0))
    assert options["a_mean"].flag == "a-mean"


@pytest.mark.parametrize(
    "annotation, default, message",
    [
        (None, 2, "annotation of 'x' is None; wanted one of bool, int, float, str, a Literal"),
        (list, [], "annotation of 'x' is <class 'list'>"),
        (Literal[1, 2], 1, r"annotation of 'x' is typing.Literal\[1, 2\]"),
        (int | None, None, r"annotation of 'x' is int \| None"),
        (bool, 0, "default of 'x' is 0; wanted True or False"),
        (Annotated[float, AtLeast(0)], float("inf"), "x is inf; wanted 0 or more"),
        (int, True, "default of 'x' is True; wanted a whole number"),
        (float, 1, "default of 'x' is 1; wanted a number"),
        (str, None, "default of 'x' is None; wanted text"),
        (Literal["a", "b"], "c", "x is 'c'; wanted one of a, b"),
        (Annotated[int, AtLeast(1)], 0, "x is 0; wanted 1 or more"),
    ],
)
def test_what_is_no_option_is_refused(annotation, default, message):
    with pytest.raises(ValueError, match=message):
        understand("x", annotation, default)


def test_an_experiment_with_such_an_option_cannot_be_registered(monkeypatch):
    monkeypatch.setattr(registry, "EXPERIMENTS", {})

    def bare(model, run=None, *, times=2):
        """Times has no annotation."""

    with pytest.raises(ValueError, match="the annotation of 'times' is None"):
        registry.register(bare, question="Which?", draw=None)
    assert not registry.EXPERIMENTS


GIVEN = [  # option, value in Python, the same on the command line, what both come to
    ("times", np.int64(3), ["--times", "3"], 3),
    ("gauge", 50, ["--gauge", "50"], 50),
    ("reach", 0, ["--reach", "0"], 0),
    ("rate", 1, ["--rate", "1"], 1.0),
    ("rate", np.float32(0.25), ["--rate", ".25"], 0.25),
    ("distance", "euclidean", ["--distance", "euclidean"], "euclidean"),
    ("text", Path("a"), ["--text", "a"], "a"),
    ("whole", np.True_, ["--whole"], True),
    ("a_mean", False, ["--no-a-mean"], False),
]


@pytest.mark.parametrize("name, value, flags, wanted", GIVEN)
def test_values_are_the_same_from_python_and_the_command_line(
    experiment, name, value, flags, wanted
):
    arguments = commands.parser().parse_args(["run", "tried", "no-model", *flags])
    on_command_line = commands.flags.options_of(experiment, arguments)[name]
    for checked in (experiment.checked({name: value})[name], on_command_line):
        assert checked == wanted and type(checked) is type(wanted)


REFUSED = [  # option, value, what is said
    ("times", 0, "times is 0; wanted 1 or more"),
    ("times", "many", "times is 'many' (str); wanted a whole number, 1 or more"),
    ("gauge", 51, "gauge is 51; wanted 2 to 50"),
    ("gauge", 1, "gauge is 1; wanted 2 to 50"),
    ("reach", 9, "reach is 9; wanted 0, or 10 or more"),
    ("rate", float("nan"), "rate is nan; wanted 0 to 1"),
    ("distance", "cosin", "distance is 'cosin'; wanted one of cosine, euclidean; did you mean "),
    ("distance", "?", "distance is '?'; wanted one of cosine, euclidean"),
]
REFUSED_IN_PYTHON = [
    ("times", 2.0, "times is 2.0 (float); wanted a whole number, 1 or more"),
    ("times", True, "times is True (bool); wanted a whole number"),
    ("rate", False, "rate is False (bool); wanted a number"),
    ("whole", 1, "whole is 1 (int); wanted True or False, such as False"),
    ("whole", "yes", "whole is 'yes' (str); wanted True or False"),
    ("distance", 3, "distance is 3 (int); wanted one of cosine, euclidean"),
    ("text", None, "text is None (NoneType); wanted text, such as 'sample'"),
]


@pytest.mark.parametrize("name, value, message", REFUSED + REFUSED_IN_PYTHON)
def test_what_an_option_may_not_be_is_refused_before_any_work(experiment, name, value, message):
    with pytest.raises(ValueError) as error:
        analysis.run("tried", "a model that there is not", **{name: value})
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name, value, message", REFUSED)
def test_the_command_line_says_it_in_the_same_line(experiment, capsys, name, value, message):
    assert commands.run_command(["run", "tried", "no-model", f"--{name}", str(value)]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"minitx: {message}") and line.count("\n") == 1


def test_a_switch_is_the_number_that_it_was_to_a_run_that_is_gone_on_with():
    stated = {"experiment": "lags", "options": {"bias": 1, "text": "sample"}}
    switched = {"experiment": "lags", "options": {"bias": True, "text": "sample"}}
    assert switched == stated and settings.key(switched) == settings.key(stated)
    switched["options"]["bias"] = False
    assert settings.key(switched) != settings.key(stated)


def test_help_shows_choices_ranges_and_switches(experiment, capsys):
    with pytest.raises(SystemExit, match="0"):
        commands.run_command("run tried --help".split())
    text = " ".join(capsys.readouterr().out.split())
    assert "Which?" in text and all(f"--{option.flag}" in text for option in experiment.options)
    assert "--distance {cosine,euclidean}" in text
    assert "(default 8; 2 to 50)" in text and "(default 2; 1 or more)" in text
    assert "[--whole]" in text and "--no-whole" not in text
    assert "--a-mean, --no-a-mean" in text


def test_the_help_of_a_text_names_every_layout_that_is_read():
    assert [x for x in storage.LAYOUTS if x not in WAYS] == []
