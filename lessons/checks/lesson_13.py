"""Checks of lesson 13: the push on a matrix, the rule of another norm, rows that get a push."""

from functools import cache

import numpy as np

import minitx

from . import NOT_YET, Wrong
from .arrays import is_close, needs_function, refuse

T, D, M = 5, 4, 3
TEXT, WANTED = "The <mask> came home.", " man"


def check_matrix(answer):
    """The push on W in y = x W: x^T dy."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda x, dy: x + dy")
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(T, D)), rng.normal(size=(T, M))
    got, right = _called(answer, x, dy), x.T @ dy
    refuse(got, right.T, "this is [M D]: turned on its side, it is right")
    refuse(got, right / T, "this is a mean over tokens: each token adds its push, nothing divides")
    if np.shape(got) != right.shape:
        shape = list(np.shape(got))
        raise Wrong(f"the function gives {shape}; wanted the shape of W, {[D, M]}: x on its side?")
    if not is_close(got, right):
        raise Wrong("W[i, j] takes x[t, i] to y[t, j], for each token t: what does it get of each?")
    return "right: every token adds its own x times its own push"


def check_norm(answer):
    """The rule of y = x / sqrt(mean of x^2): (dy - y mean(y dy)) / sqrt(mean of x^2)."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda dy, x: dy * x")
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(T, D)), rng.normal(size=(T, D))
    got = _called(answer, dy, x)
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True))
    y = x * scale
    along = y * (y * dy).mean(axis=-1, keepdims=True)
    if np.shape(got) != x.shape:
        raise Wrong(f"the function gives {list(np.shape(got))}; wanted the shape of x, {[T, D]}")
    refuse(got, scale * dy, "a longer x gives the same y: the push along the row has to go")
    refuse(got, scale * (dy - D * along), "this takes off a sum over the row where a mean belongs")
    refuse(got, dy - along, "x is divided by its size; so is what arrives there")
    mean = dy.mean(axis=-1, keepdims=True)
    refuse(got, scale * (dy - mean - along), "the mean of dy stays: this norm takes no mean off x")
    if not is_close(got, scale * (dy - along)):
        left = abs((np.asarray(got) * x).sum(axis=-1)).max()
        raise Wrong(f"nudging disagrees; the push along a row should be 0, and is up to {left:.2g}")
    return "right: only what is across the row arrives"


def check_rows(answer):
    """How many rows of W_pos get a push when one hidden word of a short text is asked."""
    if answer is ...:
        return NOT_YET
    n_pushed, n_tokens, n_rows = counts()
    if answer == n_rows:
        raise Wrong("all rows of the table: what would a row tell the loss that nobody read?")
    if answer == 1:
        raise Wrong(
            "only that of the hidden word: but it looked at others, and read their positions"
        )
    if answer == n_tokens - 2:
        raise Wrong("the marks of beginning and end are tokens too, and have positions")
    if answer != n_pushed:
        raise Wrong(f"{answer!r} is not it: count the tokens of the text, or let the kit count")
    return f"right: {n_pushed} of {n_rows}, one for each token"


@cache
def counts():
    """Rows of the table with a push, tokens of the text, rows of the table."""
    model = minitx.load("tiny-roberta")
    ids = model.tokenizer.encode(TEXT)
    mask = model.tokenizer.encode("<mask>")[1]
    targets = np.where(ids == mask, model.tokenizer.encode(WANTED)[1], -100)
    push = minitx.gradients(model, ids, targets, "W_pos")["W_pos"]
    return int((push != 0).any(axis=1).sum()), len(ids), len(push)


def _called(answer, *arrays):
    """What a function gives; Wrong where its shapes do not go together."""
    try:
        return answer(*(x.copy() for x in arrays))
    except ValueError as error:
        raise Wrong(f"shapes do not go together: {error}") from None
