"""Checks of lesson 2, Weighing and mixing: rows that change, and the effective number."""

import numpy as np

from . import NOT_YET, Wrong

T, LAYERS = 16, 4  # pieces of the sentence, layers of deep-roberta


def check_silent(answer):
    """Rows of the last stream that change with one word, without attention."""
    if answer is ...:
        return NOT_YET
    if answer == T:
        raise Wrong("that needs attention: does an MLP see any row but its own?")
    if answer == LAYERS:
        raise Wrong("each of the four MLPs changes the same row")
    if answer == 0:
        raise Wrong("the row of the changed word itself begins with other numbers")
    if answer != 1:
        raise Wrong('run both texts with edits={"attn_out": np.zeros_like}, and compare the rows')
    return "right: without attention no word learns of another, however many MLPs follow"


def check_reach(answer):
    """Rows that change with one word, if attention sees one position each way in four layers."""
    if answer is ...:
        return NOT_YET
    hints = {
        3: "that is after one layer: the next one carries the change one position further",
        LAYERS + 1: "a change spreads to both sides",
        2 * LAYERS: "the row in the middle changes as well",
        T: "each layer carries a change by one position only",
        1: "that is without attention; now each row sees its neighbours",
    }
    if answer in hints:
        raise Wrong(hints[answer])
    if answer != 2 * LAYERS + 1:
        raise Wrong("one position to each side in each layer: how far is that after four?")
    return "right: depth carries a change further than any single layer sees"


def check_weights(answer):
    """Five positive weights with an effective number of 2."""
    if answer is ...:
        return NOT_YET
    p = np.asarray(answer, float)
    if p.shape != (5,):
        raise Wrong(f"wanted five weights; these have the shape {p.shape}")
    if (p <= 0).any():
        raise Wrong("every weight must be larger than 0")
    if abs(p.sum() - 1) > 1e-6:
        raise Wrong(f"the weights of a row have the sum 1; these have {p.sum():.3g}")
    number = np.exp(-(p * np.log(p)).sum())
    if number > 2.05:
        raise Wrong(f"{number:.2f}: too even; make the largest larger")
    if number < 1.95:
        raise Wrong(f"{number:.2f}: too uneven; make the largest smaller")
    return f"right: {number:.2f}, though all five take part"
