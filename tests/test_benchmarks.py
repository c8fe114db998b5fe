"""The benchmarks' own arithmetic and bookkeeping, on tiny models; nothing here is timed, and no other system runs."""
import collections
import json
import os
import re

import numpy as np
import pytest
import test_house

import minitx
from benchmarks import __main__ as command
from benchmarks import cases, corpus, machine, peers, rounds, shapes, summary

SMALL = cases.Case("small", "a small one", ("minitx/nothing", "minitx/internals", "minitx/everything"), "gpt2-small",
                   2, 9, rounds=4)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    for shape in ("roberta-small", "gpt2-small"):
        shapes.make(folder, shape)
    return folder


# what is measured

def test_every_case_and_wanted_number_names_what_there_is():
    for case in cases.CASES.values():
        assert case.shape in shapes.SHAPES
        for system, task in (peer.split("/") for peer in case.peers):
            there = [*dir(peers.PEERS[system]), "import"]
            assert task in (corpus.names() if system == "experiment" else there), (case.name, system, task)
    for wanted in cases.WANTED:
        assert {wanted.under, *wanted.over} <= set(cases.CASES[wanted.case].peers), wanted.what
        assert (wanted.aim <= wanted.must) if wanted.less else (wanted.must <= wanted.aim)
        assert not wanted.over or wanted.under not in wanted.over


def test_must_is_what_the_wanted_numbers_are_made_of_and_nothing_beside_it():
    some = {case.name: set(case.peers) for case in cases.must()}
    assert some.keys() == {wanted.case for wanted in cases.WANTED}
    assert {(name, peer) for name in some for peer in some[name]} == {
        (wanted.case, peer) for wanted in cases.WANTED for peer in (wanted.under, *wanted.over)}


@pytest.mark.parametrize("shape", ["roberta-small", "gpt2-small", "roberta-base", "gpt2"])
def test_work_is_counted_from_the_weights(shape):
    D, L = (shapes.SHAPES[shape].get(key) or shapes.SHAPES[shape][other] for key, other in
            (("hidden_size", "n_embd"), ("num_hidden_layers", "n_layer")))
    names = shapes.names(shapes.SHAPES[shape])
    matrices = sum(np.prod(size) for name, size in names.items()
                   if len(size) == 2 and re.search(r"(layer|h)\.\d+\.", name))
    B, T = 3, 7
    assert shapes.flops(shape, B, T) == B * T * (2 * matrices + L * 2 * (2 * T * D))
    positions = next(np.prod(size) for name, size in names.items() if "wpe" in name or "position" in name)
    if shape.startswith("gpt2"):
        assert shapes.read_by_a_token(shape) == 4 * (sum(map(np.prod, names.values())) - positions)


@pytest.mark.parametrize("shape", ["roberta-small", "gpt2-small"])
def test_random_weights_are_a_whole_checkpoint_in_which_no_tensor_is_at_its_default(work, shape):
    model = minitx.load(work / shape)
    assert model.config.head is not None and not model.unused
    for part in (model.weights, *model.layers):
        for name, x in vars(part).items():
            if isinstance(x, np.ndarray) and name != "b_U":
                assert x.std() > 0.02, name
    assert shapes.ids(shape, 2, 50).min() >= shapes.FIRST_ID


def test_weights_are_made_once(work, monkeypatch):
    monkeypatch.setattr(shapes, "save_file", None)
    assert (shapes.make(work, "gpt2-small") / "model.safetensors").is_file()


# peers

@pytest.mark.parametrize("shape", ["roberta-small", "gpt2-small"])
def test_minitx_gives_the_same_under_every_task(work, shape):
    peer, tokens = peers.Minitx(work / shape, 1), shapes.ids(shape, 2, 9)
    found = {task: peer.seen(getattr(peer, task)(tokens)) for task in
             ("nothing", "pattern", "internals", "everything", "logits")}
    wrong, distance = rounds.checked(found)
    assert not wrong and distance < 1e-6
    assert {"q", "k", "pattern"} == set(found["pattern"])
    assert {"q", "k", "v", "pattern", "hidden"} == set(found["internals"])
    exact = minitx.load(work / shape, dtype=np.float64)
    trace = minitx.run(exact, tokens, keep=["q", "pattern", "logits"])
    q = trace["q", 1].swapaxes(1, 2).reshape(2, 9, -1)
    assert np.abs(found["internals"]["q"] - q).max() < 1e-5 * np.abs(q).max()
    assert np.abs(found["logits"]["logits"] - trace["logits"]).max() < 1e-5 * np.abs(trace["logits"]).max()


def test_internals_hold_what_the_reference_library_gives(work):
    """Queries, keys, values, attention of all L layers and L + 1 hidden states, and nothing else."""
    raw = peers.Minitx(work / "gpt2-small", 1).internals(shapes.ids("gpt2-small", 1, 5))
    kept = collections.Counter(key[0] for key in raw.values)
    assert kept == {"q": 2, "k": 2, "v": 2, "pattern": 2, "resid_pre": 1, "resid_post": 2}


def test_loss_and_generation_are_those_of_the_logits(work):
    peer, tokens = peers.Minitx(work / "gpt2-small", 1), shapes.ids("gpt2-small", 1, 12)
    y = peer.logits(tokens)["logits"][0].astype(np.float64)
    p = y - np.log(np.exp(y - y.max(1, keepdims=True)).sum(1, keepdims=True)) - y.max(1, keepdims=True)
    assert peer.loss(tokens)["loss"] == pytest.approx(-p[np.arange(11), tokens[0, 1:]].mean(), rel=1e-5)
    made = peer.generation(tokens)["tokens"]
    assert made.shape == (1, 12 + peers.NEW) and made[0, 12] == y[-1].argmax()


def test_thin_and_dense_routes_take_the_same_heads_turn_by_turn(monkeypatch):
    monkeypatch.setattr(peers, "HEADS", 6)
    monkeypatch.setattr(peers, "DENSE", 2)
    peer = peers.Numpy(None, 1)
    for thin, dense in ((peer.thin_svd, peer.dense_svd), (peer.small_eigenvalues, peer.dense_eigenvalues)):
        first = [next(iter(task(None).values())) for task in (thin, dense)]
        second = next(iter(thin(None).values()))
        np.testing.assert_allclose(*first, rtol=1e-3)  # measured 2e-5: small singular values in float32
        assert not np.allclose(first[0], second)  # other heads
        peer.turns = dict.fromkeys(peer.turns, 0)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="Linux tells")
def test_memory_counts_what_is_written_to():
    before = peers.memory()
    held = np.ones(1 << 23)
    after = peers.memory()
    assert after[0] >= after[1] and after[1] - before[1] > 0.9 * held.nbytes


# rounds

@pytest.mark.parametrize("n", [2, 3, 10])
def test_every_peer_comes_at_every_place_equally_often(n):
    who = [f"p{i}" for i in range(n)]
    turns = list(rounds.orders(who, 2 * n))
    assert all(sorted(turn) == sorted(who) for turn in turns)
    assert all(collections.Counter(column) == dict.fromkeys(who, 2) for column in zip(*turns))
    assert next(rounds.orders(who, 2, shift=1)) == turns[2]  # a set goes on where the one before it ended


def test_arrays_that_differ_put_a_peer_out():
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    found = {"a": {"q": x, "k": x}, "b": {"q": x + 1e-5}, "c": {"k": x + 2e-3}, "d": {"q": x.T}}
    wrong, distance = rounds.checked(found)
    assert set(wrong) == {"c", "d"} and distance == pytest.approx(2e-3)
    assert "k differs by 2.0e-03" in wrong["c"] and "q is [3, 2], of another system [2, 3]" in wrong["d"]
    assert set(rounds.checked({"a": {"q": x}, "b": {"q": x * np.nan}})[0]) == {"b"}


def test_pins_go_and_threads_are_set(monkeypatch):
    for name in rounds.doctor.PINS:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    env = rounds.environment(2)
    assert not set(rounds.doctor.PINS) & set(env)
    assert {env[name] for name in rounds.THREADS} == {"2"} and env["HF_HUB_OFFLINE"] == "1"


def test_one_process_answers_for_all_rounds_and_a_failing_peer_does_not_end_the_others(work):
    case = SMALL._replace(peers=(*SMALL.peers, "minitx/no_such_task", "no-such-system/nothing"))
    with rounds.Processes(work, 1) as processes:
        found = rounds.measure(case, processes, 2)
        started = set(processes)
    assert started == {"minitx", "no-such-system"} and not processes
    assert {peer: len(values) for peer, values in found["seconds"].items()} == dict.fromkeys(SMALL.peers, 2)
    assert set(found["lost"]) == {"minitx/no_such_task", "no-such-system/nothing"}
    assert "no_such_task" in found["lost"]["minitx/no_such_task"] and found["distance"] < 1e-5


def test_fresh_cases_start_a_process_for_every_turn(work, monkeypatch):
    started, real = [], rounds.Process
    monkeypatch.setattr(rounds, "Process", lambda *args: started.append(args) or real(*args))
    case = SMALL._replace(peers=("minitx/nothing", "numpy/import"), fresh=True, compared=False)
    with rounds.Processes(work, 1) as processes:
        found = rounds.measure(case, processes, 2)
    assert [name for name, *_ in started] == ["minitx", "numpy", "numpy", "minitx"]
    assert all(len(values) == 2 for values in found["memory"].values()) and not found["lost"]


def test_a_peer_that_fails_in_a_later_turn_is_out_and_the_others_go_on(work, monkeypatch):
    turns = []

    def turn(case, peer, processes):
        turns.append(peer)
        if turns.count("b/t") == 2 and peer == "b/t":
            raise rounds.Failed("no more")
        return 1.0, [None, None]
    monkeypatch.setattr(rounds, "turn", turn)
    found = rounds.measure(SMALL._replace(peers=("a/t", "b/t"), compared=False), rounds.Processes(work, 1), 3)
    assert found["lost"] == {"b/t": "no more"} and found["seconds"] == {"a/t": [1.0] * 3}
    assert turns.count("b/t") == 2


@pytest.mark.skipif(not os.path.exists("/proc"), reason="Linux tells")
def test_a_held_core_is_held_only_meanwhile(monkeypatch):
    real, seen = rounds.subprocess.Popen, []
    monkeypatch.setattr(rounds.subprocess, "Popen", lambda *a, **k: seen.append(real(*a, **k)) or seen[-1])
    with rounds.spinning(False):
        assert not seen
    with rounds.spinning(True):
        assert seen[0].poll() is None and len(os.sched_getaffinity(seen[0].pid)) == 1
    assert seen[0].poll() is not None


# from seconds to ratios

def run_of(**cases_seconds):
    """A run with these seconds: case={peer: [set [round]]}."""
    told = {}
    for name, by_peer in cases_seconds.items():
        sets = len(next(iter(by_peer.values())))
        told[name] = {str(k): {"seconds": {peer: values[k] for peer, values in by_peer.items()}, "memory": {},
                               "lost": {}, "distance": 1e-6, "busy": 0.0} for k in range(sets)}
    return {"cases": told}


def test_ratios_are_taken_within_rounds():
    slow = [1, 1, 10, 10]  # what the machine did to everybody in each round
    run = run_of(x={"a/t": [[2 * s for s in slow]], "minitx/t": [[s for s in slow[::1]]]})
    assert summary.ratios(run["cases"]["x"], "a/t", "minitx/t") == [2, 2, 2, 2]
    assert summary.ratios(run["cases"]["x"], "a/t", "minitx/t", 3.0) == [6, 6, 6, 6]
    lost = run_of(x={"a/t": [[4, 6]], "minitx/t": [[2, 2]]})["cases"]["x"] | {"1": {"seconds": {"minitx/t": [1]}}}
    assert summary.ratios(lost, "a/t", "minitx/t") == [2, 3]  # a set without the other system has no ratio
    assert summary.quartiles([1, 2, 3, 4, 100]) == (3, 2, 4)


def test_the_faster_of_several_counts():
    sets = run_of(x={"o/a": [[3, 3, 9]], "o/b": [[4, 4, 4]], "minitx/t": [[2, 2, 2]]})["cases"]["x"]
    assert summary.fastest(sets, ("o/a", "o/b")) == "o/a"  # by the median
    assert summary.fastest(sets, ("o/b", "o/c")) == "o/b"
    assert summary.fastest(sets, ("o/c",)) is None


def test_wanted_numbers_reach_aim_must_or_neither():
    ratio = cases.Wanted("r", "x", "minitx/t", ("o/a", "o/b"), 1.5, 2.0, factor=0.5)
    run = run_of(x={"o/a": [[6], [8]], "o/b": [[9], [9]], "minitx/t": [[2], [2]]})
    value, who = summary.reached(ratio, run)
    assert value[0] == pytest.approx(0.5 * (3 + 4) / 2) and who == "o/a"
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
    told = run_of(**{case.name: {peer: [[2.0 - peer.startswith(("minitx", "numpy"))] * 3] * 2 for peer in case.peers}
                     for case in cases.CASES.values()})
    for case in cases.CASES.values():
        for one in told["cases"][case.name].values():
            one["memory"] = {peer: [[2e8, 5e7]] * 3 for peer in case.peers} if case.fresh else {}
    settings = {"machine": {"line": "a machine", "kernels": "Zen"}, "versions": {"torch": "2", "onnxruntime": None},
                "commit": "abc", "sets": 2, "quick": False}
    return told | {"settings": settings, "installed": {"minitx": 1e8, "torch": None}}


def test_the_page_has_every_wanted_number_every_case_and_what_to_mind():
    run = whole_run()
    run["cases"]["svd"]["1"]["lost"] = {"numpy/dense_svd": "it could not"}
    page = summary.markdown(run, "2026-01-01")
    table = page.partition("## What was wanted")[2].partition("##")[0]
    assert table.count("\n| ") == 2 + len(cases.WANTED) and "not measured" not in table
    assert all(f"| {wanted.what}" in table for wanted in cases.WANTED)
    assert "eager: 1x32 | 2× (2–2) | ≥ 1.5× | 2 | aim |" in table
    assert "| private memory, one 512-token pass | 50 MB (50–50) | ≤ 60 MB | 40 | yes |" in table
    assert all((f"`{case.name}`: 2 sets of" in page) != case.apart for case in cases.CASES.values())
    section = page.partition("## Documents per second")[2].partition("##")[0]
    assert all(f"| {name} | 20 · 80" in section for name in corpus.names())
    assert "left out: numpy/dense_svd: it could not" in page
    assert "is not the factor on Intel" in page and "Kernels of NumPy's BLAS: Zen" in page
    assert "onnxruntime not installed" in page
    del run["cases"]["report"]
    assert "minitx report tiny-roberta | not measured" in summary.markdown(run, "2026-01-01")


def test_a_peer_is_put_over_minitx_doing_the_same():
    seconds = dict.fromkeys(["minitx/nothing", "minitx/internals", "a/internals", "b/nothing", "numpy/product"])
    assert summary.base(None, seconds) == {
        "minitx/nothing": "minitx/nothing", "minitx/internals": "minitx/internals", "a/internals": "minitx/internals",
        "b/nothing": "minitx/nothing", "numpy/product": "minitx/nothing"}


def test_less_is_better_is_drawn_the_other_way_round():
    memory = cases.Wanted("m", "x", "minitx/t", (), 60, 40, unit="MB")
    assert summary.sorted_scores(memory, (30, 20, 40)) == (2, 1.5, 3)
    assert summary.sorted_scores(memory._replace(unit="×"), (30, 20, 40)) == pytest.approx((0.5, 1 / 3, 2 / 3))


# experiments that read a corpus

def corpus_run(seconds, peaks):
    """A run in which "probe" took so long, and so much memory, for 20, 80 and 320 documents; None: not measured."""
    return {"cases": {corpus.case(n): {"0": {"seconds": {"experiment/probe": [s]}, "lost": {},
                                             "memory": {"experiment/probe": [[peak, None]]}}}
                      for n, s, peak in zip(corpus.DOCUMENTS, seconds, peaks) if s is not None}}


def test_starting_does_not_count_among_documents_per_second_nor_the_model_in_what_one_adds():
    run = corpus_run([5 + n / 60 for n in corpus.DOCUMENTS], [150e6, 150e6, 153e6])
    found = corpus.points(run, "experiment/probe")
    assert [n for n, *_ in found] == [20, 80, 320]
    assert corpus.rate(found) == pytest.approx(60) and corpus.growth(found) == pytest.approx(1e4)
    assert corpus.growth([(20, 5, 9e6), (80, 6, 3e6)]) == -1e5  # said as it is
    row, = corpus.rows(corpus_run([3, 5, 9], [150e6, 150e6, 153e6]))
    assert row == ["probe", "20 · 80 · 320", "3 · 5 · 9", "50", "150 · 150 · 153", "10"]


def test_what_cannot_be_told_of_documents_is_a_dash():
    row, = corpus.rows(corpus_run([3, None, 3], [1e8, None, None]))  # no slower: no rate; Linux alone tells the peak
    assert row == ["probe", "20 · 320", "3 · 3", "–", "100 · –", "–"]
    row, = corpus.rows(corpus_run([3, None, None], [1e8, None, None]))
    assert row == ["probe", "20", "3", "–", "100", "–"]
    assert not list(corpus.rows({"cases": {}}))


def test_an_experiment_is_run_on_so_many_documents_in_the_process_that_is_measured(monkeypatch):
    from analysis import __main__ as line
    given = []
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
    two = {name: SMALL._replace(name=name, peers=SMALL.peers[:2], rounds=1) for name in ("first", "second")}
    monkeypatch.setattr(command, "CASES", two)
    monkeypatch.setattr(summary, "CASES", two)
    monkeypatch.setattr(command, "SETS", 2)
    monkeypatch.setattr(machine, "commit", lambda: "abc")
    return lambda *options: command.main(["--work", str(work), "--out", str(tmp_path), *options]), tmp_path


def asked(monkeypatch, stop=None):
    """Every (case, set) that is measured from now on; KeyboardInterrupt before number `stop`."""
    real, found = rounds.measure, []

    def measure(case, processes, n, shift, show):
        if len(found) == stop:
            raise KeyboardInterrupt
        found.append((case.name, shift))
        return real(case, processes, n, shift, show)
    monkeypatch.setattr(rounds, "measure", measure)
    return found


def test_an_interrupted_run_goes_on_where_it_was(small, monkeypatch, capsys):
    main, out = small
    first = asked(monkeypatch, stop=3)
    with pytest.raises(KeyboardInterrupt):
        main()
    path, = out.glob("*.json")
    kept = json.loads(path.read_text())["cases"]
    monkeypatch.undo()
    assert first == [("first", 0), ("second", 0), ("first", 1)]
    assert [(name, k) for name in kept for k in kept[name]] == [("first", "0"), ("first", "1"), ("second", "0")]
    assert not list(out.glob("*.md"))


def test_resume_measures_what_is_left_and_writes_the_page(small, monkeypatch):
    main, out = small
    main()
    path, = out.glob("*.json")
    assert {p.suffix for p in out.iterdir()} == {".json", ".md", ".svg"}
    run = json.loads(path.read_text())
    before = json.dumps(run["cases"]["first"])
    del run["cases"]["second"]["1"]
    path.write_text(json.dumps(run))
    again = asked(monkeypatch)
    main("--resume")
    run = json.loads(path.read_text())
    assert again == [("second", 1)] and json.dumps(run["cases"]["first"]) == before
    assert set(run["cases"]["second"]) == {"0", "1"}
    monkeypatch.setattr(machine, "commit", lambda: "another")
    with pytest.raises(SystemExit, match="cannot be resumed: it differs in commit"):
        main("--resume")


def test_a_part_of_a_run_does_not_go_among_the_results(work):
    assert command.parsed(["--work", str(work)]).out.parts[-2:] == ("benchmarks", "results")
    for options in (["--quick"], ["--only", "svd"], ["--peers", "minitx/nothing"]):
        assert command.parsed(["--work", str(work), *options]).out == work / "results"


def test_cases_are_named_in_full_or_as_they_begin():
    def chosen(*words):
        return [case.name for case in command.plan(command.parsed(["--only", *words]))[0]]
    assert chosen("corpus", "svd") == ["corpus-20", "corpus-80", "corpus-320", "svd"]
    assert chosen("roberta-1x128") == ["roberta-1x128"] and "roberta-1x128-one-thread" in chosen("roberta-1x")
    assert chosen("must") == [case.name for case in cases.must()]
    with pytest.raises(SystemExit):
        chosen("no-such-case")


def test_a_case_has_no_more_sets_than_it_wants():
    some = [SMALL._replace(name="a", sets=1), SMALL._replace(name="b", sets=3)]
    assert [(k, case.name) for k, case in command.left(some, 2, {"cases": {}})] == [(0, "a"), (0, "b"), (1, "b")]


def test_cases_that_share_processes_come_together_whatever_their_order():
    some = [SMALL._replace(name=name, threads=n) for name, n in (("a", 2), ("b", 1), ("c", 2))]
    assert [(k, case.name) for k, case in command.left(some, 2, {"cases": {"b": {"1": {}}}})] == [
        (0, "a"), (0, "c"), (0, "b"), (1, "a"), (1, "c")]


# sizes

def test_sizes_include_what_is_required():
    assert {"numpy", "matplotlib"} <= machine.closure(["matplotlib"]) and machine.size("numpy") > 1e6
    assert machine.size("no-such-distribution") == 0 and machine.closure(["no-such-distribution"]) == set()
    found = machine.installed()
    assert 1e6 < found["minitx, its core (numpy, safetensors, tokenizers)"] < found[
        "minitx with analyses, figures and downloads"]


def test_the_bench_extra_names_every_system():
    text = (machine.ROOT / "setup.cfg").read_text(encoding="utf-8")
    extra = re.search(r"^bench =\n((?: +.*\n)+)", text, re.M)[1]
    named = {re.match(r" +([\w-]+)", line)[1] for line in extra.splitlines()}
    systems = {name for peer in peers.PEERS.values() for name in peer.packages} - {"minitx", "numpy"}
    assert systems <= named


@pytest.mark.parametrize("path", sorted((machine.ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_house_rules_hold_here_too(path):
    test_house.test_functions_fit_a_glance(path)
    test_house.test_lines_fit_a_screen(path)
    test_house.test_no_pickle_is_loaded()
    top = {name.split(".")[0] for name in test_house.imported(path, top_level_only=True)}
    assert not top & {"torch", "transformers", "onnxruntime", "transformer_lens", "matplotlib"}
