"""Checks of lesson 6: which row asks, steering by position, rows that a cache saves."""

from numbers import Integral

import minitx

from . import NOT_YET, Wrong

TEXT, WRITTEN, TARGET = "3 May 1912", 3, "5"
STEPS = 100


def check_row(answer):
    """The row that asks when the month's 6 of 1969-06-21 is written."""
    if answer is ...:
        return NOT_YET
    if answer == 8:
        raise Wrong("that row has read the 6: it asks for what comes after it")
    if answer == 6:
        raise Wrong("do not forget that </s> and <s> are rows too")
    if answer in (3, 4):
        raise Wrong("that is the 6 of the year; wanted is the month's")
    if answer != 7:
        raise Wrong("write down what each row has read: </s> <s> 1 9 6 9 - 0; who writes the 6?")
    return "right: the row of the 0 asks, the one before."


def check_place(answer):
    """The position that the 1 must have for the model to write the 5 of May."""
    if answer is ...:
        return NOT_YET
    model = minitx.load("tiny-bart")
    if not isinstance(answer, Integral) or not 0 <= answer < model.config.n_ctx:
        raise Wrong(f"wanted a position: a whole number from 0 to {model.config.n_ctx - 1}")
    ids = minitx.generate(model, source=TEXT)[:WRITTEN]
    keep = {"keep": ["logits"], "source": TEXT, "positions": [0, 1, answer]}
    following = minitx.run(model, ids, **keep)["logits"][0, -1].argmax()
    piece = model.tokenizer.pieces([following])[0]
    if piece != TARGET:
        raise Wrong(
            f"from position {answer} it writes {piece}; the 5 is a character of 1912-05-03: "
            "count its positions, of which 0 and 1 hold </s> and <s>"
        )
    return "right: it writes the character that follows this position."


def check_rows(answer):
    """Rows that 100 steps compute (without, with) a cache."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise Wrong("wanted a pair: (rows without a cache, rows with one)")
    without, with_cache = answer
    if (with_cache, without) == (sum(range(1, STEPS + 1)), STEPS):
        raise Wrong("the other way round: a cache saves rows")
    if with_cache != STEPS:
        raise Wrong("with a cache a step computes one row, that of the newest token")
    if without == STEPS**2:
        raise Wrong("step n has n rows, not all 100 of them: the others are not written yet")
    if without != sum(range(1, STEPS + 1)):
        raise Wrong("without a cache step n computes n rows: 1 + 2 + 3 + …")
    return "right: the number grows quadratically without a cache, linearly with one."
