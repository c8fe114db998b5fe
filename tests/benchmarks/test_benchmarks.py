"""The benchmarks' own arithmetic and bookkeeping, on tiny models.

Nothing here is timed, and no other system runs.
"""

import numpy as np
import pytest

import minitx
from benchmarks import cases, corpus, peers, rounds, shapes, summary

PEERS = "minitx/nothing", "minitx/internals", "minitx/everything"
SMALL = cases.Case("small", "a small one", PEERS, "gpt2-small", 2, 9, rounds=4)
SMALL_SHAPES = "roberta-small", "gpt2-small", "smollm-small"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    for shape in SMALL_SHAPES:
        shapes.make(folder, shape)
    return folder


# what is measured


def test_every_case_and_wanted_number_names_what_there_is():
    for case in cases.CASES.values():
        assert case.shape in shapes.SHAPES
        for peer in case.peers:
            system, task = peer.split("/")
            tasks = [*dir(peers.PEERS[system]), "import"]
            if system == "experiment":
                tasks = corpus.names()
            assert task in tasks, (case.name, system, task)
    for wanted in cases.WANTED:
        assert {wanted.under, *wanted.over} <= set(cases.CASES[wanted.case].peers), wanted.what
        if wanted.less:
            assert wanted.aim <= wanted.must
        else:
            assert wanted.must <= wanted.aim
        assert not wanted.over or wanted.under not in wanted.over


def test_must_is_what_the_wanted_numbers_are_made_of_and_nothing_beside_it():
    measured = {(case.name, peer) for case in cases.must() for peer in case.peers}
    wanted = set()
    for number in cases.WANTED:
        wanted |= {(number.case, peer) for peer in (number.under, *number.over)}
    assert measured == wanted
    assert {case.name for case in cases.must()} == {number.case for number in cases.WANTED}


@pytest.mark.parametrize("shape", SMALL_SHAPES)
def test_random_weights_are_a_whole_checkpoint_in_which_no_tensor_is_at_its_default(work, shape):
    model = minitx.load(work / shape)
    assert model.config.task_head is not None and not model.unused
    for part in (model.weights, *model.layers):
        for name, x in vars(part).items():
            if isinstance(x, np.ndarray) and name != "b_U":
                assert x.std() > 0.02, name
    assert shapes.ids(shape, 2, 50).min() >= shapes.FIRST_ID


# peers


@pytest.mark.parametrize("shape", SMALL_SHAPES)
def test_minitx_gives_the_same_under_every_task(work, shape):
    peer = peers.Minitx(work / shape, 1)
    tokens = shapes.ids(shape, 2, 9)
    arrays = {}
    for task in ("nothing", "pattern", "internals", "everything", "logits"):
        arrays[task] = peer.seen(getattr(peer, task)(tokens))
    wrong, distance = rounds.checked(arrays)
    assert not wrong and distance < 1e-6
    assert {"q", "k", "pattern"} == set(arrays["pattern"])
    assert {"q", "k", "v", "pattern", "hidden"} == set(arrays["internals"])
    exact = minitx.load(work / shape, dtype=np.float64)
    trace = minitx.run(exact, tokens, keep=["q", "pattern", "logits"])
    q = trace["q", 1].swapaxes(1, 2).reshape(2, 9, -1)
    assert np.abs(arrays["internals"]["q"] - q).max() < 1e-5 * np.abs(q).max()
    logits = trace["logits"]
    assert np.abs(arrays["logits"]["logits"] - logits).max() < 1e-5 * np.abs(logits).max()
    previous = np.trace(arrays["pattern"]["pattern"], -1, -2, -1).sum(axis=0)  # of the last layer
    by_offset = peer.profiles(tokens)["profiles"][-1]
    assert np.abs(by_offset[:, peers.REACH - 1] - previous).max() < 1e-5


# rounds


def test_arrays_that_differ_put_a_peer_out():
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    arrays = {"a": {"q": x, "k": x}, "b": {"q": x + 1e-5}}
    arrays |= {"c": {"k": x + 2e-3}, "d": {"q": x.T}}
    wrong, distance = rounds.checked(arrays)
    assert set(wrong) == {"c", "d"} and distance == pytest.approx(2e-3)
    assert "k differs by 2.0e-03" in wrong["c"]
    assert "q is [3, 2], of another system [2, 3]" in wrong["d"]
    assert set(rounds.checked({"a": {"q": x}, "b": {"q": x * np.nan}})[0]) == {"b"}


def test_one_process_answers_for_all_rounds_and_a_failing_peer_does_not_end_the_others(work):
    case = SMALL._replace(peers=(*SMALL.peers, "minitx/no_such_task", "no-such-system/nothing"))
    with rounds.Processes(work, 1) as processes:
        measured = rounds.measure(case, processes, 2)
        started = set(processes)
    assert started == {"minitx", "no-such-system"} and not processes
    counts = {peer: len(values) for peer, values in measured["seconds"].items()}
    assert counts == dict.fromkeys(SMALL.peers, 2)
    assert set(measured["lost"]) == {"minitx/no_such_task", "no-such-system/nothing"}
    assert "no_such_task" in measured["lost"]["minitx/no_such_task"]
    assert measured["distance"] < 1e-5


# from seconds to ratios


def sets_of(by_peer):
    """The sets of one case: {number: what was measured}."""
    sets = {}
    for k in range(len(next(iter(by_peer.values())))):
        seconds = {peer: values[k] for peer, values in by_peer.items()}
        sets[str(k)] = {"seconds": seconds, "memory": {}, "lost": {}, "distance": 1e-6, "busy": 0.0}
    return sets


def test_ratios_are_taken_within_rounds():
    slow = [1, 1, 10, 10]  # what the machine did to everybody in each round
    sets = sets_of({"a/t": [[2 * s for s in slow]], "minitx/t": [slow]})
    assert summary.ratios(sets, "a/t", "minitx/t") == [2, 2, 2, 2]
    assert summary.ratios(sets, "a/t", "minitx/t", 3.0) == [6, 6, 6, 6]
    # a set without the other system has no ratio
    sets = sets_of({"a/t": [[4, 6]], "minitx/t": [[2, 2]]})
    sets["1"] = {"seconds": {"minitx/t": [1]}}
    assert summary.ratios(sets, "a/t", "minitx/t") == [2, 3]
    assert summary.quartiles([1, 2, 3, 4, 100]) == (3, 2, 4)


def test_wanted_numbers_reach_aim_must_or_neither():
    ratio = cases.Wanted("r", "x", "minitx/t", ("o/a", "o/b"), 1.5, 2.0, factor=0.5)
    others = {"o/a": [[6], [8]], "o/b": [[9], [9]]}
    run = {"cases": {"x": sets_of(others | {"minitx/t": [[2], [2]]})}}
    value, fastest = summary.reached(ratio, run)
    assert value[0] == pytest.approx(0.5 * (3 + 4) / 2) and fastest == "o/a"
    assert [summary.verdict(ratio, x) for x in (2.0, 1.5, 1.49)] == ["aim", "yes", "no"]
    seconds = ratio._replace(over=(), must=60, aim=20, unit="s")
    assert summary.reached(seconds, run)[0][0] == 2
    assert [summary.verdict(seconds, x) for x in (20, 60, 61)] == ["aim", "yes", "no"]
    memory = seconds._replace(unit="MB")
    run["cases"]["x"]["0"]["memory"] = {"minitx/t": [[9e6, 5e6], [9e6, None]]}
    assert summary.reached(memory, run)[0][0] == 5
    assert summary.reached(ratio._replace(case="y"), run) is None


def whole_run():
    """Every case with made-up seconds: 1 for minitx and NumPy's, 2 for everybody else."""
    run = {"cases": {}, "settings": SETTINGS, "installed": {"minitx": 1e8, "torch": None}}
    for case in cases.CASES.values():
        is_fast = {peer: peer.startswith(("minitx", "numpy")) for peer in case.peers}
        sets = sets_of({peer: [[2.0 - is_fast[peer]] * 3] * 2 for peer in case.peers})
        run["cases"][case.name] = sets
        for measured in sets.values():
            if case.fresh:
                measured["memory"] = {peer: [[2e8, 5e7]] * 3 for peer in case.peers}
    return run


SETTINGS = {
    "machine": {"line": "a machine", "kernels": "Zen"},
    "versions": {"torch": "2", "onnxruntime": None},
    "commit": "abc",
    "sets": 2,
    "quick": False,
}


def test_the_page_has_every_wanted_number_every_case_and_what_to_mind():
    run = whole_run()
    run["cases"]["svd"]["1"]["lost"] = {"numpy/dense_svd": "it could not"}
    page = summary.markdown(run, "2026-01-01")
    table = page.partition("## What was wanted")[2].partition("##")[0]
    assert table.count("\n| ") == 2 + len(cases.WANTED) and "not measured" not in table
    assert all(f"| {wanted.what}" in table for wanted in cases.WANTED)
    assert "eager: 1x32 | 2× (2–2) | ≥ 1.5× | 2 | aim |" in table
    assert "| private memory, one 512-token pass | 50 MB (50–50) | ≤ 60 MB | 40 | yes |" in table
    for case in cases.CASES.values():
        assert (f"`{case.name}`: 2 sets of" in page) != case.apart
    section = page.partition("## Documents per second")[2].partition("##")[0]
    assert all(f"| {name} | 20 · 80" in section for name in corpus.names())
    assert "left out: numpy/dense_svd: it could not" in page
    assert "is not the factor on Intel" in page and "Kernels of NumPy's BLAS: Zen" in page
    assert "onnxruntime not installed" in page
    del run["cases"]["report"]
    assert "minitx report tiny-roberta | not measured" in summary.markdown(run, "2026-01-01")
