"""Free-form dates and as ISO writes them: the data of tiny-bart.

Every date comes with the place of its parts in the text, so that what copies them can be checked.

Only forms with one meaning are written. The rule for dates that are all numbers: a year in front is
followed by month and day (1912-05-03, 1912/5/3, 1912.5.3); behind points comes the month, then the
year (3.5.1912); a slash stands between month, day and year (5/3/1912). A month in letters or Roman
numerals may stand in any order. Years are those of the Gregorian calendar, also before it was used.

>>> written = write(date(1912, 5, 3), Form("the {day} of {month}, {year}", "ordinal", "name"))
>>> written.text, written.iso
('the 3rd of May, 1912', '1912-05-03')
>>> {part: written.text[span] for part, span in written.spans.items()}
{'day': '3rd', 'month': 'May', 'year': '1912'}

Read downward: spellings, forms, what is held out, one date written, many drawn.
"""

import re
import string
from datetime import date
from functools import cache
from typing import NamedTuple

import numpy as np

NAMES = (
    "January February March April May June July August September October November December"
).split()
ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first "
    "twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth twenty-seventh "
    "twenty-eighth twenty-ninth thirtieth thirty-first"
).split()
ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}

DAYS, MONTHS = range(1, 32), range(1, 13)
SPELLINGS = {  # part: {spelling: texts in order, those of 1 first}
    "day": {
        "number": [str(day) for day in DAYS],
        "padded": [f"{day:02}" for day in DAYS],
        "ordinal": [f"{day}{ENDINGS.get(day, 'th')}" for day in DAYS],
        "word": WORDS,
    },
    "month": {
        "name": NAMES,
        "short": [name[:3] for name in NAMES],
        "pointed": [re.sub(r"(\w{3})\w+", r"\1.", name) for name in NAMES],  # May has none
        "number": [str(month) for month in MONTHS],
        "padded": [f"{month:02}" for month in MONTHS],
        "roman": ROMAN,
    },
}
LETTERS = "name short pointed"
LAYOUTS = (  # layout, spellings of the day, spellings of the month: each with each
    ("{day} {month} {year}", "number ordinal word", LETTERS),
    ("{day} {month}, {year}", "number ordinal word", LETTERS),
    ("{day}. {month} {year}", "number", "name short"),
    ("{day}-{month}-{year}", "number padded", "name short"),
    ("{day} of {month} {year}", "ordinal word", LETTERS),
    ("{day} of {month}, {year}", "ordinal word", LETTERS),
    ("the {day} of {month} {year}", "ordinal word", LETTERS),
    ("the {day} of {month}, {year}", "ordinal word", LETTERS),
    ("{month} {day} {year}", "number ordinal word", LETTERS),
    ("{month} {day}, {year}", "number ordinal word", LETTERS),
    ("{month} the {day} {year}", "ordinal word", LETTERS),
    ("{month} the {day}, {year}", "ordinal word", LETTERS),
    ("{month}-{day}-{year}", "number padded", "name short"),
    ("{year} {month} {day}", "number ordinal word", LETTERS),
    ("{year}, {month} {day}", "number ordinal word", LETTERS),
    ("{year}, the {day} of {month}", "ordinal word", LETTERS),
    ("{year}-{month}-{day}", "padded", "padded name short"),
    ("{year}/{month}/{day}", "number", "number"),
    ("{year}/{month}/{day}", "padded", "padded"),
    ("{year}.{month}.{day}", "number", "number"),
    ("{year}.{month}.{day}", "padded", "padded"),
    ("{day}.{month}.{year}", "number", "number roman"),
    ("{day}.{month}.{year}", "padded", "padded roman"),
    ("{day}. {month}. {year}", "number", "number roman"),
    ("{day} {month} {year}", "number padded", "roman"),
    ("{day}-{month}-{year}", "number padded", "roman"),
    ("{day}/{month}/{year}", "number padded", "roman"),
    ("{month}/{day}/{year}", "number", "number"),
    ("{month}/{day}/{year}", "padded", "padded"),
    ("{month} / {day} / {year}", "number", "number"),
    ("{month} / {day} / {year}", "padded", "padded"),
)
FRONTS = {  # what stands in front, the true weekday or nothing: share of texts
    "": 0.75,
    "{weekday}, ": 0.05,
    "{weekday} ": 0.05,
    "{wd}, ": 0.05,
    "{wd} ": 0.05,
    "{wd}. ": 0.05,
}
CASES = {str: 0.7, str.lower: 0.15, str.upper: 0.15}  # what is done to the letters: share
GAPS = {" ": 0.9, "  ": 0.1}  # what stands for each space of a text: share
ALPHABET = " ,-./" + string.digits + string.ascii_letters  # every text is written with these

ISO = {"year": slice(0, 4), "month": slice(5, 7), "day": slice(8, 10)}  # parts of YYYY-MM-DD
FIRST, LAST = date(1000, 1, 1), date(2999, 12, 31)
HELD_OUT = 10  # of so many dates, and of so many forms, the last is held out


class Form(NamedTuple):
    """How a date is written: the order with what stands between, and how day and month are."""

    layout: str
    day: str
    month: str


class Written(NamedTuple):
    """A date as text and in ISO form; text[spans[part]] is what iso[ISO[part]] comes from."""

    text: str
    iso: str
    spans: dict  # {"year", "month", "day": slice of the text}
    form: Form


FORMS = tuple(
    Form(layout, day, month)
    for layout, days, months in LAYOUTS
    for day in days.split()
    for month in months.split()
)
UNSEEN = FORMS[HELD_OUT - 1 :: HELD_OUT]  # forms that are never trained on: every tenth
SEEN = tuple(form for form in FORMS if form not in UNSEEN)


def is_held_out(day):
    """Whether a date is never trained on: its number is a multiple of 10.

    1 January of year 1 has number 1 (`date.toordinal`).

    >>> is_held_out(date(1912, 5, 3)), is_held_out(date(1912, 5, 12))
    (False, True)
    """
    return day.toordinal() % HELD_OUT == 0


def write(day, form, front="", case=str, gap=" "):
    """A date in a form, as a Written.

    front: what stands before it, in which {weekday} and {wd} are filled in. case: what is done to
    the text at last: nothing (`str`), `str.lower` or `str.upper`. gap: what stands for a space.
    """
    weekday = WEEKDAYS[day.weekday()]
    fields = {"weekday": weekday, "wd": weekday[:3], "year": str(day.year)}
    fields["day"] = SPELLINGS["day"][form.day][day.day - 1]
    fields["month"] = SPELLINGS["month"][form.month][day.month - 1]
    text, spans = fill((front + form.layout).replace(" ", gap), fields)
    return Written(case(text), day.isoformat(), spans, form)


def fill(layout, fields):
    """A layout with its fields filled in, and the slice of each part of ISO in the text."""
    text, spans = "", {}
    for piece in re.split(r"(\{\w+\})", layout):
        name = piece.strip("{}")
        is_field = piece != name
        start = len(text)
        text += fields[name] if is_field else piece
        if name in ISO and is_field:
            spans[name] = slice(start, len(text))
    return text, spans


def draw(rng, n, forms=SEEN, held_out=False):
    """n dates of the years 1000-2999 in random forms: only dates held out, or only others.

    Dates are equally likely, and so are forms; FRONTS, CASES and GAPS have the shares of the rest.
    """
    allowed = _numbers(held_out)
    days = allowed[rng.integers(len(allowed), size=n)]
    which = rng.integers(len(forms), size=n)
    styles = zip(*(_pick(rng, n, weights) for weights in (FRONTS, CASES, GAPS)))
    return [
        write(date.fromordinal(int(day)), forms[form], *style)
        for day, form, style in zip(days, which, styles)
    ]


@cache
def _numbers(held_out):
    """Numbers of all dates that are held out, or of all others."""
    days = map(date.fromordinal, range(FIRST.toordinal(), LAST.toordinal() + 1))
    return np.array([day.toordinal() for day in days if is_held_out(day) == held_out])


def _pick(rng, n, weights):
    """n keys of a dictionary, drawn with the shares that are its values."""
    keys = [*weights]
    return [keys[i] for i in rng.choice(len(keys), n, p=[*weights.values()])]
