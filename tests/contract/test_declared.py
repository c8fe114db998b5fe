"""What experiments declare: numbers with their nulls, sentences as templates, answers by rule."""

import re
from string import Formatter

import numpy as np
import pytest

from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import numbers, options, registry, verdict
from minitx.analysis.contract.rules import (
    Asks,
    Below,
    Each,
    Enough,
    Every,
    Led,
    Of,
    Provided,
    Share,
    Without,
)
from minitx.analysis.drawing import draw
from minitx.analysis.drawing.panels import (
    Bar,
    Line,
    Part,
    bars,
    column,
    curves,
    head_map,
    lines,
    row,
)
from minitx.analysis.drawing.sentences import Names, Rows, When, tell, words

HALF = 0.5  # a constant that templates of this file name
BOTH = {"less": "few", "more": "many"}
R = {
    "n_kept": np.array([7, 2]),
    "n_kept_null": np.array([1.0, 2.0]),
    "n": np.array(8),
    "share": np.array(0.9),
    "share_null": np.array(0.1),
    "offsets": np.array([-1, 2]),
    "names": np.array(["text", "shuffled"]),
    "none": np.array(0),
    "tiny": np.array(-0.0004),
    "share_ends": np.array([0.1, 0.9]),
    "best": np.array(1),
    "which": np.array("more"),
}
ASKED = [e for e in registry.EXPERIMENTS.values() if isinstance(e.answer, Asks)]


COUNTED = {  # numbers of which the rule looks at a share, or at their difference
    "bases": {"columns_svd"},
    "lags": {"n_positions"},
    "mechanisms": {"longest"},
    "reviews": {"accuracy"},
}


def doubled(r):
    """Twice the number n."""
    return 2 * int(r["n"])


# options


def test_an_option_brings_its_help_unless_the_docstring_has_a_line():
    def measure(model, run=None, *, text: options.Text = "sample", seed: options.Seed = 0):
        """A summary.

        seed: seed of the deals
        """

    text, seed = registry.experiment(measure, question="Which?", draw=None).options
    assert text.help == "text to read" and text.ways == options.WAYS
    assert "" not in text.files and seed.help == "seed of the deals"


# numbers


def test_a_number_without_a_null_says_why():
    with pytest.raises(ValueError, match="'share' has neither of null and no_null"):
        numbers.declared("share: share of the heads")
    with pytest.raises(ValueError, match="'share' has both"):
        numbers.Number("share", "share of the heads", null="chance", no_null="none")
    with pytest.raises(ValueError, match="'share of the heads' declares no number"):
        numbers.declared("share of the heads")


def test_one_line_declares_numbers_that_differ_by_a_word():
    text = "last_[q|k]: of [queries|keys]\n    null: shuffled\nfact n: heads"
    q, k, n = numbers.declared(text)
    assert (q.name, q.means, q.null) == ("last_q", "of queries", "shuffled")
    assert (k.name, k.means, n.name) == ("last_k", "of keys", "n")


def test_the_headline_has_what_the_text_declares():
    text = """
        n_kept by names: heads that keep {HALF:.0%} or
            more: of all
            null: with shuffled heads
        fact n: heads
        share: share
            no null: nothing is left
            to chance
        absent: not there
            null: chance
    """
    records = numbers.of_experiment(text, globals())
    assert records[2].no_null == "nothing is left to chance"
    n_kept = {"value": [7, 2], "means": "heads that keep 50% or more: of all"}
    n_kept |= {"labels": ["text", "shuffled"], "null": [1, 2], "null_means": "with shuffled heads"}
    n = {"value": 8, "means": "heads"}
    share = {"value": 0.9, "means": "share"}
    assert numbers.headline(records, R) == {"n_kept": n_kept, "n": n, "share": share}


# sentences


@pytest.mark.parametrize(
    "piece, text",
    [
        ("{n_kept} of {n}; {n_kept_null:.1f}", "7, 2 of 8; 1.0, 2.0"),
        ("{n_kept[-1]} {n_kept.size} {HALF} {doubled}", "2 2 0.5 16"),
        ("{offsets:offset}", "-1, +2"),
        ("{offsets[0].minus} {offsets.abs} {share.percent:.0f} {none.exp:.1f}", "1 1, 2 90 1.0"),
        ("{tiny:.2f} {tiny:.1%} {tiny:+.2f} {tiny:.4f}", "0.00 0.0% -0.00 -0.0004"),
        ("{share_ends:to .0%}", "10% to 90%"),
        ("{n_kept:to .1f}; {names[0]!r}", "7.0 to 2.0; 'text'"),
        ("{offsets.max} {names[best]} {n_kept.sum:.1f}", "2 shuffled 9.0"),
        (["{BOTH[which]}", When("none >= 0", "?"), When("absent >= 0", "!")], "many?"),
        ([When("share > share_null", "more"), When("n == 7", "all", "!")], "more!"),
        (["{n}", When("none", " none", " some"), When("absent", " there")], "8 some"),
        (Rows("{names}: {n_kept} of {n}"), "text: 7 of 8; shuffled: 2 of 8"),
        (Rows("{names}", where="none", none="no row"), "no row"),
        (Rows("{names}", most=1), "text"),
        (Rows("{names}", first=1), "shuffled"),
        (lambda r: f"{r['n']}", "8"),
    ],
)
def test_a_template_tells_results_and_what_the_file_has(piece, text):
    assert tell(piece, Names(R, globals())) == text


def test_a_name_that_nothing_has_is_an_error():
    with pytest.raises(KeyError, match="'nowhere' is no result, and nothing in the experiment's"):
        tell("{nowhere}", Names(R))
    with pytest.raises(KeyError, match="is no field"):
        tell("{n + 1}", Names(R))


# answers


@pytest.mark.parametrize(
    "rule, kind",
    [
        (Of("share", enough=HALF), "yes"),
        (Of("share", null=0.85), "no"),
        (Of("share", null=("share_null", 0.85)), "no"),
        (Of("share", enough=0.95), "partly"),
        (Of("n_kept[0]", out_of="n", enough=HALF), "yes"),
        (Of("n_kept[1]", out_of="n", enough=HALF), "no"),
        (Below("share_null", null="share", enough=HALF), "yes"),
        (Below(lambda r: r["share_null"], null="share", enough=HALF), "yes"),
        (Of("share.minus", null=("share_null", -2)), "no"),
        (Below("share", null="share_null"), "no"),
        (Each("n_kept", out_of="n", enough=HALF), "partly"),
        (Every(Of("share", enough=HALF), Of("n_kept[1]", most="n")), "partly"),
        (Led(Of("n_kept[1]", most="n"), Of("share")), "no"),
        (Led(Of("share"), Of("n_kept[1]", most=lambda r: r["n"])), "partly"),
        (Provided(Of("share"), Of("share", enough=0.95)), "partly"),
        (Provided(Of("n_kept[1]", most="n"), Of("share")), "undecided"),
        (Provided(Of("n_kept[1]", most="n"), Of("share"), otherwise="no"), "no"),
    ],
)
def test_a_rule_sets_a_number_beside_its_null(rule, kind):
    assert rule.verdict(Names(R)) == kind


@pytest.mark.parametrize(
    "ends, kind", [((0.3, 1.0), "yes"), ((0.15, 1.0), "undecided"), ((0.0, 0.15), "no")]
)
def test_both_ends_of_an_interval_decide(ends, kind):
    """An effect is there where both exceed the null by the margin, none where neither does."""
    result = R | {"share": np.mean(ends), "share_interval": np.array(ends)}
    assert Of("share").verdict(Names(result)) == kind


@pytest.mark.parametrize(
    "ends, kind", [((0.05, 0.7), "yes"), ((0.05, 0.85), "undecided"), ((0.85, 0.95), "no")]
)
def test_both_ends_of_an_interval_decide_what_is_below_a_null(ends, kind):
    """The mirrored rule; it looked at the value alone."""
    result = R | {"low": np.mean(ends), "ends": np.array([[0, 0], ends])}
    assert Below("low", null="share", interval="ends[1]").verdict(Names(result)) == kind


def test_each_entry_has_its_own_interval():
    result = {"rises": np.array([0.5, 0.5, 0.0]), "rises_null": np.zeros(3)}
    result["ends"] = np.array([[0.4, 0.6], [0.05, 0.9], [-0.1, 0.05]])
    findings = Each("rises", interval="ends").by_entry(Names(result)).values()
    assert [finding.verdict for finding in findings] == ["yes", "undecided", "no"]


def test_what_depends_on_something_undecided_is_undecided():
    result = R | {"open": np.array(0.5), "open_interval": np.array([0.05, 0.9])}
    rule = Provided(Of("open", null=0), Of("share"), otherwise="no")
    assert rule.verdict(Names(result)) == "undecided"


@pytest.mark.parametrize(
    "n_rows, documents, r2, kind, lack",
    [
        (138, 8, 0.05, "undecided", "; 138 rows for 384 features, 3,840 would do"),
        (138, 8, 0.5, "undecided", "; 138 rows for 384 features, 3,840 would do"),
        (138, 8, 0.95, "yes", ""),
        (3840, 7, 0.05, "undecided", "; 7 documents, 8 would do"),
        (3840, 8, 0.05, "no", ""),
    ],
)
def test_a_fit_to_few_rows_says_yes_or_nothing(n_rows, documents, r2, kind, lack):
    r = {"r2": r2, "r2_null": 0.0, "n_rows": n_rows, "n_features": 384}
    r = {name: np.array(value) for name, value in r.items()}
    r["documents"] = np.array([documents - 2, 1, 1])
    asks = Asks("R²", "{r2:.2f}", "0", Provided(Of("r2", null=-1), Enough(Of("r2", enough=0.9))))
    assert asks(r)[:3] == (kind, "R²", f"{r2:.2f}{lack}")


@pytest.mark.parametrize("null, kind", [(51 / 72, "undecided"), (0.1, "no")])
def test_no_takes_a_null_below_what_is_asked_for(null, kind):
    """Of 11 tokens the nearest is often a shuffled one: a half of the heads would not stand out."""
    result = {"closer": np.array(0.1), "closer_null": np.array(null)}
    assert Share("closer", enough=HALF).verdict(Names(result)) == kind


def fields(piece):
    """The results that a template names, outside of brackets: there stands what is beside it."""
    if isinstance(piece, str):
        bare = re.sub(r"\([^()]*\)", "", piece)
        return {re.match(r"\w+", field)[0] for _, field, *_ in Formatter().parse(bare) if field}
    if isinstance(piece, When):
        return fields(piece.then) | fields(piece.otherwise)
    return set().union(*map(fields, piece)) if isinstance(piece, (list, tuple)) else set()


@pytest.mark.parametrize("experiment", ASKED, ids=lambda e: e.name)
def test_every_number_of_an_answer_is_in_its_rule(experiment):
    """A number that chance could give, told as an answer, and no rule that looks at it."""
    beside_a_null = {x.name for x in experiment.numbers if numbers.null_of(x)}
    rules = [rule.name for rule in experiment.answer.findings() if isinstance(rule.name, str)]
    ruled = {re.match(r"\w+", name)[0] for name in rules}
    named = fields(experiment.answer.value) & beside_a_null
    assert named <= ruled | COUNTED.get(experiment.name, set())


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_an_interval_that_is_not_there_decides_nothing(value):
    """Of one document its ends are nan, as the value of a rule or as its null, too."""
    result = R | {"share": np.array(value), "share_interval": np.full(2, np.nan)}
    for rule in (
        Of("share"),
        Of("share_interval[0]", null=0),
        Of("share_interval[0].max", null=("share_null", "share_interval[1]")),
    ):
        assert rule.verdict(Names(result)) == "undecided"
        given = Provided(rule, Of("n", most="n"), otherwise="no")
        assert given.verdict(Names(result)) == "undecided"
    assert words(result["share_interval"], "to .2f") == "of one document: no interval"


@pytest.mark.parametrize("value, kind", [(9.99, "no"), (8.9, "yes")])
def test_what_is_below_a_null_without_a_largest_value_is_so_by_a_tenth_of_it(value, kind):
    rule = Below("loss", null="guess", most=np.inf)
    assert rule.verdict(Names({"loss": np.array(value), "guess": np.array(10.0)})) == kind


def test_where_there_is_nothing_to_ask_of_the_answer_says_so():
    asks = Asks("shares", "{share}", "{share_null}", Of("share"))
    assert asks(R) == ("yes", "shares", "0.9", "0.1")
    without = Asks("shares", "{share}", "{share_null}", Of("share"), Without("none", "0 heads"))
    assert without(R) == ("undecided", "shares", "0 heads", "0.1")
    instead = Asks("heads", "{n}", "{HALF}", Of("n", null=0), Without("absent", without), globals())
    assert instead(R) == without(R) and instead.findings() == [Of("n", null=0), Of("share")]


@pytest.mark.parametrize("experiment", ASKED, ids=lambda e: e.name)
def test_every_verdict_looks_at_a_null_that_is_declared(experiment):
    """What a rule compares is a number with a null, or a number whose null the rule names."""
    beside_a_null = {x.name for x in experiment.numbers if numbers.null_of(x)}
    for finding in experiment.answer.findings():
        assert finding.null is not None or finding.name.partition("[")[0] in beside_a_null, finding


def test_verdicts_of_rules_are_those_of_the_one_rule():
    finding = Of("n_kept[0]", out_of="n", enough=HALF).finding(Names(R))
    assert finding == verdict.beside(7, 1, enough=4, most=8)


# panels


def small_panels():
    """Two panels in a row, a map below them, and a part of its own."""
    lists = curves("lines", names="names", null="null", title="{n} heads")
    held_out, absent = Line("mean", "held out"), Line("absent", "is not there")
    above = row(lists, lines(held_out, absent, xlabel="layer"), widths=(2, 1), height=3)
    below = row(head_map("shares", "of {n}", times=100), height=lambda r: len(r["shares"]))
    return column(above, below, Part(lambda figure, r: figure.suptitle("own"), height=1))


def test_panels_are_laid_side_by_side_and_below_each_other():
    r = {"lines": np.eye(3), "names": np.array([*"abc"])}
    r |= {"shares": np.eye(2), "layers": [4, 5]}
    r |= {"null": np.full((3, 5, 3), 0.5), "mean": np.arange(3.0)}
    r["n"] = np.array(8)
    picture = small_panels()(r)
    assert picture.get_size_inches().tolist() == [12.5, 6]
    with draw.style():
        draw.svg(picture)
    first, second, third = (axes for part in picture.subfigs for axes in part.axes)
    assert first.get_title() == "8 heads"
    assert len(first.lines) == 7  # three with their nulls, and 0
    assert [line.get_label() for line in second.lines] == ["held out"]
    assert [text.get_text() for text in third.texts] == ["100", "0.0", "0.0", "100"]
    assert [label.get_text() for label in third.get_yticklabels()] == ["4", "5"]


def drawn(panel, r):
    """The axes of one panel."""
    return row(panel)(r).axes[0]


def test_lines_are_of_lists_of_single_numbers_and_of_functions():
    r = {"loss": np.arange(3.0), "loss_null": np.array(2.0), "names": np.array([*"abc"])}
    r |= {"both": np.arange(6.0).reshape(2, 3), "n": np.array(8)}
    ends = Line("loss", "loss", band=lambda r: np.stack([r["loss"] - 1, r["loss"] + 1], axis=1))
    level = Line("loss_null", "level", ":")
    panel = lines(ends, level, Line("both[1]", None), xticks="names", ylabel="of {n}")
    axes = drawn(panel, r)
    assert [line.get_ydata()[-1] for line in axes.lines] == [2, 2, 5]
    assert axes.collections[0].get_datalim(axes.transData).bounds == (0, -1, 2, 4)
    assert axes.get_ylabel() == "of 8"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
    several = drawn(lines(Line(lambda r: r["both"].T, None)), r)
    assert len(several.lines) == 2 and several.get_legend() is None


def test_bars_stand_side_by_side_with_their_intervals_and_nulls():
    r = {"x": np.array([1.0, 2.0]), "null": np.full(2, 0.5), "names": np.array(["a", "b"])}
    r["ends"] = np.array([[0.0, 1.5], [2.0, 4.0]])
    measured = Bar("x", "x", interval="ends", null="null")
    axes = drawn(bars(measured, Bar("null", None), ticks="names"), r)
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == [1, 2, 0.5, 0.5]
    whiskers = axes.collections[0].get_segments()
    assert [ends[:, 1].tolist() for ends in whiskers] == [[0, 1.5], [2, 4]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    assert axes.lines[2].get_ydata().tolist() == [0.5, 0.5]  # behind the ends of the whiskers
