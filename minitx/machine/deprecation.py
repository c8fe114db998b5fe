"""How a name or a parameter goes away: it works, and warns, for one minor version first.

`deprecated("minitx.old goes with 1.2; use minitx.new")` marks a function, a method or a class; type
checkers know the mark (PEP 702). `renamed(old="new")` takes a parameter by its former name.
"""

import functools
import warnings

from typing_extensions import deprecated

__all__ = ["deprecated", "renamed"]


def renamed(**new_of):
    """Decorator former="new": calls may still give the parameter `new` by its former name.

    Such a call gives a DeprecationWarning; one with both names raises TypeError.

    >>> import warnings
    >>> @renamed(n="n_tokens")
    ... def generate(n_tokens):
    ...     return n_tokens
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     print(generate(n=3), seen[0].message)
    3 generate: n is called n_tokens now
    """

    def decorated(function):
        @functools.wraps(function)
        def call(*args, **given):
            for old in new_of.keys() & given.keys():
                new, name = new_of[old], function.__name__
                if new in given:
                    raise TypeError(f"{name} got {new!r}, and {old!r}, its former name")
                text = f"{name}: {old} is called {new} now"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                given[new] = given.pop(old)
            return function(*args, **given)

        call.__renamed__ = new_of
        return call

    return decorated
