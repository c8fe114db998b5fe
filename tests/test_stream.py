"""Sums over documents that do not depend on how they were run, and survive being killed."""
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from analysis import stream

ROOT = Path(__file__).parents[1]

def test_gather_adds_up_and_stacks():
    numbers = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    found = stream.gather(lambda i, x: {"sum": x, "all": x, "index": i}, numbers, "rows", keep=("all",))
    assert np.array_equal(found["all"], numbers) and found["all"].dtype == np.float32
    assert np.abs(found["sum"] - numbers.astype(float).sum(axis=0)).max() < 1e-13  # another order: measured 1e-15
    assert found["index"] == 49 * 50 / 2


def failing_at(n):
    def measure(i, x):
        if i >= n:
            raise KeyboardInterrupt
        return {"sum": x / 3, "all": x}
    return measure


def run(folder, measure, resume, key="same", rows=np.arange(200.0)):
    with stream.resumable(folder, "test", key, resume):
        return stream.gather(measure, rows, "rows", keep=("all",))


def test_an_interrupted_sum_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stream, "SAVE_SHARE", 1e9)  # after every batch
    whole = run(tmp_path, failing_at(999), resume=False)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, failing_at(90), resume=False)
    seen = []
    again = run(tmp_path, lambda i, x: seen.append(i) or {"sum": x / 3, "all": x}, resume=True)
    assert all(np.array_equal(again[name], whole[name]) for name in whole)
    assert 0 < min(seen) <= 90 and sorted(seen) == [*range(min(seen), 200)]
    assert f"going on after {min(seen)} documents" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_a_state_is_not_mixed_with_other_settings_and_never_dropped_silently(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stream, "SAVE_SHARE", 1e9)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, failing_at(90), resume=False)
    with pytest.raises(ValueError, match="belongs to a run with other settings, model or text"):
        run(tmp_path, failing_at(999), resume=True, key="other")
    with pytest.raises(KeyboardInterrupt):  # it fails before there is anything to keep in place of the old state
        run(tmp_path, failing_at(0), resume=False, key="other")
    assert len([*tmp_path.iterdir()]) == 1
    run(tmp_path, failing_at(999), resume=False)
    assert "an interrupted run was here; it is begun anew (--resume would go on)" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("damage", [
    lambda raw: b"", lambda raw: raw[:-40], lambda raw: raw[:60] + b"!" + raw[61:], lambda raw: b"nonsense",
    lambda raw: raw.replace(b"key.npy", b"kex.npy")])
def test_a_damaged_state_is_said_to_be_so(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(stream, "SAVE_SHARE", 1e9)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, failing_at(90), resume=False)
    [state] = tmp_path.glob(".test.*")
    state.write_bytes(damage(state.read_bytes()))
    with pytest.raises(ValueError, match="test.1.state.npz is damaged; without --resume the run is begun anew"):
        run(tmp_path, failing_at(999), resume=True)


def test_two_runs_do_not_share_a_folder(tmp_path):
    with stream.resumable(tmp_path, "test", "key", False):
        code = f"from analysis import stream\nwith stream.resumable({str(tmp_path)!r}, 'test', 'key', False): pass"
        other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=200, text=True,
                               env=os.environ | {"PYTHONPATH": str(ROOT)})
        assert "another run is at work" in other.stderr
    assert not [*tmp_path.iterdir()]


def test_a_run_killed_at_ten_random_moments_gives_the_same_bytes(tmp_path):
    """SIGKILL, anywhere from the imports to the last file, and just after a state was written; then --resume."""
    command = [sys.executable, "-m", "analysis", "run", "profiles", "tiny-roberta", "--documents", "200", "--tokens",
               "96", "--resume", "--out"]

    def start(out):
        return subprocess.Popen([*command, str(out)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env=os.environ | {"PYTHONPATH": str(ROOT)})

    def states():
        with suppress(FileNotFoundError):  # a finished run removes its own
            return {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").glob(".*.state.npz")}
    begin = time.monotonic()
    process = start(tmp_path / "whole")
    said = process.communicate(timeout=200)[1]
    assert process.returncode == 0, said
    whole, draw, resumed = time.monotonic() - begin, random.Random(0), 0
    for i in range(10):
        before, process = states(), start(tmp_path / "killed")
        while i % 2 == 0 and states() == before and process.poll() is None:
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.05) if i % 2 == 0 else draw.uniform(0.05, 0.6) * whole)
        process.send_signal(signal.SIGKILL)
        resumed += b"going on after" in process.communicate(timeout=200)[1]
    process = start(tmp_path / "killed")
    said = process.communicate(timeout=200)[1]
    assert process.returncode == 0, said
    assert resumed + (b"going on after" in said)  # so the kills hit the work, not only the imports
    assert sorted(p.name for p in (tmp_path / "killed").iterdir() if not p.name.endswith(".tmp")) == \
        sorted(p.name for p in (tmp_path / "whole").iterdir())
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "killed" / path.name).read_bytes(), path.name
