"""Checks of lesson 4, Query, key, value: a head by hand, a rank, and cross-attention."""

import numpy as np

from . import NOT_YET, Wrong
from .arrays import is_close, refuse

HEAD, D_HEAD, D = 2, 32, 128  # of tiny-gpt2
T, S = 6, 13  # tokens that were said, tokens of the source


def check_pattern(answer, trace):
    """The attention of head 2 in layer 0, from a trace with queries, keys and patterns."""
    if answer is ...:
        return NOT_YET
    answer, right = np.asarray(answer), trace["pattern", 0][0, HEAD]
    if answer.shape != right.shape:
        raise Wrong(f"the shape is {answer.shape}; wanted a row and a column for each token")
    q, k = trace["q", 0][0, HEAD], trace["k", 0][0, HEAD]
    scores, hidden = q @ k.T, np.triu(np.full(right.shape, -np.inf), 1)
    root = np.sqrt(D_HEAD)
    sums = "these are the scores; A is their softmax, with rows of the sum 1"
    refuse(answer, scores / root, sums)
    refuse(answer, softmax(scores / root), "tokens look at later tokens: mask those first")
    refuse(answer, softmax(scores + hidden), "divide the scores by the root of 32")
    refuse(answer, softmax(scores / D_HEAD + hidden), "divide by the root of 32, not by 32")
    refuse(answer, softmax(scores.T / root + hidden), "keys ask queries here: it is Q @ K.T")
    for pattern in np.delete(trace["pattern", 0][0], HEAD, axis=0):
        refuse(
            answer, pattern, "these are the weights of another head; head 2 has columns 64 to 95"
        )
    if not np.allclose(answer.sum(axis=1), 1, atol=1e-3):
        raise Wrong("each row must have the sum 1: divide by the sum over axis=1")
    if not is_close(answer, right):
        raise Wrong("the rows have the sum 1, but the weights are others: columns, biases?")
    return "right: a head in four lines"


def check_rank(answer):
    """The rank of W_Q W_K^T of one head."""
    if answer is ...:
        return NOT_YET
    if answer == D:
        raise Wrong("it is made of W_Q and W_K, which have 32 columns each: can it be more?")
    if answer == D * D:
        raise Wrong("that is how many numbers it has")
    if answer == 2 * D_HEAD:
        raise Wrong("the columns of W_Q and W_K are multiplied, not put side by side")
    if answer != D_HEAD:
        raise Wrong("numpy.linalg.matrix_rank tells, with float64; compare with a head's columns")
    return "right: a head compares 32 features of a token, of 128"


def check_rows(answer):
    """Rows of queries, keys and values in cross-attention, for 6 tokens said and 13 read."""
    if answer is ...:
        return NOT_YET
    rows = tuple(int(x) for x in np.ravel(answer))
    if len(rows) != 3:
        raise Wrong(f"wanted three numbers, of queries, keys and values; these are {len(rows)}")
    q, k, v = rows
    if k != v:
        raise Wrong("each key belongs to a value: they come from the same rows")
    if rows == (S, T, T):
        raise Wrong("it is what was said so far that asks, and the source that is looked at")
    if q == k:
        raise Wrong("that is self-attention; here the queries come from the other stream")
    if rows != (T, S, S):
        raise Wrong("a row for each token: 6 tokens ask, 13 are looked at")
    return "right: two inputs, and still three matrices"


def softmax(scores):
    """e to the scores, divided by the sum of each row."""
    x = np.exp(scores - scores.max(axis=1, keepdims=True))
    return x / x.sum(axis=1, keepdims=True)
