"""Labels in scripts that matplotlib's own font lacks, and figures as PNG."""

import io
import re
import warnings

import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.image import imread
from matplotlib.text import Text

from minitx import analysis
from minitx.analysis import commands
from minitx.analysis.drawing import draw, fonts

ARC = "\u2312"  # a character that STIXGeneral has, which comes with matplotlib, and its default not
JAPANESE = "位置埋め込み"


@pytest.fixture
def stix(monkeypatch):
    """A machine with one further font, which matplotlib's list does not have yet."""
    every = font_manager.fontManager.ttflist
    [path] = {x.fname for x in every if x.fname.endswith("STIXGeneral.ttf")}
    others = [x for x in every if x.name != "STIXGeneral"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", others)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [path, "/other/font.ttf"])
    monkeypatch.setattr(fonts, "KNOWN", {"Absent": "absent", "STIXGeneral": "STIXGen"})
    caches = fonts.installed, fonts._has
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def labelled(label):
    """A figure with this label on an axis, a tick, and a legend."""
    figure = draw.figure(3, 3)
    axes = figure.subplots()
    axes.plot([0, 1], label=label)
    axes.set_xticks([0, 1], ["a", label])
    axes.set_ylabel(label)
    axes.legend()
    return figure


def families(figure, label):
    return {tuple(x.get_fontfamily()) for x in figure.findobj(Text) if x.get_text() == label}


def test_a_text_gets_a_font_that_has_its_characters(stix):
    with draw.style():
        figure = labelled(ARC)
        assert fonts.cover(figure) == ""
        assert families(figure, ARC) == {("DejaVu Sans", "sans-serif", "STIXGeneral")}
        assert families(figure, "a") == {("DejaVu Sans", "sans-serif")}
        assert fonts.cover(labelled(JAPANESE)) == "".join(sorted(set(JAPANESE)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert draw.png(figure, ARC).startswith(b"\x89PNG")


def test_what_no_font_has_is_warned_of_in_a_png_and_left_to_the_viewer_in_an_svg(monkeypatch):
    monkeypatch.setattr(fonts, "installed", list)
    with draw.style():
        for label, title in ((JAPANESE, "a"), ("a", JAPANESE)):
            with pytest.warns(UserWarning, match="no font .* has '.*': .*noto-cjk.* write SVG"):
                draw.png(labelled(label), title)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = draw.svg(labelled(JAPANESE))
            draw.png(labelled("é σ ✓"), "ß")
    texts = re.findall(r"<text[^>]*>(.*?)</text>", drawn)
    assert texts.count(JAPANESE) == 3


def test_figures_without_such_labels_do_not_depend_on_the_fonts(stix, monkeypatch):
    with draw.style():
        with_font = draw.svg(labelled("query"))
        monkeypatch.setattr(fonts, "installed", list)
        assert draw.svg(labelled("query")) == with_font


@pytest.fixture(scope="module")
def result(bundled):
    return analysis.run("positions", bundled, shuffles=1)


def test_a_figure_is_saved_as_png_in_place_of_svg(result, tmp_path):
    result.save(tmp_path)
    result.save(tmp_path, format="png")
    names = ["positions.json", "positions.npz", "positions.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    content = (tmp_path / "positions.png").read_bytes()
    assert content.startswith(b"\x89PNG") and content == result.png
    result.save(tmp_path, format="svg")
    assert not (tmp_path / "positions.png").exists()


def test_a_png_is_the_figure_below_its_title():
    with draw.style():
        drawn, plain = (imread(io.BytesIO(draw.png(labelled("a"), title))) for title in ("T", ""))
    strip = round(24 / 72 * 160)
    assert drawn.shape == (3 * 160 + strip, 3 * 160, 4)
    assert np.array_equal(drawn[strip:], plain[strip:]) and (plain[strip:, :, :3] < 1).any()
    assert (plain[:strip] == 1).all() and (drawn[:strip] < 1).any()


def test_a_format_that_there_is_not_is_refused_before_anything_is_written(result, tmp_path, capsys):
    with pytest.raises(ValueError, match="format is 'pdf'; wanted svg or png"):
        result.save(tmp_path / "out", format="pdf")
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit):
        commands.run_command(["run", "positions", "tiny-roberta", "--format", "pdf"])
    assert "invalid choice: 'pdf'" in capsys.readouterr().err


def test_the_command_writes_the_same_png(result, tmp_path):
    argv = ["run", "positions", "tiny-roberta", "--shuffles", "1", "--format", "png"]
    assert commands.run_command([*argv, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "positions.png").read_bytes() == result.png
    assert not (tmp_path / "positions.svg").exists()
