"""Checks of lesson 3, What a head cuts: columns that read, rows that write."""

import numpy as np

from . import NOT_YET, Wrong
from .arrays import is_close, refuse

HEAD, D_HEAD = 2, 32
OWN = slice(HEAD * D_HEAD, (HEAD + 1) * D_HEAD)


def check_columns(answer, W_Q):
    """The part of W_Q [D D] that belongs to head 2."""
    if answer is ...:
        return NOT_YET
    answer = np.asarray(answer)
    rows = "these are rows: they belong to numbers of the stream, which all heads read"
    refuse(answer, W_Q[OWN], rows)
    refuse(answer, W_Q[OWN, OWN], "that would be drawing A: it reads only a slice of the row")
    refuse(answer, W_Q[:, 32:64], "the first head is head 0: these columns are head 1's")
    refuse(answer, W_Q[:, 96:], "the first head is head 0: these columns are head 3's")
    refuse(answer, W_Q, "that is the whole matrix, of all heads")
    if not is_close(answer, W_Q[:, OWN]):
        raise Wrong(f"the shape is {answer.shape}; wanted all 128 rows, and 32 columns")
    return "right: all 128 numbers are read, 32 come out"


def check_swap(answer):
    """Heads that look elsewhere when columns 5 and 40 of W_Q and W_K are swapped."""
    if answer is ...:
        return NOT_YET
    heads = set(answer if isinstance(answer, set) else np.ravel(answer).tolist())
    if not heads:
        raise Wrong("that would be so if both columns were the same head's; 40 is not head 0's")
    if heads == {0, 1, 2, 3}:
        raise Wrong("the columns of heads 2 and 3 begin at 64: nothing of theirs has changed")
    if len(heads) == 1:
        raise Wrong("two columns are swapped: look at both of them")
    if heads != {0, 1}:
        raise Wrong("a head has 32 columns: whose is column 5, and whose is column 40?")
    return "right: 5 is head 0's and 40 head 1's; a swap within one head changes nothing"


def check_written(answer, z, W_O):
    """What head 1 writes, from z [H T d] and W_O [H d, D]."""
    if answer is ...:
        return NOT_YET
    right = z[1] @ W_O[32:64]
    answer = np.asarray(answer)
    if answer.shape == z[1].shape:
        raise Wrong(f"the shape is {answer.shape}: a head writes to all {right.shape[1]} numbers")
    if answer.shape != right.shape:
        raise Wrong(f"the shape is {answer.shape}; wanted a row for each token, {right.shape}")
    refuse(answer, z[0] @ W_O[:32], "the first head is head 0: this is head 0")
    refuse(answer, z[2] @ W_O[64:96], "the first head is head 0: this is head 2")
    refuse(answer, z[1] @ W_O[:32], "the numbers are head 1's, the rows of W_O are not")
    refuse(answer, z[1] @ W_O[:, 32:64].T, "a head owns rows of W_O, not columns")
    if not is_close(answer, right):
        raise Wrong("take z[1] and the 32 rows of W_O that are head 1's, and no bias")
    return "right: 32 numbers become 128, added to the stream"
