"""The claims on the report's page: judged ones shown, all others counted and folded away."""

import pytest
from planted import HOSTILE, Page

from minitx.analysis.pages import verdicts


def row(verdict, of="any model", **changes):
    """A row as published.rows gives them."""
    texts = {"reason": "wanted: more", "source": "figure 3", "what": f"a claim of {of}"}
    return (
        {"verdict": verdict, "of": of, "published": 1, "ours": 2.0, "null": 0.5} | texts | changes
    )


ROWS = [
    row("pass"),
    row("fail", what="a claim that failed"),
    row("pass", "models with a learned table"),
    row("not measured", what="a claim that was not measured"),
    row("pass", "gpt2"),
    row("other checkpoint", "roberta-base", what="a number of others"),
    row("other checkpoint", "bert-base-uncased, IMDB"),
    row("any new verdict", "gpt2, IMDB"),
]


def test_one_line_counts_them_all():
    page = Page(verdicts.line(ROWS))
    assert page.text == (
        "2 of 3 general claims hold; 1 of 1 published values of this checkpoint are "
        "reproduced; 1 value that this run could not measure; 2 values published for other "
        "checkpoints, not compared; 1 value (any new verdict). Claims and numbers"
    )
    assert page.all("href") == ["#published"]


def test_pass_and_fail_are_shown_in_words_and_colours_and_the_rest_is_folded():
    html = verdicts.section(ROWS, "a model")
    page = Page(html)
    shown, folded = page.of("published", folded=False), page.of("published", folded=True)
    assert shown.count("✓ Pass") == 3 and shown.count("✗ Fail") == 1
    assert html.count('class="mark yes"') == 3 and html.count('class="mark bad"') == 1
    assert "a claim that failed" in shown and "a claim that failed" not in folded
    for text in ("a claim that was not measured", "a number of others", "any new verdict"):
        assert text in folded and text not in shown
    assert "2 values published for other checkpoints" in folded
    assert html.count("<details") == 4  # one for each verdict, and the whole
    assert "minitx published 'a model'" in page.text


def test_published_values_of_a_list_stand_without_brackets():
    page = Page(verdicts.section([row("other checkpoint", published=[111.2409, 712014.3125])], "a"))
    assert "111.2409, 712014.3125any model" in page.of("published")
    assert "[111" not in page.text


@pytest.mark.parametrize("verdict", ["pass", "other checkpoint"])
def test_hostile_rows_stay_texts(verdict):
    texts = dict.fromkeys(("reason", "source", "what", "published", "ours", "null"), HOSTILE)
    html = verdicts.section([row(verdict, HOSTILE, **texts)], HOSTILE)
    assert "<img" not in html and Page(html).text.count(HOSTILE) >= 7


def test_a_model_of_which_nothing_can_be_judged_has_a_line_too():
    rows = [row("not measured")]
    assert Page(verdicts.line(rows)).text.startswith("1 value that this run could not measure.")
    assert "<table" in verdicts.section(rows, "m")
