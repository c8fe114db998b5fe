"""Checks of lesson 1, One stream, two writers: weights, work, and the stream as a sum."""

import numpy as np

from . import NOT_YET, Wrong
from .arrays import is_close, refuse

D, M, HEADS = 768, 3072, 12  # roberta-base and GPT-2
OF_WEIGHTS = {  # wrong answer: hint
    D * D: "that is one matrix: there are W_Q, W_K, W_V and W_O",
    3 * D * D: "W_O is missing: it brings back to the stream what the heads have mixed",
    4 * D: "a square matrix with 768 columns has 768 rows too",
    4 * D * D // HEADS: "that is one head; the matrices are those of all heads together",
    4 * D * D + 4 * D: "with the biases; asked are the matrices alone",
    2 * D * M: "that is the MLP",
}
OF_WORK = {
    2 * M: "comparing takes T D, and mixing takes T D again: 2 T D in all",
    M // 2: "the MLP has two matrices as well, so 2 D M; and leave out those of attention",
    D: "solve 2 T D = 2 D M for T",
}


def check_attention(answer):
    """Weights of the four matrices of attention, D wide."""
    if answer is ...:
        return NOT_YET
    if answer in OF_WEIGHTS:
        raise Wrong(OF_WEIGHTS[answer])
    if answer != 4 * D * D:
        raise Wrong("four square matrices, each with 768 rows and 768 columns: how many numbers?")
    return "right: the MLP has twice as many"


def check_crossing(answer):
    """Tokens for which comparing and mixing take as much work as the MLP."""
    if answer is ...:
        return NOT_YET
    if answer in OF_WORK:
        raise Wrong(OF_WORK[answer])
    if answer != M:
        raise Wrong("set 2 T D equal to 2 D M, and look what is left of it")
    return "right: T = M, and GPT-2 reads at most 1024 tokens, so it never gets there"


def check_stream(answer, trace):
    """The stream behind the attention of layer 2, from a trace with all that was written."""
    if answer is ...:
        return NOT_YET
    right = trace["resid_mid", 2]
    answer = np.asarray(answer)
    if answer.shape == right.shape[1:]:
        answer = answer[None]
    if answer.shape != right.shape:
        raise Wrong(f"the shape is {answer.shape}; wanted {right.shape}, that of the stream")
    refuse(answer, trace["resid_post", 2], "the MLP of layer 2 comes later")
    refuse(answer, trace["resid_pre", 2], "the attention of layer 2 is missing")
    refuse(answer, right - trace["pos_embed"], "the rows of the positions, pos_embed, are missing")
    refuse(answer, trace["resid_mid", 1], "the first layer is layer 0: this is layer 1")
    refuse(answer, trace["resid_mid", 3], "the first layer is layer 0: this is layer 3")
    if not is_close(answer, right):
        raise Wrong("add embed, pos_embed, both writers of layers 0 and 1, one writer of layer 2")
    return "right: two tables and five writers, and nothing else"
