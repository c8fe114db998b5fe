"""Lesson 13: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re
from functools import partial

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_13 import check_matrix, check_norm, check_rows


def by_norm(dy, x, factor=1.0, scaled=True, mean=0.0):
    """The rule of the norm without a mean, right or spoiled."""
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True))
    y = x * scale
    dx = dy - mean * dy.mean(axis=-1, keepdims=True)
    dx = dx - factor * y * (y * dy).mean(axis=-1, keepdims=True)
    return scale * dx if scaled else dx


SAID = {
    check_matrix: [
        (0.5, "wanted a function, such as lambda"),
        (lambda x, dy: x.T @ dy, "right"),
        (lambda x, dy: np.einsum("td,tm->dm", x, dy), "right"),
        (lambda x, dy: dy.T @ x, "turned on its side"),
        (lambda x, dy: x.T @ dy / len(x), "a mean over tokens"),
        (lambda x, dy: x[:, :3] * dy, r"gives \[5, 3\]; wanted the shape of W, \[4, 3\]"),
        (lambda x, dy: x @ dy, "shapes do not go together"),
        (lambda x, dy: -x.T @ dy, "what does it get of each"),
    ],
    check_norm: [
        (partial(by_norm, factor=0.0), "the push along the row has to go"),
        (partial(by_norm, factor=4.0), "a sum over the row where a mean belongs"),
        (partial(by_norm, scaled=False), "x is divided by its size"),
        (partial(by_norm, mean=1.0), "this norm takes no mean off"),
        (partial(by_norm, factor=2.0), "nudging disagrees; the push along a row should be 0"),
        (0.5, "wanted a function, such as lambda"),
        (by_norm, "right"),
        (lambda dy, x: (dy * x).sum(axis=-1), r"gives \[5\]; wanted the shape of x, \[5, 4\]"),
    ],
    check_rows: [
        (7, "right: 7 of 258, one for each token$"),
        (258, "what would a row tell the loss that nobody read"),
        (1, "it looked at others"),
        (5, "the marks of beginning and end are tokens too"),
        (8, "count the tokens of the text"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    assert names["labels"] == ["The", "old", "man", "came", "back", "to", "the"]
    last, early = (np.linalg.norm(push, axis=1) for push in names["pushes"].values())
    assert (last > 0.5).all()  # least 1.03: all seven, and none by a hair
    assert (early[:3] > 0.5).all() and (early[3:] == 0).all()  # exactly
    assert "so 896 passes by nudging" in printed
    errors = [float(x) for x in re.findall(r"differs from nudging by (\S+)", printed)]
    assert len(errors) == 4 and max(errors) < 1e-8  # 2e-10


def test_one_layer_by_hand_is_what_nudging_says_and_faults_are_noticed(names, printed):
    right, factor, scaled, no_room, chance = names["errors"].values()
    assert right < 1e-7  # 4e-10
    assert min(factor, scaled, no_room, chance) > 1e5 * right and min(factor, scaled) > 0.03
    assert names["cosine"] > 0.95  # 0.993: nearly downhill, though wrong
    assert abs(names["by_hand"] - names["of_kit"]).max() < 1e-12
    assert "with the wrong factor and without: cosine 0.9" in printed


def test_only_the_gradient_leads_down(names):
    here, by_chance = names["loss"]({}), np.array(names["by_chance"])
    assert names["downhill"] < here - 1.5  # 1.2; 3.3
    assert by_chance.min() > here - 0.7  # 2.9
    assert 0.3 < (by_chance < here).mean() < 0.7  # about as often better as worse


def test_places_are_learned_again_by_the_push_and_not_by_steps(names):
    looks, test = names["looks"], names["test"]
    tables = [names[name] for name in ("old", "table", "fresh", "thrown")]
    old, again, fresh, thrown = (np.array(looks(table)) for table in tables)
    assert (old > 0.9).all() and (again > 0.5).all()  # 0.97; 0.64
    assert (fresh < 0.1).all() and (thrown < 0.1).all()  # 0.03
    losses = [names["surprise"](table, *test, []).loss for table in tables]
    assert losses[0] < losses[1] < losses[2] - 1 and losses[3] > losses[2]  # 2.5 4.6 5.9 7.4
