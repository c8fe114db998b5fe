"""Effective numbers: of how many keys a row of attention is made, of how many directions a matrix.

T queries, S keys, n rows, D columns.
"""

import numpy as np
import scipy


def entropy(p):
    """Entropy of probabilities along the last axis, in nats: [... S] -> [...].

    e to it is the effective number: as many equally likely entries have this entropy.

    >>> entropy(np.array([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]])).round(3)
    array([1.386, 0.   ])
    """
    return scipy.special.entr(p).sum(axis=-1, dtype=np.float64)


def singular_values(x):
    """Singular values of [n D], largest first, by the eigenvalues of the smaller x^T x or x x^T.

    >>> singular_values(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
    array([4., 3.])
    """
    x = np.asarray(x, np.float64)
    n, D = x.shape
    gram = x.T @ x if n >= D else x @ x.T
    squares = scipy.linalg.eigvalsh(gram)[::-1]
    return np.sqrt(np.maximum(squares, 0))


def rank(s, n):
    """How many of singular values [r] are above the rounding of float32, in n rows or columns.

    n: the larger of the two. The bound is NumPy's: the largest times n times the machine's epsilon.

    >>> rank(np.array([2.0, 1.0, 1e-9]), 10)
    2
    """
    epsilon = np.finfo(np.float32).eps
    bound = s.max() * n * epsilon
    return int((s > bound).sum())


def effective_rank(s):
    """e to the entropy of singular values [r] over their sum (Roy and Vetterli 2007).

    >>> effective_rank(np.array([2.0, 2.0, 2.0, 0.0])).round(9)
    np.float64(3.0)
    """
    total = max(s.sum(), 1e-300)
    return np.exp(entropy(s / total))
