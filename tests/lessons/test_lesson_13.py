"""Lesson 13: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re

import numpy as np
import pytest
from executed import executed

from minitx.lessons.checks import NOT_YET, Wrong
from minitx.lessons.checks.lesson_13 import check_matrix, check_norm, check_rows


@pytest.mark.parametrize("check", [check_matrix, check_norm, check_rows])
def test_an_exercise_that_is_not_answered_is_not_wrong(check):
    assert check(...) == NOT_YET


@pytest.mark.parametrize("check", [check_matrix, check_norm])
def test_a_value_is_no_function(check):
    with pytest.raises(Wrong, match="wanted a function, such as lambda"):
        check(0.5)


def test_the_push_on_a_matrix():
    assert check_matrix(lambda x, dy: x.T @ dy).startswith("right")
    assert check_matrix(lambda x, dy: np.einsum("td,tm->dm", x, dy)).startswith("right")


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda x, dy: dy.T @ x, "turned on its side"),
        (lambda x, dy: x.T @ dy / len(x), "a mean over tokens"),
        (lambda x, dy: x[:, :3] * dy, r"gives \[5, 3\]; wanted the shape of W, \[4, 3\]"),
        (lambda x, dy: x @ dy, "shapes do not go together"),
        (lambda x, dy: -x.T @ dy, "what does it get of each"),
    ],
)
def test_other_pushes_on_a_matrix(answer, hint):
    with pytest.raises(Wrong, match=hint):
        check_matrix(answer)


def by_norm(dy, x, factor=1.0, scaled=True, mean=0.0):
    """The rule of the norm without a mean, right or spoiled."""
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True))
    y = x * scale
    dx = dy - mean * dy.mean(axis=-1, keepdims=True)
    dx = dx - factor * y * (y * dy).mean(axis=-1, keepdims=True)
    return scale * dx if scaled else dx


def test_the_rule_of_another_norm():
    assert check_norm(by_norm).startswith("right")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"factor": 0.0}, "the push along the row has to go"),
        ({"factor": 4.0}, "a sum over the row where a mean belongs"),
        ({"scaled": False}, "x is divided by its size"),
        ({"mean": 1.0}, "this norm takes no mean off"),
        ({"factor": 2.0}, "nudging disagrees; the push along a row should be 0"),
    ],
)
def test_other_rules_of_that_norm(options, hint):
    with pytest.raises(Wrong, match=hint):
        check_norm(lambda dy, x: by_norm(dy, x, **options))


def test_a_rule_keeps_the_shape():
    with pytest.raises(Wrong, match=r"gives \[5\]; wanted the shape of x, \[5, 4\]"):
        check_norm(lambda dy, x: (dy * x).sum(axis=-1))


def test_rows_that_are_read_get_a_push():
    assert check_rows(7) == "right: 7 of 258, one for each token"
    for answer, hint in (
        (258, "what would a row tell the loss that nobody read"),
        (1, "it looked at others"),
        (5, "the marks of beginning and end are tokens too"),
        (8, "count the tokens of the text"),
    ):
        with pytest.raises(Wrong, match=hint):
            check_rows(answer)


def test_the_prose_says_what_the_cells_give():
    names, printed = executed(13)
    assert names["labels"] == ["The", "old", "man", "came", "back", "to", "the"]
    last, early = (np.linalg.norm(push, axis=1) for push in names["pushes"].values())
    assert (last > 0.5).all()  # least 1.03: all seven, and none by a hair
    assert (early[:3] > 0.5).all() and (early[3:] == 0).all()  # exactly
    assert "so 896 passes by nudging" in printed
    errors = [float(x) for x in re.findall(r"differs from nudging by (\S+)", printed)]
    assert len(errors) == 4 and max(errors) < 1e-8  # 2e-10


def test_one_layer_by_hand_is_what_nudging_says_and_faults_are_noticed():
    names, printed = executed(13)
    right, factor, scaled, no_room, chance = names["errors"].values()
    assert right < 1e-7  # 4e-10
    assert min(factor, scaled, no_room, chance) > 1e5 * right and min(factor, scaled) > 0.03
    assert names["cosine"] > 0.95  # 0.993: nearly downhill, though wrong
    assert abs(names["by_hand"] - names["of_kit"]).max() < 1e-12
    assert "with the wrong factor and without: cosine 0.9" in printed


def test_only_the_gradient_leads_down():
    names, _ = executed(13)
    here, by_chance = names["loss"]({}), np.array(names["by_chance"])
    assert names["downhill"] < here - 1.5  # 1.2; 3.3
    assert by_chance.min() > here - 0.7  # 2.9
    assert 0.3 < (by_chance < here).mean() < 0.7  # about as often better as worse


def test_places_are_learned_again_by_the_push_and_not_by_steps():
    names, _ = executed(13)
    looks, test = names["looks"], names["test"]
    tables = [names[name] for name in ("old", "table", "fresh", "thrown")]
    old, again, fresh, thrown = (np.array(looks(table)) for table in tables)
    assert (old > 0.9).all() and (again > 0.5).all()  # 0.97; 0.64
    assert (fresh < 0.1).all() and (thrown < 0.1).all()  # 0.03
    losses = [names["surprise"](table, *test, []).loss for table in tables]
    assert losses[0] < losses[1] < losses[2] - 1 and losses[3] > losses[2]  # 2.5 4.6 5.9 7.4
