"""Every experiment, on a trained bundle and on a random causal model: arrays, figure, answer."""

import json
import pkgutil
import re
from dataclasses import replace

import numpy as np
import pytest
import surface
import untranslated
from analysis_models import H, L
from contrasts import colors_of_lines, from_grounds
from matplotlib.legend import Legend
from matplotlib.text import Text

from minitx.analysis import experiments
from minitx.analysis.contract import former, registry, results, verdict
from minitx.analysis.contract.numbers import null_of
from minitx.analysis.drawing import draw
from minitx.analysis.pages import compare

EXACT = {"parts", "shapes", "mixing"}  # what answers their question is counted: no chance in it
OF_CROSS = {"strongest", "strongest_shuffled"}  # in cross-attention alone
OF_A_PAIR = {"S", "target_vectors"}  # of an encoder-decoder's source and target
# take longer documents, or a mechanism in the scores
CAUSAL = "follow", "slope", "lost"
OF_KERNELS = {"n_exact_named", "slope_named", "n_cells_named", "n_shared"}  # not of a table
OF_TERMS = {"c2p_share", "p2c_share"}  # of DeBERTa
UNTOLD = {
    ("attention", "bundled"): OF_CROSS,
    ("attention", "causal"): {*OF_CROSS, "to_special", "special_by_layer"},
    ("rotation", "causal"): {
        "right",
        "gauge_peaks_directed",
        "gauge_directed",
        "one_offset_directed",
        "agree_directed",
    },
    ("sources", "bundled"): OF_TERMS,
    ("sources", "causal"): OF_TERMS,
    ("dial", "bundled"): OF_KERNELS,
    ("dial", "causal"): OF_KERNELS,
    ("lags", "causal"): {"agree_directed"},  # too few random heads have a direction
    ("kernel", "bundled"): {"error"},  # a table says nothing of the scores by itself
    ("kernel", "causal"): {"error"},
    ("mechanisms", "bundled"): {"without_fastest", *CAUSAL},  # of rotary models alone
    ("mechanisms", "causal"): {"without_fastest", *CAUSAL},
    ("scale-positions", "causal"): {"sharp"},
    ("inject-positions", "causal"): {"sharp"},
    ("shapes", "bundled"): OF_A_PAIR,
    ("shapes", "causal"): OF_A_PAIR,
    ("parts", "bundled"): {"step_cached", "step_whole", "step_output"},  # an encoder has no steps
}


@pytest.mark.filterwarnings("ignore:Glyph")  # random weights guess bytes that no font has
@pytest.mark.parametrize("name", registry.EXPERIMENTS)
@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_every_experiment_returns_finite_named_arrays_and_draws_them(name, kind, outcomes):
    experiment = registry.get(name)
    arrays = outcomes[name, kind]
    for key, array in arrays.items():
        assert array.dtype.kind in "biufU", key
        assert array.dtype.kind == "U" or np.isfinite(array).all(), key
    headline = registry.headline(experiment, arrays)
    missing = {number.name for number in experiment.numbers} - set(headline)
    assert missing <= UNTOLD.get((name, kind), set())
    assert any("null" in number for number in headline.values()) or name == "parts"
    for number in experiment.numbers:
        has_null = number.name not in headline or "null" in headline[number.name]
        assert has_null or not null_of(number), number
    json.dumps(headline, allow_nan=False)
    for key, number in headline.items():
        named = isinstance(number["value"], list) and not isinstance(number["value"][0], str)
        assert not named or len(number["labels"]) == len(number["value"]), key
    table = results.columns({key: results.Number(**number) for key, number in headline.items()})
    values = [number["value"] for number in headline.values()]
    n_rows = sum(len(value) if isinstance(value, list) else 1 for value in values)
    assert {len(column) for column in table.values()} == {n_rows}
    with draw.style():
        for i, figure in enumerate(experiment.figures(arrays)):
            assert draw.svg(figure).endswith("</svg>\n")
            assert panels(figure) <= 3 or (i and name in OF_MANY)
            assert not cut_off(figure)
            assert not too_small(figure)
            assert not too_pale(figure)
            assert not of_paper(figure)
            assert scales(figure) <= {"Blues", "RdBu_r"}


# further figures with a small panel for every head, cluster, condition or basis, on the same axes
OF_MANY = {"kernel", "profiles", "conditions", "bases"}


RELEASED = json.loads(surface.ARRAYS.read_text(encoding="utf-8"))
OF_A_PROMPT = {"attribute": {"other"}}  # which 1.0 made itself where none was given


@pytest.mark.parametrize("name", RELEASED)
def test_every_experiment_has_the_arrays_that_it_had(name, outcomes):
    """All that 1.0.0 or 1.1.0 gave of the same model, but for those that are said to have gone."""
    gone = {*RELEASED[name].split()} - {*outcomes[name, "bundled"]} - OF_A_PROMPT.get(name, set())
    assert {array.removesuffix("_null") for array in gone} == {*former.WENT.get(name, ())}


@pytest.mark.release
@pytest.mark.parametrize("name", registry.EXPERIMENTS)
@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_every_figure_is_in_japanese(name, kind, outcomes):
    """Titles, axes, legends, ticks and what is written inside; names and tokens stay."""
    assert untranslated.words(registry.get(name), outcomes[name, kind]) == []


def test_words_that_are_left_in_english_are_found():
    def untold(arrays):
        """A figure with a word at a tick, in a legend and in a panel that no catalogue has."""
        figure = draw.figure(3, 2)
        axes = figure.subplots()
        axes.plot([0, 1], label="layer 3, quokka")
        axes.set(xticks=[0, 1], xticklabels=["wombat", "L0H3"], title="W_K, head(1,4)")
        axes.text(0, 0, "echidna")
        draw.of_tokens(axes.text(0, 1, "bilby"))
        axes.legend()
        return figure

    in_english = untranslated.words(replace(registry.get("positions"), draw=untold), {})
    assert {*in_english} == {"第3層, quokka", "wombat", "echidna"}


@pytest.mark.parametrize("name", registry.EXPERIMENTS)
@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_every_experiment_answers_its_question(name, kind, outcomes):
    """In a word, with one number beside its chance, in words that can be quoted alone."""
    experiment = registry.get(name)
    answer, measure, value, chance = experiment.answer(outcomes[name, kind])
    assert answer in verdict.VERDICTS
    assert 10 < len(measure) <= 110
    assert not measure.endswith(".")
    assert re.search(r"\d", value)
    assert re.search(r"\d", chance) or (name in EXACT and not chance)
    number, _, lack = value.partition("; ")  # such as how many rows would do
    assert len(number + chance) <= 60 and len(lack) <= 45


SHAPES = {"alignment": (3, 3), "relearn": (4, 4)}  # layers and heads of other models than `causal`


@pytest.mark.parametrize("name", registry.EXPERIMENTS)
def test_every_experiment_with_numbers_for_each_head_names_them(name, outcomes):
    """Nulls and yes-or-no apart; so what can be compared is known before any work."""
    experiment, result = registry.get(name), outcomes[name, "causal"]
    shape = SHAPES.get(name, (L, H))
    shaped = [array for array, x in result.items() if compare._is_per_head(x, shape)]
    if experiment.per_head:
        named = set(compare.per_head(experiment, result, shape))
        assert named == {*experiment.per_head}
    else:
        assert [array for array in shaped if not array.endswith("_null")] == []


def at_their_nulls(arrays):
    """The same result with every scalar, and list, at its null: nothing exceeds what chance gives.

    Nulls of other shapes, drawn several times for a value or once for several, stay.
    """
    equal = dict(arrays)
    for name, null in arrays.items():
        value = name.removesuffix("_null")
        if value == name or value not in arrays:
            continue
        if null.ndim and null.shape != arrays[value].shape:
            continue
        equal[value] = np.broadcast_to(null, arrays[value].shape).copy()
        interval = arrays.get(f"{value}_interval")
        if interval is not None:
            ends = equal[value][..., None] if interval.ndim > equal[value].ndim else equal[value]
            equal[f"{value}_interval"] = np.broadcast_to(ends, interval.shape).copy()
    return equal


@pytest.mark.parametrize("name", [name for name in registry.EXPERIMENTS if name not in EXACT])
@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_no_answer_is_positive_where_values_are_at_their_nulls(name, kind, outcomes):
    answer = registry.get(name).answer(at_their_nulls(outcomes[name, kind]))
    assert answer.verdict in ("no", "undecided"), answer


def test_what_is_not_about_the_model_says_so_in_its_question():
    words = {"architecture": "Architecturally", "method": "method", "table": "table"}
    for experiment in registry.EXPERIMENTS.values():
        if experiment.about != "model":
            assert words[experiment.about] in experiment.question, experiment.name


def too_small(figure):
    """Words of a figure that are lower than 11 pixels where it is 1,000 pixels wide."""
    scale = 1000 / (72 * figure.get_figwidth())
    shown = [text for text in figure.findobj(Text) if text.get_visible()]
    words = [text.get_text() for text in shown if text.get_fontsize() * scale < 11]
    return [word for word in words if word.strip()]


def panels(figure):
    """How many panels a drawn figure has; twins are one, and colour bars none."""
    figure.dpi = draw.SVG_DPI
    boxes = [axes.bbox for axes in figure.axes if axes.get_visible()]
    return len({tuple(box.extents.round()) for box in boxes if min(box.size) >= 30})


def too_pale(figure):
    """Lines of panels that contrast less with their ground, on paper or in a dark page."""
    return [each for each in colors_of_lines(figure) if min(from_grounds(*each)) < 3]


def of_paper(figure):
    """Words of a figure that a dark page, where black is white, makes wrong."""
    texts = [text.get_text() for text in figure.findobj(Text)]
    return [text for text in texts if re.search(r"\b(black|white|dark|pale|light)\b", text)]


def scales(figure):
    """The colour scales of a figure's maps."""
    images = [image for axes in figure.axes for image in axes.images]
    return {image.cmap.name for image in images if image.get_array().ndim == 2}


def cut_off(figure):
    """Words of a drawn figure that reach beyond its edges; in pixels, and a letter's rim may."""
    renderer = figure._get_renderer()
    left, bottom, right, top = figure.bbox.extents
    words = []
    of_legends = {text for legend in figure.findobj(Legend) for text in legend.get_texts()}
    for text in figure.findobj(Text):
        belongs = text.axes or text in of_legends
        if text.get_visible() and text.get_text().strip() and belongs:
            x, y, x_end, y_end = text.get_window_extent(renderer).extents
            if x < left - 1 or y < bottom - 1 or x_end > right + 1 or y_end > top + 1:
                words.append(text.get_text())
    return words


def test_words_beyond_the_edge_are_found():
    figure = draw.figure(3, 2)
    figure.subplots().set_title("a title that is far longer than its figure is wide " * 2)
    draw.svg(figure)
    assert [words[:7] for words in cut_off(figure)] == ["a title"]
    figure = draw.figure(3, 2)
    figure.subplots().plot([1], label="a legend that is far longer than its figure is wide " * 2)
    figure.legend(loc="outside lower center")
    draw.svg(figure)
    assert [words[:8] for words in cut_off(figure)] == ["a legend"]


@pytest.mark.parametrize("experiment", registry.EXPERIMENTS.values(), ids=lambda e: e.name)
def test_every_experiment_says_what_a_reader_needs(experiment):
    assert len(experiment.question.split()) > 3 and experiment.question.endswith("?")
    texts = experiment.look, experiment.published, experiment.summary
    for text in texts:
        assert re.fullmatch(r"[A-Z(`].{30,}[.)]", text, re.DOTALL), text
    assert len({*texts, experiment.question}) == 4  # none repeats another
    for number in experiment.numbers:
        for means in (number.means, null_of(number)):
            other = re.search(r"\bthe same\b|likewise|as above|\bthese\b", means)
            assert not other, f"say in full what {means!r} is"
    assert all(option.help for option in experiment.options)
    assert all(option.checked(option.default) == option.default for option in experiment.options)
    text = registry.markdown().replace("\n", " ")
    is_in_paper = registry.PAPERS.match(experiment.figure)
    question = f" | {experiment.question} | " if is_in_paper else ""
    assert f"`{experiment.name}`{question}" in text


def test_every_file_of_experiments_is_on_the_list():
    modules = [module for module in pkgutil.iter_modules(experiments.__path__) if not module.ispkg]
    files = {module.name for module in modules}
    files -= {name for name in files if name.startswith("_")}  # each serves one experiment
    assert files == set(experiments.IN_ORDER)
    assert files == {e.run.__module__.rpartition(".")[2] for e in registry.EXPERIMENTS.values()}
