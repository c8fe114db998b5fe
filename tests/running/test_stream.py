"""Sums over documents that do not depend on how they were run, and survive being killed."""

import io
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from minitx.analysis.running import stream

ROOT = Path(__file__).parents[2]


def test_gather_adds_up_and_stacks():
    numbers = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)

    def measure(i, x):
        return {"sum": x, "all": x, "index": i}

    sums = stream.UNSAVED.gather(measure, numbers, "rows", keep=("all",))
    assert np.array_equal(sums["all"], numbers) and sums["all"].dtype == np.float32
    # another order: measured 1e-15
    assert np.abs(sums["sum"] - numbers.astype(float).sum(axis=0)).max() < 1e-13
    assert sums["index"] == 49 * 50 / 2


ROWS = np.arange(200.0)


def third(i, x):
    """What the runs below measure of a row."""
    return {"sum": x / 3, "all": x}


def failing_at(n):
    """The same, interrupted at row n."""

    def measure(i, x):
        if i >= n:
            raise KeyboardInterrupt
        return third(i, x)

    return measure


def left(folder):
    """The files in a folder, without the lock, which stays."""
    return [path for path in folder.iterdir() if path.suffix != ".lock"]


def run(folder, measure, resume, key="same"):
    """A run that gathers once."""
    with stream.resumable(folder, "test", key, resume) as open_run:
        return open_run.gather(measure, ROWS, "rows", keep=("all",))


@pytest.fixture
def every_document(monkeypatch):
    """States are saved after every document."""
    monkeypatch.setattr(stream, "SAVE_SHARE", 1e9)


@pytest.fixture
def state(tmp_path, every_document):
    """The file that a run leaves which is interrupted at row 90."""
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, failing_at(90), resume=False)
    [state] = left(tmp_path)
    return state


def resumed(gather, capsys):
    """The sums of an interrupted run that goes on where it was, and are those of a whole one."""
    seen = []
    sums = gather(lambda i, x: seen.append(i) or third(i, x))
    whole = stream.UNSAVED.gather(third, ROWS, "rows", keep=("all",))
    np.testing.assert_equal(sums, whole)
    assert 0 < min(seen) <= 90 and sorted(seen) == [*range(min(seen), 200)]
    assert f"going on after {min(seen)} documents" in capsys.readouterr().err


def test_an_interrupted_sum_goes_on_where_it_was(tmp_path, state, capsys):
    resumed(lambda measure: run(tmp_path, measure, resume=True), capsys)
    assert not left(tmp_path)


@pytest.mark.usefixtures("every_document")
def test_a_stage_finds_its_own_state_where_the_one_before_it_is_left_out(tmp_path, capsys):
    """A resumed run may take from elsewhere what its first stage measured."""
    with pytest.raises(KeyboardInterrupt):
        with stream.resumable(tmp_path, "test", "same", False) as interrupted:
            interrupted.gather(lambda i, x: {"sum": -x}, ROWS[:50], "the first")
            interrupted.gather(failing_at(90), ROWS, "the second", keep=("all",))
    stages = {path.name.split(".")[2] for path in left(tmp_path)}
    assert stages == {"the-first", "the-second"}
    with stream.resumable(tmp_path, "test", "same", True) as open_run:
        resumed(lambda x: open_run.gather(x, ROWS, "the second", keep=("all",)), capsys)
    assert not left(tmp_path)


def test_a_run_with_a_folder_gathers_the_same_words_once(tmp_path):
    with stream.resumable(tmp_path, "test", "same", False) as open_run:
        open_run.gather(third, ROWS, "some rows")
        message = "^test gathers 'some rows' twice; each needs its own words$"
        with pytest.raises(ValueError, match=message):
            open_run.gather(third, ROWS, "some rows")
        assert open_run.gather(third, ROWS, "other rows")["sum"] == pytest.approx(ROWS.sum() / 3)
    assert not left(tmp_path)
    for _ in range(2):  # nothing is kept, so nothing can be mixed
        stream.UNSAVED.gather(third, ROWS, "some rows")


def test_a_state_is_not_mixed_with_other_settings_and_never_dropped_silently(
    tmp_path, state, capsys
):
    with pytest.raises(ValueError, match="belongs to a run with other settings, model or text"):
        run(tmp_path, failing_at(999), resume=True, key="other")
    # it fails before there is anything to keep in place of the old state
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, failing_at(0), resume=False, key="other")
    assert left(tmp_path) == [state]
    run(tmp_path, failing_at(999), resume=False)
    message = "an interrupted run was here; it starts over (--resume would continue it)"
    assert message in capsys.readouterr().err
    assert not left(tmp_path)


def npy(x):
    """The bytes of an array alone."""
    content = io.BytesIO()
    np.save(content, x)
    return content.getvalue()


def archive_of(n):
    """An archive whose one member says that it has n numbers."""
    header, archive = io.BytesIO(), io.BytesIO()
    description = {"descr": "<f8", "fortran_order": False, "shape": (n,)}
    np.lib.format.write_array_header_1_0(header, description)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("key.npy", header.getvalue())
    return archive.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:-40],
        lambda raw: raw[:60] + b"!" + raw[61:],
        lambda raw: b"nonsense",
        lambda raw: npy(np.ones(3)),
        lambda raw: archive_of(1 << 40),
        lambda raw: archive_of(1 << 70),
        lambda raw: raw.replace(b"key.npy", b"key.np_"),  # a member that is no array
        lambda raw: raw.replace(b"key.npy", b"kex.npy"),
        lambda raw: raw.replace(b"PK\1\2-\3-", b"PK\1\2-\3\xff"),  # of zip version 25.5
        lambda raw: raw.replace(b"PK\1\2-\3-\0\0", b"PK\1\2-\3-\0\1"),  # encrypted
    ],
)
def test_a_damaged_state_is_said_to_be_so(tmp_path, state, damage):
    state.write_bytes(damage(state.read_bytes()))
    message = (
        r"test.rows.\w{8}.state.npz is damaged; without --resume the run starts from the beginning"
    )
    with pytest.raises(ValueError, match=message):
        run(tmp_path, failing_at(999), resume=True)


ALTERED = {
    "more than there are": lambda state: {"done": np.array(500)},
    "all": lambda state: {"done": np.array(len(ROWS))},
    "fewer": lambda state: {"done": state["done"] - 1},
    "negative": lambda state: {"done": -state["done"]},
    "no number": lambda state: {"done": np.array("many")},
    "several": lambda state: {"done": np.array([3, 4])},
    "another value": lambda state: {"of_sum": state["of_sum"] + 1},
    "another shape": lambda state: {"of_sum": np.array([state["of_sum"]])},
    "another type": lambda state: {"of_sum": state["of_sum"].astype(np.float32)},
    "a row too few": lambda state: {"of_all": state["of_all"][1:]},
    "one more name": lambda state: {"of_other": state["of_sum"]},
    "a name too few": lambda state: {"of_sum": None},
    "no digest": lambda state: {"digest": np.array("")},
}


@pytest.mark.parametrize("how", ALTERED)
def test_a_state_that_was_altered_is_never_gone_on_with(tmp_path, state, how):
    with np.load(state) as file:
        saved = dict(file)
    altered = saved | ALTERED[how](saved)
    np.savez(state, **{name: x for name, x in altered.items() if x is not None})
    message = r"state.npz is damaged; without --resume the run starts from the beginning$"
    with pytest.raises(ValueError, match=message):
        run(tmp_path, failing_at(999), resume=True)
    whole = run(tmp_path, failing_at(999), resume=False)
    assert whole["sum"] == pytest.approx(ROWS.sum() / 3) and np.array_equal(whole["all"], ROWS)


@pytest.mark.parametrize(
    "done, sums, message",
    [
        (201, {"sum": 1.0}, "holds 201 documents, of the 200 that are to be read"),
        (np.inf, {}, "is damaged"),
        (0, {}, "holds 0 documents, of the 200 that are to be read"),
        (-3, {"sum": 1.0}, "holds -3 documents, of the 200 that are to be read"),
        (3, {"sum": 1.0, "all": [1.0, 2.0]}, r"holds 'all' \[2\] of 3 documents"),
        (3, {"sum": 1.0, "all": 2.0}, r"holds 'all' \[\] of 3 documents"),
        (3, {"sum": np.float32(1)}, "holds 'sum' as float32, not as sums in float64"),
        (3, {"sum": np.ones(4)}, r"'sum' is \[\] of a document and \[4\] of those before it"),
        (3, {"sum": 1.0, "all": np.ones((3, 2))}, r"'all' is \[\] of a document and \[2\] of"),
    ],
)
def test_a_state_that_does_not_fit_its_run_is_refused(tmp_path, done, sums, message):
    """As other code may have saved it."""
    saved = stream.Run(tmp_path, "test", "same", resume=True)
    saved._save(saved._state("rows"), done, sums)
    with pytest.raises(
        ValueError, match=f"{message}.*; without --resume the run starts from the beginning"
    ):
        run(tmp_path, failing_at(999), resume=True)


def test_two_runs_do_not_share_a_folder(tmp_path):
    code = (
        "from minitx.analysis.running import stream\n"
        f"with stream.resumable({str(tmp_path)!r}, 'test', 'key', False): pass"
    )
    with stream.resumable(tmp_path, "test", "key", False):
        errors = python("-c", code).communicate(timeout=200)[1]
        assert b"another run is writing to" in errors
    assert not left(tmp_path)


def test_the_lock_of_a_folder_stays_the_same_file(tmp_path):
    with stream.resumable(tmp_path, "test", "key", False):
        (lock,) = tmp_path.glob("*.lock")
        taken = lock.stat().st_ino
    assert lock.stat().st_ino == taken


RACE = """
import os, sys, time
from pathlib import Path
from minitx.analysis.running import stream

folder = Path(sys.argv[1])
(folder / sys.argv[2]).touch()
while len([*folder.glob("process*")]) < 2:  # until both are here
    time.sleep(0.001)
entries, end = 0, time.monotonic() + 1
while time.monotonic() < end:
    try:
        with stream.resumable(folder, "test", "key", False):
            os.close(os.open(folder / "inside", os.O_CREAT | os.O_EXCL))  # fails if it is there
            os.unlink(folder / "inside")
            entries += 1
    except ValueError as error:
        assert "another run is writing to" in str(error)
print(entries, file=sys.stderr)
"""


def test_two_processes_are_never_in_one_folder_together(tmp_path):
    """Each enters and leaves as often as it can: the moment of leaving is the dangerous one."""
    processes = [python("-c", RACE, str(tmp_path), f"process{i}") for i in range(2)]
    entries = [int(finish(process)) for process in processes]
    assert sum(entries) > 100  # measured 3,000; with a lock that is deleted 1 in 6 met the other


def python(*arguments):
    """A process of this tree; what it writes to stderr is kept."""
    command = [sys.executable, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env=environment, **streams)


def resumed_profiles(out):
    """A process that measures profiles of 200 documents, from where the one before it ended."""
    options = f"--documents 200 --tokens 96 --resume --out {out}".split()
    return python("-m", "minitx.analysis", "run", "profiles", "tiny-roberta", *options)


def finish(process):
    """What a process wrote to stderr until its end, which must be a good one."""
    errors = process.communicate(timeout=200)[1]
    assert process.returncode == 0, errors
    return errors


def states(folder):
    """When each state in a folder was written."""
    try:
        return {path: path.stat().st_mtime_ns for path in folder.glob(".*.state.npz")}
    except FileNotFoundError:  # a finished run removes its own
        return None


def kill_when_a_state_is_written(process, folder, before, pause):
    """Send SIGKILL `pause` seconds after the folder's states differ from those before."""
    while states(folder) == before and process.poll() is None:
        time.sleep(0.001)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)


def test_a_run_killed_at_random_moments_gives_the_same_bytes(tmp_path):
    """SIGKILL, anywhere from the imports to the last file or just after a state; then --resume."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    begin = time.monotonic()
    finish(resumed_profiles(whole))
    duration = time.monotonic() - begin
    draw = random.Random(0)
    resumed = 0
    for i in range(3):  # tools/killed.py kills more often
        before = states(killed)
        process = resumed_profiles(killed)
        if i % 2 == 0:
            kill_when_a_state_is_written(process, killed, before, draw.uniform(0, 0.05))
        else:
            time.sleep(draw.uniform(0.05, 0.6) * duration)
            process.send_signal(signal.SIGKILL)
        resumed += b"going on after" in process.communicate(timeout=200)[1]
    errors = finish(resumed_profiles(killed))
    resumed += b"going on after" in errors
    assert resumed  # so the kills hit the work, not only the imports
    names = sorted(path.name for path in killed.iterdir() if not path.name.endswith(".tmp"))
    assert names == sorted(path.name for path in whole.iterdir())
    for path in whole.iterdir():
        assert path.read_bytes() == (killed / path.name).read_bytes(), path.name


def test_stages_whose_words_are_alike_have_files_of_their_own(tmp_path):
    """A resumed run would otherwise take the sums of one for those of the other."""
    run = stream.Run(tmp_path, "test", "key")
    words = ("mask 0.1, off", "mask 0,1 off", "Mask 0.1, off", "mask" + " 0.1" * 90)
    assert len({run._state(what) for what in words}) == len(words)
    assert all(len(path.name) < 100 for path in map(stream.Run(tmp_path, "test")._state, words))


def test_what_a_killed_run_was_writing_is_removed_with_its_states(tmp_path):
    for name in ("..test.rows.01234567.state.npz.99.tmp", "..other.rows.01234567.state.npz.99.tmp"):
        (tmp_path / name).write_bytes(b"half")
    stream.Run(tmp_path, "test").remove()
    assert [path.name[:7] for path in tmp_path.iterdir()] == ["..other"]


def test_states_that_were_written_before_are_still_intact():
    """Strided, transposed, empty and of text: the digest of each is what it was in 1.0.0."""
    state = {"of_b": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "key": np.asarray("kéy")}
    state |= {"done": np.asarray(3), "of_a": np.zeros((0, 2), bool)}
    state |= {"of_t": np.arange(6).reshape(2, 3).T[::2]}
    known = "8b23d7ca41fba4a9487cd65cd0507efa4073ebd81e186784f2f8e67dcfe0436a"
    assert stream.digest_of("", state, state.get) == known
