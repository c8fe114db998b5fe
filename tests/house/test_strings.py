"""Texts that people read: each is in the catalogues, and translations keep what is filled in."""

import re

import pytest
import strings

from minitx.analysis.machine import language

TONGUES = language.LANGUAGES[1:]
FIELD = re.compile(r"\{[^{}]*\}")


def pairs(tongue):
    """(text, translation) of a catalogue; of one for many the text for one."""
    for key, translation in language.catalogue(tongue)._catalog.items():
        if key:  # "" is the header
            yield (key if isinstance(key, str) else key[0]), translation


@pytest.mark.parametrize("tongue", TONGUES)
def test_translations_have_the_fields_of_their_texts(tongue):
    differ = [
        text for text, said in pairs(tongue) if {*FIELD.findall(text)} != {*FIELD.findall(said)}
    ]
    assert differ == []


@pytest.mark.parametrize("tongue", TONGUES)
def test_every_text_that_people_read_is_translated(tongue):
    assert strings.lacking(tongue) == [], "python tests/tools/strings.py, then fill the .po file"


@pytest.mark.parametrize("tongue", TONGUES)
def test_no_translation_is_empty(tongue):
    assert [text for text, said in pairs(tongue) if text and not said.strip()] == []
