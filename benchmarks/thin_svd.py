"""How much faster the thin SVD of W_A = W_Q W_K^T is than the dense one, for all heads of a base model.

    python benchmarks/thin_svd.py

Both in turn in each round, on the same random weights in float32; what counts is the median of the ratios within
the rounds. The dense one is timed on a few heads, others in each round, and scaled to all of them.
"""
import os
import platform
import time

import numpy as np

from analysis import factors

HEADS, D, d = 144, 768, 64
DENSE, ROUNDS = 4, 15  # heads that the dense SVD is timed on in each round


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(heads=HEADS, D=D, d=d, dense=DENSE, rounds=ROUNDS):
    """Seconds for all heads, thin and dense, in each round: [rounds 2]. Asserts that both find the same values."""
    W_Q, W_K = np.random.default_rng(0).standard_normal((2, heads, D, d), dtype=np.float32)
    some = np.arange(rounds * dense).reshape(rounds, dense) % heads

    def thin():
        thin.S = factors.svd(W_Q, W_K)[1]

    def full(part):
        full.S = np.array([np.linalg.svd(W_Q[i] @ W_K[i].T)[1][:d] for i in part])
    thin(), full(some[0])  # the first call of either is not timed
    times = []
    for part in some:
        times.append((seconds(thin), seconds(lambda: full(part)) * heads / dense))
        assert np.abs(full.S - thin.S[part]).max() < 1e-5 * full.S.max()  # measured 1e-6: float32
    return np.array(times)


def main():
    times = compare()
    ratios = times[:, 1] / times[:, 0]
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    names = "thin, one call", f"dense, {DENSE} heads timed, scaled by {HEADS // DENSE}"
    print(f"{HEADS} heads of {D} x {d}, float32, {ROUNDS} rounds; seconds for all heads, median (range)")
    for name, column in zip(names, times.T):
        print(f"  {name:36}{np.median(column):8.2f}  ({column.min():.2f} to {column.max():.2f})")
    print(f"  ratio dense / thin{'':18}{np.median(ratios):8.1f}  ({ratios.min():.1f} to {ratios.max():.1f})")
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "not limited")
    print(f"{platform.machine()}, {os.cpu_count()} cores, BLAS threads {threads}, "
          f"Python {platform.python_version()}, NumPy {np.__version__}, {blas['name']} {blas['version']}")


if __name__ == "__main__":
    main()
