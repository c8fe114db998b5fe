"""Texts that people read: a release translates each, and translations keep what is filled in."""

import re

import pytest
import strings

from minitx.analysis.machine import language

TONGUES = language.LANGUAGES[1:]
FIELD = re.compile(r"\{[^{}]*\}")


@pytest.mark.parametrize("tongue", TONGUES)
def test_translations_have_the_fields_of_their_texts(tongue):
    known = language.catalogue(tongue).known
    fields = {text: {*FIELD.findall(text)} for text in known}
    assert [text for text in known if {*FIELD.findall(known[text][0])} != fields[text]] == []


@pytest.mark.release
@pytest.mark.parametrize("tongue", TONGUES)
def test_every_text_that_people_read_is_translated(tongue):
    assert strings.lacking(tongue) == [], "python tests/tools/strings.py, then fill the .po file"


@pytest.mark.parametrize("tongue", TONGUES)
def test_no_translation_is_empty(tongue):
    known = language.catalogue(tongue).known
    assert [text for text, said in known.items() if not all(map(str.strip, said))] == []


def test_a_text_without_a_translation_is_counted_and_stays_english(monkeypatch):
    monkeypatch.setattr(strings, "every", lambda: {"a text of tomorrow": "", "none": ""})
    for tongue in TONGUES:
        assert strings.lacking(tongue) == ["a text of tomorrow"]
        assert language.catalogue(tongue).translation("a text of tomorrow") == "a text of tomorrow"
