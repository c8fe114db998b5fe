"""The language of texts that people read: English, or that of a .po file in analysis/locale/.

The text itself is the key: `translated("glossary")` is "用語集" in Japanese, and "glossary" where
there is no translation. The language is the environment's MINITX_LANG, which processes that a run
starts inherit; the command line sets it (`using`). Arrays, names and numbers stay as they are.
"""

import contextlib
import functools
import os
import re
from pathlib import Path

from .catalogue import Catalogue

FOLDER = Path(__file__).parents[1] / "locale"
DOMAIN = "minitx"
LANGUAGES = "en", "ja"
ENVIRONMENT = "MINITX_LANG"
LOCALE = "LC_ALL", "LC_MESSAGES", "LANG"  # the first that is set names the user's language
NUMBER = re.compile(
    r"(?<![\w.])[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?|(?<=\bL)\d+(?=H\d)|(?<=\dH)\d+\b"
)
PLACE = re.compile(r"#(\d?)")
BETWEEN = "\n", "; ", ": ", ", "  # parts of a label


def current():
    """The language of this process: one of LANGUAGES."""
    language = os.environ.get(ENVIRONMENT, "")
    return language if language in LANGUAGES else LANGUAGES[0]


def of_environment():
    """The language that MINITX_LANG or the locale asks for, or English.

    Raises ValueError for a MINITX_LANG that is no language of minitx.
    """
    asked = os.environ.get(ENVIRONMENT, "")
    if asked:
        return checked(asked)
    locale = next((os.environ[name] for name in LOCALE if os.environ.get(name)), "")
    language = re.split(r"[_.@]", locale)[0]
    return language if language in LANGUAGES else LANGUAGES[0]


def checked(language):
    """The language; raises ValueError if it is none of minitx."""
    if language not in LANGUAGES:
        raise ValueError(f"the language is {language!r}; wanted one of {', '.join(LANGUAGES)}")
    return language


def using(language):
    """Context in which texts are in this language, also in processes that are started in it."""
    return environment(ENVIRONMENT, checked(language))


@contextlib.contextmanager
def environment(name, value):
    """Context in which a variable of the environment has this value."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@functools.cache
def catalogue(language):
    """The translations of a language, read when first asked for; of English none."""
    if language == LANGUAGES[0]:
        return Catalogue()
    return Catalogue(path_of(language).read_text(encoding="utf-8"))


def path_of(language):
    """The file of a language's translations."""
    return FOLDER / language / "LC_MESSAGES" / f"{DOMAIN}.po"


def translated(text):
    """A text or a template in the current language; the text itself where it has no translation.

    >>> with using("ja"):
    ...     translated("Glossary"), translated("no such text")
    ('用語集', 'no such text')
    """
    return catalogue(current()).translation(text)


def filled(template, **values):
    """A template in the current language, with these values in its fields.

    >>> filled("{n} more", n=3)
    '3 more'
    """
    return translated(template).format(**values)


def count(n, noun):
    """'1 document', '2 documents': a number with its noun.

    >>> count(2, "document")
    '2 documents'
    """
    return plural(f"{{n}} {noun}", f"{{n}} {noun}s", n).format(n=n)


def plural(single, several, n):
    """The one of two texts that goes with a number, in the current language."""
    return catalogue(current()).plural(single, several, n)


def label(text):
    """A label of a figure or of a number's entry, such as 'layer 3', whose numbers stay.

    Its translation is that of the text itself, or of the text with # for each number; #2 in the
    translation is the second number. Lines of a text that has none, and what stands between
    semicolons, colons and commas, are translated one by one.

    >>> with using("ja"):
    ...     label("layer 3")
    '第3層'
    """
    if current() == LANGUAGES[0] or not text:
        return text
    known = translated(text)
    if known != text:
        return known
    pattern = NUMBER.sub("#", text)
    known = translated(pattern)
    if known != pattern:
        return _numbered(known, NUMBER.findall(text))
    between = next((sign for sign in BETWEEN if sign in text), None)
    return text if between is None else between.join(map(label, text.split(between)))


def _numbered(pattern, numbers):
    """A pattern with the numbers in place of its #."""
    left = iter(numbers)
    return PLACE.sub(lambda mark: numbers[int(mark[1]) - 1] if mark[1] else next(left), pattern)


SHOWN = re.compile(  # a text between tags, or an attribute that is read
    r"(>)([^<>{}]*[^\W\d_]{2}[^<>{}]*)(?=<)"
    r'|((?:title|aria-label|placeholder)=")([^"{}]+)'
)


def in_html(page):
    """HTML with its texts, and the attributes that are read, in the current language."""
    if current() == LANGUAGES[0]:
        return page

    def said(match):
        before, text = (match[1], match[2]) if match[1] else (match[3], match[4])
        whole = " ".join(text.split())
        known = translated(whole)
        return match[0] if known == whole else before + known

    return SHOWN.sub(said, page)
