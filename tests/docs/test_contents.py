"""The page of all lessons, its map, and the plans of courses."""

import re

import pytest

from docs import contents
from minitx import lessons
from minitx.lessons import notebook

EVERY = {lesson.number: lesson for lesson in lessons.every()}


@pytest.mark.parametrize("language", notebook.LANGUAGES)
def test_the_first_page_has_each_lesson_in_its_list_and_on_its_map(language):
    page = contents.index(language)
    for lesson in lessons.every(language):
        assert f"{lesson.number}. **[{lesson.title}]({lesson.name}.ipynb)**" in page
        assert f'<a href="{lesson.name}.html" aria-label="{lesson.number}. ' in page
    n = sum(len(lesson.after) for lesson in EVERY.values())
    assert page.count('marker-end="url(#arrow)"') == n > len(EVERY)
    assert "\n\n" not in re.search(r"<svg.*</svg>", page, re.S)[0]  # Markdown would end it there


def test_the_map_keeps_its_size_on_a_phone_and_scrolls():
    """Shrunk to 358 pixels its circles were 15 wide: too small to hit (WCAG 2.5.8: 24)."""
    page = contents.index("en")
    assert re.search(
        r'<div class="wide" tabindex="0"><svg viewBox="0 0 (\d+) (\d+)" width="\1"', page
    )
    assert 2 * contents.RADIUS >= 24


def test_a_lesson_takes_up_lessons_that_there_are_before_it():
    assert EVERY[1].after == () and EVERY[6].after == (4, 5)
    assert lessons.get(6, "ja").after == (4, 5)
    for number, lesson in EVERY.items():
        assert all(before in EVERY and before < number for before in lesson.after)
        assert lesson.after or number == 1


def test_a_lesson_lies_right_of_those_that_it_takes_up_and_on_no_other():
    spots = contents.places(EVERY.values())
    assert len({*spots.values()}) == len(EVERY)
    for number, lesson in EVERY.items():
        assert all(spots[before][0] < spots[number][0] for before in lesson.after)


@pytest.mark.parametrize("weeks", contents.PLANS)
def test_a_plan_keeps_the_order_of_the_map(weeks):
    plan = contents.PLANS[weeks]
    given = [number for week in plan for number in week]
    assert len(plan) == weeks - 1 and len({*given}) == len(given)
    for i, number in enumerate(given):
        assert {*EVERY[number].after} <= {*given[:i]}, f"lesson {number} comes too early"


def test_the_long_plan_has_every_lesson():
    assert sorted(number for week in contents.PLANS[12] for number in week) == sorted(EVERY)


@pytest.mark.parametrize("language", notebook.LANGUAGES)
def test_a_plan_has_a_row_for_each_week(language):
    page = contents.courses(language)
    for weeks, plan in contents.PLANS.items():
        table = page.split(f"## {contents.WORDS[language].plan.format(weeks)}\n")[1].split("##")[0]
        assert re.findall(r"^\| (\d+) \|", table, re.M) == [str(n + 1) for n in range(weeks)]
        assert table.count(".ipynb)") == sum(map(len, plan))
