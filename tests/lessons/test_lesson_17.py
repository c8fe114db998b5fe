"""Lesson 17: its checks tell right answers from wrong ones; its prose says what its cells give."""

import re

import numpy as np
from answered import answers

from minitx.lessons.checks.lesson_17 import check_order, check_rows, check_weights

GRID = np.arange(64).reshape(8, 8)


def as_rows(*axes):
    """A function that cuts a picture, its five axes in an order."""
    return lambda x: x.reshape(8, 4, 8, 4, 3).transpose(axes).reshape(64, 48)


def each_patch(x):
    """The rows, patch by patch."""
    corners = [(r, c) for r in range(0, 32, 4) for c in range(0, 32, 4)]
    return [x[r : r + 4, c : c + 4].transpose(2, 0, 1).ravel() for r, c in corners]


SAID = {
    check_rows: [
        (as_rows(0, 2, 4, 1, 3), "right"),
        (each_patch, "right"),
        (lambda x: x.reshape(64, 48), "these are stripes"),
        (as_rows(0, 2, 1, 3, 4), "the three colours of a pixel are adjacent"),
        (as_rows(0, 2, 4, 3, 1), "in each patch pixels go down"),
        (as_rows(2, 0, 4, 1, 3), "the patches go down before they go across"),
        (as_rows(2, 0, 1, 3, 4), "but not those of the patches"),
        (lambda x: x.reshape(8, 4, 8, 4, 3), r"wanted \[64, 48\], this gives \[8, 4, 8, 4, 3\]"),
        (np.zeros((64, 48)), "wanted a function, such as lambda"),
    ],
    check_order: [
        (GRID.T, "right"),
        (np.rot90(GRID), "right"),
        (GRID.T.ravel().tolist(), "right"),
        (GRID, "it says left where the circle is left, right where the circle is right"),
        (GRID[:, ::-1], "it says right where the circle is left"),
        (np.rot90(GRID, -1), "it says below where the circle is left, above where"),
        (GRID[::-1, ::-1].T, "it says below where the circle is left"),
        (GRID + 1, "each of the numbers 0 to 63 once"),
        (np.zeros(64), "each of the numbers 0 to 63 once"),
        (GRID[0], "each of the numbers 0 to 63 once"),
    ],
    check_weights: [
        (lambda side, patch: (1 + (side // patch) ** 2) ** 2, "right"),
        (lambda side, patch: (1 + side**2 / patch**2) ** 2, "right"),
        (lambda side, patch: (side // patch) ** 4, "the class token is missing"),
        (lambda side, patch: 1 + (side // patch) ** 2, "these are the tokens"),
        (lambda side, patch: 1 + (side // patch) ** 4, "the class token has a weight"),
        (lambda side, patch: (1 + side // patch) ** 2, "squared in the picture"),
        (lambda side, patch: (1 + side**2) ** 2, "these are pixels"),
        (lambda side, patch: 4225, "side 224, patch 16: wanted 38809, this gives 4225"),
        (38809, "wanted a function, such as lambda"),
    ],
}

test_answers = answers(SAID)


def test_the_prose_says_what_the_cells_give(names, printed):
    assert "tokens of a picture: 65, numbers of a token: 50" in printed
    assert "W_E: 50 rows of 64 numbers" in printed
    right, guesses = names["shares"], names["guesses"]
    assert right["as it is"][0] > 0.98 and max(names["apart"]) < 1e-4  # 100%, 3e-6
    assert {*right["with positions"]} == {*right["as it is"]}
    assert max(right["patches alone"]) < 0.4 and len(right["patches alone"]) == 6
    assert sum(share > max(guesses) for share in right["patches alone"]) == 1  # 35.8, 33.2 %
    assert min(guesses) < right["no positions"][0] < max(guesses)
    own = float(re.search(r"order of its own: (\S+)%", printed)[1]) / 100
    assert min(guesses) < own < max(guesses)


def test_mirrored_positions_exchange_left_and_right(printed):
    said = re.findall(r"circle (\w+): (\w+) (\d+)%\n", printed)
    wanted = ("left", "right"), ("right", "left"), ("above", "above"), ("below", "below")
    assert said == [(*pair, "100") for pair in wanted]


def test_shapes_are_looked_at_with_and_without_positions(names):
    both, circle, others = (names[name] for name in ("both", "circle", "others"))
    for pattern in names["pattern"], names["blind"]:
        heads = names["from_class"](pattern, both)[0]
        assert (heads > 4 * names["from_class"](pattern, others(both))[0]).all()
        assert names["from_square"](pattern, circle)[names["L"], names["H"]] > 0.6
    assert names["from_square"](names["pattern"], others(circle)).max() < 0.15
