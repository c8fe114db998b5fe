"""What the C library keeps of freed memory for the next arrays.

A forward pass makes and frees the same few large arrays in every layer. By default, glibc returns
each of them to the system, which then has to clear new memory: this takes 6 to 29 % of a pass. Two
settings of glibc avoid this without code of our own; they are changed when a model is loaded, never
at import.
"""

import ctypes
import os

KEPT = 1 << 28  # bytes of freed memory that stay with the process at most
LARGEST = 1 << 25  # bytes of an array that may lie in such memory; glibc allows no more
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names and numbers of glibc's malloc.h


def keep_freed_memory(kept=KEPT):
    """Let glibc keep up to `kept` bytes of freed memory; 0 gives back what it can at once.

    Does nothing with another C library, or where the environment sets glibc's memory already
    (MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES and the like).
    """
    libc = ctypes.CDLL(None)
    decided = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if decided or not hasattr(libc, "mallopt"):
        return
    libc.mallopt(M_MMAP_THRESHOLD, LARGEST)
    libc.mallopt(M_TRIM_THRESHOLD, kept)
    if not kept:
        libc.malloc_trim(0)
