"""A lesson's file: its cells, its translation, its notebook; and every lesson that there is."""

import re

import pytest

from minitx import lessons
from minitx.lessons import checks, notebook
from minitx.lessons.notebook import Cell

ENGLISH = """\
---
file_format: mystnb
kernelspec: {name: python3}
question: Is it so?
---
# 3. A head

Prose with `{code-cell}` in it.

```python
shown = "and not run"
```

```{code-cell} python
x = 1

y = 2
```
+++
More prose.

````{code-cell} python
:tags: [hide-cell]
:name: solution

print('''```''')
````
"""
JAPANESE = """\
---
question: そうですか。
---
# 3. 頭

```{code-cell} python
```

```{code-cell} python
:tags: [remove-cell]
```

終わり。
"""
MOST_LINES = 40  # of a cell
EVERY = [*lessons.every("en"), *lessons.every("ja")]


def written(tmp_path, monkeypatch, japanese=JAPANESE, english=ENGLISH):
    """The Japanese lesson 3 of a folder with these texts."""
    monkeypatch.setattr(notebook, "FOLDER", tmp_path)
    (tmp_path / "ja").mkdir()
    if english:
        (tmp_path / "03-head.md").write_text(english, encoding="utf-8")
    (tmp_path / "ja/03-head.md").write_text(japanese, encoding="utf-8")
    return lessons.get(3, "ja")


def test_a_text_is_cut_into_cells():
    first, code, more, solution = notebook.cells(ENGLISH)
    assert first.source.startswith("# 3. A head") and 'shown = "and not run"' in first.source
    assert code == Cell("code", "x = 1\n\ny = 2", {})
    assert more == Cell("markdown", "More prose.", {})
    metadata = {"tags": ["hide-cell"], "name": "solution"}
    assert solution == Cell("code", "print('''```''')", metadata)


def test_a_translation_has_the_originals_code(tmp_path, monkeypatch):
    lesson = written(tmp_path, monkeypatch)
    kinds = [cell.kind for cell in lesson.cells]
    assert kinds == ["markdown", "code", "code", "markdown"]
    code = [cell for cell in notebook.cells(ENGLISH) if cell.kind == "code"]
    assert [cell for cell in lesson.cells if cell.kind == "code"] == code  # options, too
    assert (lesson.title, lesson.question) == ("頭", "そうですか。")


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("終わり。", "```{code-cell} python\n```", "ja/03-head.md: 3 cells .*; wanted 2"),
        ("```{code-cell} python\n```", "", "ja/03-head.md: 1 cells .*; wanted 2"),
        ("cell} python\n```", "cell} python\nx = 1\n```", "is not empty: 'x = 1'"),
    ],
)
def test_a_translation_with_other_code_is_refused(old, new, words, tmp_path, monkeypatch):
    lesson = written(tmp_path, monkeypatch, JAPANESE.replace(old, new, 1))
    with pytest.raises(ValueError, match=words):
        _ = lesson.cells


def test_a_translation_of_nothing_is_refused(tmp_path, monkeypatch):
    lesson = written(tmp_path, monkeypatch, english="")
    with pytest.raises(ValueError, match="translation of 03-head.md, which is missing"):
        _ = lesson.cells


def test_a_lesson_without_a_heading_is_refused(tmp_path, monkeypatch):
    lesson = written(tmp_path, monkeypatch, "no heading\n")
    with pytest.raises(ValueError, match=r"03-head.md has no heading `# N. Title`"):
        _ = lesson.title


def test_a_lesson_that_there_is_not(tmp_path, monkeypatch):
    written(tmp_path, monkeypatch)
    with pytest.raises(ValueError, match="no lesson 4 in 日本語; available: 3"):
        lessons.get(4, "ja")
    with pytest.raises(ValueError, match="language is 'fr'; wanted en or ja"):
        lessons.get(3, "fr")


def test_a_notebook_is_one(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="comes with the extra `test`")
    lesson = written(tmp_path, monkeypatch)
    nbformat.validate(nbformat.from_dict(lesson.notebook), version=4)
    assert lesson.notebook["cells"][2]["metadata"]["tags"] == ["hide-cell"]


def test_a_folded_cell_is_opened_in_the_pages_language(tmp_path, monkeypatch):
    japanese = written(tmp_path, monkeypatch)
    assert japanese.notebook["metadata"]["mystnb"]["code_prompt_show"] == "コードを表示"
    assert "mystnb" not in lessons.get(3).notebook["metadata"]  # Sphinx's setting is English


def test_a_wrong_answer_is_an_assertion():
    assert issubclass(checks.Wrong, AssertionError)


@pytest.mark.parametrize("lesson", EVERY, ids=lambda x: f"{x.language}-{x.name}")
def test_each_lesson_has_its_form(lesson):
    assert lesson.question.strip() and lesson.title.strip()
    assert re.search(rf"^# {lesson.number}\. ", lesson.text, re.M)
    assert lesson.head["file_format"] == "mystnb"
    assert {*lesson.head} <= {"file_format", "kernelspec", "question", "live", "after"}
    code = [cell for cell in lesson.cells if cell.kind == "code"]
    assert code
    for cell in code:
        compile(cell.source, lesson.name, "exec")
    assert max(cell.source.count("\n") + 1 for cell in code) <= MOST_LINES
    solutions = [cell for cell in code if "hide-cell" in cell.metadata.get("tags", ())]
    assert sum("check_" in cell.source for cell in solutions) >= 2, "exercises with a solution"


@pytest.mark.parametrize("lesson", lessons.every("en"), ids=lambda x: x.name)
def test_each_lesson_is_translated(lesson):
    translated = lessons.get(lesson.number, "ja")
    assert translated.name == lesson.name
    assert translated.live == lesson.live


@pytest.mark.parametrize("lesson", EVERY, ids=lambda x: f"{x.language}-{x.name}")
def test_each_lesson_ends_with_an_open_task(lesson):
    label = {"en": "Open", "ja": "自由課題"}[lesson.language]
    assert len(re.findall(rf"^\*\*(?:3\. )?{label}\b", lesson.text, re.M)) == 1
