"""How a lesson is executed, made a page of, and opened by `minitx lesson`."""

import os
from importlib.util import find_spec

import pytest

from minitx import lessons
from minitx.analysis.__main__ import main
from minitx.lessons import build, command, notebook
from minitx.lessons.notebook import Cell
from minitx.loading.files import read_json


def written(*code):
    """A notebook of these cells of code."""
    return notebook.as_notebook([Cell("code", source, {}) for source in code])


def test_cells_are_executed_in_a_folder_of_their_own():
    pytest.importorskip("nbclient", reason="comes with the extra `test`")
    code = "import os, minitx\nopen('made', 'w').close()\nprint(os.listdir('.'))"
    ran = build.execute(written("x = 2", code, "minitx.__version__, x"), "a page")
    assert "made" in "".join(ran["cells"][1]["outputs"][0]["text"])
    assert "".join(ran["cells"][2]["outputs"][0]["data"]["text/plain"]).endswith(", 2)")
    assert not os.path.exists("made")
    assert all("execution" not in cell["metadata"] for cell in ran["cells"])


def test_a_failing_cell_fails_with_its_name_and_its_hint():
    pytest.importorskip("nbclient", reason="comes with the extra `test`")
    cells = written("from minitx.lessons.checks import Wrong", "raise Wrong('divide by all')")
    with pytest.raises(build.Failed, match=r"(?s)^lesson 3: .*Wrong.*divide by all"):
        build.execute(cells, "lesson 3")


def test_missing_packages_are_named_with_the_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(build, "find_spec", lambda name: None if name == "furo" else find_spec)
    monkeypatch.setattr(command, "BUILT", tmp_path)
    with pytest.raises(build.Missing, match=r'needs furo, .*pip install "minitx\[docs\]"'):
        command.page(lessons.get(3), tmp_path)
    assert capsys.readouterr().err == ""  # nothing was executed


def test_without_them_a_lesson_is_written_as_a_notebook(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(build, "find_spec", lambda name: None if name == "furo" else find_spec)
    monkeypatch.setattr(command, "BUILT", tmp_path)
    monkeypatch.setattr(command.webbrowser, "open", pytest.fail)
    assert main(["lesson", "3", "--out", str(tmp_path / "new")]) == 0
    file = tmp_path / "new" / f"{lessons.get(3).name}.ipynb"
    assert read_json(file) == lessons.get(3).notebook
    printed = capsys.readouterr()
    assert "needs furo" in printed.err and f"{file} written: lesson 3" in printed.out


def test_a_page_shows_what_was_executed(tmp_path, monkeypatch):
    pytest.importorskip("myst_nb", reason="comes with the extra `docs`")
    pytest.importorskip("furo", reason="comes with the extra `docs`")
    monkeypatch.setattr(notebook, "FOLDER", tmp_path)
    text = "# 3. A *head*\n\n$\\frac{a}{b}$\n\n```{code-cell} python\n41 + 1\n```\n"
    (tmp_path / "03-head.md").write_text(text)
    path = build.page(lessons.get(3), tmp_path / "out")
    html = path.read_text(encoding="utf-8")
    assert "<math" in html and ">42" in html
    executed = read_json(tmp_path / "out/03-head.ipynb")
    assert executed["cells"][1]["outputs"]
    (tmp_path / "03-head.md").write_text("# 3. A head\n\n[x](nowhere.md)\n")
    with pytest.raises(ValueError, match="lesson 3: .*nowhere.md"):
        build.page(lessons.get(3), tmp_path / "other")


def test_the_command_lists_the_lessons(capsys):
    assert main(["lesson"]) == 0
    printed = capsys.readouterr().out
    for lesson in lessons.every():
        assert f"{lesson.number:2}  {lesson.title}\n    {lesson.question}\n" in printed
    assert main("lesson --lang ja".split()) == 0
    assert lessons.get(1, "ja").question in capsys.readouterr().out


def test_the_command_writes_a_notebook(tmp_path, capsys):
    file = tmp_path / "new/one.ipynb"
    assert main(["lesson", "1", "--lang", "ja", "--notebook", str(file)]) == 0
    assert read_json(file) == lessons.get(1, "ja").notebook
    assert "one.ipynb を書きました: 第1課" in capsys.readouterr().out


def test_the_command_names_the_lessons_there_are(capsys):
    assert main(["lesson", "77"]) == 2
    assert "there is no lesson 77 in English; available: 1, 2, 3" in capsys.readouterr().err


def test_the_command_opens_what_is_built_and_builds_what_is_not(tmp_path, monkeypatch, capsys):
    opened, pages = [], []
    monkeypatch.setattr(command.webbrowser, "open", opened.append)
    monkeypatch.setattr(command, "BUILT", tmp_path / "built")
    monkeypatch.setattr(build, "check_packages", lambda: None)
    monkeypatch.setattr(build, "page", lambda lesson, out: pages.append(out) or tmp_path / "new")
    lesson = lessons.get(12)
    assert main(["lesson", "12", "--out", str(tmp_path / "out")]) == 0
    assert opened == [(tmp_path / "new").as_uri()] and pages == [tmp_path / "out"]
    assert f"minitx serve {lesson.live}" in capsys.readouterr().out
    (tmp_path / "built").mkdir()
    page = tmp_path / "built" / f"{lesson.name}.html"
    page.touch()
    assert main("lesson 12 --no-browser".split()) == 0
    assert len(opened) == len(pages) == 1 and str(page) in capsys.readouterr().out
    os.utime(page, (0, 0))  # older than the lesson
    assert main("lesson 12 --no-browser".split()) == 0
    assert len(pages) == 2
