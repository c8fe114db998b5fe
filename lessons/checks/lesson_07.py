"""Checks of lesson 7: the matrix of one wave, the turn that looks left, frequency and period."""

import numpy as np

import minitx

from . import NOT_YET, Wrong

ANGLE, LEFT, LOWEST = 0.5, 5, 50


def check_matrix(answer):
    """R with [sin x, cos x] @ R = [sin(x + 0.5), cos(x + 0.5)]."""
    if answer is ...:
        return NOT_YET
    R = np.asarray(answer, float)
    if R.shape != (2, 2):
        raise Wrong(f"wanted a matrix of two rows and two columns; yours is {list(R.shape)}")
    x = np.linspace(0, 6, 50)
    points, wanted = (np.column_stack([np.sin(y), np.cos(y)]) for y in (x, x + ANGLE))
    if np.allclose(points @ R.T, wanted, atol=1e-3):
        raise Wrong("transposed: the row [sin x, cos x] is on the left of the matrix")
    if np.allclose(R, R[0, 0] * np.eye(2)):
        raise Wrong("sin(x + a) = sin x cos a + cos x sin a: both entries of the row are needed")
    if not np.allclose(points @ R, wanted, atol=1e-3):
        raise Wrong("not that: the columns are what sin(x + a) and cos(x + a) take of each entry")
    return "right: to move a wave is to turn it."


def check_look_left(answer):
    """k with which each position looks five to the left."""
    if answer is ...:
        return NOT_YET
    if answer == LEFT:
        raise Wrong("that looks five to the right: print the offsets")
    if answer != -LEFT:
        raise Wrong("turn(3) looked at offset +3; which turn goes to offset -5?")
    return "right: a turn back is a look to the left."


def check_period(answer):
    """(frequency, positions from crest to crest) of the highest fast amplitude of tiny-roberta."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise Wrong("wanted a pair: (frequency, positions)")
    cfg, W_pos = (getattr(minitx.load("tiny-roberta"), x) for x in ("config", "weights"))
    table = W_pos.W_pos[cfg.offset : cfg.offset + cfg.n_ctx]
    wanted = LOWEST + np.abs(np.fft.rfft(table, axis=0)).mean(axis=1)[LOWEST:].argmax()
    frequency, places = answer
    if frequency == wanted - LOWEST:
        raise Wrong("argmax counts from where the slice begins: add what you cut off")
    if frequency != wanted:
        raise Wrong("another frequency is higher: spectrum(P)[50:].argmax() + 50")
    if abs(places - frequency / len(table)) < 1e-2:
        raise Wrong("those are cycles per position; wanted are positions per cycle")
    if abs(places - len(table) / frequency) > 0.05:
        raise Wrong(f"divide the {len(table)} positions by the number of cycles")
    return "right: hardly three words from crest to crest."
