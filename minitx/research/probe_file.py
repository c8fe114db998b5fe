"""What a probe's file holds: the values that it states, and its arrays. F features, K classes."""

from math import isfinite

import numpy as np
from safetensors import safe_open

from ..learning.saved import check_record, is_list_of, record_of_state
from .passes import POOLS


def is_number(x):
    """Whether a value of JSON is a finite number."""
    is_kind = type(x) in (int, float)
    return is_kind and isfinite(x)


def is_pair(x, first, second):
    """Whether a value of JSON is a list of one value of each kind."""
    if not isinstance(x, list):
        return False
    kinds = [type(value) for value in x]
    return kinds == [first, second]


def are_numbers(x):
    """Whether a value of JSON is a list of finite numbers, one or more."""
    if not isinstance(x, list):
        return False
    return x != [] and all(map(is_number, x))


def are_classes(x):
    """Whether a value of JSON is a list of two classes or more, all of one kind."""
    kinds = str, int, bool
    is_list = any(is_list_of(kind, x) for kind in kinds)
    return is_list and len(x) > 1


def is_point(x):
    """Whether a value of JSON is a point: a name, or a name and a layer."""
    if isinstance(x, str):
        return True
    return is_pair(x, str, int)


FORMAT = "minitx probe 1"
STATED = {  # in a probe's file, and whether a value is of the right kind
    "point": is_point,
    "token": lambda x: x in [*POOLS, "each"],
    "classes": are_classes,
    "accuracy": is_number,
    "interval": lambda x: is_pair(x, float, float) and are_numbers(x),
    "null": is_number,
    "shuffled": are_numbers,
    "untrained": lambda x: x is None or is_number(x),
    "verdict": lambda x: isinstance(x, str),
    "penalty": is_number,
}


def read_file(path):
    """What a file states of a probe, and its arrays. Raises ValueError for no saved probe."""
    stated = record_of_state(path, "a saved probe")
    if stated.pop("format", None) != FORMAT:
        raise ValueError(f"{path} is not a saved probe: its format is not {FORMAT!r}")
    check_record(path, stated, STATED)
    if unknown := stated.keys() - STATED:
        raise ValueError(f"{path} is damaged: it has {min(unknown)!r:.80}")
    if lost := STATED.keys() - stated:
        raise ValueError(f"{path} is damaged: it has no {min(lost)!r}")
    with safe_open(path, "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
    check_arrays(path, arrays, len(stated["classes"]))
    for name in ("point", "interval"):
        if isinstance(stated[name], list):  # JSON has no tuples
            stated[name] = tuple(stated[name])
    return stated, arrays


def check_arrays(path, arrays, K):
    """Raises ValueError unless the arrays in a file are finite, and of K classes."""
    F = 0
    if "mean" in arrays:
        F = arrays["mean"].size
    wanted = {
        "W": (F + 1, K),
        "mean": (F,),
        "scale": (F,),
    }
    given = {name: x.shape for name, x in sorted(arrays.items())}
    damaged = f"{path} is damaged"
    if F == 0 or given != wanted:
        text = f"arrays are {given!s:.200}; wanted {wanted}"
        raise ValueError(f"{damaged}: {text}")
    for name, x in arrays.items():
        is_right = x.dtype == np.float64 and np.isfinite(x).all()
        if not is_right:
            raise ValueError(f"{damaged}: {name} is not float64, or not finite")
    if arrays["scale"].min() <= 0:
        raise ValueError(f"{damaged}: scale has numbers that are not above 0")
