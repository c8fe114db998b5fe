"""Values that a page sends: each function checks one kind and says what was wanted."""

import numbers
import sys

MOST = 4096  # tokens of a shift, at most, and layers or heads in a list: no model here has more
LARGEST = sys.float_info.max  # a whole number may be larger, and then is no float


def one_of(name, value, choices):
    """The value, one of the choices; ValueError if it is none of them."""
    if value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} is {value!r:.80}; wanted one of {wanted}")
    return value


def whole(name, value, least, most):
    """The value, a whole number from least to most; ValueError if it is none."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        raise ValueError(f"{name} is {value!r:.80}; wanted a whole number from {least} to {most}")
    return int(value)


def known_keys(name, values, known):
    """Raise ValueError for a key that nothing reads."""
    for key in values:
        if key not in known:
            raise ValueError(f"{name} have no {key!r:.80}; available: {', '.join(known)}")


def finite(name, values):
    """Finite numbers as a tuple; ValueError for anything else."""
    check_list(name, values)
    for value in values:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or not abs(value) <= LARGEST:  # False of NaN
            raise ValueError(f"{name} are {values!r:.80}; wanted finite numbers")
    return tuple(map(float, values))


def heads(name, values):
    """Pairs (layer, head), each once, in order; ValueError for anything else."""
    check_list(name, values)
    for pair in values:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"{name} has {pair!r:.80}; wanted pairs [layer, head]")
    pairs = {tuple(whole("a layer or head", n, 0, MOST) for n in pair) for pair in values}
    return tuple(sorted(pairs))


def layers(name, values):
    """Numbers of layers, each once, in order; ValueError for anything else."""
    check_list(name, values)
    return tuple(sorted({whole("a layer", n, 0, MOST) for n in values}))


def check_list(name, values):
    """Raise ValueError unless it is a list or tuple, and not a long one."""
    if not isinstance(values, list | tuple) or len(values) > MOST:
        raise ValueError(f"{name} is {values!r:.80}; wanted a list of at most {MOST}")
