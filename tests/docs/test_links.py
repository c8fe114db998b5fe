"""The check of links: it follows what leads inside, and refuses what a page would load outside."""

import pytest

from docs import links

GOOD = """
<link rel="stylesheet" href="_static/page.css?v=1"><link rel="author" href="about.html">
<a href="two.html#there">x</a><a href="#here">y</a><a href="https://example.org">z</a>
<p id="here" style="background: url(a.png)"><img src="a.png"><img src="data:image/png;base64,AA">
"""
WRONG = {  # a piece of a page -> what is said of it
    '<a href="three.html">': "three.html: no such file",
    '<a href="two.html#nowhere">': "two.html#nowhere: no such name in that page",
    '<a href="#nowhere">': "#nowhere: no such name in that page",
    '<img src="b.png">': "b.png: no such file",
    '<img src="https://example.org/a.png">': "https://example.org/a.png: lies outside",
    '<script src="//example.org/a.js"></script>': "//example.org/a.js: lies outside",
    '<link rel="stylesheet" href="https://example.org/a.css">': "a.css: lies outside",
    '<link rel="preload" href="http://example.org/a.woff2">': "a.woff2: lies outside",
    '<p style="background: url(https://example.org/a.png)">': "a.png: lies outside",
}


@pytest.fixture
def site(tmp_path):
    """A folder of pages in which nothing is wrong."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static/page.css").write_text("p { background: url('../a.png') }")
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "two.html").write_text('<a name="there"></a>')
    (tmp_path / "one.html").write_text(GOOD)
    return tmp_path


def test_nothing_is_wrong(site):
    assert [*links.problems(site)] == []
    assert links.main([site]) == 0


@pytest.mark.parametrize("piece", WRONG)
def test_what_is_wrong_is_said(piece, site, capsys):
    (site / "one.html").write_text(GOOD + piece)
    (problem,) = links.problems(site)
    assert problem.startswith("one.html: ") and problem.endswith(WRONG[piece])
    assert links.main([site]) == 1 and problem in capsys.readouterr().out


@pytest.mark.parametrize(
    "style", ["@import 'https://a.b/c.css';", "p { background: url(//a.b/c) }"]
)
def test_a_style_sheet_loads_nothing_outside(style, site):
    (site / "_static/page.css").write_text(style)
    (problem,) = links.problems(site)
    assert problem.endswith("lies outside")
