"""The dates that tiny-bart learns from: true, of one meaning, with the place of every part."""

import re
from collections import Counter
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest

from minitx.weights import dates

DRAWN = dates.draw(np.random.default_rng(0), 8000)
HELD_OUT = dates.draw(np.random.default_rng(1), 4000, dates.UNSEEN, held_out=True)
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
ROMAN = "i ii iii iv v vi vii viii ix x xi xii".split()


def meaning(text):
    """The date that a text means by the rule of dates.py, (year, month, day), without its tables.

    Days in words are left to the other tests: the only letters here are months' and endings.
    """
    text = re.sub(r"^\s*(mon|tue|wed|thu|fri|sat|sun)\w*[., ]*", "", text.lower())
    text = re.sub(r"(?<=\d)(st|nd|rd|th)\b", "", text)
    numbers = re.findall(r"\d+", text)
    year = next(number for number in numbers if len(number) == 4)
    others = [int(number) for number in numbers if number != year]
    letters = [word for word in re.findall("[a-z]+", text) if word not in ("the", "of")]
    if letters:
        (word,) = letters
        is_roman = word in ROMAN
        month = (ROMAN.index(word) if is_roman else MONTHS.index(word[:3])) + 1
        return int(year), month, *others
    month_first = numbers[0] == year or "/" in text
    month, day = others if month_first else reversed(others)
    return int(year), month, day


def value(part, piece):
    """The number that a piece of a text stands for, as a part of a date."""
    if part == "year":
        return int(piece)
    texts = dates.SPELLINGS[part].values()
    values = {n for row in texts for n, text in enumerate(row, 1) if text.lower() == piece.lower()}
    (number,) = values
    return number


@pytest.mark.parametrize("written", [DRAWN, HELD_OUT], ids=["drawn", "held out"])
def test_the_span_of_a_part_holds_what_it_comes_from(written):
    for text, iso, spans, _ in written:
        assert set(spans) == set(dates.ISO)
        for part, place in dates.ISO.items():
            assert value(part, text[spans[part]]) == int(iso[place]), text


def test_spans_do_not_overlap():
    for text, _, spans, _ in DRAWN:
        ends = sorted((span.start, span.stop) for span in spans.values())
        assert all(stop <= start for (_, stop), (start, _) in pairwise(ends)), text


def test_a_text_means_its_date_by_the_rule():
    written = [record for record in DRAWN + HELD_OUT if record.form.day != "word"]
    assert len(written) > 6000
    for text, iso, _, _ in written:
        assert date(*meaning(text)).isoformat() == iso, text


def test_no_text_stands_for_two_dates():
    """In all forms and all days of a leap year, without a weekday that would tell them apart."""
    meanings = {}
    for day in map(timedelta, range(366)):
        for form in dates.FORMS:
            for case in dates.CASES:
                text, iso, _, _ = dates.write(date(2012, 1, 1) + day, form, case=case)
                assert meanings.setdefault(text, iso) == iso, text


def test_every_form_front_case_and_gap_is_drawn():
    assert {record.form for record in DRAWN} == set(dates.SEEN)
    assert {record.form for record in HELD_OUT} == set(dates.UNSEEN)
    commonest = Counter(record.form for record in DRAWN).most_common(1)[0][1]
    assert commonest < 2 * len(DRAWN) / len(dates.SEEN)  # measured 91, of 68 on average
    weekday = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*([.,]? )", re.I)
    fronts = [weekday.match(record.text) for record in DRAWN]
    assert np.mean([front is not None for front in fronts]) == pytest.approx(0.25, abs=0.02)
    assert {front[2] for front in fronts if front} == {", ", " ", ". "}
    assert np.mean([record.text.isupper() for record in DRAWN]) == pytest.approx(0.15, abs=0.03)
    assert 0.05 < np.mean(["  " in record.text for record in DRAWN]) < 0.1


def test_forms_differ_and_each_is_a_text_of_its_own():
    texts = [dates.write(date(1912, 9, 3), form).text for form in dates.FORMS]
    assert len(set(texts)) == len(texts) == 129


def test_held_out_dates_are_never_trained_on():
    """Every tenth date, by its number, and no other."""
    for written, is_tested in ((DRAWN, False), (HELD_OUT, True)):
        numbers = [date.fromisoformat(record.iso).toordinal() for record in written]
        assert {number % 10 == 0 for number in numbers} == {is_tested}


def test_held_out_forms_are_never_trained_on():
    assert len(dates.UNSEEN) == 12
    assert sorted(dates.SEEN + dates.UNSEEN) == sorted(dates.FORMS)


def test_what_a_held_out_form_is_made_of_is_trained():
    """Its layout, and its spellings of day and month, in other company."""
    for field in dates.Form._fields:
        seen = {getattr(form, field) for form in dates.SEEN}
        assert {getattr(form, field) for form in dates.UNSEEN} <= seen


def test_dates_are_of_the_calendar_with_its_29th_of_february():
    written = dates.draw(np.random.default_rng(2), 40000)
    years = {int(record.iso[:4]) for record in written if record.iso.endswith("02-29")}
    assert len(years) > 20
    assert all(year % 400 == 0 or (year % 4 == 0 and year % 100 != 0) for year in years)


def test_years_have_four_digits_and_reach_from_1000_to_2999():
    years = [int(record.iso[:4]) for record in DRAWN]
    assert (min(years) // 10, max(years) // 10) == (100, 299)
    assert all(len(record.iso) == 10 for record in DRAWN)


def test_the_weekday_is_the_true_one():
    landing = date(1969, 7, 20)
    form = dates.Form("{month} {day}, {year}", "number", "name")
    assert dates.write(landing, form, "{weekday}, ").text == "Sunday, July 20, 1969"
    assert dates.write(landing, form, "{wd}. ").text == "Sun. July 20, 1969"


def test_texts_are_written_with_the_alphabet():
    assert set("".join(text for text, *_ in DRAWN)) <= set(dates.ALPHABET)
    assert len(set(dates.ALPHABET)) == len(dates.ALPHABET)


def test_the_same_seed_draws_the_same_dates():
    again = dates.draw(np.random.default_rng(0), 8000)
    assert again == DRAWN
    assert again[:50] != dates.draw(np.random.default_rng(3), 50)
