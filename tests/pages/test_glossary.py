"""The glossary: every term is explained, and its links can break no text."""

import re
from html import unescape

import pytest
from planted import HOSTILE, answers, good

from minitx.analysis.pages import glossary, parts


def plain(html):
    """The text of HTML that holds links only."""
    return unescape(re.sub(r"<[^>]*>", "", html))


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "",
        "null",
        "<null>",
        "null null & offsets & <b>offset</b>",
        "R² of L0H0's keys &amp; queries: 99% quantile",
        "&null; &#110;ull 'lag' \"lags\"",
        "W_A, W_Ab, xW_A",
        "nullify a non-null annulled null-space",
    ],
)
def test_a_text_is_the_same_with_links_and_without(text):
    html = glossary.Linker()(text)
    assert plain(html) == text
    assert re.findall(r"<(?!/?a[ >])", html) == []
    assert html.count("<a ") == html.count("</a>")


def test_a_term_is_a_link_where_it_first_stands():
    link = glossary.Linker()
    assert linked(link("a null, nulls and an offset")) == ["null", "offset"]
    assert linked(link("by chance, at offsets and lags")) == ["lag"]
    assert linked(glossary.Linker()("lags")) == ["lag"]


def linked(html):
    return re.findall(r'href="#term-(\w+)"', html)


@pytest.mark.parametrize(
    "text, slugs",
    [
        ("pseudo-perplexity", ["pseudo"]),
        ("mean perplexities", ["perplexity"]),
        ("heads without a direction", ["directed"]),
        ("the residual stream", ["stream"]),
        ("the 99% quantile", ["quantile"]),
        ("L2H11 and head(8,9)", ["head"]),
        ("nullify a non-null annulled null-space", []),
        ("W_Ab, xW_A", []),
    ],
)
def test_whole_words_are_terms_and_the_longest_wins(text, slugs):
    assert linked(glossary.Linker()(text)) == slugs


def test_every_term_is_known_by_its_own_name():
    for term in glossary.TERMS:
        first = term.name.split(", ")[0]
        assert linked(glossary.Linker()(first)) == [term.slug], term.name
        assert 40 < len(term.meaning) < 330 and term.meaning.endswith(".")
    slugs = [term.slug for term in glossary.TERMS]
    assert len(slugs) == len(set(slugs)) >= 20


def test_links_lead_to_entries_once_in_each_section(reported):
    _, page = reported(good, answer=answers("no"))
    entries = {term.slug: term for term in glossary.TERMS}
    seen = []
    section = ""
    for tag, attributes in page.tags:
        section = attributes.get("id", section) if tag == "section" else section
        if attributes.get("class") == "term":
            seen.append((section, attributes["href"]))
            assert attributes["title"] == entries[attributes["href"][6:]].meaning
    assert len(seen) == len(set(seen))
    assert {("answers", "#term-null"), ("good", "#term-offset")} <= set(seen)
    for term in entries.values():
        name, meaning = map(parts.typeset, (term.name, term.meaning))
        assert name in page.of("glossary") and meaning in page.of("glossary")
