"""Path patching against runs in which everything else is frozen point by point."""

import made
import numpy as np
import pytest
import tiny
from paired import answer, contrast, given, pairs_of, record

import minitx
from minitx import circuits
from minitx.circuits.graph import Graph
from minitx.circuits.later import Later
from minitx.model import Start
from minitx.points import name_of, points

LIMIT = 1e-12  # measured: 3e-14
FAMILIES = ["gpt2-causal", "llama-grouped", "gpt_neox-parallel", "gpt_neox-sequential"]
FAMILIES += ["bloom-residual", "qwen3-norms", "bert-question", "mpnet-token", "modernbert-masked"]
FAMILIES += ["albert-inner", "bart-causal", "t5-gated", "marian-shared"]
NAMED = ["gpt2-causal", "llama-grouped", "bert-question", "bart-causal"]
FROZEN = {"z", "cross_z", "enc_z"}
MLPS = {"mlp_out", "enc_mlp_out"}


def drawn_edges(model, n=4):
    """Some edges of a model, of every kind of receiver."""
    edges = Graph(model).edges()
    rng = np.random.default_rng(0)
    kinds = dict.fromkeys((s.name, r.name) for s, r in edges)
    drawn = []
    for kind in kinds:
        same = [edge for edge in edges if (edge[0].name, edge[1].name) == kind]
        drawn.append(same[rng.integers(len(same))])
    return drawn + [edges[i] for i in rng.integers(0, len(edges), n)]


def by_hand(model, base, own, other, sender, receiver, frozen):
    """The measure where all heads (and MLPs) of the base run stand still but the sender.

    own, other: traces of the base and of the text that the sender's output comes from.
    """
    edits = {key: own[key] for key in points(model) if name_of(key) in frozen}
    if sender.head is not None:
        key = {"head": "z", "cross_head": "cross_z", "enc_head": "enc_z"}[sender.name], sender.layer
        value = own[key].copy()
        value[:, sender.head] = other[key][:, sender.head]
        edits[key] = value
    elif sender.layer is not None:
        key = f"{sender.name}_out", sender.layer
        edits[key] = other[key]
    else:
        edits[sender.name] = other[sender.name]
    if receiver.head is not None:
        key = receiver.name, receiver.layer
        value = own[key].copy()
        value[:, receiver.head] = record(model, base, key, edits)[key][:, receiver.head]
        edits = {key: value}
    elif receiver.name != "logits":
        key = f"{receiver.name}_out", receiver.layer
        edits.pop(key, None)
        edits = {key: record(model, base, key, edits)[key]}
    y = record(model, base, "logits", edits)["logits"]
    return contrast(model, y[0, given(model).get("place", -1)])


@pytest.mark.parametrize("mlps", ["frozen", "recomputed"])
@pytest.mark.parametrize("variant", FAMILIES)
def test_paths_are_those_of_frozen_runs(variant, mlps):
    model = tiny.load(variant)
    clean, corrupt = pairs_of(model, (6, 6))
    frozen = FROZEN | MLPS if mlps == "frozen" else FROZEN
    of_clean, of_corrupt = ([record(model, x, None) for x in texts] for texts in (clean, corrupt))
    for i, (sender, receiver) in enumerate(drawn_edges(model)):
        ends = answer(model), sender, receiver
        how = given(model) | {"mlps": mlps, "null": False}
        path = circuits.path_patch(model, clean, corrupt, *ends, **how)
        edge = sender, receiver, frozen
        pair = i % 2  # they take turns
        own, other = of_clean[pair], of_corrupt[pair]
        value = by_hand(model, corrupt[pair], other, own, *edge)
        assert abs(path.into_corrupt[pair] - value) < LIMIT, (sender, receiver)
        value = by_hand(model, clean[pair], own, other, *edge)
        assert abs(path.into_clean[pair] - value) < LIMIT, (sender, receiver)


@pytest.mark.parametrize("variant", FAMILIES)
def test_all_senders_together_are_the_whole_difference(variant):
    """Also one by one, where no norm stands in the stream."""
    model = tiny.load(variant)
    clean, corrupt = pairs_of(model, (6, 6, 4))
    graph = Graph(model)
    asked = model, clean, corrupt, answer(model)
    receivers = [*graph.receivers]
    for receiver in [receivers[i] for i in (0, 5, -4, -1)]:
        whole = circuits.path_patch(*asked, None, receiver, **given(model))
        assert abs(whole.change - whole.whole).max() < LIMIT
        assert receiver != receivers[-1] or abs(float(whole) - 1) < LIMIT  # the logits
        if not (model.config.pre_norm and not model.config.norm_residual):
            continue
        if receiver.name in ("logits", "cross_k", "cross_v"):  # which a norm stands before
            continue
        senders = [node for node in graph.senders if graph.reaches(node, receiver)]
        alone = [circuits.path_patch(*asked, x, receiver, **given(model)).change for x in senders]
        assert abs(sum(alone) - whole.whole).max() < LIMIT


def test_texts_of_several_lengths_are_those_alone():
    model = tiny.load("gpt2-causal")
    clean, corrupt = pairs_of(model, (6, 4, 5))
    path = circuits.path_patch(model, clean, corrupt, (5, 9), (0, 1), ("k", 1, 2))
    for i, (a, b) in enumerate(zip(clean, corrupt)):
        alone = circuits.path_patch(model, a, b, (5, 9), (0, 1), ("k", 1, 2))
        assert abs(alone.into_corrupt[0] - path.into_corrupt[i]) < LIMIT


def test_the_edge_that_was_made_and_no_other():
    clean, corrupt, answers = made.pairs()
    model = made.induction()
    graph = Graph(model)
    strong = {}
    for sender, receiver in graph.edges():
        path = circuits.path_patch(model, clean, corrupt, answers, sender, receiver)
        assert abs(float(path) - path.lost) < 1e-9
        strong[f"{sender} to {receiver}"] = float(path)
    circuit = "embed to v L0H0", "head L0H0 to k L1H1", "head L1H1 to logits"
    assert all(abs(strong.pop(edge) - 1) < 1e-9 for edge in circuit)
    assert max(map(abs, strong.values())) < 1e-9 and len(strong) == 43


def test_senders_and_receivers_in_groups():
    clean, corrupt, answers = made.pairs()
    model = made.stand_ins()
    asked = model, clean, corrupt, answers
    alone = circuits.path_patch(*asked, (0, 1), ("k", 1, 1))
    receivers = [("k", 1, 1), ("k", 1, 0)]
    both = circuits.path_patch(*asked, [(0, 0), (0, 1)], receivers)
    assert abs(alone.lost) < 1e-9 and abs(both.lost - 1) < 1e-9
    assert abs(circuits.path_patch(*asked, (-2, 1), ("k", -1, 1)).lost) < 1e-9


@pytest.mark.parametrize("variant", NAMED)
def test_a_name_alone_is_each_of_its_receivers(variant):
    """Also in how far chance goes; a receiver before the sender is not reached."""
    model = tiny.load(variant)
    clean, corrupt = pairs_of(model, (6, 6))
    asked = model, clean, corrupt, answer(model)
    graph = Graph(model)
    heads = [node for node in graph.senders if node[1:] == (0, 1)]
    edges = [(s, r) for s, r in graph.edges() if s in heads and r.layer is not None]
    for sender, name in dict.fromkeys((s, r.name) for s, r in edges):
        path = circuits.path_patch(*asked, sender, name, **given(model))
        nodes = [node for node in graph.receivers if node.name == name]
        alone = {}
        for node in nodes:
            if graph.reaches(sender, node):
                alone[node] = circuits.path_patch(*asked, sender, node, **given(model))
        assert_each_is_alone(path, nodes, alone)


@pytest.mark.parametrize("variant", NAMED)
def test_a_name_alone_is_each_of_its_senders(variant):
    """Into several receivers at once, of which some are not reached."""
    model = tiny.load(variant)
    clean, corrupt = pairs_of(model, (6, 6))
    asked = model, clean, corrupt, answer(model)
    graph = Graph(model)
    for name in dict.fromkeys(x.name for x in graph.senders if x.layer is not None):
        nodes = [node for node in graph.senders if node.name == name]
        reached = [r for r in graph.receivers if graph.reaches(nodes[0], r)]
        pair = [r for r in reached if r.name == reached[0].name and r.layer is not None][-2:]
        for receivers in ([reached[-1]], pair or reached[-1:]):
            path = circuits.path_patch(*asked, name, receivers, **given(model))
            alone = {}
            for node in nodes:
                if any(graph.reaches(node, r) for r in receivers):
                    alone[node] = circuits.path_patch(*asked, node, receivers, **given(model))
            assert_each_is_alone(path, nodes, alone)


def assert_each_is_alone(path, nodes, alone):
    """Numbers of many nodes at once are those of each; alone: {node: path} of those reached."""
    assert path.effects.size == len(nodes)
    for node in nodes:
        index = [x for x in node[1:] if x is not None]
        if node not in alone:
            assert path.effects[*index] == path.null[*index] == path.lost[*index] == 0
            continue
        for values in ("effects", "lost", "null", "lost_null"):
            difference = getattr(path, values)[*index] - getattr(alone[node], values)
            assert abs(difference) < LIMIT, (node, values)


def test_one_direction_without_null_is_a_quarter_of_the_work(monkeypatch):
    model = tiny.load("gpt2-causal")
    clean, corrupt = pairs_of(model, (6, 6))
    asked = model, clean, corrupt, (5, 9)
    whole = circuits.path_patch(*asked, "head")
    for into, mine, other in (("corrupt", "effects", "lost"), ("clean", "lost", "effects")):
        part = circuits.path_patch(*asked, "head", into=into, null=False)
        assert np.array_equal(getattr(part, mine), getattr(whole, mine))
        assert np.isnan(getattr(part, other)).all() and np.isnan(part.null).all()
        assert np.isnan(part.intervals).all() == (into == "clean")
    passes, counted = [], Later.values
    monkeypatch.setattr(Later, "values", lambda *given: passes.append(0) or counted(*given))
    circuits.path_patch(*asked, (0, 1), "q")
    n = len(passes)
    circuits.path_patch(*asked, (0, 1), "q", into="corrupt", null=False)
    assert len(passes) == n + n / 4


@pytest.mark.parametrize("variant", ["gpt2-causal", "gpt_neox-parallel", "bert-question"])
def test_a_pass_that_begins_at_a_layer_computes_no_earlier_one(variant):
    model = tiny.load(variant)
    ids = tiny.ids(model, 5)[None]
    trace = minitx.run(model, ids)
    seen = set()

    def hook(name, x, layer=None):
        seen.add((name, layer))
        return x

    start = Start(1, trace["resid_pre", 1])
    x = minitx.forward(model, ids, start=start, hook=hook)
    assert np.array_equal(x, minitx.forward(model, ids))
    assert {layer for name, layer in seen if name != "ln_final"} <= {1, None}
    assert ("embed", None) not in seen


WRONG = {
    "sender is 'head' and receiver 'q', which are names": dict(sender="head", receiver="q"),
    "into is 'both ways'; wanted": dict(into="both ways"),
    "no sender head L0H3; there are head L0H0 to head L1H2": dict(sender=(0, 3)),
    "no receiver q L2H0; there are q L0H0 to q L1H2": dict(receiver=("q", 2, 0)),
    "no sender attn; the names are embed, head, mlp": dict(sender="attn"),
    "no receiver cross_q L0H0; the names are": dict(receiver=("cross_q", 0, 0)),
    "no path from head L1H0 to q L0H1: it writes after": dict(sender=(1, 0), receiver=("q", 0, 1)),
    "no path from mlp L1 to mlp L1": dict(sender=("mlp", 1), receiver=("mlp", 1)),
    r"has no receiver \(1, 2\); the names are q, k": dict(receiver=(1, 2)),
    "has no sender 3; the names are embed": dict(sender=3),
    "logits cannot be combined with other receivers": dict(receiver=["logits", ("q", 1, 0)]),
    "mlps is 'cold'; wanted 'frozen'": dict(mlps="cold"),
    "pair 0 does not align": dict(corrupt=[[5, 6]]),
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_requests_are_refused(message):
    asked = dict(clean=[5, 6, 7], corrupt=[5, 8, 7], sender=(0, 1)) | WRONG[message]
    texts = [asked.pop(name) for name in ("clean", "corrupt")]
    with pytest.raises(ValueError, match=message):
        circuits.path_patch(tiny.load("gpt2-causal"), *texts, (5, 9), **asked)


def test_shared_keys_are_counted_as_the_points_are():
    model = tiny.load("llama-grouped")
    with pytest.raises(ValueError, match="there are k L0H0 to k L1H1"):
        circuits.path_patch(model, [5, 6], [5, 8], (5, 9), (0, 1), ("k", 1, 3))
