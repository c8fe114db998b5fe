"""Checks of lesson 12: how rare a value is, which control fits, a number free of axes."""

import numpy as np

from . import NOT_YET, Wrong
from .arrays import needs_function

CONTROLS = {  # claim: its control, and why
    1: ("c", "a head was chosen out of many: chance has to choose its best too"),
    2: ("d", "whatever changes slowly has such a component"),
    3: ("a", "a column is a direction of the axes: would other axes show it?"),
    4: ("b", "attention is made of scores: would meaningless scores show it?"),
}


def check_rare(answer):
    """(1 + the number of chance values at least as large) / (1 + their number)."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda value, null: value - null.mean()")
    null = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    high, tie, low = (float(answer(value, null)) for value in (10.0, 9.0, 0.0))
    if high == 0:
        raise Wrong("nine throws cannot show that something never happens: count the value itself")
    if np.isclose(tie, high) and np.isclose(high, 0.1):
        raise Wrong("a throw that gives just as much counts too: at least, not more than")
    if low < high:
        raise Wrong("a value below all throws is not rare: this counts the throws that are smaller")
    if not np.allclose([high, tie, low], [0.1, 0.2, 1.0]):
        raise Wrong(
            f"for a value above nine throws you have {high:g}; wanted 1 of 10, itself included"
        )
    return "right: and with 9 throws nothing can be rarer than 1 in 10"


def check_controls(answer):
    """The control that fits each of four claims, as four letters."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, str) or len(answer) != 4 or not set(answer) <= set("abcd"):
        raise Wrong(f"{answer!r}: wanted four letters from a to d, such as 'abcd'")
    for given, (claim, (control, hint)) in zip(answer, CONTROLS.items()):
        if given != control:
            raise Wrong(f"claim {claim}: {hint}")
    return "right: each control makes the pattern without what the claim says"


def check_invariant(answer):
    """A number of queries and keys that no common rotation changes, but other queries do."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda q, k: q.mean()")
    rng = np.random.default_rng(0)
    q, k, other = rng.normal(size=(3, 20, 8))
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    pairs = (q, k), (q @ turn, k @ turn), (other, k)
    values = [np.asarray(answer(*pair), float) for pair in pairs]
    if values[0].shape != ():
        raise Wrong(f"the function gives {list(values[0].shape)}; wanted one number")
    own, turned, others = map(float, values)
    if not np.isclose(own, turned):
        raise Wrong(
            f"before the rotation it gives {own:.3g}, after it {turned:.3g}: what stays is a "
            "product of a query with a key, a length, an angle"
        )
    if np.isclose(own, others):
        raise Wrong("other queries give the same number: it says nothing about them")
    return "right: whatever the axes, it is the same"
