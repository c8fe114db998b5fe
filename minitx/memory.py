"""What the C library keeps of freed memory for the next arrays.

A forward pass makes and frees the same few large arrays in every layer. By default, glibc returns
each of them to the system, which then has to clear new memory: this takes 6 to 29% of a pass. Two
settings of glibc avoid this without code of our own; they are changed when a model is loaded, never
at import.
"""

import ctypes
import os
from contextlib import contextmanager

KEPT = 1 << 28  # bytes of freed memory that stay with the process at most
LARGEST = 1 << 25  # bytes of an array that may lie in such memory; glibc allows no more
# names and numbers of glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -3, -4, -8
MAPPED = 1 << 16  # glibc's own number of arrays that may lie in memory of their own


def keep_freed_memory(kept=KEPT):
    """Let glibc keep up to `kept` bytes of freed memory; 0 gives back what it can at once.

    Does nothing with another C library, or where the environment sets glibc's memory already
    (MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES and the like).
    """
    libc = allocator()
    if libc is None:
        return
    libc.mallopt(M_MMAP_THRESHOLD, LARGEST)
    libc.mallopt(M_TRIM_THRESHOLD, kept)
    if not kept:
        libc.malloc_trim(0)


def share_freed_memory():
    """Let all threads take memory from one place, before there are any.

    By itself glibc gives each a place of its own, in which what it freed stays.
    """
    libc = allocator()
    if libc is not None:
        libc.mallopt(M_ARENA_MAX, 1)


def give_back():
    """Return what was freed to the system, also from between arrays that are in use."""
    libc = allocator()
    if libc is not None:
        libc.malloc_trim(0)


@contextmanager
def all_freed_memory_kept():
    """Inside `with`, nothing that was freed goes back to the system, arrays above LARGEST neither.

    Each step of learning makes the arrays of the one before; where an attention pattern has 32 MB
    or more, clearing new memory takes a fifth to a quarter of a step. At the end the rest is given
    back, and it is again as `keep_freed_memory` has it.
    """
    libc = allocator()
    if libc is None:
        yield
        return
    try:
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, -1)
        yield
    finally:
        libc.mallopt(M_MMAP_MAX, MAPPED)
        keep_freed_memory()
        libc.malloc_trim(KEPT)


def allocator():
    """The C library, if it is glibc and the environment has not set its memory; else None."""
    libc = ctypes.CDLL(None)
    decided = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    return None if decided or not hasattr(libc, "mallopt") else libc
