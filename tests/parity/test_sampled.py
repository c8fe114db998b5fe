"""Values of an array at real tokens, in one row, and where each comes from."""

import numpy as np
import pytest

from minitx.analysis.parity import sampled

VALID = np.array([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]], bool)  # padded right, left, right


@pytest.mark.parametrize(
    "axes, shape, order",
    [
        ("B T", (3, 4), "text token"),
        ("B T D", (3, 4, 5), "text token dimension"),
        ("B H T d", (3, 2, 4, 3), "text head token dimension"),
        ("B H T S", (3, 2, 4, 6), "text head token key"),
        ("B H S d", (3, 2, 4, 3), "text head token dimension"),
        ("B T V", (3, 4, 7), "text token word"),
    ],
)
def test_every_value_of_a_real_token_stands_where_its_place_says(axes, shape, order):
    x = np.random.default_rng(0).normal(size=shape)
    row = sampled.flat(x, axes, VALID)
    assert len(row) == x.size * VALID.sum() / VALID.size
    for n, value in enumerate(row):
        place = sampled.place(n, shape, axes, VALID)
        assert x[tuple(place[name] for name in order.split())] == value
        assert VALID[place["text"], place["token"]]


def test_a_classifiers_logits_have_no_tokens():
    x = np.arange(6.0).reshape(3, 2)
    assert sampled.flat(x, "B T V", VALID).tolist() == [0, 1, 2, 3, 4, 5]
    assert sampled.place(5, (3, 2), "B T V", VALID) == {"text": 2, "class": 1}


def test_samples_are_sorted_numbers_below_the_size_and_all_of_few():
    rng = np.random.default_rng(0)
    numbers = sampled.draw(1000, 50, rng)
    assert 40 < len(numbers) <= 50 and (np.diff(numbers) > 0).all() and numbers.max() < 1000
    assert sampled.draw(30, 50, rng).tolist() == sampled.draw(30, 0, rng).tolist() == [*range(30)]
