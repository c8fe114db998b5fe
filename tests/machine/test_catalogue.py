"""Translations are those of a .po file, with the forms of its language."""

import pytest

from minitx.analysis.machine.catalogue import Catalogue

POLISH = r"""# Two "quotes" in a comment
msgid ""
msgstr ""
"Language: pl\n"
"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && "
"(n%100<10 || n%100>=20) ? 1 : 2);\n"

#, python-format
msgid "a \"line\"\n"
msgstr ""
"wiersz\t"
"\\ 1\n"

msgid "not yet"
msgstr ""

msgid "{n} text"
msgid_plural "{n} texts"
msgstr[0] "{n} tekst"
msgstr[1] "{n} teksty"
msgstr[2] "{n} tekstów"
"""


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_file_is_read(ends):
    catalogue = Catalogue(POLISH.replace("\n", ends))
    assert catalogue.translation('a "line"\n') == "wiersz\t\\ 1\n"
    assert {*catalogue.known} == {'a "line"\n', "{n} text"}
    assert catalogue.translation("not yet") == "not yet" and catalogue.translation("") == ""


@pytest.mark.parametrize("n, form", [(1, "tekst"), (3, "teksty"), (5, "tekstów"), (22, "teksty")])
def test_a_number_has_the_form_of_its_language(n, form):
    assert Catalogue(POLISH).plural("{n} text", "{n} texts", n) == f"{{n}} {form}"


def test_without_a_translation_a_number_has_the_forms_of_english():
    assert [Catalogue().plural("one", "many", n) for n in (0, 1, 2)] == ["many", "one", "many"]
