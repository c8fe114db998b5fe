"""The cost of a long run, as two short ones tell it."""

import json

import numpy as np
import pytest

from minitx.analysis import EXPERIMENTS, commands
from minitx.analysis.machine import progress
from minitx.analysis.running import cost


def stage(n):
    return cost.Stage(n, seconds=2.0, sent=80.0, returned=10.0, kept=4.0)


def test_stages_grow_with_the_documents_or_do_not():
    """One reads all documents, one half of them, one always four; reading takes 0.5 s each."""
    few = cost.Measured(4, {"all": stage(4), "half": stage(2), "four": stage(4)}, 10 + 2.0)
    more = cost.Measured(8, {"all": stage(8), "half": stage(4), "four": stage(4)}, 10 + 4.0)
    expected = cost.extrapolated(few, more, 1000, 7.0, 3.0)
    assert expected.seconds == 2 * (1000 + 500 + 4)
    assert (expected.reading, expected.fixed) == (500.0, 10.0)
    assert (expected.sent, expected.returned, expected.kept) == (80 * 1504, 15040, 4 * 1504)
    assert (expected.memory, expected.weights) == (7.0, 3.0)
    assert cost.seconds_with(expected, 1) == 3008 + 10
    assert expected.calls == 1504
    client = 500 + 1504 * cost.CLIENT + 15040 / cost.RATE
    assert cost.seconds_with(expected, 1000) == client + 10  # the client is the limit
    assert cost.seconds_with(expected, 2) == (3008 + 1504 * cost.WORKER) / 2 + 10
    assert "more than 6 workers bring nothing" in cost.says(expected, 1000)
    assert "bring nothing" not in cost.says(expected, 2)


@pytest.mark.parametrize("name", ["profiles", "lags"])
def test_a_plan_is_what_a_run_of_more_documents_takes(name, causal):
    """Bytes to the byte; seconds within a factor of 5: a busy machine is not the same twice."""
    experiment = EXPERIMENTS[name]
    options = {"tokens": 32}
    expected = cost.plan(experiment, causal, options, 40)
    run = cost.measured(experiment, causal, experiment.checked(options), 40)
    stages = run.stages.values()
    assert expected.sent == sum(x.n * x.sent for x in stages) > 0
    assert expected.returned == pytest.approx(sum(x.n * x.returned for x in stages))
    assert expected.kept == pytest.approx(sum(x.n * x.kept for x in stages))
    seconds = sum(x.n * x.seconds for x in stages)
    assert seconds / 5 < expected.seconds < seconds * 5
    assert expected.weights < expected.memory
    assert expected.measured == 24 * max(1, experiment.least_documents)


def test_a_meter_changes_no_number(causal):
    experiment = EXPERIMENTS["profiles"]
    options = experiment.checked({"tokens": 32, "documents": 4})
    plain = experiment.run(causal, **options)
    np.testing.assert_equal(experiment.run(causal, cost.Meter(), **options), plain)


def test_the_command_takes_large_numbers(capsys):
    argv = "plan profiles tiny-gpt2 --tokens 32 --documents 1e6 --workers 64".split()
    assert commands.run_command(argv) == 0
    text = capsys.readouterr().out
    assert text.startswith("1,000,000 documents, 64 workers: ")
    assert "a document on one thread" in text and "memory of a worker" in text
    assert "moved: 256 MB to the" in text and "Not known" in text
    assert commands.run_command([*argv, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["documents"], record["workers"], record["sent"]) == (10**6, 64, 256e6)


@pytest.mark.parametrize("given", ["1e-3", "many", "0", "2.5", "nan", "inf"])
def test_a_number_that_is_none_is_said(given, capsys):
    argv = ["plan", "profiles", "tiny-gpt2", "--documents", given]
    assert commands.run_command(argv) == 2
    assert f"--documents is '{given}'; wanted a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    "n, text", [(3, "3 bytes"), (2500, "2.5 kB"), (3.2e8, "320 MB"), (1.5e13, "15,000 GB")]
)
def test_sizes_are_said_plainly(n, text):
    assert cost.size(n) == text


@pytest.mark.parametrize("n, text", [(3.14, "3.1 s"), (600, "10 min"), (3.6e6, "1,000.0 h")])
def test_durations_are_said_plainly(n, text):
    assert progress.duration(n) == text


@pytest.mark.parametrize("for_workers", [True, False])
@pytest.mark.parametrize("total, is_long", [(10**6, True), (3000, False)])
def test_a_long_run_says_so_before_and_once(total, is_long, for_workers, monkeypatch, capsys):
    """Ten documents a second: 28 hours, or five minutes."""
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    line = progress.Line("documents", total, for_workers=for_workers)
    for done in range(1, 400):
        clock[0] = done / 10
        line.update(done)
    said = capsys.readouterr().err
    assert said.count("minitx: ") == is_long
    if is_long:
        assert "documents: 1,000,000, about 27.8 h at this rate" in said
        assert ("; `minitx plan` says" in said) == for_workers
