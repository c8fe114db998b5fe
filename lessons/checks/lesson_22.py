"""Checks of lesson 22: a pentagon, the bias that silences neighbours, the cost of holding few."""

import numpy as np

from . import NOT_YET, Wrong
from .arrays import needs_function

N, M = 5, 2
NEIGHBOUR = np.cos(2 * np.pi / N)  # of two neighbours in the pentagon
NEAR = 0.005
ASKED = (5, 2, 1.0), (5, 2, 0.1), (20, 3, 0.3)
LIKELY = (  # wrong costs -> hint
    (lambda n, m, p: m * (p / 3 - p**2 / 4), "these are the features held; the others cost"),
    (lambda n, m, p: n * (p / 3 - p**2 / 4), "this is the cost of holding none"),
    (lambda n, m, p: (n - m) * p / 3, "this says 0 for the others; their mean costs less"),
    (lambda n, m, p: (n - m) / 12, "this is so where a feature is always there; now it may be 0"),
    (lambda n, m, p: (n - m) * p / 12, "when it is absent, the mean that is said is wrong, too"),
    (lambda n, m, p: p / 3 - p**2 / 4, "this is the cost of one feature"),
)


def check_pentagon(answer):
    """Five columns of length 1, 72° apart."""
    if answer is ...:
        return NOT_YET
    W = np.asarray(answer, float)
    if W.shape != (M, N):
        raise Wrong(f"wanted [{M}, {N}], a column for each feature; this is {list(W.shape)}")
    lengths = np.linalg.norm(W, axis=0)
    if not np.allclose(lengths, 1, atol=NEAR):
        raise Wrong(f"columns of lengths {lengths.min():.2f} to {lengths.max():.2f}; wanted 1")
    angles = np.sort(np.degrees(np.arctan2(W[1], W[0])) % 360)
    gaps = np.diff([*angles, angles[0] + 360])
    if not np.allclose(gaps, 360 / N, atol=0.5):
        raise Wrong(f"the nearest two are {gaps.min():.0f}° apart; wanted {360 / N:.0f}° for all")
    return "right: each has two near neighbours, and two that are far"


def check_bias(answer):
    """-cos 72°: what a neighbour reads is just silenced."""
    if answer is ...:
        return NOT_YET
    b = float(answer)
    if abs(b + NEIGHBOUR) <= NEAR:
        return f"right: what is there reads {1 + b:.2f} in place of 1, the others 0"
    if abs(b - NEIGHBOUR) <= NEAR:
        raise Wrong("the bias is added, so it must be negative")
    if b > -NEIGHBOUR:
        raise Wrong(f"the neighbours still read {NEIGHBOUR + b:.2f}: go lower")
    raise Wrong(f"all others are silent, but {-NEIGHBOUR - b:.2f} less would do: go higher")


def check_cost(answer):
    """(n - m) times the variance of a feature, p/3 - p²/4."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda n, m, p: n - m")
    for n, m, p in ASKED:
        given, wanted = float(answer(n, m, p)), (n - m) * (p / 3 - p**2 / 4)
        if np.isclose(given, wanted):
            continue
        said = f"n = {n}, m = {m}, p = {p:g}: {given:.4g} is not it"
        for wrong, hint in LIKELY:
            if np.isclose(given, wrong(n, m, p)):
                raise Wrong(f"{said}; {hint}")
        raise Wrong(f"{said}; each of the {n - m} others costs its variance")
    return "right: the mean of the square, less the square of the mean"
