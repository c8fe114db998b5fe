"""Handouts: every lesson, in every language, is printed; more than four pages are an error.

What is printed here is empty pages; the workflow's docs job prints the built lessons.
"""

import pytest

from docs import handouts
from minitx.lessons import notebook


@pytest.fixture
def pages(monkeypatch, tmp_path):
    """How many pages a lesson's name has in print, four if it is not here."""
    n = {}

    def printed(browser, page, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"<< /Type /Pages >>" + b"<< /Type /Page >>" * n.get(path.stem, 4))

    monkeypatch.setattr(handouts, "printed", printed)
    monkeypatch.setattr(handouts, "OUT", tmp_path)
    monkeypatch.setattr(handouts.shutil, "which", lambda name: name)
    return n


def test_no_handout_has_more_than_four_pages(pages, capsys):
    names = [lesson.name for lesson in notebook.every("en")]
    assert handouts.main() == 0
    said = capsys.readouterr().out
    assert {said.count(f"{name}.pdf: 4 pages") for name in names} == {2}  # in two languages
    pages[names[-1]] = 5
    assert handouts.main() == 1
