"""Lesson 15: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re

import numpy as np
import pytest
from answered import answers

from minitx import circuits
from minitx.circuits.effects import Patched
from minitx.lessons.checks import Wrong, lesson_15
from minitx.lessons.checks.lesson_15 import check_directions, check_evidence, check_group

SAID = {
    check_directions: [
        ({"either": (1, 0), "both": (0, 1)}, "right"),
        ((1, 0), "wanted .'either'"),
        ({"either": 1, "both": 0}, "wanted two numbers"),
        ({"either": (1, 1), "both": (0, 1)}, "either: lost is not 1; b is still clean"),
        ({"either": (0.5, 0), "both": (0, 1)}, "either: restored is not 0.5; b is still corrupt"),
        ({"either": (1, 0), "both": (1, 1)}, "both: restored is not 1"),
        ({"either": (1, 0), "both": (0, 0)}, "both: lost is not 0"),
    ],
    check_group: [
        ({1, 3, 7}, "right"),
        ([7, 3, 1], "right"),
        (3, "wanted some heads"),
        ({3, 8}, "heads are 0 to 7"),
        ({0, 3, 7}, "L0H0 alone breaks the model"),
        ({1, 2, 3, 7}, "4 heads; at most 3"),
        ({3, 7}, "which other head can stand in"),
        ({7}, "9.% of the words are still right"),
    ],
    check_evidence: [],
}

test_answers = answers(SAID)


def said_twice(names):
    """Pairs of the lesson's form, with words as a tokenizer reads them."""
    pieces = names["model"].tokenizer.pieces
    clean, corrupt, answers = names["pairs"](24, seed=5)
    texts = [[" ".join(pieces(x)) for x in side] for side in (clean, corrupt)]
    return [(*pair, *pieces(np.array(two))) for *pair, two in zip(*texts, answers)]


def test_a_head_that_is_defended_on_other_pairs(names):
    said = check_evidence(("tiny-induction", said_twice(names), 0, 7))
    assert said.startswith("right: L0H7 restores")


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (lambda x: x[:3], r"wanted \(model, pairs, layer, head\); this has 3 parts"),
        (lambda x: 7, "this has 1 parts"),
        (lambda x: ("gpt5", *x[1:]), "no bundled model 'gpt5'"),
        (lambda x: (x[0], x[1][:11], 0, 7), "11 pairs; wanted 12"),
        (lambda x: (*x[:2], 2, 7), "2 layers of 8 heads"),
        (lambda x: (*x[:2], 0, 3), "another head restores more"),
        (lambda x: (x[0], [pair[:3] for pair in x[1]], 0, 7), "cannot be compared"),
        (lambda x: (x[0], [(a, b + " cat", c, d) for a, b, c, d in x[1]], 0, 7), "does not align"),
    ],
)
def test_other_evidence(change, hint, names):
    with pytest.raises(Wrong, match=hint):
        check_evidence(change(("tiny-induction", said_twice(names), 0, 7)))


def effects(first, second, null=0.0):
    """Effects on six pairs of a layer of two heads; the first head's differ from pair to pair."""
    of_first = first + np.array([-0.3, -0.2, -0.1, 0.1, 0.2, 0.3])
    values = np.stack([of_first, np.full(6, second)], axis=1)[:, None]
    patched = Patched(values, np.broadcast_to([0.0, null], values.shape))
    return circuits.Effects(np.ones(6), np.zeros(6), patched, patched)


@pytest.mark.parametrize(
    ("choosing", "tested", "hint"),
    [
        (effects(0.9, 0.1), effects(0.9, 0.1, null=0.5), None),
        (effects(0.9, 0.1), effects(0.2, 0.1, null=0.5), "chance 0.50"),  # only where it was chosen
        (effects(0.9, 0.1), effects(0.6, 0.1, null=0.5), "chance 0.50"),  # within its interval
        (effects(0.9, 0.1), effects(0.9, 0.1, null=-1.0), "chance 1.00"),  # of either sign
    ],
)
def test_a_head_has_to_beat_chance_on_other_pairs(choosing, tested, hint, monkeypatch):
    halves = {(0, 2, 4, 6, 8, 10): choosing, (1, 3, 5, 7, 9, 11): tested}
    monkeypatch.setattr(lesson_15, "_patched", lambda model, pairs: halves[tuple(pairs)])
    answer = "tiny-induction", [*range(12)], 0, 0
    if hint is None:
        assert check_evidence(answer).startswith("right: L0H0 restores 0.90 of other pairs")
        return
    with pytest.raises(Wrong, match=hint):
        check_evidence(answer)


def test_a_model_has_to_know_the_answer(names):
    pairs = [(corrupt, clean, *answers) for clean, corrupt, *answers in said_twice(names)]
    with pytest.raises(Wrong, match="does not know the answer"):
        check_evidence(("tiny-induction", pairs, 0, 7))


def test_the_prose_says_what_the_cells_give(names, printed):
    others = [share for name, share in names["alone"].items() if name != "L0H0"]
    assert names["alone"]["L0H0"] < 0.3 and min(others) > 0.9  # 0.25; 0.94
    assert names["left"][4] > 0.95 and names["left"][8] < 0.05  # 0.99; 0
    off = {name: int(share) for name, share in re.findall(r"off: (.+?) +right +(\d+)%", printed)}
    assert off["L0H3"] == 100 and 90 <= off["L0H7"] and off["L0H3 and L0H7"] < 30
    assert abs(names["parts"][:8].sum()) < 0.5 and names["parts"][8:].sum() > 14
    assert max(abs(table.gap) for table in names["tables"]) < 1e-4


def test_patching_misses_the_backup_head(names, printed):
    effects, together = names["effects"], names["together"]
    assert effects[0, 7] > 0.98 and abs(effects.null).max() < 0.05
    assert 0.05 < effects[1].min() and effects[1].max() < 0.2 and float(together) > 0.98
    assert effects.lost_null[0, 0] > 0.9 and abs(effects[0, 0]) < 0.02
    assert effects[0, 3] < 0.15 and abs(effects.lost[0, 3]) < 0.01
    alone = re.search(r"L0H3, with L0H7 off +restored (\S+) .*lost (\S+)", printed)
    assert float(alone[1]) > 0.9 and float(alone[2]) > 0.8


def test_two_copies_of_a_head_each_look_as_if_they_carried_less(names, printed):
    of_twins = names["of_twins"]
    assert abs(of_twins[0, 2] - of_twins[0, 7]) < 1e-6
    assert of_twins[0, 7] < 0.5 and 0.2 < of_twins.lost[0, 7] < 0.25
    both = re.search(r"both at once +restored (\S+) .*lost (\S+)", printed)
    assert float(both[1]) > 0.95 and float(both[2]) > 0.9
    percents = re.findall(r"off: (?:L0H2|L0H7|both) +right +(\d+)%", printed)[-3:]
    assert [*map(int, percents[:2])] == [100, 100] and 90 <= int(percents[2]) < 99


def test_the_short_cut_and_the_circuit(names, printed):
    slopes = re.findall(r"(\d+) slopes: L0H7 (\S+); rank correlation with patching (\S+)", printed)
    estimates, correlations = ([float(row[i]) for row in slopes] for i in (1, 2))
    assert 0.25 < estimates[0] < 0.4 and 0.45 < estimates[1] < 0.55
    assert min(correlations) > 0.9
    circuit = names["circuit"]
    assert circuit.faithfulness > 0.9 and circuit.null < 0.4 and circuit.answer == "yes"
    for head in (7, 3):
        assert f"head L0H{head} → keys of layer 1: 8 of 8 edges" in printed
    assert "layer 1 → logits: 8 of 8 edges" in printed
