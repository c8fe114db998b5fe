"""`minitx serve` as a user sees it: an address, a line for what goes wrong, a line at its end."""

import http.client
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

import minitx
from minitx import weights
from minitx.analysis import __main__ as cli
from minitx.analysis import commands
from minitx.analysis.contract import own_texts
from minitx.analysis.live import server
from minitx.analysis.texts import corpus

ROOT = Path(__file__).parents[2]


def complaint(capsys, *arguments):
    """The one line that `minitx serve` leaves on stderr."""
    assert cli.main(["serve", *map(str, arguments)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_it_says_its_address_and_ends_with_one_line():
    command = [sys.executable, "-m", "minitx.analysis", "serve", "tiny-roberta", "tiny-bart"]
    command += ["--port", "0", "--no-browser", "--text", "3 May 1912"]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, **output)
    try:
        line = process.stdout.readline()
        port = int(re.fullmatch(r"minitx: http://127.0.0.1:(\d+)/ \(Ctrl-C ends it\)\n", line)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.status == 200 and b"3 May 1912" in answer.read()
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "minitx: interrupted\n")
        assert process.returncode == 130
    finally:
        process.kill()
        process.stdout.close()
        process.stderr.close()


def test_a_taken_port_is_one_line(capsys):
    with server.listening(0) as listener:
        port = listener.getsockname()[1]
        line = complaint(capsys, "tiny-roberta", "--no-browser", "--port", port)
    assert line == f"minitx: --port {port}: Address already in use; --port 0 takes a free one"


@pytest.mark.parametrize("package", ["uvicorn", "starlette"])
def test_a_missing_package_is_one_line(package, monkeypatch, capsys):
    for name in [*sys.modules]:
        if name.split(".")[0] == package or name.startswith("minitx.analysis.live"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    line = complaint(capsys, "tiny-roberta")
    assert line == f"minitx: minitx serve needs {package}: pip install 'minitx[live]'"


def test_what_cannot_be_shown_is_said(tmp_path, capsys):
    folder = tiny.make(tmp_path / "bare", "bert-bare")
    for arguments, reason in (
        (["tiny-robert"], "tiny-robert"),
        (["tiny-roberta", "A cat sat."], "no model 'A cat sat.'; a text goes to --text: minitx"),
        (["tiny-roberta", "--text", "a", "--port", "0"], "the text 'a' has 1 token"),
        ([folder, "--port", "0"], "no tokenizer in"),
        (["tiny-roberta", "--port", "99999"], "--port 99999: wanted 0 to 65535"),
        (["tiny-roberta", "--port", "-1"], "--port -1: wanted 0 to 65535"),
    ):
        assert cli.main(["serve", *map(str, arguments)]) == 2
        assert reason in capsys.readouterr().err


def test_only_a_screen_gets_a_browser(monkeypatch):
    for name in "DISPLAY", "WAYLAND_DISPLAY":
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not server.has_screen()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert server.has_screen()
    monkeypatch.delenv("WAYLAND_DISPLAY")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert server.has_screen()


def test_the_first_text_is_one_that_the_model_can_spell(bundled):
    assert server.first_text(bundled) == corpus.SENTENCE
    assert server.first_text(minitx.load("tiny-bart")) == own_texts.DATE  # of its own kind


def test_a_copy_of_a_model_reads_what_it_can_spell(tmp_path):
    """It is not known to be trained on dates; a sentence is too long for it."""
    shutil.copytree(weights.find("tiny-bart"), tmp_path / "copy")
    assert server.first_text(minitx.load(tmp_path / "copy")) == "3 May 1912"


def test_several_models_are_listed():
    arguments = commands.parser().parse_args(["serve", "tiny-roberta", "tiny-gpt2"])
    assert arguments.models == ["tiny-roberta", "tiny-gpt2"]
    assert arguments.port == commands.serve.PORT and not arguments.no_browser


@pytest.mark.parametrize("port", ["x", 1.5, None, True])
def test_what_is_no_port_is_refused(port):
    with pytest.raises(ValueError, match=f"--port {port!r}: wanted 0 to 65535"):
        minitx.serve("tiny-stories", port=port, browser=False)
