"""Does minitx.from_transformers give the arrays of minitx.load? On all golden folders, with torch.

    python tests/tools/in_memory.py [WORD ...]    only folders whose name has one of the words

The library reads a folder, minitx takes its model from memory, and every array is compared with
what minitx reads from the files. Exit code 0 only if all are equal.
"""

import sys

import numpy as np
from parity import GOLDEN, VARIANTS

import minitx
from minitx.analysis.parity import library
from minitx.parameters import parameters


def main(words):
    """Compare the selected folders; exit code 0 if all arrays are equal."""
    folders = [name for name in VARIANTS if not words or any(word in name for word in words)]
    failures = [name for name in folders if not is_equal(name)]
    print(f"{len(folders) - len(failures)} of {len(folders)} folders: the same arrays")
    sys.exit(bool(failures))


def is_equal(name):
    """Whether a golden folder read through the library gives the arrays of its files."""
    folder = GOLDEN / name
    try:
        own = minitx.load(folder, dtype="float64")
        theirs = minitx.from_transformers(library.load(folder), None, "float64")
    except (ValueError, OSError) as error:
        print(f"{name}: {error}")
        return False
    wrong = differences(parameters(own), parameters(theirs))
    if wrong:
        print(f"{name}: {', '.join(map(str, wrong[:6]))}")
    return not wrong


def differences(ours, theirs):
    """Names of arrays that differ."""
    names = ours.keys() | theirs.keys()
    return [name for name in names if not is_same(ours.get(name), theirs.get(name))]


def is_same(a, b):
    """Whether two arrays are equal; a bias of zeros may be missing from a file."""
    if a is None or b is None:
        return not np.any(a if b is None else b)
    return np.array_equal(a, b)


if __name__ == "__main__":
    main(sys.argv[1:])
