"""Which component did it: constructed models, random weights, pairs of a file, both directions."""

import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import directed
import numpy as np
import odd
import power
import pytest
from outcomes import run, verdict

import minitx
from minitx import analysis, circuits
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.analysis.experiments import circuit, heads, patch, paths
from minitx.analysis.maths import nulls
from minitx.analysis.measures import contrast_pairs, document_features, patch_effects
from minitx.analysis.running import stream

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = "attribute", "heads", "patch", "paths", "circuit"
SMALL = {
    "circuit": {"random": 20, "n_pairs": 8},
    "patch": {"n_pairs": 8},
    "paths": {"n_pairs": 8},
}


@pytest.fixture(scope="module")
def induction():
    return minitx.load("tiny-induction")


@pytest.mark.parametrize(
    "name, seed", [("tiny-gpt2", 0), ("tiny-roberta", 1), ("tiny-induction", 0)]
)
def test_random_weights_carry_no_answer(name, seed):
    random = document_features.untrained(minitx.load(name), np.random.default_rng(seed))
    for experiment in NAMES:
        arrays = run(experiment, random, seed=seed, **SMALL.get(experiment, {}))
        assert verdict(experiment, arrays) in ("no", "undecided"), experiment


def test_the_heads_of_tiny_induction_are_those_of_its_card(induction):
    r = heads.heads(induction)
    assert r["induction_of_heads"][1].min() > 0.9 > r["induction_of_heads"][0].max() + 0.8
    assert r["previous_head"] == "L0H7"
    assert r["previous"] > 0.5
    assert verdict("heads", r) == "yes"
    assert r["induction_null"] < 0.1
    assert r["previous_null"] == r["previous_of_heads_null"].max() > 0.05


@pytest.mark.parametrize("experiment", ["patch", "paths", "circuit"])
def test_nothing_is_carried_where_no_answer_is_known(experiment):
    """Shares of a difference that is chance say nothing, however large they are."""
    r = {"told": 0.95, "told_null": 0.75, "edges": 5, "edges_of_model": 100}
    for name in ("restored", "lost", "near", "direct", "through"):
        r |= {f"{name}_head": "L0H0"}
        r |= {name: 0.9, f"{name}_null": 0.1}
    assert verdict(experiment, r) == "yes"
    assert verdict(experiment, r | {"told": 0.6}) == "undecided"
    assert verdict(experiment, r | {"told": 1.0, "told_null": 1.0}) == "undecided"


@pytest.mark.parametrize("experiment", ["patch", "paths"])
def test_no_head_is_denied_where_unrelated_pairs_restore_as_much(experiment):
    """As they do where all pairs have one answer: a head that carries it would not stand out."""
    r = {"told": 1.0, "told_null": 0.75}
    for name in ("restored", "lost", "direct", "through"):
        r |= {name: 0.5, f"{name}_null": 0.5, f"{name}_head": "L0H0"}
    assert verdict(experiment, r) == "undecided"
    low = {name: 0.05 for name, x in r.items() if x == 0.5}
    assert verdict(experiment, r | low) == "no"


@pytest.mark.parametrize(
    "ends, nearness",
    [((0.776, 1.149), (0.776, 1)), ((0.5, 0.9), (0.5, 0.9)), ((1.1, 1.4), (0.6, 0.9))],
)
def test_the_interval_of_nearness_holds_all_between_its_ends(ends, nearness):
    assert circuit.search.nearness_within(np.array(ends)) == pytest.approx(nearness)


def test_edges_are_tried_on_pairs_that_did_not_choose_them(induction, monkeypatch):
    trials = []

    class Watched(circuit.search.Trial):
        def __init__(self, routes):
            trials.append(routes.pairs.clean.batch.tokens)
            super().__init__(routes)

    monkeypatch.setattr(circuit.search, "Trial", Watched)
    circuit.circuit(induction, n_pairs=6, steps=1, random=10)
    first, second = ({tuple(row) for row in tokens.tolist()} for tokens in trials)
    assert len(first) == len(second) == 3 and not first & second


def test_patching_names_the_head_that_all_others_read(induction):
    """L0H7 tells each token what stood before; of the eight heads that read it none is needed."""
    r = patch.patch(induction)
    assert verdict("patch", r) == "yes"
    assert r["restored_head"] == r["lost_head"] == "L0H7"
    assert min(r["restored"], r["lost"]) > 0.95 and 0.3 < r["restored_null"] < 0.6
    assert max(r["restored_by_heads"][1].max(), r["lost_by_heads"][1].max()) < 0.3
    # the stream before layer 0 differs at the two words, that of layer 1 behind them
    places = r["restored_by_places"] > 0.3
    assert np.argwhere(places).tolist() == [[0, 3], [0, 6], [1, 4], [1, 7]]


def test_a_circuit_has_the_edges_between_the_heads(induction):
    r = circuit.circuit(induction)
    assert verdict("circuit", r) == "yes"
    assert r["edges"] < 40 and r["near"] > 0.9 > r["near_null"] + 0.5
    edges = set(zip(r["senders"].tolist(), r["receivers"].tolist()))
    assert {("head L0H7", f"k L1H{h}") for h in range(8)} <= edges
    assert {(f"head L1H{h}", "logits") for h in range(8)} <= edges
    assert ("embed", "v L0H7") in edges


def test_few_other_orders_of_pairs_exceed_the_null_of_two():
    """A hundredth of them: as it was, the largest of one order, half of them did."""
    n, orders = 24, 60
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, n, 6)) / n**0.5  # of pair i with partner j, for 6 heads

    def of_order(order):
        return x[np.arange(n), order]  # [N M]

    shifts = [np.roll(np.arange(n), k) for k in range(1, n)]
    above, above_one = [], []
    for trial in range(orders):
        first, second, other = (of_order(shifts[k]) for k in rng.permutation(n - 1)[:3])
        largest = abs(other.sum(axis=0)).max()
        line = nulls.largest_of_partners(np.array([first, second]), trial)
        above.append(largest > line)
        above_one.append(largest > abs(first.sum(axis=0)).max())
    assert np.mean(above) < 0.1 and np.mean(above_one) > 0.3


def test_several_unrelated_pairs_are_as_many_nulls(induction):
    asked = contrast_pairs.repeats(induction, 6, 0).with_unrelated(induction, 0)
    texts = asked.clean, asked.corrupt, asked.answers
    sets = asked.options()["unrelated"]
    for call in (circuits.patch, partial(circuits.path_patch, sender="head", receiver="logits")):
        both = call(induction, *texts, unrelated=sets)
        for number, one_set in enumerate(sets):
            alone = call(induction, *texts, unrelated=one_set)
            assert np.array_equal(both.null[..., number], alone.null)
            assert np.array_equal(both.lost_null[..., number], alone.lost_null)
        assert np.array_equal(both.effects, alone.effects)


def test_sums_do_not_depend_on_groups(induction, monkeypatch):
    whole = patch.patch(induction, n_pairs=6)
    monkeypatch.setattr(patch_effects, "TOGETHER", 4)
    parts = patch.patch(induction, n_pairs=6)
    for name in ("restored_by_heads", "lost_by_places", "restored_ends_heads", "told"):
        assert np.allclose(whole[name], parts[name], atol=1e-5)
    for name in ("restored_by_heads_null", "lost_by_heads_null", "lost_by_places_null"):
        assert np.allclose(whole[name], parts[name], atol=1e-5)


def test_the_unrelated_pair_of_each_is_another_of_its_length(induction):
    """Drawn from all pairs, also where a group has none of the length."""
    model = minitx.load("tiny-gpt2")
    texts = ["He said that", "It was all that he"] * 3
    lengths = [len(model.tokenizer.encode(text)) for text in texts]
    given = contrast_pairs.Asked(texts, texts, [(" he", " she")] * 6).with_unrelated(model, 0)
    for pairs, n in zip(given.unrelated, lengths):
        assert [len(row) for pair in pairs for row in pair] == [n] * 4
    two = given.some(0, 2)
    second = two.options()["unrelated"][1]
    assert len(two.clean) == 2 and second[0][0] is given.unrelated[0][1][0]
    alone = contrast_pairs.repeats(induction, 24, 0).with_unrelated(induction, 0)
    partner = np.zeros((2, 24), int)
    for i, pairs in enumerate(alone.unrelated):
        for number, (clean, _) in enumerate(pairs):
            others = [j for j, text in enumerate(alone.clean) if np.array_equal(text, clean)]
            assert len(others) == 1 and others != [i]
            partner[number, i] = others[0]
    assert (partner[0] != partner[1]).sum() > 12  # two orders of their own


def test_paths_name_the_writers_and_the_head_that_tells_them(induction):
    """L0H7 tells the eight heads of layer 1 by their keys, and by nothing else."""
    r = paths.paths(induction, n_pairs=12, reads="k")
    assert {name[:3] for name in r["writers"].tolist()} == {"L1H"}
    assert r["through_head"] == "L0H7" and r["through"] > max(0.3, r["through_null"] + 0.1)
    assert r["restored_by_direct"][0].max() < 0.05
    by_queries = paths.paths(induction, n_pairs=12, reads="q", writers="L1H0,L1H5")
    assert by_queries["writers"].tolist() == ["L1H0", "L1H5"]
    assert by_queries["restored_by_through"].max() < 0.05
    four = paths.paths(induction, n_pairs=4, reads="k", writers="L1H0 L1H5")
    texts = contrast_pairs.repeats(induction, 4, 0)[:3]
    receivers = [("k", 1, 0), ("k", 1, 5)]
    alone = circuits.path_patch(induction, *texts, (0, 7), receivers, mlps="recomputed")
    assert abs(four["restored_by_through"][0, 7] - float(alone)) < 1e-5


def test_writers_are_the_heads_with_the_largest_direct_effects():
    """None of the first layer, which no head can tell what to write."""
    by_head = np.array([[9.0, 8.0, 7.0, 6.0], [0.1, 0.4, -0.5, 0.2], [0.3, 0.0, 0.6, 0.05]])
    largest = [(2, 2), (1, 1), (2, 0), (1, 3), (1, 0)]
    writers = paths._largest(by_head)
    n = min(len(writers), len(largest))
    assert writers[:n] == largest[:n] and len(writers) == min(paths.WRITERS, 8)


def test_pairs_of_an_encoder_decoder(tmp_path):
    """tiny-bart reads dates: all of the answer goes through cross-attention."""
    model = minitx.load("tiny-bart")
    r = analysis.run("patch", model).arrays
    assert r["told"] == 1 and str(r["restored_head"]).startswith(("cross ", "encoder "))
    assert r["restored_by_cross"].shape == r["restored_by_encoder"].shape == (2, 4)
    lines = "3 May 1912=>191|3 May 1915|2|5\n4 May 1872=>187|4 May 1876|2|6\n"
    (tmp_path / "pairs.txt").write_text(lines)
    given = contrast_pairs.asked(model, "patch", str(tmp_path / "pairs.txt"))
    assert given.clean == ["3 May 1912", "4 May 1872"] and given.prefix == ["191", "187"]
    result = analysis.run("circuit", model, pairs=str(tmp_path / "pairs.txt"), random=10)
    assert any(name.startswith("cross_head") for name in result.arrays["senders"].tolist())
    with pytest.raises(ValueError, match="has prefixes '191' and '2'; wanted the same in both"):
        contrast_pairs.asked(model, "patch", "3 May 1912=>191|3 May 1915=>2|2|5")
    with pytest.raises(registry.NotApplicable, match="names are prompts for a causal"):
        analysis.run("patch", model, pairs="names")
    with pytest.raises(registry.NotApplicable, match="dates are pairs for an encoder-decoder"):
        analysis.run("patch", "tiny-gpt2", pairs="dates")


def test_a_decoders_logit_by_what_it_reads_of_the_source():
    r = analysis.run("attribute", "tiny-bart", prompt="3 May 1912=>191", target="2").arrays
    assert abs(r["parts"].sum() - r["logit"]) < 1e-4
    of_cross = [i for i, name in enumerate(r["components"]) if name.startswith("cross L")]
    assert abs(r["parts"][of_cross].sum() - r["cross_heads"].sum()) < 1e-5
    places = r["cross_heads_places"].sum(axis=(0, 1))
    assert r["cross_heads_pieces"][places.argmax()] == "2"  # the digit that is said
    single = analysis.run("attribute", "tiny-gpt2", prompt="The man said that").arrays
    assert "cross_heads" not in single


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-roberta"])
def test_a_model_that_knows_no_repeated_words_is_asked_of_prose(name):
    model = minitx.load(name)
    r = analysis.run("attribute", model).arrays
    pieces = "".join(map(str, r["heads_pieces"]))
    assert "gentleman called to see you" in pieces.replace("\N{OPEN BOX}", " ") and "other" not in r
    assert model.config.causal or str(r["heads_pieces"][12]) == "<mask>"


@pytest.mark.parametrize(
    "n_heads, of_patch, of_paths", [(1, "yes", "yes"), (4, "partly", "partly")]
)
def test_heads_that_carry_an_answer_are_found(n_heads, of_patch, of_paths, tmp_path):
    """All of it alone, or a quarter each: four that share it are not taken for one that has it."""
    model = directed.by_positions((-1,) * n_heads, 0.2, written=True)
    (tmp_path / "pairs.txt").write_text(power.words_before(model, 7, 0))
    given = {"pairs": str(tmp_path / "pairs.txt")}
    r, s = analysis.run("patch", model, **given), analysis.run("paths", model, **given)
    assert (r.answer.verdict, s.answer.verdict) == (of_patch, of_paths)
    carried = r.arrays["restored_by_heads"][:, :n_heads]
    assert carried.min() > 0.7 / n_heads > 0.6 * carried.max()
    assert abs(r.arrays["restored_by_heads"][:, n_heads:]).max(initial=0) < 1e-9
    assert {name[:2] for name in s.arrays["writers"].tolist()} == {"L1"}


def test_a_model_that_knows_repeated_words_is_asked_of_them():
    r = analysis.run("attribute", "tiny-induction").arrays
    pieces = r["heads_pieces"].tolist()
    assert pieces[-4:] == pieces[:4] and r["logit"] > 10
    assert str(r["target"]) == pieces[4]


def test_of_a_logit_that_the_parts_do_not_sum_to_nothing_is_decided():
    """A masked model's head has a layer of its own, which is no sum: tiny-roberta's gives 99%."""
    of_masked, of_causal = (analysis.run("attribute", m) for m in ("tiny-roberta", "tiny-stories"))
    assert of_masked.answer.verdict == "undecided" and "in no part" in of_masked.answer.value
    assert of_causal.answer.verdict == "no" and "in no part" not in of_causal.answer.value


def test_parts_that_add_nothing_are_said():
    with pytest.raises(registry.NotApplicable, match="no head and no MLP adds anything"):
        analysis.run("attribute", directed.by_words("words"))


@pytest.mark.parametrize("name", ["patch", "paths", "circuit"])
def test_an_answer_that_no_word_changes_leaves_nothing_to_restore(name):
    """Two layers that see two tokens back never reach the word that differs."""
    r = analysis.run(name, str(GOLDEN / "gpt_neo-local"))
    assert r.answer.verdict == "nothing"
    assert r.says == "There is nothing to restore: clean and corrupt texts get the same answer."


@pytest.mark.parametrize(
    "name, folder, message",
    [
        ("paths", "gemma2-all", "are normed before the sum"),
        ("circuit", "olmo2-biases", "are normed before the sum"),
        ("patch", "marian-separate", "61 words that are read are not the 53 that are said"),
    ],
)
def test_a_report_leaves_out_what_a_model_lacks(name, folder, message):
    with pytest.raises(registry.LACKING, match=message):
        analysis.run(name, str(GOLDEN / folder))


def test_the_decoder_of_a_classifier_reads_the_source():
    model = odd.model("bart-sequence")
    r = analysis.run("attribute", model, prompt="w1 w2 w3").arrays
    ids = model.encode(["w1 w2 w3"]).tokens[0]
    logits = minitx.run(model, None, "logits", source=ids)["logits"]
    assert abs(r["logit"] - logits.max()) < 1e-5


def test_a_model_without_a_tokenizer_reads_repeated_ids():
    r = analysis.run("attribute", str(GOLDEN / "falcon-two-norms")).arrays
    assert "other" in r and r["heads_pieces"][:4].tolist() == r["heads_pieces"][-4:].tolist()


def test_random_circuits_go_on_after_an_interruption(induction, tmp_path, monkeypatch):
    given = {"n_pairs": 4, "steps": 1, "random": 12}
    whole = circuit.circuit(induction, **given)
    gathered = circuit.search.Trial.random
    calls = []

    def stops(self, *arguments):
        calls.append(arguments)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return gathered(self, *arguments)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(circuit.search.Trial, "random", stops)
        circuit.circuit(induction, stream.Run(tmp_path, "circuit", "key"), **given)
    again = circuit.circuit(induction, stream.Run(tmp_path, "circuit", "key", True), **given)
    assert np.array_equal(again["random"], whole["random"])


def test_words_are_said_twice_and_one_is_asked_for(induction, bundled):
    pairs = contrast_pairs.repeats(induction, 5, 0)
    for clean, corrupt, (right, wrong) in zip(*pairs[:3]):
        for text, answer in ((clean, right), (corrupt, wrong)):
            first = text[: contrast_pairs.SAID].tolist()
            second = text[contrast_pairs.SAID :].tolist()
            assert first[first.index(second[-1]) + 1] == answer
            assert answer not in second
        assert sorted(clean) == sorted(corrupt) and (clean != corrupt).sum() == 2
    masked = contrast_pairs.repeats(bundled, 2, 0)
    for text, answer in zip((masked.clean[0], masked.corrupt[0]), masked.answers[0]):
        pieces = bundled.tokenizer.pieces(text)
        assert pieces.count("<mask>") == 1 and (pieces[0], pieces[-1]) == ("<s>", "</s>")
        around = text[-4], text[-2]
        first = text[1 : 1 + contrast_pairs.SAID].tolist()
        place = first.index(answer)
        assert (first[place - 1], first[place + 1]) == around


def test_pairs_of_a_file_are_as_they_stand(tmp_path):
    model = minitx.load("tiny-gpt2")
    lines = "When he came|When she came| he| she\n\nThat he said|That she said| he| she\n"
    (tmp_path / "pairs.txt").write_text(lines)
    given = contrast_pairs.asked(model, "patch", str(tmp_path / "pairs.txt"))
    assert given.clean == ["When he came", "That he said"]
    assert given.answers == [(" he", " she")] * 2
    result = analysis.run("patch", model, pairs=str(tmp_path / "pairs.txt"))
    assert result.arrays["n_pairs"] == 2 and "pairs" in result.settings
    inline = analysis.run("patch", model, pairs="When he came|When she came", measure=" he| she")
    assert result.arrays["clean"].tolist() == inline.arrays["clean"].tolist()
    assert inline.answer.verdict == "undecided"  # one pair decides nothing
    few = contrast_pairs.asked(model, "patch", str(tmp_path / "pairs.txt"), n=1)
    assert len(few.clean) == 1


BAD = {
    "pair 0 does not align": {"pairs": "a b|a| he| she"},
    "has 3 fields; wanted": {"pairs": "a|b|c"},
    "does not give the answers": {"pairs": "a|b"},
    "measure is 'he'; wanted 'right": {"pairs": "a|b", "measure": "he"},
    "but there are no pairs": {"measure": "he|she"},
    "tokens.*; wanted one token": {"pairs": "a|b| extraordinary| she"},
}


@pytest.mark.parametrize("message", BAD)
def test_pairs_that_cannot_be_compared_are_refused(message):
    with pytest.raises(ValueError, match=message):
        analysis.run("patch", "tiny-gpt2", **BAD[message])


def test_one_pair_is_too_few_for_a_circuit():
    with pytest.raises(ValueError, match="wanted two or more"):
        analysis.run("circuit", "tiny-gpt2", pairs="a|b| he| she")


def test_a_model_without_words_or_room_of_its_own(causal, tmp_path):
    shutil.copytree(causal.tokenizer.folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    model = minitx.load(tmp_path)
    for name in NAMES:
        arrays = run(name, model, **SMALL.get(name, {}))
        assert verdict(name, arrays) in ("no", "undecided")
    arrays = patch.patch(model, n_pairs=2)
    assert "".join(arrays["clean"]).endswith("abcdefghiabcd")
    pieces = patch.patch(model, n_pairs=1)["clean"]
    assert all(re.fullmatch(r"<\d+>", piece) for piece in pieces)
    short = replace(causal, config=replace(causal.config, n_ctx=12))
    with pytest.raises(registry.NotApplicable, match="no room to repeat 9 words: .* at most 12"):
        patch.patch(short)


def test_parts_sum_to_the_difference(capsys, tmp_path):
    given = ["tiny-gpt2", "The man said that", "--target", " he", "--other", " she"]
    assert commands.run_command(["attribute", *given, "--out", str(tmp_path)]) == 0
    assert "The logit of “␣he” − “␣she” is" in capsys.readouterr().out
    with np.load(tmp_path / "attribute.npz") as arrays:
        assert abs(arrays["parts"].sum() - arrays["logit"]) < 1e-4
        assert arrays["largest"] < 0.5 < arrays["largest_null"]  # measured 0.32 and 0.76
        assert np.allclose(arrays["heads_places"].sum(axis=-1), arrays["heads"], atol=1e-6)
    both = [*given, "--prompt", "b", "--out", str(tmp_path)]
    assert commands.run_command(["attribute", *both]) == 2
    assert "wanted one of them" in capsys.readouterr().err


@pytest.mark.usefixtures("empty_figures")
@pytest.mark.parametrize("name", ["heads", "patch", "circuit"])
def test_a_command_is_the_experiment(name, tmp_path, capsys):
    options = {"heads": ["--texts", "2"], "patch": ["--n-pairs", "2"]}
    options["circuit"] = ["--n-pairs", "4", "--random", "10", "--edges", "12"]
    for command in (["run", name], [name]):
        out = str(tmp_path / command[0])
        argv = [*command, "tiny-induction", *options[name], "--out", out]
        assert commands.run_command(argv) == 0
    arrays = [(tmp_path / folder / f"{name}.npz").read_bytes() for folder in ("run", name)]
    assert arrays[0] == arrays[1]
