"""The line of progress: rate, time left, and no noise where no terminal is."""

import pytest

from minitx.analysis.machine import progress


def test_progress_shows_rate_and_time_left(capsys, monkeypatch):
    assert progress.describe("documents", 20, 100, 0.2) == "documents 20/100, 5 a second, 16 s left"
    with progress.Line("letters", 3) as line:
        line.update(1)
    assert capsys.readouterr().err == ""  # no terminal, no noise
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "SHOWN_EVERY", -1)
    with pytest.raises(ZeroDivisionError), progress.Line("letters", 8, before=6) as line:
        line.start -= 10  # so long ago, for the one that was done since
        line.update(7)
        raise ZeroDivisionError
    shown = capsys.readouterr().err
    assert "letters 7/8, 0.1 a second, 10 s left" in shown
    assert shown.endswith("\x1b[K")  # the line is gone before a message comes


def test_a_closed_stderr_shows_nothing(monkeypatch, capfd):
    monkeypatch.setattr(progress.sys, "stderr", None)
    with progress.Line("letters", 3) as line:
        line.update(1)
    assert capfd.readouterr() == ("", "")
