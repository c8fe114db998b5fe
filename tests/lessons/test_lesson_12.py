"""Lesson 12: its checks tell right answers from wrong ones; its prose says what its cells give."""

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_12 import check_controls, check_invariant, check_rare

SAID = {
    check_rare: [
        (lambda value, null: (1 + (null >= value).sum()) / (1 + len(null)), "right"),
        (0.5, "wanted a function, such as lambda"),
        (lambda value, null: (null >= value).mean(), "never happens: count the value itself"),
        (lambda value, null: (1 + (null > value).sum()) / (1 + len(null)), "not more than"),
        (lambda value, null: (1 + (null <= value).sum()) / (1 + len(null)), "smaller"),
        (lambda value, null: (1 + (null >= value).sum()) / len(null), "wanted 1 of 10"),
    ],
    check_controls: [
        ("cdab", "right"),
        ("abcd", "claim 1: a head was chosen out of many"),
        ("cdba", "claim 3: a column is a direction of the axes"),
        ("cda", "wanted four letters"),
    ],
    check_invariant: [
        (0.5, "wanted a function, such as lambda"),
        (lambda q, k: (q @ k.T).max(), "right"),
        (lambda q, k: np.linalg.norm(q), "right"),
        (lambda q, k: np.linalg.svd(q.T @ k, compute_uv=False)[0], "right"),
        (lambda q, k: q.max(), "before the rotation it gives"),
        (lambda q, k: q[:, 5].std(), "before the rotation it gives"),
        (lambda q, k: 3.0, "other queries give the same number"),
        (lambda q, k: np.linalg.norm(k), "other queries give the same number"),
        (lambda q, k: q @ k.T, r"the function gives \[20, 20\]"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    assert "The model is B" in printed
    easy, hard = (chance(names, "one_wave", "tiny-gpt2", x) for x in ("shuffled", "steps_dealt"))
    own = names["one_wave"](names["learned"])
    assert own > 3 * easy.max()  # 0.69 and 0.08: beside shuffled rows it stands out
    assert np.median(hard) > own  # 0.86: most tables of dealt steps are more of a wave
    assert beyond(names, "tiny-bert") and beyond(names, "tiny-roberta")  # 2.6, 4.4; 1.3
    assert not beyond(names, "tiny-gpt2")  # 1.06
    singular, random = names["filled"](names["singular"]), np.array(names["by_chance"])
    assert singular < 0.6 * random.min()  # 13.1 and 26: far outside
    assert names["filled"](names["q"]) > np.median(random)  # 30.7: no better than random axes


def chance(names, measure, model, null):
    rows = names["table"](model)
    return np.array([names[measure](names[null](rows)) for _ in range(40)])


def beyond(names, model):
    """Whether the strength of faster waves rises again beyond both kinds of chance."""
    nulls = [chance(names, "rise", model, null) for null in ("shuffled", "steps_dealt")]
    return names["rise"](names["table"](model)) > np.max(nulls)


def test_a_head_found_as_the_best_of_many_is_not_found_again(names):
    value, null = abs(names["r"][names["best"]]), names["chance"]
    alone, of_many = ((values >= value).mean() for values in null.values())
    assert alone < 0.05 < of_many  # 0.02 and 0.28
    again = [abs(received[names["best"]] @ x) / len(x) for received, x in names["other"]]
    assert max(again) < value


def test_two_peaks_agree_for_dice_too_and_places_tell_the_heads_apart(names, printed):
    own, random = (float(x.split("%")[0]) for x in printed.split("peaks agree in ")[1:])
    other = [float(x.split("%")[0]) for x in printed.split("with other heads' in ")[1:]]
    assert own > 2 * other[0] and random > 2 * other[1]  # 94, 28; 62, 10
    kept = names["places"] / names["whole"]
    is_sharp = names["whole"] > 0.3
    assert (kept[is_sharp] > 0.9).sum() == 4  # the heads of layer 0 need nothing but places
    assert (kept[is_sharp] < 0.1).any()  # others vanish without words
    assert names["stay"] == ["L0H0", "L0H1", "L0H2", "L0H3"]  # and at the same lag


def test_a_random_turn_undoes_what_singular_vectors_gather(names):
    assert names["filled"](names["singular"]) < 0.7 * min(names["again"])  # measured 12.9, 26.6
