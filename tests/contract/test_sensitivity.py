"""How much verdicts hang on their thresholds, from results alone."""

import numpy as np
import pytest

from minitx import analysis
from minitx.analysis.contract import nothing, registry, sensitivity
from minitx.analysis.contract.rules import Asks, Below, Each, Every, Of, Provided, Without
from minitx.analysis.pages import overview, section
from minitx.analysis.running import single
from minitx.loading.files import read_json


def asked(rule, **given):
    """The record of a rule on these results."""
    results = {name: np.array(value) for name, value in given.items()}
    return sensitivity.of(Asks("m", "v", "c", rule), results)


@pytest.mark.parametrize(
    "share, low, high, half, twice, hangs",
    [
        (0.49, 0.49, 1.0, "yes", "partly", True),
        (0.3, 0.3, 1.0, "yes", "partly", False),
        (0.55, 0.125, 0.55, "yes", "partly", True),
        (0.15, 0.125, 1.0, "no", "no", False),
    ],
)
def test_what_is_enough_may_lie_so_far(share, low, high, half, twice, hangs):
    record = asked(Of("share", enough=0.5), share=share, share_null=0.1)["enough"]
    assert record["value"] == 0.5
    assert np.allclose([0.5 * record["from"], 0.5 * record["to"]], [low, high], rtol=0.01)
    assert (record["half"], record["twice"], record["hangs"]) == (half, twice, hangs)


@pytest.mark.parametrize("n, hangs, to", [(16, False, 1 / 0.9), (15, True, 15 / 14.4)])
def test_the_largest_value_hangs_on_no_threshold(n, hangs, to):
    """16 of 16 are enough whatever share is asked for; 15 of 16 are not if it is all."""
    rule = Of("n", out_of="all", enough=0.9)
    record = asked(rule, n=n, n_null=4, all=16)["enough"]
    assert record["hangs"] is hangs and record["to"] == pytest.approx(to, rel=0.01)
    assert record["twice"] == ("partly" if hangs else "yes") and record["reach"] == 1 / 0.9


def test_the_margin_is_a_threshold_too():
    """An effect of 0.15 beyond its null with a margin of 0.1; without a null of its own: times."""
    record = asked(Of("share", enough=0.2), share=0.25, share_null=0.1)["margin"]
    assert record["value"] is None and record["to"] == pytest.approx(1.5, rel=0.01)
    assert (record["from"], record["half"], record["twice"]) == (0.25, "yes", "no")
    record = asked(Below("loss", margin=0.05), loss=1.0, loss_null=1.08)["margin"]
    assert record["value"] == 0.05 and record["hangs"] is False and record["twice"] == "no"


@pytest.mark.parametrize(
    "rule",
    [
        Every(Of("share", enough=0.5), Of("share", null=0)),
        Provided(Of("share", null=0), Of("share", enough=0.5)),
        Each("share", enough=0.5),
    ],
)
def test_rules_made_of_rules_are_scaled_as_a_whole(rule):
    record = asked(rule, share=0.45, share_null=0.1)["enough"]
    assert (record["half"], record["twice"], record["hangs"]) == ("yes", "partly", True)


def test_where_nothing_is_asked_there_is_no_record():
    assert asked(Of("share", margin=0), share=0.45, share_null=0.1) == {}
    assert sensitivity.of(None, {}) == {} and sensitivity.words({}) == ""
    rule = Of("share", enough=0.5)
    assert sensitivity.of(Asks("m", "v", "c", rule), {nothing.KIND: np.array("x")}) == {}
    instead = Asks("m", "v", "c", rule, Without("n", Asks("m", "v", "c", Of("n", null=1))))
    results = {"n": np.array(0), "share": np.array(0.45), "share_null": np.array(0.1)}
    assert sensitivity.of(instead, results)["enough"]["half"] == "no"  # of what is asked instead


def test_a_record_in_words():
    words = sensitivity.words(asked(Of("share", enough=0.5), share=0.49, share_null=0.1))
    assert words.splitlines() == [
        "what is enough for yes: holds from 0.49 to 1 (at 0.25 yes, at 1 partly); hangs on the "
        "threshold",
        "the margin above chance: holds from 0.25 times to 3.9 times (at 0.5 times partly, at 2 "
        "times partly)",
    ]


def test_the_report_has_it_on_hover_and_in_the_json(bundled, tmp_path):
    """Every mark of a verdict with a threshold has a title, and the file of a run the record."""
    analysis.run("positions", "tiny-roberta").save(tmp_path)
    record = read_json(tmp_path / "positions.json")["sensitivity"]
    assert record["margin"]["half"] == "yes"
    experiment = registry.get("positions")
    outcome = single.produce(experiment, bundled, "tiny-roberta", {}, tmp_path)
    answered = overview.answers([(experiment, outcome, 0.0)], str)
    for html in (answered, section.section(experiment, "tiny-roberta", outcome, 0.0)):
        assert 'title="the margin above chance: holds from 0.25 times' in html
