"""Translations, read from the .po files of gettext as translators write them.

A catalogue knows {text: [its translation]}, and of a text with a number one translation for each of
the language's forms. A text that is not translated stays English.
"""

import gettext
import json
import re

FORMS = re.compile(r"plural=([^;]+);")


class Catalogue:
    """The translations that the text of a .po file has."""

    def __init__(self, file=""):
        entries = map(entry, file.replace("\r\n", "\n").split("\n\n"))
        self.known = {text: said for text, said in entries if any(said)}
        forms = FORMS.search(self.known.pop("", [""])[0])  # of the header, whose text is ""
        self.form = gettext.c2py(forms[1]) if forms else None

    def translation(self, text):
        """The translation of a text."""
        return self.known.get(text, [text])[0]

    def plural(self, single, several, n):
        """The translation of the text for a number."""
        if single in self.known:
            return self.known[single][self.form(n)]
        return single if n == 1 else several


def entry(lines):
    """(text, [translations]) of an entry: its msgid, and each msgstr or msgstr[0], msgstr[1] …"""
    texts = {"msgid": ""}
    keyword = ""
    for line in lines.splitlines():
        before, quote, rest = line.partition('"')
        if quote and not line.startswith("#"):
            keyword = before.strip() or keyword
            texts[keyword] = texts.get(keyword, "") + json.loads(quote + rest)
    return texts["msgid"], [texts[key] for key in sorted(texts) if key.startswith("msgstr")]
