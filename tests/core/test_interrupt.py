"""Ctrl-C at any moment of a command's start: one line and status 130; other programs keep theirs.

The process sends itself the signal when Python is about to import a named module: Python's audit
events tell, to a sitecustomize.py that it finds first.
"""

import os
import signal
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path

import pytest

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis.running import stream
from minitx.machine import interrupt, threads

ROOT = Path(__file__).parents[2]
SITE = """
import os, signal, sys

moments = [os.environ["MOMENT"]]

def hook(event, arguments):
    if event == "import" and arguments[0] in moments:
        moments.clear()
        os.kill(os.getpid(), signal.SIGINT)

# a job of a script begins with signals that are ignored
signal.signal(signal.SIGINT, getattr(signal, os.environ["HANDLER"]))
sys.addaudithook(hook)
"""
SCRIPT = "import sys\nfrom minitx.analysis.__main__ import main\nsys.exit(main())\n"
PROGRAM = "import minitx\nprint('done')\n"
STARTS = {  # how the command is started: arguments of Python
    "module": ["-m", "minitx"],
    "part": ["-m", "minitx.analysis"],
    "short": ["-mminitx"],
    "script": ["minitx"],
}
MOMENTS = (
    "dataclasses",
    "numpy",
    "numpy.linalg",
    "minitx.trace",
    "minitx.analysis.commands",
    "scipy",
)


@pytest.fixture
def python(tmp_path):
    """A function: Python, interrupted when it imports a module -> (stdout, stderr, status)."""
    (tmp_path / "sitecustomize.py").write_text(SITE)
    (tmp_path / "minitx").write_text(SCRIPT)
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(moment, *words, handler="default_int_handler"):
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        env = os.environ | {"PYTHONPATH": path, "MOMENT": moment, "HANDLER": handler}
        done = subprocess.run(
            [sys.executable, *words],
            text=True,
            capture_output=True,
            env=env,
            cwd=tmp_path,
            check=False,
            timeout=200,
        )
        return done.stdout, done.stderr, done.returncode

    return run


@pytest.mark.parametrize(
    "start, moment",
    [*product(["module", "script"], MOMENTS), ("part", "numpy"), ("short", "numpy")],
)
def test_an_interrupt_while_python_imports_is_one_line(python, start, moment):
    assert python(moment, *STARTS[start], "list") == ("", "minitx: interrupted\n", 130)


def test_a_command_that_works_already_says_how_to_go_on(python, tmp_path):
    command = ["run", "positions", "tiny-gpt2", "--out", str(tmp_path / "out")]
    said = "minitx: interrupted; repeat the command with --resume to continue\n"
    assert python("matplotlib", *STARTS["module"], *command) == ("", said, 130)


def test_a_command_that_ignores_interrupts_goes_on(python):
    ended = python("numpy", *STARTS["module"], "--version", handler="SIG_IGN")
    assert ended == (f"minitx {minitx.__version__}\n", "", 0)


@pytest.mark.parametrize("words", [["program.py"], ["-m", "program"], ["-c", PROGRAM, "minitx"]])
def test_a_program_that_imports_minitx_is_interrupted_as_ever(python, words):
    out, error, code = python("numpy", *words)
    assert (out, code) == ("", -signal.SIGINT)
    assert error.startswith("Traceback") and error.endswith("KeyboardInterrupt\n")


def test_a_command_inside_a_program_leaves_its_handler(capsys):
    before = signal.getsignal(signal.SIGINT)
    assert cli.main(["list", "--json"]) == 0
    assert signal.getsignal(signal.SIGINT) is before
    assert before is not interrupt.end


def test_a_handler_of_the_programs_own_stays():
    own = signal.signal(signal.SIGINT, lambda *arguments: None)
    try:
        mine = signal.getsignal(signal.SIGINT)
        interrupt.end_at_once()
        interrupt.raise_again()
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, own)


def start_interrupted(thread):
    """What Python's own `start` does if Ctrl-C comes while it waits for the thread."""
    try:
        raise KeyboardInterrupt
    finally:
        threading.Lock().release()


def test_an_interrupt_while_a_thread_starts_is_not_lost(monkeypatch):
    """Python raises RuntimeError: release unlocked lock."""
    threads.limit(2)
    monkeypatch.setattr(threading.Thread, "start", start_interrupted)
    monkeypatch.delitem(threads._teams, os.getpid(), raising=False)
    with pytest.raises(RuntimeError, match="release unlocked lock"):
        threading.Thread().start()
    with pytest.raises(KeyboardInterrupt):
        threads.spread(lambda i, j: None, 4, 1)
    assert threads.count() == 2
    with pytest.raises(KeyboardInterrupt):
        stream.Run().gather(lambda i, x: {"sum": x}, [1.0, 2.0], "numbers")


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="something else"), interrupt.kept():
        raise RuntimeError("something else")
