"""Shared passes are what each would be alone; experiments that meet give the same bytes."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tiny

import minitx
from minitx.analysis import EXPERIMENTS, run
from minitx.analysis.__main__ import main
from minitx.analysis.measures import document_features, inputs, residual_stream
from minitx.analysis.running import executor, many, passes, stream, together

pytestmark = pytest.mark.usefixtures("empty_figures")

ROOT = Path(__file__).parents[2]
SHARING = "profiles extraction bases lags conditions sources cca mixing dial".split()


@pytest.fixture
def model():
    return minitx.load("tiny-gpt2")


@pytest.fixture
def n_passes(monkeypatch):
    """The tokens of each pass that is watched."""
    seen = []

    def counted(model, tokens, **options):
        seen.append(np.array(tokens))
        return minitx.forward(model, tokens, **options)

    monkeypatch.setattr(passes, "forward", counted)
    return seen


def readings(model, tokens):
    """Two of the same pass."""
    return inputs.reading(model, tokens), residual_stream.states_read(model, tokens)


def asking(*given):
    """A measure that yields these readings one after another."""

    def measure(index, document):
        values = []
        for reading in given:
            values.append((yield reading))
        return {str(i): x for i, x in enumerate(values)}

    return measure


def test_readings_of_the_same_pass_are_one_and_give_what_each_gives_alone(model, n_passes):
    tokens = tiny.ids(model, 12)
    measures = [asking(reading) for reading in readings(model, tokens)]
    results = passes.measured_together(measures, 0, [tokens, tokens])
    assert len(n_passes) == 1
    X, states = (passes.value(reading) for reading in readings(model, tokens))
    assert np.array_equal(results[0, "0"], X) and np.array_equal(results[1, "0"], states)
    assert np.array_equal(X, inputs.of_text(model, tokens))


def test_what_differs_in_model_tokens_or_edits_is_a_pass_of_its_own(model, n_passes):
    tokens = tiny.ids(model, 12)
    zero = {"pos_embed": np.zeros_like}
    given = [inputs.reading(model, x) for x in (tokens, tokens[::-1].copy(), tokens[None])]
    given += [inputs.reading(minitx.load("tiny-gpt2"), tokens)]
    given += [inputs.reading(model, tokens, dict(zero)) for _ in range(2)]  # equal
    passes.measured_together([asking(x) for x in given], 0, [tokens] * len(given))
    assert len(n_passes) == 5


def test_measures_that_ask_for_the_same_two_conditions_meet_in_both(model, n_passes):
    """Each reading is its own object: two passes, not four."""
    tokens = tiny.ids(model, 12)
    zero = {"pos_embed": np.zeros_like}
    ways = [[inputs.reading(model, tokens), inputs.reading(model, tokens, zero)] for _ in range(2)]
    measures = [asking(*pair) for pair in ways]
    passes.measured_together(measures, 0, [tokens] * 2)
    assert len(n_passes) == 2


def test_an_error_is_that_of_its_measure_alone(model):
    tokens = tiny.ids(model, 12)

    def watch(name, x, layer=None):
        raise ValueError("no such point")

    bad = passes.Reading(model, tokens, watch, lambda x: x)
    sound = inputs.reading(model, tokens)
    results = passes.measured_together([asking(bad), asking(sound)], 0, [tokens] * 2)
    assert str(results[0, None]) == "no such point" and len(results) == 2
    assert np.array_equal(results[1, "0"], inputs.of_text(model, tokens))
    with pytest.raises(ValueError, match="no such point"):
        passes.measured(asking(bad), 0, tokens)


def test_an_error_of_the_pass_is_one_of_each_and_a_measure_may_catch_it(model):
    bad = inputs.reading(model, np.array([10**9]))

    def careful(index, document):
        try:
            yield bad
        except ValueError:
            return {"x": 1}

    results = passes.measured_together([asking(bad), careful], 0, [0, 0])
    assert isinstance(results[0, None], ValueError) and results[1, "x"] == 1


def test_a_document_that_is_absent_is_not_measured(model):
    results = passes.measured_together([lambda i, x: {"x": x}] * 2, 3, [passes.ABSENT, 7])
    assert results == {(1, "x"): 7}


def test_random_weights_of_a_large_model_take_half_the_memory(model, monkeypatch):
    monkeypatch.setattr(document_features, "LARGE", 1000)
    random = document_features.random(model, 5)
    exact = document_features.untrained(model, np.random.default_rng(5))
    W, W_exact = random.layers[0].W_in, exact.layers[0].W_in
    assert W.bits().nbytes * 2 == W_exact.nbytes
    rounding = abs(np.asarray(W) - W_exact) / abs(W_exact)
    assert 0 < rounding.max() <= 2**-8
    ids = np.arange(10, 42)[None]
    expected = minitx.forward(exact, ids)
    assert abs(minitx.forward(random, ids) - expected).max() < 0.05 * abs(expected).max()


def test_the_random_model_of_a_seed_is_one_while_it_is_used(model):
    random = document_features.random(model, 3)
    assert document_features.random(model, 3) is random
    assert document_features.random(model, 4) is not random
    other = document_features.random(minitx.load("tiny-gpt2"), 3)
    assert other is not random
    again = document_features.untrained(model, np.random.default_rng(3))
    assert np.array_equal(random.weights.W_E, again.weights.W_E)


# sums that meet


def sums_of(functions):
    """What functions return that gather together, and how many documents each pass had."""
    lengths = []

    def gathered(totals):
        lengths.append([len(total.documents) for total in totals])
        stream.gathered(totals)

    members = together.run(functions, gathered)
    return members, lengths


def added(numbers, scale=1.0):
    """A function that gathers over numbers, and then over its sum."""

    def function():
        first = stream.UNSAVED.gather(lambda i, x: {"x": scale * x}, numbers, "x")["x"]
        second = stream.UNSAVED.gather(lambda i, x: {"x": first + x, "i": i}, numbers, "x")
        return first, second["x"], second["i"]

    return function


def test_sums_that_meet_are_those_of_each_alone():
    numbers = np.random.default_rng(0).standard_normal(40)
    functions = [added(numbers), added(numbers[:30], 0.1), added(numbers[:25], 3.0)]
    members, lengths = sums_of(functions)
    assert [member.result for member in members] == [function() for function in functions]
    assert [sorted(n) for n in lengths] == [[25, 30, 40]] * 2


def test_what_reads_few_documents_goes_first():
    """As the choice of heads does, so that what reads all of them is one pass."""
    numbers = np.arange(40.0)

    def at_once():
        return stream.UNSAVED.gather(lambda i, x: {"x": x}, numbers, "all")["x"]

    def chosen_first():
        stream.UNSAVED.gather(lambda i, x: {"x": x}, numbers[:8], "few")
        return at_once()

    members, lengths = sums_of([at_once, chosen_first])
    assert sorted(map(sorted, lengths)) == [[8], [40, 40]]
    assert [member.result for member in members] == [780.0, 780.0]


def test_one_that_fails_leaves_the_others_as_they_are():
    numbers = np.arange(40.0)

    def failing():
        def measure(i, x):
            if i == 7:
                raise ValueError("document 7")
            return {"x": x}

        return stream.UNSAVED.gather(measure, numbers, "x")

    def before():
        raise KeyError("before it reads")

    def mismatched():
        return stream.UNSAVED.gather(lambda i, x: {"x": np.ones(1 + i)}, numbers, "x")

    members, _ = sums_of([failing, added(numbers), before, mismatched])
    assert [str(member.error) for member in members[::2]] == ["document 7", "'before it reads'"]
    assert "is [2] of a document and [1] of those before it" in str(members[3].error)
    assert members[1].result == added(numbers)()


def test_an_interrupt_ends_all_and_leaves_no_thread():
    numbers = np.arange(40.0)

    def interrupted(totals):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        together.run([added(numbers), added(numbers)], interrupted)
    assert threading.active_count() == before


def test_runs_that_were_interrupted_at_different_documents_go_on_together(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "SAVE_SHARE", 1e9)  # after every document
    numbers = np.arange(40.0)

    def gathers(name, resume, end=999):
        def measure(i, x):
            if i >= end:
                raise KeyboardInterrupt
            return {"sum": x, "all": x}

        def function():
            with stream.resumable(tmp_path, name, "key", resume) as open_run:
                return open_run.gather(measure, numbers, "numbers", keep=("all",))

        return function

    with executor.use(executor.Threads(1)):
        for name, end in (("a", 20), ("b", 30)):
            with pytest.raises(KeyboardInterrupt):
                gathers(name, False, end)()
        members, _ = sums_of([gathers(name, True) for name in "abc"])
    for member in members:
        assert member.result["sum"] == 780 and np.array_equal(member.result["all"], numbers)


# experiments that meet


def produced(folder, argv, *lists):
    """The files of these experiments, run in a command for each list."""
    for names in lists:
        assert main(["run", names, "tiny-roberta", *argv, "--out", str(folder)]) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}


ARGV = "--documents 6 --tokens 72".split()


def test_experiments_that_share_give_the_bytes_that_each_gives_alone(tmp_path, capsys, n_passes):
    alone = produced(tmp_path / "alone", ARGV, *SHARING)
    n_alone = len(n_passes)
    n_passes.clear()
    assert produced(tmp_path / "together", ARGV, ",".join(SHARING)) == alone
    assert len(alone) == 3 * len(SHARING)
    assert all(EXPERIMENTS[name].shares_passes for name in SHARING)
    assert len(n_passes) < 0.6 * n_alone  # measured 0.5


def test_passes_are_counted(tmp_path, n_passes):
    """profiles: text, shuffled, repeated, positions once; cca: text and a random model."""
    for names, n in ("profiles", 3 * 6 + 1), ("cca", 2 * 6), ("profiles,cca", 4 * 6 + 1):
        n_passes.clear()
        produced(tmp_path / names, ARGV, names)
        assert len(n_passes) == n


def test_workers_give_the_same_bytes(tmp_path):
    alone = produced(tmp_path / "alone", ARGV, "profiles", "lags", "cca")
    workers = [*ARGV, "--workers", "2"]
    assert produced(tmp_path / "workers", workers, "profiles,lags,cca") == alone


def test_whoever_measures_experiments_that_meet_gives_the_same(bundled, tmp_path):
    """On one thread and on several, in one command and in the groups of a report."""
    experiments = [EXPERIMENTS[name] for name in ("profiles", "cca", "positions")]
    files = []
    for n in (1, 3):
        folder = tmp_path / str(n)
        folder.mkdir()
        given = bundled, "tiny-roberta", {"documents": 6, "tokens": 72}, folder
        with executor.use(executor.Threads(n)):
            [*many.every(experiments, *given)]
        files.append({x.name: x.read_bytes() for x in folder.iterdir() if x.suffix != ".lock"})
    assert files[0] == files[1] and len(files[0]) == 9
    result = run("cca", "tiny-roberta", documents=6, tokens=72)
    with np.load(tmp_path / "1" / "cca.npz") as arrays:
        assert all(np.array_equal(arrays[name], x) for name, x in result.arrays.items())


def test_several_that_are_killed_go_on_to_the_same_bytes(tmp_path):
    """SIGKILL after a state of each was written; then --resume."""
    argv = "--documents 100 --tokens 72".split()
    names = "profiles,extraction,cca"
    whole = produced(tmp_path / "whole", argv, names)
    killed = tmp_path / "killed"
    command = [sys.executable, "-m", "minitx.analysis", "run", names, "tiny-roberta"]
    settings = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*command, *argv, "--out", str(killed)], env=settings, stdout=subprocess.DEVNULL
    )
    while len([*killed.glob(".*.state.npz")]) < 3 and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert produced(killed, [*argv, "--resume"], names) == whole


def test_one_that_cannot_be_measured_is_said_and_the_others_are_written(tmp_path, capsys):
    argv = ["run", "alignment,positions", "tiny-roberta", "--out", str(tmp_path)]
    assert main(argv) == 2
    said = capsys.readouterr()
    assert "minitx: alignment: alignment needs an encoder-decoder" in said.err
    assert "1 of 2 in" in said.out and (tmp_path / "positions.json").is_file()


@pytest.mark.parametrize(
    "argv, message",
    [
        ("profiles,lag tiny-roberta", "unknown experiment 'lag'; did you mean lags"),
        ("profiles,lags,lags tiny-roberta", "profiles,lags,lags names an experiment twice"),
        ("profiles, tiny-roberta", "unknown experiment ''"),
        ("profiles,lags tiny-roberta --reach 3", "reach is 3; wanted 0, or 10 or more"),
        ("profiles,lags tiny-roberta --documents x", "documents is 'x'"),
    ],
)
def test_what_several_cannot_be_asked_is_said_before_any_work(tmp_path, capsys, argv, message):
    assert main(["run", *argv.split(), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "profiles.json").exists()


def test_json_of_several_is_one_object(tmp_path, capsys):
    names = "positions,singular-values"
    assert main(["run", names, "tiny-roberta", "--json", "--out", str(tmp_path)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [*record] == names.split(",") and record["positions"]["answer"]["verdict"]
