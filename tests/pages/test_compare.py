"""Two models compared head by head: a copy, a planted change, and what cannot be compared."""

import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from analysis_models import H, L, gpt2
from safetensors.numpy import load_file, save_file

from minitx.analysis import __main__ as cli
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.analysis.machine import language
from minitx.analysis.pages import compare

OPTIONS = ["--documents", "2", "--clusters", "3"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A model, its copy, and one in which the queries of L1H2 are other ones."""
    paths = {}
    for name in ("one", "same", "other"):
        paths[name] = gpt2(tmp_path_factory.mktemp("models") / name)
    file = paths["other"] / "model.safetensors"
    tensors = load_file(file)
    width = tensors["h.1.attn.c_attn.weight"].shape[0]
    part = slice(2 * width // H, 3 * width // H)
    tensors["h.1.attn.c_attn.weight"][:, part] *= -3
    save_file(tensors, file)
    return {name: str(path) for name, path in paths.items()}


def run(folders, a, b, out, *options):
    """The exit code of a comparison of profiles."""
    arguments = [folders[a], folders[b], "--experiment", "profiles", "--out", str(out)]
    return cli.main(["compare", *arguments, *options])


def complaint(capsys, *arguments):
    """The one line that a command leaves on stderr, with exit code 2."""
    assert cli.main([*map(str, arguments)]) == 2
    return capsys.readouterr().err


@pytest.mark.usefixtures("empty_figures")
def test_a_copy_does_not_differ(folders, tmp_path):
    assert run(folders, "one", "same", tmp_path, *OPTIONS) == 0
    stated = json.loads((tmp_path / "compare.json").read_text())
    assert set(stated["measures"]) == {"best_offset", "best_attention"}
    for says in stated["measures"].values():
        assert says["change"] == says["largest"] == says["up"] == says["down"] == 0
        assert says["change_null"] > 0 and says["alike"] == pytest.approx(1)
        assert not np.any(says["difference"])
    assert stated["measures"]["best_attention"]["alike_null"] < 0.9  # of 6 heads: measured 0.73
    options = stated["A"]["options"]
    assert options == stated["B"]["options"]
    assert options["documents"] == 2 and options["clusters"] == 3


@pytest.mark.usefixtures("empty_figures")
def test_a_planted_change_is_found_in_its_head(folders, tmp_path):
    """Layers before it and heads beside it read the same input with the same weights."""
    assert run(folders, "one", "other", tmp_path, *OPTIONS) == 0
    says = json.loads((tmp_path / "compare.json").read_text())["measures"]["best_attention"]
    assert says["head"] == "L1H2"
    changed = np.argwhere(np.array(says["difference"]))
    assert changed.tolist() == [[1, 2]]
    assert says["largest"] == pytest.approx(says["b"][1][2] - says["a"][1][2])
    assert says["change"] == pytest.approx(abs(says["largest"]) / (L * H))


def test_what_is_written(folders, tmp_path, capsys):
    run(folders, "one", "other", tmp_path / "new/out", *OPTIONS, "--of", "best_attention")
    out = tmp_path / "new/out"
    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("[!.]*.*"))
    wanted = ["compare.html", "compare.json", "compare.md", "compare.svg"]
    wanted += [f"{side}/profiles.{end}" for side in "AB" for end in ("json", "npz", "svg")]
    assert names == sorted(wanted)
    table = (out / "compare.md").read_text()
    assert "`best_attention`" in table and "`best_offset`" not in table
    rows = [line for line in table.splitlines() if line.startswith("| L")]
    assert len(rows) == L * H
    assert "L1H2" in capsys.readouterr().out
    svg = (out / "compare.svg").read_text()
    assert "B − A" in svg and folders["other"] in svg


def measured(a, b):
    """A measure of both models, as the page takes it."""
    return a, b, compare.compared(a, b)


A = np.arange(6.0).reshape(2, 3)
MIXED = np.array([[3.0, 0.0, 5.0], [1.0, 4.0, 2.0]])  # the same in another order


def test_a_page_has_an_address_and_its_chance_for_each_measure():
    measures = {"lag": measured(A, A + 1), "mix": measured(A, MIXED)}
    page = compare.page(measures, registry.get("profiles"), ["<one>", "two"])
    for name, (_, _, record) in measures.items():
        assert f'href="#{name}"' in page and f'id="{name}"' in page
        said = page.partition(f'id="{name}"')[2].partition("<figure")[0]
        assert f"any order: {record['change_null']:.3g})" in said
        assert ("No more alike" in said) == (name == "mix")
    pictures = re.findall(r"svg\+xml;base64,([^\"]+)", page)
    assert len(pictures) == 2  # of three panels, with names on their axes
    for text in (b64decode(x).decode() for x in pictures):
        assert all(word in text for word in ("layer", "head", "B − A"))
    assert page.count("<tr>") == 7 and "&lt;one&gt;" in page and "<one>" not in page


RESULT = {
    "share": np.ones((2, 3)),
    "share_null": np.ones((2, 3)),
    "flag": np.ones((2, 3), bool),
    "names": np.full((2, 3), "x"),
    "curve": np.ones((2, 3, 4)),
    "other": np.ones((3, 2)),
    "n": np.array(3),
}


def test_arrays_for_each_head_are_those_that_the_experiment_names():
    """A shape may match by chance, and may depend on options."""
    named = replace(registry.get("profiles"), per_head=("other", "share", "absent", "flag"))
    assert set(compare.per_head(named, RESULT, (2, 3))) == {"share"}
    more = RESULT | {"other": np.ones((2, 3)), "seen": np.ones((2, 3))}
    assert set(compare.per_head(named, more, (2, 3))) == {"share", "other"}
    with pytest.raises(ValueError, match="profiles has no number per head with these"):
        compare.per_head(replace(named, per_head=("absent",)), more, (2, 3))


def test_values_on_both_sides_of_0_have_the_scale_of_sign():
    a = np.array([[-2.0, 1.0]])
    figure = compare.plot({"lag": measured(a, a + 1)})
    images = [axes.images[0] for axes in figure.axes if axes.get_title()]
    assert [image.cmap.name for image in images] == 3 * ["RdBu_r"]
    assert [image.get_clim() for image in images] == [(-2, 2), (-2, 2), (-1, 1)]


def test_heads_with_nothing_in_common_are_said():
    measures = {"same": measured(A, A), "mixed": measured(A, MIXED)}
    table = compare.markdown(measures, registry.get("profiles"), "AB")
    assert "No more alike than heads in any order: `mixed` (" in table.partition("| head |")[0]
    del measures["mixed"]
    assert "No more alike" not in compare.markdown(measures, registry.get("profiles"), "AB")


def test_a_comparison_by_hand():
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    b = np.array([[1.0, 3.0], [2.0, 8.0]])
    says = compare.compared(a, b)
    assert (says["mean_a"], says["mean_b"], says["change"]) == (2.5, 3.5, 1.5)
    assert (says["up"], says["down"]) == (0.5, 0.25)
    assert (says["head"], says["largest"]) == ("L1H1", 4.0)
    assert says["alike"] == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1])
    assert compare.compared(a, np.full((2, 2), 0.1))["alike"] == 0  # nothing varies


@pytest.mark.parametrize("name", compare.comparable())
def test_no_flag_of_an_experiment_is_one_of_compare(name):
    assert commands.parser(["compare", "a", "b", "--experiment", name])


def test_models_of_two_shapes_are_refused_before_any_work(folders, tmp_path, capsys):
    out = tmp_path / "x"
    options = "--experiment", "profiles", "--out", out
    error = complaint(capsys, "compare", folders["one"], "tiny-bert", *options)
    assert "only models of the same shape can be compared head by head" in error
    assert "2 layers x 3 heads and tiny-bert 4 layers x 4 heads" in error
    assert not out.exists()


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ["predict"],
            "predict has no number per head, and cannot be compared head by head; these "
            "can: profiles, alignment, queries-keys, singular-values, bases, rotation, lags,",
        ),
        (["profile"], "unknown experiment 'profile'; did you mean profiles"),
        (
            ["profiles", "--of", "shares", *OPTIONS],
            "--of shares: profiles has, per head, best_offset, best_attention",
        ),
    ],
)
def test_what_cannot_be_compared_is_said(folders, tmp_path, capsys, options, message):
    model = folders["one"]
    options = ["--experiment", *options, "--out", tmp_path]
    assert message in complaint(capsys, "compare", model, model, *options)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "required: --experiment"),
        (["--experiment"], "expected one argument"),
        (["--experiment", "profiles", "--method", "pca"], "unrecognized arguments: --method pca"),
    ],
)
def test_wrong_flags_are_noticed(capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["compare", "tiny-bert", "tiny-bert", *arguments])
    assert message in capsys.readouterr().err


def test_the_flags_are_those_of_the_experiment(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["compare", "--experiment", "joint-grid", "--help"])
    text = capsys.readouterr().out
    assert all(f"--{option.flag}" in text for option in registry.get("joint-grid").options)


def test_what_cannot_be_compared_is_refused_before_any_work(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands.inputs, "load", lambda name: pytest.fail("a model was loaded"))
    arguments = ["tiny-bert", "tiny-bert", "--experiment", "probe"]
    assert "these can: profiles" in complaint(capsys, "compare", *arguments)


def test_help_names_what_can_be_compared(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["compare", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert f"one of {', '.join(compare.comparable())}; its flags" in text.replace("- ", "-")


def test_many_measures_are_drawn_up_to_a_limit():
    measures = {f"m{i}": measured(A, A + i) for i in range(compare.DRAWN + 2)}
    titles = [axes.get_title() for axes in compare.plot(measures).axes]
    assert f"m{compare.DRAWN - 1}: A" in titles and f"m{compare.DRAWN}: A" not in titles


def test_every_axis_of_a_map_has_a_name():
    figure = compare.plot({"m": measured(A, A + 1)})
    maps = [axes for axes in figure.axes if axes.images]
    assert [(axes.get_xlabel(), axes.get_ylabel()) for axes in maps] == [("head", "layer")] * 3


@pytest.mark.parametrize("tongue", language.LANGUAGES)
def test_every_column_has_a_name_of_its_own(tongue):
    with language.using(tongue):
        titles = [language.translated(title) for title in compare.TITLES]
    assert len({*titles}) == len(titles)


@pytest.mark.usefixtures("empty_figures")
def test_figures_may_be_png(folders, tmp_path):
    assert run(folders, "one", "same", tmp_path, *OPTIONS, "--format", "png") == 0
    for file in ("compare.png", "A/profiles.png", "B/profiles.png"):
        assert (tmp_path / file).read_bytes().startswith(b"\x89PNG")
    assert not [*tmp_path.rglob("*.svg")]
