"""The benchmarks' own arithmetic and bookkeeping, on tiny models.

Nothing here is timed, and no other system runs.
"""

import json
import re

import numpy as np
import pytest
from scipy.special import log_softmax

import minitx
from benchmarks import __main__ as command
from benchmarks import cases, circuits, corpus, machine, peers, rounds, shapes, summary

SMALL = cases.Case(
    "small",
    "a small one",
    ("minitx/nothing", "minitx/internals", "minitx/everything"),
    "gpt2-small",
    2,
    9,
    rounds=4,
)


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


def test_loss_and_generation_are_those_of_the_logits(work):
    peer = peers.Minitx(work / "gpt2-small", 1)
    tokens = shapes.ids("gpt2-small", 1, 12)
    logits = peer.logits(tokens)["logits"][0].astype(np.float64)
    losses = -log_softmax(logits, axis=1)[np.arange(11), tokens[0, 1:]]
    assert peer.loss(tokens)["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    continued = peer.generation(tokens)["tokens"]
    assert continued.shape == (1, 12 + peers.NEW)
    assert continued[0, 12] == logits[-1].argmax()


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


def run_of(**cases_seconds):
    """A run with these seconds: case={peer: [set [round]]}."""
    return {"cases": {name: sets_of(seconds) for name, seconds in cases_seconds.items()}}


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
    run = run_of(x=others | {"minitx/t": [[2], [2]]})
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
    seconds = {}
    for case in cases.CASES.values():
        is_fast = {peer: peer.startswith(("minitx", "numpy")) for peer in case.peers}
        seconds[case.name] = {peer: [[2.0 - is_fast[peer]] * 3] * 2 for peer in case.peers}
    run = run_of(**seconds)
    for case in cases.CASES.values():
        for measured in run["cases"][case.name].values():
            if case.fresh:
                measured["memory"] = {peer: [[2e8, 5e7]] * 3 for peer in case.peers}
    return run | {"settings": SETTINGS, "installed": {"minitx": 1e8, "torch": None}}


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


# experiments that read a corpus


def corpus_run(seconds, peaks):
    """A run in which "probe" took these seconds and this memory for 20, 80 and 320 documents.

    None: not measured.
    """
    run = {}
    for n, s, peak in zip(corpus.DOCUMENTS, seconds, peaks):
        if s is not None:
            measured = {"seconds": {"experiment/probe": [s]}, "lost": {}}
            measured["memory"] = {"experiment/probe": [[peak, None]]}
            run[corpus.case(n)] = {"0": measured}
    return {"cases": run}


def test_starting_does_not_count_among_documents_per_second_nor_the_model_in_what_one_adds():
    run = corpus_run([5 + n / 60 for n in corpus.DOCUMENTS], [150e6, 150e6, 153e6])
    points = corpus.points(run, "experiment/probe")
    assert [n for n, *_ in points] == [20, 80, 320]
    assert corpus.rate(points) == pytest.approx(60) and corpus.growth(points) == pytest.approx(1e4)
    assert corpus.growth([(20, 5, 9e6), (80, 6, 3e6)]) == -1e5  # said as it is
    (row,) = corpus.rows(corpus_run([3, 5, 9], [150e6, 150e6, 153e6]))
    assert row == ["probe", "20 · 80 · 320", "3 · 5 · 9", "50", "150 · 150 · 153", "10"]


def test_an_experiment_is_run_on_a_number_of_documents_in_the_measured_process(monkeypatch):
    from minitx.analysis import __main__ as line

    given = []
    # it ends well the first time, and with exit code 1 the second
    monkeypatch.setattr(line, "main", lambda argv: given.append(argv[:-1]) or len(given) - 1)
    peer = peers.Experiment(None, 1)
    order = {"task": "remove-positions", "shape": cases.ANY, "batch": 20, "tokens": 64}
    assert peers.answer(peer, order)["seconds"] >= 0
    assert given == ["run remove-positions tiny-roberta --documents 20 --tokens 64 --out".split()]
    with pytest.raises(RuntimeError):
        peers.answer(peer, order)


# the command


@pytest.fixture
def small(work, tmp_path, monkeypatch):
    """The command on two small cases -> a function of its options, and the folder of results."""
    case = SMALL._replace(peers=SMALL.peers[:2], rounds=1)
    two = {name: case._replace(name=name) for name in ("first", "second")}
    monkeypatch.setattr(command, "CASES", two)
    monkeypatch.setattr(summary, "CASES", two)
    monkeypatch.setattr(command, "SETS", 2)
    monkeypatch.setattr(machine, "commit", lambda: "abc")

    def main(*options):
        return command.main(["--work", str(work), "--out", str(tmp_path), *options])

    return main, tmp_path


def record_measured(monkeypatch, stop=None):
    """Every (case, set) that is measured from now on; KeyboardInterrupt before number `stop`."""
    measure = rounds.measure
    measured = []

    def recording(case, processes, n, shift, show):
        if len(measured) == stop:
            raise KeyboardInterrupt
        measured.append((case.name, shift))
        return measure(case, processes, n, shift, show)

    monkeypatch.setattr(rounds, "measure", recording)
    return measured


def test_resume_measures_what_is_left_and_writes_the_page(small, monkeypatch):
    main, out = small
    main()
    (path,) = out.glob("*.json")
    assert {p.suffix for p in out.iterdir()} == {".json", ".md", ".svg"}
    run = json.loads(path.read_text())
    before = json.dumps(run["cases"]["first"])
    del run["cases"]["second"]["1"]
    path.write_text(json.dumps(run))
    measured = record_measured(monkeypatch)
    main("--resume")
    run = json.loads(path.read_text())
    assert measured == [("second", 1)] and json.dumps(run["cases"]["first"]) == before
    assert set(run["cases"]["second"]) == {"0", "1"}
    monkeypatch.setattr(machine, "commit", lambda: "another")
    with pytest.raises(SystemExit, match="cannot be resumed: it differs in commit"):
        main("--resume")


def test_cases_are_named_in_full_or_as_they_begin():
    def planned(*words):
        return [case.name for case in command.plan(command.parsed(["--only", *words]))[0]]

    assert planned("corpus", "svd") == ["corpus-20", "corpus-80", "corpus-320", "svd"]
    assert planned("roberta-1x128") == ["roberta-1x128"]
    assert "roberta-1x128-one-thread" in planned("roberta-1x")
    assert planned("must") == [case.name for case in cases.must()]
    with pytest.raises(SystemExit):
        planned("no-such-case")


# sizes


def test_the_bench_extra_names_every_system():
    text = (machine.ROOT / "setup.cfg").read_text(encoding="utf-8")
    extra = re.search(r"^bench =\n((?: +.*\n)+)", text, re.M)[1]
    named = {re.match(r" +([\w-]+)", line)[1] for line in extra.splitlines()}
    systems = {name for peer in peers.PEERS.values() for name in peer.packages}
    assert systems - {"minitx", "numpy"} <= named


def test_lines_of_a_snippet_are_those_of_its_statements():
    assert circuits.lines_of(circuits.Minitx.attribution) == 1
    assert circuits.lines_of(circuits.Minitx.paths) == 2  # one of them written on three lines
    assert circuits.lines_of(circuits.TransformerLens.attribution) == 5
