"""Figures as SVG: the same bytes each time, and text that is text."""

import re
import unicodedata
from xml.etree import ElementTree

import pytest

from minitx.analysis.drawing import draw
from minitx.analysis.machine import language


def test_svg_does_not_depend_on_the_layout_solvers_last_bits():
    svg = (
        '<path d="M -0 1.5 L 3 -0" clip-path="url(#p0123456789)"/><text>-0</text>'
        '<use href="#C0_1_aaaaaaaaaa"/><clipPath id="p0123456789"/>'
        '<path id="C0_1_aaaaaaaaaa" d="L -0.5 0"/>'
    )
    other = svg.replace("-0 ", "0 ")
    other = other.replace("0123456789", "9876543210").replace("aaaaaaaaaa", "bbbbbbbbbb")
    assert draw.settled(svg) == draw.settled(other)
    assert draw.settled(svg) == (
        '<path d="M 0 1.5 L 3 0" clip-path="url(#p0)"/><text>-0</text>'
        '<use href="#C0_1_1"/><clipPath id="p0"/><path id="C0_1_1" d="L -0.5 0"/>'
    )


def test_figures_below_each_other_keep_their_own_names():
    """A clip path of one must not cut the other: matplotlib counts names in each from 0."""
    svgs = []
    with draw.style():
        for height in (2, 3):
            figure = draw.figure(4, height)
            figure.subplots().plot([0, 1], [0, height], "o-")
            svgs.append(draw.svg(figure))
    whole = draw.titled(draw.below(svgs), "title")
    root = ElementTree.fromstring(whole)
    assert root.get("viewBox") == "0 -24 288 384"
    _, second = inside = root.findall("{*}svg")
    assert [part.get("y") for part in inside] == ["0", "144"]
    named = re.findall(r'id="(.*?)"', whole)
    assert len({*named}) == len(named)
    used = {name for pair in re.findall(r'href="#(.*?)"|url\(#(.*?)\)', whole) for name in pair}
    assert used - {""} <= {*named} and any(name.startswith("f1-") for name in used)
    assert second.get("height") == "216"


def test_labels_make_blanks_visible():
    assert [draw.label(piece) for piece in (" a", "\n", "", "b")] == ["␣a", "⏎", "∅", "b"]
    assert [draw.offset(t) for t in (-1, 0, 2)] == ["-1", "0", "+2"]


@pytest.mark.parametrize("word", ["כלב", "البيت", " כלב קטן"])
def test_words_from_right_to_left_are_kept_on_their_side_of_a_number(word):
    """A number goes with the last letter before it (Unicode's UAX 9, W2 and N1): one from L."""

    def before_number(text):
        kinds = [unicodedata.bidirectional(letter) for letter in text.partition("0")[0]]
        return next(kind for kind in reversed(kinds) if kind in ("L", "R", "AL"))

    assert before_number(f"{word}  0.50") in ("R", "AL")
    assert before_number(f"{draw.label(word)}  0.50") == "L"
    assert draw.label(word).replace("\u200e", "") == word.replace(" ", "␣")
    with draw.style():
        figure = draw.figure(2, 2)
        figure.subplots().set_title(f"{draw.label(word)}  0.50")
        assert f"\u200e{word.strip().replace(' ', '␣')}\u200e  0.50" in draw.svg(figure)
    assert draw.sided("a b\u0301 1") == "a b\u0301 1"


def test_signs_are_those_of_the_text_but_in_tokens():
    with draw.style():
        figure = draw.figure(4, 2)
        axes = figure.subplots()
        axes.set_title("99% at -1")
        axes.set_xticks([0, 1], ["-1: L0-L2", "library-2023"])
        axes.set_yticks([0], ["-5%"])
        draw.of_tokens(axes.yaxis)
        texts = re.findall(r"<text[^>]*>(.*?)</text>", draw.svg(figure))
    assert {"99% at −1", "−1: L0-L2", "library-2023", "-5%"} <= {*texts}


def test_pieces_with_dollars_are_no_formulas():
    with draw.style():
        figure = draw.figure(2, 2)
        axes = figure.subplots()
        axes.set_xticks(range(3), [draw.label(piece) for piece in ("$$", "$", "$x^2$")])
        texts = re.findall(r"<text[^>]*>(.*?)</text>", draw.svg(figure))
    assert {"$$", "$", "$x^2$"} <= set(texts)


def test_scripts_without_a_glyph_are_drawn_without_a_warning(recwarn):
    with draw.style():
        figure = draw.figure(2, 2)
        figure.subplots().set_title("東北")
        assert "東北" in draw.svg(figure)
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


def test_names_at_ticks_are_translated_however_they_are_set():
    """With places, as categories, or by a function; numbers and tokens stay."""
    with language.using("ja"), draw.style():
        figure = draw.figure(6, 2)
        places, categories, function, tokens = figure.subplots(1, 4)
        places.set_xticks([0, 1], ["input", 7])
        categories.plot(["output", "layer 3"], [0, 1])
        function.xaxis.set_major_formatter(lambda x, i: "positions")
        tokens.set_xticks([0], ["position"])
        draw.of_tokens(tokens.xaxis)
        draw.of_tokens(tokens.text(0, 0, "word"))
        texts = {*re.findall(r"<text[^>]*>(.*?)</text>", draw.svg(figure))}
    assert {"入力", "7", "出力", "第3層", "位置", "position", "word"} <= texts
    assert not texts & {"input", "output", "layer 3", "positions"}
