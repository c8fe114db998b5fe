"""A function that fails once, as a disk that is full or Ctrl-C makes it."""

import itertools


def once(n, function, error, late=False):
    """The function, whose n-th call raises the error: before its work or, late, after it."""
    calls = itertools.count(1)

    def call(*arguments, **options):
        is_last = next(calls) == n
        if is_last and not late:
            raise error
        value = function(*arguments, **options)
        if is_last:
            raise error
        return value

    return call
