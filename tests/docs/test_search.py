"""The search of the documentation finds words of Japanese pages."""

import pytest

from docs import search
from minitx import lessons

TEXTS = {lesson.number: lesson.path.read_text("utf-8") for lesson in lessons.every("ja")}


@pytest.mark.parametrize(
    "query, number",
    [("重み", 2), ("残差ストリーム", 1), ("位置のないデコーダ", 9), ("LayerNorm", 19)],
)
def test_a_query_finds_a_lesson_by_words_inside_its_phrases(query, number):
    """A phrase was one word, so 重み found lesson 2 nowhere."""
    assert query in TEXTS[number]
    assert {*search.asked(query)} <= {*search.indexed(TEXTS[number])}


def test_what_a_page_does_not_say_is_not_found():
    assert not {*search.asked("蓄音機")} <= {*search.indexed(TEXTS[2])}
    assert search.indexed("W_Q of 2 heads") == ["W_Q", "of", "2", "heads"]


def test_the_browser_splits_with_the_same_letters():
    assert search.SPLIT.count(search.JAPANESE) == 3 and "JAPANESE" not in search.SPLIT
