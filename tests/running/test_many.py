"""Many experiments: side by side they are the same bytes, and nothing outlives an end."""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import minitx
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.machine import progress
from minitx.analysis.running import budget, executor, many
from minitx.analysis.running.single import Failure
from minitx.machine import threads

MODEL = "tiny-gpt2"
NAMES = "positions", "attention", "alignment", "probe", "bases", "models"
OPTIONS = {"documents": 4, "tokens": 32, "shuffles": 20, "rotations": 20}
RUN = f"""
import minitx
from minitx.analysis.__main__ import main
from minitx.analysis import experiments
from minitx.analysis.running import many
many.n_processes = lambda options: 2
if __name__ == "__main__":
    few = "--documents 6 --tokens 64".split()
    raise SystemExit(main(["report", {MODEL!r}, *few, "--out", "out"]))
"""
# of every Python process: it leaves its number, and Ctrl-C, which a job of a script ignores, acts
STARTS = """
import os, pathlib, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
pathlib.Path(f"started.{os.getpid()}").touch()
"""


def outcomes(out, *names, options=None, n=2, **given):
    """{name: outcome} of experiments in n processes."""
    listed = [registry.get(name) for name in names]
    model = minitx.load(MODEL)
    done = many.every(listed, model, MODEL, options or {}, out, n_processes=n, **given)
    return {experiment.name: outcome for experiment, outcome, _ in done}


def produced(out, n):
    """The outcomes of NAMES from n processes, and the files that they wrote."""
    out.mkdir()
    named = outcomes(out, *NAMES, options=OPTIONS, n=n)
    return named, {x.name: x.read_bytes() for x in out.iterdir() if x.suffix != ".lock"}


def ordered(names, model=MODEL):
    """The jobs of experiments, the first first."""
    reader, jobs = minitx.load(model), []
    for name in names:
        reads_many = many.reads_many(registry.get(name), reader)
        jobs.append(many.Job(name, None, model, {}, "", "", False, reads_many=reads_many))
    return sorted(jobs, key=many._rank)


def without_seconds(text):
    """The lines of experiments, in the order of their words."""
    words = [line.split() for line in text.splitlines()]
    return sorted([name, *others] for name, _, _, *others in words)


def test_what_reads_documents_or_pairs_comes_behind_what_reads_none():
    names = "profiles", "circuit", "probe", "patch", "parts", "paths", "attribute", "models"
    first = ["parts", "attribute", "models"]
    assert [job.experiment for job in ordered(names)][:3] == first


def test_what_reads_no_pictures_comes_before_what_does():
    """Of texts `positions` reads documents."""
    jobs = ordered(["remove-positions", "joint-space", "positions", "patch"], "tiny-vit")
    assert [job.experiment for job in jobs][:2] == ["positions", "patch"]  # one is refused at once


def test_side_by_side_they_are_the_same_bytes(tmp_path, capsys):
    alone, files = produced(tmp_path / "alone", 1)
    said = capsys.readouterr().out
    together, same = produced(tmp_path / "together", 2)
    order = "attention models positions alignment probe bases".split()
    assert [*alone] == order and {*together} == {*order} and files == same and len(files) == 5 * 3
    assert alone["probe"].note.startswith("takes 6 documents") and together["probe"].note
    lines, again = map(without_seconds, (said, capsys.readouterr().out))
    assert lines == again and "left out: alignment needs an encoder-decoder" in said
    for name in NAMES:
        assert type(alone[name]) is type(together[name])
    assert together["alignment"].left_out and alone["bases"].figures == together["bases"].figures


def test_what_takes_longest_goes_first_of_what_reads_by_itself():
    names = "models", "shift", "dial", "norms", "mask-positions", "rotation", "lags"
    jobs = ordered(names)
    groups = [[job.experiment for job in jobs] for jobs in many._groups(jobs, 2)]
    assert groups[:4] == [["models"], ["dial", "lags"], ["mask-positions"], ["shift"]]
    assert groups[4:] == [["rotation"], ["norms"]]  # rotation reads a single document
    expected = dict.fromkeys(names, 1.0) | {"norms": 300.0, "rotation": 20.0}  # of this model
    plan = budget.Plan(10.0, 0, 0, (), expected, 0.0, cores=2)
    planned = [job.experiment for [job, *_] in many._groups(jobs, 2, plan)]
    assert planned[:4] == ["models", "dial", "norms", "rotation"]
    alone = [job.experiment for [job, *_] in many._groups(jobs, 1)]
    assert alone == ["models", "shift", "norms", "mask-positions", "rotation", "dial"]


@pytest.mark.parametrize("n", [1, 2])
def test_what_was_left_out_is_done_while_time_is_left(tmp_path, capsys, n):
    names = "parts", "attention", "predict"  # what says least is first
    expected = {"parts": 0.0, "predict": 4000.0, "attention": 300.0}
    plan = budget.Plan(10.0, 0, 0, names[1:], expected, 0.0, cores=n)
    done = outcomes(tmp_path, *names, n=n, plan=plan)
    assert [*done][-1] == "predict" and done["attention"].figures
    assert done["predict"].reason == "does not fit into 10 minutes beside the others"
    assert done["predict"].left_out and "predict" in capsys.readouterr().out


def test_one_that_fails_in_a_process_is_named_and_the_others_go_on(tmp_path):
    options = {"shuffles": -3, "text": "sample"}
    of = outcomes(tmp_path, "positions", "attention", options=options)
    assert of["positions"].reason.startswith("shuffles is -3") and not of["positions"].left_out
    assert of["attention"].settings["options"]["text"] == "sample"


def test_a_process_that_is_killed_ends_all_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(many, "_in_process", _killed)
    with pytest.raises(OSError, match="ended before its experiment; .* --resume to continue"):
        outcomes(tmp_path, "positions", "attention")
    assert not multiprocessing.active_children()


def _killed(jobs):
    os.kill(os.getpid(), signal.SIGKILL)


def test_processes_that_write_what_nobody_reads_end(monkeypatch):
    """Where all write to one pipe, half a message holds up for ever whoever reads it."""
    monkeypatch.setattr(many, "_in_process", bytes)
    done = many._side_by_side([1 << 24] * 3, 2)
    next(done)
    done.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("is_planned", [True, False])
def test_beside_a_plan_no_loop_says_how_long_it_takes(monkeypatch, is_planned):
    """It counts documents that ever fewer experiments read, and says minutes that do not pass."""
    monkeypatch.setattr(many, "_in_process", _longest_untold)
    [seconds] = many._side_by_side(["any"], 2, is_planned)
    assert seconds == (math.inf if is_planned else 600.0)


def test_the_time_that_is_left_is_shown_while_one_is_at_work(tmp_path, monkeypatch):
    """It stood still for the two minutes that an experiment takes."""
    shown = []
    monkeypatch.setattr(many, "SHOWN", 0.05)
    monkeypatch.setattr(many.progress, "show", shown.append)
    monkeypatch.setattr(many.budget, "time_left", lambda *_: 60.0 * 0.9 ** len(shown))
    monkeypatch.setattr(many, "_in_process", _slow)
    plan = budget.Plan(10.0, 0, 0, (), {"positions": 60.0}, 60.0, cores=2)
    outcomes(tmp_path, "positions", plan=plan)
    left = [line for line in shown if line]
    assert len(left) >= 3 and all(line.startswith("positions …, about ") for line in left)
    assert len({*left}) == len(left)


def _slow(jobs):
    time.sleep(0.5)
    return _counted(jobs)


def _longest_untold(jobs):
    return progress.LONG


def test_products_take_no_more_threads_than_a_process_has_cores(tmp_path, monkeypatch):
    """With OPENBLAS_NUM_THREADS=2 a report of a minute took more than eight on two cores."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setattr(many, "_in_process", _counted)
    monkeypatch.setattr(threads, "count", lambda: 2)
    assert outcomes(tmp_path, "positions")["positions"].reason == "1"


def _counted(jobs):
    done = many.Done(Failure(str(threads.count()), left_out=True), 0.0)
    return {job.experiment: done for job in jobs}


def test_where_others_measure_or_a_text_is_piped_in_there_is_one(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert many.n_processes({}) == 4 and many.n_processes({"text": "-"}) == 1
    with executor.use(executor.Threads(2)):
        assert many.n_processes({}) == 1
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert many.n_processes({}) == many.MOST


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_a_report_ends_its_processes(tmp_path, number):
    (tmp_path / "run.py").write_text(RUN)
    (tmp_path / "sitecustomize.py").write_text(STARTS)
    root = Path(minitx.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tmp_path, root)))}
    process = subprocess.Popen(
        [sys.executable, "run.py"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    started = partial(tmp_path.glob, "started.*")
    until(lambda: len([*started()]) >= 3 and [*(tmp_path / "out").glob("*.json")])
    own = [int(path.suffix[1:]) for path in started()]
    assert all(map(is_alive, own))
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    until(lambda: not any(map(is_alive, own)))
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert errors == "minitx: interrupted; repeat the command with --resume to continue\n"


def until(is_done):
    """Wait until something is true."""
    end = time.monotonic() + 150
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_alive(pid):
    """Whether there is a process of this number that has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # where there is one, it tells what nobody has waited for
    return not stat.is_file() or stat.read_text().rpartition(") ")[2][0] != "Z"
