"""An experiment from Python: what the command gives, as a Result that shows itself."""

import re
import shutil
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import undrawn
from threadpoolctl import threadpool_info

import minitx
from minitx import analysis, weights
from minitx.analysis import commands
from minitx.analysis.contract import registry, results, wording
from minitx.analysis.running import blas, single
from minitx.loading.files import read_json
from minitx.words.text import Wrapped

HOSTILE = '<script>alert("&")</script>'


@pytest.fixture(scope="module")
def result(bundled):
    """A run that takes no time."""
    return analysis.run("positions", bundled, shuffles=5)


@pytest.mark.parametrize(
    "name, options",
    [
        ("positions", {"shuffles": 5}),
        ("attention", {"show": 4, "tokens": 24, "seed": 3}),
        ("queries-keys", {"tokens": 24, "bias": True, "head": "L0H1"}),
    ],
)
@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_saved_result_is_the_commands_to_the_byte(tmp_path, bundled, name, options, is_loaded):
    flags = [
        f"--{option}" if value is True else f"--{option}={value}"
        for option, value in options.items()
    ]
    command = ["run", name, "tiny-roberta", "--out", str(tmp_path / "command"), *flags]
    assert commands.run_command(command) == 0
    model = bundled if is_loaded else "tiny-roberta"
    saved = analysis.run(name, model, **options).save(tmp_path / "python")
    for ending in ("svg", "npz", "json"):
        file = f"{name}.{ending}"
        assert (saved / file).read_bytes() == (tmp_path / "command" / file).read_bytes()
    title = results.escape(f"{registry.get(name).question}  (tiny-roberta)")
    assert f">{title}</text>" in (saved / f"{name}.svg").read_text(encoding="utf-8")


def test_numbers_are_those_of_the_file(tmp_path, result):
    record = read_json(result.save(tmp_path) / "positions.json")
    assert [*result.numbers] == [*record["headline"]]
    for name, number in record["headline"].items():
        own = result.numbers[name]._asdict()
        assert {key: own[key] for key in number} == number
        assert not any(own[key] for key in own.keys() - number.keys())
    assert any(number.null is not None for number in result.numbers.values())
    assert result.says == record["says"] and result.answer._asdict() == record["answer"]
    assert result.settings == record["settings"] and record["format"] == 1
    with np.load(tmp_path / "positions.npz") as arrays:
        assert all(np.array_equal(arrays[name], result.arrays[name]) for name in result.arrays)


def test_names_are_written_as_in_python_or_as_on_the_command_line(bundled):
    both = [analysis.run(name, bundled, tokens=24) for name in ("queries-keys", "queries_keys")]
    assert both[0].experiment == both[1].experiment == "queries-keys"
    options = {"a_name": 1, "a-name": 1}
    spelled = replace(registry.get("positions"), run=probe_of_options)
    assert [spelled.checked({name: 1}) for name in options] == [{"a_name": 1}] * 2


def probe_of_options(model, run=None, *, a_name: int = 0, text: str = "sample"):
    """Options of both types."""


# --- what is wrong is said before any work


@pytest.mark.parametrize(
    "name, options, match",
    [
        ("rotatoin", {}, "unknown experiment 'rotatoin'; did you mean rotation"),
        ("rotation", {"gage": 4}, r"rotation has no option 'gage' \(available: head='auto', .*=8,"),
    ],
)
def test_a_wrong_name_is_refused_before_the_model_is_loaded(name, options, match):
    with pytest.raises(ValueError, match=match):
        analysis.run(name, "a model that there is not", **options)


def test_a_model_in_the_experiments_place_is_refused(bundled):
    message = "Model is not a name; the name of an experiment comes first"
    with pytest.raises(ValueError, match=message):
        analysis.run(bundled, "positions")


def test_commands_and_pages_check_types_too(tmp_path, bundled):
    positions, wrong = registry.get("positions"), {"shuffles": "5"}
    with pytest.raises(ValueError, match=r"shuffles is '5' \(str\)"):
        single.produce(positions, bundled, "tiny-roberta", wrong, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_partial_checkpoint_runs_what_it_can(bundled):
    partial = replace(bundled, missing=("a tensor",))
    with pytest.raises(registry.NotApplicable, match="profiles needs the whole model; 1 tensors"):
        analysis.run("profiles", partial)
    assert analysis.run("positions", partial, shuffles=5).settings["missing"] == ["a tensor"]


def test_a_model_without_tokenizer_is_refused(bundled):
    with pytest.raises(ValueError, match="this model has no tokenizer"):
        analysis.run("positions", replace(bundled, tokenizer=None))


def test_a_download_is_named_by_its_hub_id(tmp_path, bundled):
    commit = tmp_path / "models--some--model" / "snapshots" / "abc123"
    commit.mkdir(parents=True)
    model = replace(bundled, tokenizer=type(bundled.tokenizer)(commit, "roberta"))
    assert single._name_of(model) == "some/model"


# --- how it shows itself


def test_the_figure_is_ones_own_and_has_the_title(result):
    first, second = result.figure(), result.figure()
    assert first is not second
    question = "Do position embeddings have spectral peaks away from frequency 0?"
    assert first.get_suptitle() == f"{question}  (tiny-roberta)"
    first.axes[0].set_title("mine")
    assert second.axes[0].get_title() != "mine"
    plain = result._experiment.draw(result.arrays).get_figheight()
    assert first.get_figheight() == pytest.approx(plain + 24 / 72)
    assert first._repr_png_().startswith(b"\x89PNG")  # what a notebook asks for
    assert first._repr_png_() != second._repr_png_()


def test_repr_is_a_line(result):
    assert repr(result).startswith("<Result of positions on tiny-roberta: ")
    assert result.answer.value in repr(result) and len(repr(result)) < 120


def test_a_notebook_shows_figure_answer_words_and_numbers_with_nulls(result):
    html = result._repr_html_()
    assert html.count("<img") == 1 and "data:image/svg+xml;base64," in html
    assert results.escape(wording.sentence(result.answer)) in html
    assert results.escape(result.says) in html
    for number in result.numbers.values():
        assert results.escape(number.means) in html
        if number.null is not None:
            assert results.escape(number.null_means) in html
            assert results.escape(wording.words(number.null)) in html
    assert html.count("<tr><td") == len(result.numbers)
    signed = replace(result, says="At -1.5, not in L0-L2")
    assert "<p>At −1.5, not in L0-L2</p>" in signed._repr_html_()


def test_a_notebook_keeps_the_figure_where_no_html_can_be_shown(result):
    """As LaTeX and PDF; coarser than the file, since a notebook stores it beside the SVG."""
    picture = result._repr_png_()
    assert picture.startswith(b"\x89PNG") and 10_000 < len(picture) < len(result.png)


def test_nothing_in_a_name_or_a_text_becomes_markup(result):
    stated = result.settings | {"model": HOSTILE}
    answer = result.answer._replace(measure=HOSTILE)
    numbers = [replace(number, means=HOSTILE) for number in result._experiment.numbers]
    experiment = replace(result._experiment, numbers=numbers)
    hostile = replace(result, settings=stated, says=HOSTILE, answer=answer, _experiment=experiment)
    html = hostile._repr_html_()
    assert "<script" not in html and '"&"' not in html
    assert html.count("&lt;script&gt;") >= 3 + len(result.numbers)
    assert "<script" not in hostile.svg


def test_the_list_tells_names_questions_and_options():
    assert analysis.EXPERIMENTS is registry.EXPERIMENTS
    about = repr(analysis.EXPERIMENTS["positions"])
    assert about.startswith("<positions: Do position embeddings have spectral peaks away from")
    assert "shuffles=500" in about
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        analysis.nothing  # noqa: B018


# --- threads


def threads_of_blas():
    """How many each BLAS has."""
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def threads_seen(model, run=None, *, seed: int = 0):
    """Threads of NumPy's and of SciPy's BLAS while an experiment runs."""
    return {"threads": threads_of_blas()}


@pytest.fixture
def two_threads(monkeypatch):
    """An experiment that counts threads, where both have two."""
    counting = registry.Experiment(threads_seen, "How many?", draw=undrawn.empty)
    monkeypatch.setitem(registry.EXPERIMENTS, "threads-seen", counting)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    with blas.limit(2):
        if threads_of_blas() != [2, 2]:
            pytest.skip("this BLAS cannot be asked")
        yield


@pytest.mark.usefixtures("two_threads")
def test_products_have_one_thread_while_an_experiment_runs(bundled, monkeypatch):
    assert analysis.run("threads-seen", bundled).arrays["threads"].tolist() == [1, 1]
    assert threads_of_blas() == [2, 2]
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")  # the user's choice
    assert analysis.run("threads-seen", bundled).arrays["threads"].tolist() == [2, 2]


@pytest.mark.usefixtures("two_threads")
def test_products_have_one_thread_where_files_are_written(bundled, tmp_path):
    """As a report does in the caller's own process."""
    outcome = single.produce(registry.get("threads-seen"), bundled, "x", {}, tmp_path)
    assert outcome.result["threads"].tolist() == [1, 1]
    assert threads_of_blas() == [2, 2]


def test_a_model_with_other_weights_gives_other_numbers(result, bundled):
    """An experiment sees the Model that it is given, not the files that this came from."""
    weights = vars(bundled.weights) | {"W_pos": bundled.weights.W_pos[::-1] * 2}
    other = replace(bundled, weights=type(bundled.weights)(**weights))
    assert isinstance(other, minitx.Model)
    changed = analysis.run("positions", other, shuffles=5)
    assert changed.numbers["peak"].value != result.numbers["peak"].value
    assert changed.settings["changed"] == ["W_pos"] and "changed" not in result.settings


def test_a_command_does_not_take_up_results_of_a_changed_model(tmp_path, result, bundled):
    layer = vars(bundled.layers[1]) | {"W_Q": bundled.layers[1].W_Q * 0}
    layers = list(bundled.layers)
    layers[1] = type(layers[1])(**layer)
    config = replace(bundled.config, eps=0.5)
    other = replace(bundled, layers=tuple(layers), config=config)
    changed = analysis.run("positions", other, shuffles=5)
    assert changed.settings["changed"] == ["config", "W_Q.L1"]
    assert changed.settings | {"changed": None} == result.settings | {"changed": None}
    changed.save(tmp_path)
    positions = registry.get("positions")
    assert single.finished(positions, changed.settings, tmp_path)
    assert single.finished(positions, result.settings, tmp_path) is None


CONTROLS = "a \x01 dog\x1b[2J ran \x7f\x85 away \uffff now."


def test_control_characters_leave_a_figure_well_formed(tmp_path, bundled):
    """In a sentence, a text and a folder's name; such a file was no XML, and exit was 0."""
    folder = tmp_path / "a\x1b[31mb\x07"
    shutil.copytree(weights.find("tiny-roberta"), folder)
    text = tmp_path / "text.txt"
    text.write_text(f"{CONTROLS} " * 20, encoding="utf-8")
    options = {"attention": {"text": str(text), "tokens": 24}, "shapes": {"sentence": CONTROLS}}
    for name, given in options.items():
        result = analysis.run(name, str(folder), **given)
        for svg in (result.svg, *result.drawn[0]):
            shown = "".join(ElementTree.fromstring(svg).itertext())
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
        assert "\ufffd" in result.svg
        assert result.png[:4] == b"\x89PNG"


def test_a_table_has_a_row_for_each_number_and_each_entry_of_a_list():
    labels = ["L0", "L1"]
    mean = results.Number([1.0, 2.0], "a mean", [0.1, 0.2], "by chance", labels)
    most = results.Number([3, 4], "the most", 0.5, "of both", labels)
    numbers = {"mean": mean, "most": most, "size": results.Number(7, "a size")}
    table = results.columns(numbers)
    assert table["number"] == ["mean", "mean", "most", "most", "size"]
    assert table["label"] == ["L0", "L1", "L0", "L1", ""]
    assert table["value"] == [1.0, 2.0, 3, 4, 7]
    assert table["null"] == [0.1, 0.2, 0.5, 0.5, None]
    assert table["means"][0] == "a mean" and table["null_means"][2] == "of both"


def test_a_model_in_memory_is_known_by_its_arrays(bundled):
    model = replace(bundled, tokenizer=in_memory(bundled))
    first, again = (analysis.run("positions", model, shuffles=5) for _ in range(2))
    of_files = analysis.run("positions", bundled, shuffles=5)
    assert first.settings == again.settings and first.settings["model"] == "in memory"
    for name, x in of_files.arrays.items():
        np.testing.assert_array_equal(first.arrays[name], x, err_msg=name)
    weights_changed = type(model.weights)(**vars(model.weights))
    weights_changed.W_pos = model.weights.W_pos + np.float32(1e-6)
    other = analysis.run("positions", replace(model, weights=weights_changed), shuffles=5)
    assert other.settings["weights"] != first.settings["weights"]
    assert other.settings["files"] == first.settings["files"]


def in_memory(model):
    """The tokenizer of a model, without its folder."""
    import tokenizers

    file = str(model.tokenizer.folder / "tokenizer.json")
    return Wrapped(tokenizers.Tokenizer.from_file(file), "roberta")


@pytest.mark.parametrize(
    "documents, said",
    [
        (np.array(7), "Intervals are of 7 documents: wide."),
        (np.array([48, 16, 4]), "Intervals are of 4 documents: wide."),  # those to test on
        (np.array(8), ""),
        (np.array(1), ""),  # has none, as is said in its place
    ],
)
def test_intervals_of_few_documents_are_said_to_be_wide(documents, said):
    numbers = {"documents": documents, "loss": np.array(2.0)}
    assert results.of_few(numbers | {"loss_interval": np.array([1.0, 3.0])}) == said
    assert results.of_few(numbers) == ""
