"""How many threads one matrix product takes."""

import os
from contextlib import contextmanager

import threadpoolctl


def limit(n):
    """Products take n threads, NumPy's and SciPy's, whose wheels have a BLAS each.

    As a context it ends with the numbers that were before.
    """
    import scipy.linalg  # noqa: F401  (a BLAS that comes later is not limited)

    return threadpoolctl.threadpool_limits(n, user_api="blas")


@contextmanager
def one_thread_of_blas():
    """One thread for each product, as for the commands, unless the user chose a number.

    Documents run side by side; threads inside one small product would only wait for each other:
    on two busy cores `rotation` took a minute instead of three seconds.
    """
    if os.environ.get("OPENBLAS_NUM_THREADS", "1") != "1":  # Dask sets 1, too late for NumPy
        yield
        return
    with limit(1):
        yield
