"""Circuits: passes by hand, what carries all and nothing, random circuits beside, files."""

import json

import made
import numpy as np
import pytest
import tiny
from paired import answer, given, pairs_of, prepared
from scipy.special import softmax

import minitx
from minitx import circuits
from minitx.analysis.measures import circuit_drawing
from minitx.circuits.graph import Graph, Node
from minitx.circuits.paths import kept
from minitx.circuits.routes import Routes
from minitx.circuits.search import Trial, _random, _random_in_layers, nearness

FAMILIES = ["gpt2-causal", "llama-grouped", "gpt_neox-parallel", "bloom-residual", "qwen3-norms"]
FAMILIES += ["bert-masked", "mpnet-token", "modernbert-masked", "bart-causal", "t5-gated"]
FAMILIES += ["marian-shared", "gpt2-sequence", "bert-sequence"]
LIMIT = 1e-12  # measured: 1e-14


def routes_of(model, lengths=(6, 4)):
    """The Routes of some random pairs, and the measure of the clean and of the corrupt texts."""
    graph, pairs, number = prepared(model, lengths)
    traces = [side.run(model, kept(model, side)) for side in pairs]
    values = [number.values(trace["logits"]) for trace in traces]
    return Routes(graph, pairs, traces, number), *values


@pytest.mark.parametrize("variant", FAMILIES)
def test_all_edges_are_the_clean_run_and_none_the_corrupt_one(variant):
    routes, clean, corrupt = routes_of(tiny.load(variant))
    edges = routes.graph.edges()
    assert abs(routes.values(edges) - clean).max() < LIMIT
    assert abs(routes.values([]) - corrupt).max() < LIMIT
    assert abs(clean - corrupt).min() > 1e-3


@pytest.mark.parametrize("variant", ["gpt2-causal", "bert-masked", "bart-causal"])
def test_an_edge_and_all_that_can_follow_is_a_path(variant):
    """One edge from the embeddings; all edges from other senders, which carry what follows."""
    model = tiny.load(variant)
    routes, _, _ = routes_of(model)
    clean, corrupt = pairs_of(model, (6, 4))
    edges = routes.graph.edges()
    from_embeddings = [edge for edge in edges if edge[0].layer is None]
    others = [edge for edge in edges if edge[0].layer is not None]
    for edge in from_embeddings[::3]:
        path = circuits.path_patch(model, clean, corrupt, answer(model), *edge, **given(model))
        assert abs(routes.values([edge, *others]) - path.into_corrupt).max() < LIMIT


def test_a_circuit_by_hand():
    """Half of the edges of a GPT-2, each receiver's stream summed by itself."""
    model = tiny.load("gpt2-causal")
    routes, _, _ = routes_of(model, (6,))
    edges = routes.graph.edges()
    circuit = [edges[i] for i in np.random.default_rng(3).permutation(len(edges))[:38]]
    out = {}
    for node in routes.graph.senders:
        corrupt = routes.graph.written(node, routes.corrupt)
        clean = routes.graph.written(node, routes.clean)
        out[node] = [corrupt, clean if node.name == "embed" else None]
    biases = [w.b_O for w in model.layers]

    def stream(receiver, n_biases):
        parts = list(biases[:n_biases])
        for sender, (corrupt, present) in out.items():
            if routes.graph.reaches(sender, receiver):
                parts.append(present if (sender, receiver) in circuit else corrupt)
        return sum(parts)

    y = slow_pass(model, routes.graph, out, stream)
    assert abs(routes.values(circuit) - (y[-1, 5] - y[-1, 9])).max() < LIMIT


def slow_pass(model, graph, out, stream):
    """A pre-norm decoder, receiver by receiver; fills in out[sender][1]; logits [T V]."""

    def norm(x, w, b):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + model.config.eps) * w + b

    for layer, w in enumerate(model.layers):
        for h in range(3):
            own = slice(h * 6, h * 6 + 6)
            streams = {x: stream(graph.receiver((x, layer, h)), layer)[0] for x in "qkv"}
            normed = {x: norm(streams[x], w.ln1_w, w.ln1_b) for x in "qkv"}
            q = normed["q"] @ w.W_Q[:, own] + w.b_Q[own]
            k = normed["k"] @ w.W_K[:, own] + w.b_K[own]
            v = normed["v"] @ w.W_V[:, own] + w.b_V[own]
            scores = np.where(np.tri(len(q), dtype=bool), q @ k.T / 6**0.5, -np.inf)
            out[graph.sender((layer, h))][1] = (softmax(scores, axis=-1) @ v @ w.W_O[own])[None]
        x = norm(stream(graph.receiver(("mlp", layer)), layer + 1), w.ln2_w, w.ln2_b)
        pre = x @ w.W_in + w.b_in
        inner = 1 + np.tanh((2 / np.pi) ** 0.5 * (pre + 0.044715 * pre**3))
        out[graph.sender(("mlp", layer))][1] = 0.5 * pre * inner @ w.W_out + w.b_out
    weights = model.weights
    x = norm(stream(graph.receiver("logits"), 2), weights.ln_final_w, weights.ln_final_b)
    return (x @ weights.W_U)[0]


def test_the_circuit_that_was_made():
    clean, corrupt, answers = made.pairs()
    pairs = list(zip(clean, corrupt))
    circuit = circuits.find(made.induction(), pairs, answers)
    names = {f"{sender} -> {receiver}" for sender, receiver in circuit.edges}
    assert names == {"embed -> v L0H0", "head L0H0 -> k L1H1", "head L1H1 -> logits"}
    assert abs(circuit.faithfulness - 1) < 1e-9 and abs(circuit.completeness - 1) < 1e-9
    assert circuit.answer == "yes" and circuit.null < 0.1
    assert circuit.random.shape == circuit.random_in_layers.shape == (100,)
    assert abs(circuit.curve[2]) < 1e-9 and abs(circuit.curve[46] - 1) < 1e-9


def test_a_circuit_that_is_no_better_than_chance():
    """Two of three edges in series carry nothing, as random circuits do."""
    clean, corrupt, answers = made.pairs()
    pairs = list(zip(clean, corrupt))
    circuit = circuits.find(made.induction(), pairs, answers, 2)
    assert len(circuit.edges) == 2 and abs(circuit.faithfulness) < 1e-9
    assert circuit.answer == "no"
    few = circuits.find(made.induction(), pairs, answers, 3, n_random=99)
    assert few.answer == "undecided" and abs(few.faithfulness - 1) < 1e-9
    everything = circuits.find(made.induction(), pairs, answers, 46)
    assert everything.answer == "no"  # random circuits of all edges are this one


def test_a_pass_leaves_nothing_behind():
    """So that threads may try circuits side by side."""
    clean, corrupt, answers = made.pairs()
    trial = Trial.of(Graph(made.induction()), clean, corrupt, answers)
    whole = trial.values(trial.edges)
    assert not trial.routes.carried
    assert abs(whole - trial.clean).max() < LIMIT
    assert trial.random(trial.edges, 3, 0) == trial.random(trial.edges, 3, 0)


def test_nearness_falls_on_both_sides():
    values = nearness(np.array([0.0, 0.8, 1.0, 1.2, 3.0]))
    assert values.round(9).tolist() == [0, 0.8, 1, 0.8, -1]


def test_random_circuits_have_as_many_edges_in_the_same_layers():
    edges = Graph(tiny.load("bart-causal")).edges()
    edges = [edges[i] for i in np.random.default_rng(0).permutation(len(edges))]
    rng = np.random.default_rng(1)

    def layers(some):
        return sorted(f"{a.name[:4] == 'enc_'} {a.layer} {b.layer}" for a, b in some)

    drawn = [_random_in_layers(edges, 50, rng) for _ in range(3)]
    assert drawn[0] != drawn[1]
    for circuit in drawn:
        assert layers(circuit) == layers(edges[:50]) and len({*circuit}) == 50
    anywhere = _random(edges, 50, rng)
    assert len({*anywhere}) == 50 and layers(anywhere) != layers(edges[:50])


@pytest.mark.parametrize("variant", ["gpt2-causal", "bart-causal"])
def test_files_are_the_same_every_time(variant, tmp_path):
    model = tiny.load(variant)
    clean, corrupt = pairs_of(model, (6, 6))
    asked = model, list(zip(clean, corrupt)), answer(model), 20
    for name in ("a", "b"):
        circuit = circuits.find(*asked, n_random=3, **given(model))
        folder = circuit.save(tmp_path / name)
        assert sorted(file.name for file in folder.iterdir()) == ["circuit.json", "circuit.svg"]
    for file in ("circuit.json", "circuit.svg"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    written = json.loads((tmp_path / "a" / "circuit.json").read_text())
    assert len(written["edges"]) == 20 and written["faithfulness"] == circuit.faithfulness
    assert written["edges"][0]["receiver"] == str(circuit.edges[0][1])
    picture = (tmp_path / "a" / "circuit.svg").read_text()
    assert ">embed<" in picture or ">encoder embed<" in picture
    assert "20 edges: faithfulness" in picture and "Circuit of 20" in repr(circuit)


def test_a_large_circuit_is_drawn_in_part():
    model = tiny.load("bart-causal")
    clean, corrupt = pairs_of(model, (6, 6))
    circuit = circuits.find(model, list(zip(clean, corrupt)), (5, 9), 200, n_random=1, prefix=[3])
    assert "the largest 30 of 200 edges" in circuit.figure()._suptitle.get_text()


def test_boxes_of_many_heads_stand_in_several_lines():
    nodes = [Node("head", 3, h) for h in range(30)]
    edges = [(node, Node("logits")) for node in nodes] + [(Node("embed"), Node("q", 3, 0))]
    places = circuit_drawing.places_of(edges)
    assert len(places) == len({*places.values()}) == 32
    lines = [y for _, y in places.values()]
    assert [lines.count(y) for y in range(5)] == [1, 12, 12, 6, 1]
    assert [str(Node.of(str(node))) for node in nodes] == [str(node) for node in nodes]
    assert Node.of("q L1H2") == Node("q", 1, 2) and Node.of("mlp L3") == Node("mlp", 3)


def test_boxes_stand_where_the_fewest_arrows_cross():
    """In the order of heads each pair of them crossed."""
    pairs = [(Node("head", 0, h), Node("v", 1, 3 - h)) for h in range(4)]
    places = circuit_drawing.places_of(pairs)
    ends = [tuple(map(circuit_drawing.box_of, pair)) for pair in pairs]
    in_order = {name: (int(name[-1]), y) for name, (_, y) in places.items()}
    assert circuit_drawing.crossings(ends, in_order) == 6
    assert circuit_drawing.crossings(ends, places) == 0


@pytest.mark.parametrize(
    "message, asked",
    [
        ("n_edges is 47; this model has 1 to 46 edges", {"n_edges": 47}),
        ("n_edges is 0;", {"n_edges": 0}),
        ("n_random is 0; wanted", {"n_random": 0}),
    ],
)
def test_bad_requests_are_refused(message, asked):
    clean, corrupt, answers = made.pairs(2)
    with pytest.raises(ValueError, match=message):
        circuits.find(made.induction(), list(zip(clean, corrupt)), answers, **asked)


def test_what_is_no_list_of_pairs_is_refused():
    with pytest.raises(ValueError, match=r"pairs are 5; wanted a list of \(clean, corrupt\)"):
        circuits.find(minitx.load("tiny-gpt2"), 5, (5, 6))
