"""How many threads one matrix product takes."""

import os
from contextlib import contextmanager

import numpy as np

from minitx import threads


@contextmanager
def one_thread_of_blas():
    """One thread for each product, as for the commands, unless the user chose a number.

    Documents run side by side; threads inside one small product would only wait for each other:
    on two busy cores `rotation` took a minute instead of three seconds. SciPy's wheels have an
    OpenBLAS of their own.
    """
    if os.environ.get("OPENBLAS_NUM_THREADS", "1") != "1":  # Dask sets 1, too late for NumPy
        yield
        return
    from scipy.linalg import _fblas

    pairs = [threads.blas_functions(x) for x in (np.linalg._umath_linalg, _fblas)]
    before = [count() for count, _ in pairs]
    try:
        for _, limit in pairs:
            limit(1)
        yield
    finally:
        for (_, limit), n in zip(pairs, before):
            limit(n)
