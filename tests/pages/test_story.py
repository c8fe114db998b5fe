"""The story at the top of the report: each sentence from a number that is beyond its null."""

import re
from pathlib import Path

import numpy as np
import pytest
from planted import Page
from strings import templates

import minitx
from minitx import analysis, weights
from minitx.analysis.contract.registry import OF_PICTURES, Answer
from minitx.analysis.machine import language
from minitx.analysis.measures import context_extension
from minitx.analysis.pages import report, sketch, story, themes
from minitx.analysis.pages.glossary import Linker
from minitx.analysis.running.single import Failure, Outcome

ZOO, GOLDEN = weights.find("tiny-roberta").parent / "zoo", Path(__file__).parents[1] / "golden"
EXPERIMENTS = analysis.EXPERIMENTS  # fills OF_PICTURES, too
TEXTS, VIT = (minitx.load(name) for name in ("tiny-roberta", "tiny-vit"))
DIRECTED = {"offset_of_heads": np.array([[-2, 0], [1, 0]]), "directed": np.eye(2)[[0, 0]]}
LAGS = DIRECTED | {
    "n_directed": 2,
    "lag_of_heads": np.zeros((2, 2)),
    "n_positions": 2,
    "n_positions_null": 0,
    "n_positions_by_layer": np.array([1, 1]),
    "documents": 20,
    "T": 128,
}
PROBE = {
    "n_rows": np.array(640),
    "n_features": np.array(64),
    "r2": np.array([[0.9, 0.6], [0.2, 0.25]]),
    "conditions": np.array(["positions on", "random weights, on"]),
    "r2_on": 0.9,
    "r2_on_null": -0.001,
    "r2_on_last": 0.6,
    "r2_interval": np.array([[[0.85, 0.95], [0.5, 0.7]], [[0.1, 0.3], [0.2, 0.3]]]),
    "r2_random": 0.25,
    "r2_random_interval": np.array([0.2, 0.3]),
    "documents": np.array([40, 8, 12]),
}
WITHOUT = {
    "n_predicted": 139,
    "predicts": "pseudo-loss",
    "loss": np.log(12),
    "loss_zero": np.log(400),
    "loss_null": np.log(300),
    "loss_interval": np.log([[10, 14], [250, 600]]),
    "perplexity_interval": np.array([[10, 14], [250, 600]]),
    "documents": 20,
}
RELEARN = {
    "directed": np.eye(2, dtype=bool),
    "n_directed": 2,
    "follows_learned": np.ones((2, 2), bool),
    "follows_fresh": np.array([[True, True], [False, False]]),
    "T": 129,
    "fillers": 3,
}
SHIFTS = {"shifts": np.array([-4, -3, -2, -1, 0, 1, 2, 3, 4]), "documents": 16}
RESULTS = {  # each with an effect
    "positions": {"peak": 1.5, "peak_null": 0.9, "peak_at": 8, "peak_period": 16.0},
    "lags": LAGS,
    "kernel": DIRECTED | {"n_agree": 2, "n_agree_null": 0, "n_directed": 2} | LAGS,
    "dial": {"n_exact": 15, "n_cells": 16, "n_exact_null": 4.0, "n_directed": 2} | SHIFTS,
    "probe": PROBE,
    "remove-positions": WITHOUT,
    "mechanisms": {
        "off": np.array([1.5]),
        "off_null": np.array([0.2]),
        "off_interval": np.array([[1.0, 2.0]]),
    },
    "reviews": {"accuracy": 0.9, "accuracy_zero": 0.5, "accuracy_null": 0.6},
}


def ran(name, result, verdict="yes"):
    """A run of an experiment that gave these results, of which the report is made."""
    return EXPERIMENTS[name], Outcome({}, result, "", {}, "", Answer(verdict, "", "", "")), 0.0


def lines(results, verdict="yes", model=TEXTS):
    """The measured lines of these results: {experiment: text}."""
    runs = [ran(name, r, verdict) for name, r in results.items()]
    return {name: text for _, text, name in story.lines_of(model, runs) if name}


def test_what_is_read_carried_and_lost_is_told_with_its_nulls():
    texts = lines(RESULTS)
    assert [*texts] == ["positions", "lags", "dial", "probe", "remove-positions"]
    assert texts["lags"] == (
        "**2 of 4 heads** have a direction: one fixed offset (−2 to +1 tokens) gets more attention "
        "than any other, at least 10% and 5 times an even share. In each (layers 0 to 1) "
        "positions alone make at least half of the peak of the scores (query positions shuffled: "
        "in none; 20 documents of 128 tokens)."
    )
    assert texts["dial"].startswith("2 heads × 8 shifts of up to 4 tokens: in **15 of 16** cases")
    assert "R² is 0.90 before the first layer, **0.60** after the last layer (" in texts["probe"]
    assert "random weights: 0.25 after layer 0, 0.25 after the last)" in texts["probe"]
    assert texts["remove-positions"] == (
        "Trained with its table, the model has a pseudo-perplexity of 12; with the table at zero "
        "**400** (95% interval 250 to 600; 20 documents). This is neither better nor worse "
        "than guessing each token by its frequency in these documents (300) as far as 139 tokens "
        "tell."
    )


@pytest.mark.parametrize("tongue", language.LANGUAGES)
def test_every_sentence_names_what_its_null_is_and_how_many_documents_were_read(tongue):
    """Not "chance", which is another baseline in each of them."""
    with language.using(tongue):
        for sentence in story.SENTENCES:
            text = " ".join(map(language.translated, templates(sentence.pieces)))
            assert not re.search("chance|偶然", text)
            assert sentence.experiment in WITHOUT_COUNT or "{documents" in text
            assert re.search(r"shuffled|random|guessing|シャッフル|ランダム|推測", text)


WITHOUT_COUNT = {"positions", "relearn", "mechanisms", "reviews"}  # weights, or no such result


def test_shares_of_heads_are_counted():
    given = {"remove-positions": WITHOUT, "relearn": RELEARN}
    assert lines(given)["relearn"] == (
        "With gaps between words and only the table retrained, **2 of 2** heads with a direction "
        "in documents of 32 ordinary tokens look as many words away as before (random table: 1)."
    )


@pytest.mark.parametrize(
    "low, high, words",
    [(310, 600, "worse than guessing"), (100, 290, "still better than guessing")],
)
def test_the_interval_says_how_the_loss_without_positions_compares(low, high, words):
    interval = {"loss_interval": np.log([[10, 14], [low, high]])}
    texts = lines({"remove-positions": WITHOUT | interval})
    assert f"). This is {words} each token" in texts["remove-positions"]


def test_what_random_weights_give_at_the_output_is_not_carried():
    texts = lines({"probe": PROBE | {"r2_on_last": 0.35}})
    assert "**0.35** after the last layer, no more than random weights give (" in texts["probe"]
    by_words = {"r2_on_last": 0.45, "r2_random_interval": np.array([0.3, 0.4])}  # in the input
    texts = lines({"probe": PROBE | by_words})
    assert "**0.45** after the last layer (" in texts["probe"]
    few = PROBE | {"r2_on_last": 0.35, "n_rows": np.array(138)}
    texts = lines({"probe": few})
    assert "layer, too few rows to tell it from what random weights give (" in texts["probe"]
    short = in_short({"probe": few, "remove-positions": WITHOUT, "lags": LAGS})
    assert short and "last layer" not in short


def test_tests_of_the_same_question_that_disagree_are_named():
    given = {"probe": "partly", "components": "yes", "chain": "no", "cca": "undecided"}
    given["residual"] = "nothing"
    asked = PROBE | {"n_pairs": 2}
    runs = [ran(name, asked, kind) for name, kind in given.items()]
    *_, (_, text, name) = story.lines_of(TEXTS, runs)
    assert name == "probe"
    assert text.endswith(
        "after the last). That need not be large, or used: of the 3 tests here, no effect: one "
        "head shifted; undecided: positions stay readable."
    )
    agreeing = [run for run in runs if run[0].name in ("probe", "components")]
    assert story.lines_of(TEXTS, agreeing)[-1][1].endswith("after the last).")
    idle = [ran("chain", {"n_pairs": 0}, "undecided")]
    assert story.lines_of(TEXTS, agreeing + idle)[-1][1].endswith("after the last).")


def in_short(results):
    """The sentence before all others, of these results."""
    runs = [ran(name, r) for name, r in results.items()]
    return story.in_short(story.lines_of(TEXTS, runs), runs)


def test_one_sentence_says_all_of_it_first():
    short = in_short(RESULTS)
    assert short == (
        "In short: in **2 of 4 heads** positions make most of the score at a fixed offset; a "
        "linear probe still finds positions **after the last layer**; without its table the model "
        "is **worse**."
    )
    shown = story.section([("Topic", "a", "lags")], Linker(), short=short)
    assert shown.index("<b>2 of 4 heads</b> positions") < shown.index("Topic")
    assert in_short({"lags": LAGS}) == ""  # the line itself says it
    lost = {"loss_interval": np.log([[10, 14], [310, 600]])}
    changed = {"probe": PROBE | {"r2_on_last": 0.35}, "remove-positions": WITHOUT | lost}
    assert in_short(changed) == (
        "In short: after the last layer a linear probe finds positions no better than with random "
        "weights; without its table the model is worse than guessing tokens by their frequency in "
        "these documents."
    )


def test_where_no_sentence_holds_the_tests_are_counted():
    """An undecided test is not one without an effect, and what is to come is not told."""
    given = {"models": "yes", "lags": "no", "cca": "undecided", "chain": "nothing", "parts": "no"}
    runs = [ran(name, LAGS, kind) for name, kind in given.items()]
    lines = [(themes.ENTER, "By a table.", "")]
    assert story.in_short(lines, runs) == (
        "Tests of positions here: 1 with an effect, 1 without, 1 undecided."
    )
    assert story.in_short(lines, []) == ""


def test_what_a_table_learned_anew_does_stands_beside_the_loss_without_one():
    both = {"remove-positions": WITHOUT, "relearn": RELEARN}
    assert lines(both)["relearn"].startswith("With gaps between words")
    assert lines({"relearn": RELEARN}) == {}
    own = [("Topic", "a", ""), ("Topic", "b", "first"), ("Topic", "c", "second")]
    shown = story.section(own, Linker())
    assert shown.count("href=") == 1 and 'href="#theme-' in shown


def test_the_figure_of_a_line_is_bold_and_plain_in_the_record():
    line = ("Where", "In **3 of 4** heads <b>.", "lags")
    assert "In <b>3 of 4</b> heads &lt;b&gt;." in story.section([line], Linker())
    assert story.plain(line[1]) == "In 3 of 4 heads <b>."


AT_NULL = {  # the value at its null, or the experiment's own answer no
    "positions": {"peak": 0.95},
    "lags": {"n_positions_null": 2},
    "probe": {"r2_random_interval": np.array([0.8, 0.95])},
    "remove-positions": {"loss_interval": np.log([[10, 14], [13, 600]])},
    "mechanisms": {"off_interval": np.array([[0.1, 2.0]])},
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_number_at_its_null_is_not_told(name):
    """One entry at its null; where the rule is the experiment's own, its answer no."""
    assert name in lines({name: RESULTS[name]})
    changed = RESULTS[name] | AT_NULL.get(name, {})
    assert lines({name: changed}, "yes" if name in AT_NULL else "no") == {}


@pytest.mark.parametrize("name", RESULTS)
def test_what_was_not_measured_is_not_told(name):
    nothing = {"nothing": np.array("nothing to move: no mechanism")}
    assert lines({name: nothing}, "nothing") == {}
    runs = [(EXPERIMENTS[name], Failure("needs a head", True), 0.0)]
    assert [line[2] for line in story.lines_of(TEXTS, runs)] == [""]


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in OF_PICTURES])
def test_a_model_of_pictures_has_sentences_of_its_own(name):
    assert lines({name: RESULTS[name]}, model=VIT) == {}


def test_a_topic_is_told_once_and_another_experiment_stands_in():
    both = lines({name: RESULTS[name] for name in ("remove-positions", "mechanisms")})
    assert [*both] == ["remove-positions"]
    relative = {name: RESULTS[name] for name in ("kernel", "mechanisms")}
    assert [*lines(relative)] == ["kernel", "mechanisms"]


@pytest.mark.parametrize("name", ["zoo/masked-none", "zoo/causal-none", "tiny-bart", "tiny-vit"])
def test_every_model_says_how_positions_enter(name):
    ((topic, text, experiment),) = story.lines_of(minitx.load(name), [])
    assert topic == themes.ENTER and text and experiment == ""
    shown = Page(story.section([(topic, text, experiment)], Linker())).of("story")
    assert text in shown


def test_a_model_of_each_mechanism_has_its_sentence():
    kinds = set()
    for folder in [*sorted(ZOO.glob("*-*")), GOLDEN / "marian-shared"]:
        model = minitx.load(folder)
        names = context_extension.mechanisms(model)
        kinds |= {*names}
        text = story.enters(model)
        if names == ["none"]:  # a table of zeros
            assert text == (story.CAUSAL if model.config.causal else story.NONE)
        else:
            assert text == " ".join(story.WAYS[name] for name in names)
    assert kinds == {*story.WAYS, "none"}


def test_a_random_model_has_no_story(causal):
    """Nothing was learned: only how positions enter."""
    options = {"documents": 16, "tokens": 30}
    runs = []
    for name in {line.experiment for line in story.SENTENCES if not line.also}:
        experiment = EXPERIMENTS[name]
        own = {option.name for option in experiment.options}
        given = {key: n for key, n in options.items() if key in own}
        result = analysis.run(name, causal, **given)
        runs.append(ran(name, result.arrays, result.answer.verdict))
    assert [line[2] for line in story.lines_of(causal, runs)] == [""]


def test_the_story_is_told_in_the_readers_language():
    with language.using("ja"):
        texts = lines(RESULTS)
    assert "位置" in texts["lags"]


def test_a_model_of_pictures_is_asked_the_questions_of_pictures():
    """Its story, question, reading and tables are those of what ran in the experiment's place."""
    result = {"peak": 2.1, "peak_null": 1.3, "rows": 8, "columns": 8}
    runs = [ran("positions", result)]
    runs.append((EXPERIMENTS["lags"], Failure("reads texts", True), 0.0))
    positions, lags = (report.asked(VIT, run) for run in runs)
    assert positions[0] is OF_PICTURES["positions"] and lags[0] is EXPERIMENTS["lags"]
    assert report.asked(TEXTS, runs[0]) == runs[0]
    _, second = story.lines_of(VIT, [positions, lags])
    assert "waves over the grid of 8 × 8 patches" in second[1] and second[2] == "positions"


def test_the_first_five_groups_of_answers_have_the_topics_names_and_order():
    """What is chosen in the one is found in the other; a sentence's experiment is in its group."""
    topics = [*dict.fromkeys(line.topic for line in story.SENTENCES)]
    assert topics == [*themes.THEMES][:5]
    assert all(themes.of(line.experiment) == line.topic for line in story.SENTENCES)


@pytest.mark.parametrize("name", themes.SHORT)  # another one has its name
def test_a_list_names_a_question_by_a_few_of_its_words(name):
    """Not by the file's name: at most four words, which share one with the question."""
    short = themes.SHORT[name]
    assert len(short.split()) <= 4 and len({*themes.SHORT.values()}) == len(themes.SHORT)
    stems = [{word.strip(",?:.'").lower()[:5] for word in text.split()} for text in texts_of(name)]
    own = {word.strip(",:").lower()[:5] for word in short.split()} - {"a", "of", "the", "one", "in"}
    assert any(own & words for words in stems), short


def texts_of(name):
    """The question of an experiment, and what is measured."""
    return EXPERIMENTS[name].question, EXPERIMENTS[name].summary


# the pictures beside it


def test_the_picture_shows_the_probe_beside_random_weights_and_shuffled_places():
    r2 = np.array([[0.9, 0.8, 0.6], [0.3, 0.2, 0.1]])
    names = np.array(["positions on", "random weights, on"])
    given = {"r2": r2, "r2_shuffled": -r2 / 1000, "conditions": names}
    runs = [ran("probe", given)]
    html = sketch.figure(runs)
    shown = Page(html)
    assert shown.tags[2][1]["aria-label"].endswith("this model: 0.90, 0.80, 0.60")
    assert [t for t, _, _ in shown.texts if "." in t and " " in t] == [
        "random weights 0.10",
        "positions shuffled 0.00",
        "this model 0.60",
    ]
    assert {"input", "0", "layer 1"} <= {text for text, _, _ in shown.texts}
    heights = re.findall(r'class="trained" points="([^"]*)"', html)[0].split()
    ys = [float(point.partition(",")[2]) for point in heights]
    assert ys == sorted(ys) and ys[0] == pytest.approx(sketch.TOP + 0.1 * sketch.HIGH, abs=0.1)
    assert sketch.figure([]) == "" == sketch.figure([(*runs[0][:1], Failure("no", True), 0.0)])
    del given["r2_shuffled"]
    assert sketch.figure([ran("probe", given)]) == ""


def test_what_the_stream_has_of_positions_stands_layer_by_layer_in_one_table():
    """Where a measure was made at other points of the stream, it is left out."""
    probe = {"r2": np.array([[0.9, 0.8], [0.3, 0.2]]), "r2_shuffled": np.zeros((2, 2))}
    probe["conditions"] = np.array(["positions on", "random weights, on"])
    of_parts = np.array([[0.6, 0.32], [0.9, 0.02]])
    residual = {"parts": np.array(["word", "position"]), "read": np.arange(2), "shares": of_parts}
    residual["shares_null"] = np.stack(3 * [of_parts / 2], axis=1)  # [points tables parts]
    cca = {"mean": np.ones(3), "mean_random": np.ones(3)}
    given = {"probe": probe, "residual": residual, "cca": cca}
    runs = {name: ran(name, r) for name, r in given.items()}
    html = sketch.by_layer({name: run[1] for name, run in runs.items() if name != "cca"})
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", html)
    assert cells[:3] == ["", sketch.STREAM["probe"], sketch.STREAM["residual"]]
    assert cells[3:6] == ["input", "0.90 (0.30)", "0.32 (0.16)"]
    assert cells[6:] == ["layer 0", "0.80 (0.20)", "0.02 (0.01)"]
    assert "<details" in sketch.figure([runs["probe"], runs["residual"]])
    assert "<details" not in sketch.figure([runs["probe"], runs["cca"]])


def test_a_picture_shows_the_loss_without_positions_beside_guesses_by_frequency():
    """Bars as long as the losses, and the interval as a line."""
    html = sketch.figure([ran("remove-positions", WITHOUT)])
    bars = dict(re.findall(r'<rect class="(\w+)" .*?width="([\d.]+)"', html))
    unit = sketch.LONGEST / np.log(600)  # of the interval's end, the farthest
    for kind, loss in (("trained", 12), ("zero", 400), ("random", 300)):
        assert float(bars[kind]) == pytest.approx(unit * np.log(loss), abs=0.1)
    ends = re.search(r'class="range" x1="([\d.]+)" x2="([\d.]+)"', html).groups()
    wanted = sketch.START + unit * np.log([250, 600])
    assert [*map(float, ends)] == pytest.approx(wanted, abs=0.1)
    said = "with its table: 12; table at zero: 400 (33×); guess by frequency: 300"
    assert Page(html).tags[2][1]["aria-label"] == said
    assert "Pseudo-perplexity of hidden tokens" in html and 'href="#remove-positions"' in html
    features = {name: WITHOUT[name] for name in ("predicts", "documents")}
    assert sketch.figure([ran("remove-positions", features)]) == ""
