"""What other seeds and kinds of a training show, from arrays kept beside its history.

FOLDER/seeds.safetensors holds, for each kind, "KIND.NAME" [N S ...], as `moments` names it. A kind
may have fewer seeds than the first one, with which they pair. N seeds, S snapshots. Order: the
file, when measures form, one kind beside another.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file

from ..maths import onsets
from .moments import MEASURES

FILE = "seeds.safetensors"
FIRST = "learned"  # the kind that the others are compared with
LEAVES = "gain"  # the measure that says when the loss leaves its plateau


class Compared(NamedTuple):
    """Kinds of a training, seed by seed."""

    kinds: dict  # {kind: {name: [N S ...]}}
    formed: dict  # {kind: {measure: steps [N]}}; nan: it did not form
    after: dict  # {measure: (mean, low, high)}: how many times later the loss left its plateau
    sooner: dict  # {kind: (mean, low, high)}: how many times later than FIRST its loss left it


def seeds_of(folder):
    """What lies beside a history: a Compared, or None."""
    path = Path(folder) / FILE
    return of_arrays(load_file(path)) if path.is_file() else None


def of_arrays(arrays):
    """The Compared of {"KIND.NAME": array}.

    >>> steps = np.array([[0, 10, 100]] * 3)
    >>> rising = np.array([[0.0, 0.0, 1.0]] * 3)
    >>> arrays = {f"{kind}.steps": steps for kind in ("learned", "rotary")}
    >>> arrays |= {f"{kind}.gain": rising for kind in ("learned", "rotary")}
    >>> arrays |= {f"{kind}.gain_null": 0 * rising for kind in ("learned", "rotary")}
    >>> compared = of_arrays(arrays)
    >>> compared.formed["rotary"]["gain"].round(), compared.sooner["rotary"].round(2)
    (array([32., 32., 32.]), array([1., 1., 1.]))
    """
    kinds = {}
    for key, x in arrays.items():
        kind, _, name = key.partition(".")
        kinds.setdefault(kind, {})[name] = x
    kinds = {kind: kinds[kind] for kind in sorted(kinds, key=lambda k: (k != FIRST, k))}
    formed = {kind: _formed(r) for kind, r in kinds.items()}
    own = formed[FIRST]
    after = {name: onsets.later(steps, own[LEAVES]) for name, steps in own.items()}
    sooner = {}
    for kind, of_kind in formed.items():
        steps = of_kind[LEAVES]
        sooner[kind] = onsets.later(own[LEAVES][: len(steps)], steps)
    return Compared(kinds, formed, after, sooner)


def _formed(r):
    """Steps at which each measure of one kind formed: {measure: [N]}."""
    steps = {}
    for m in MEASURES:
        if m.name in r:
            rows = zip(r["steps"], r[m.name], r[f"{m.name}_null"])
            steps[m.name] = np.array([onsets.formed(*row) for row in rows])
    return steps


def apart(a, b):
    """Difference a - b of curves over seeds that pair, and its interval: [N S] twice -> [3 S]."""
    return onsets.interval(np.asarray(a, np.float64) - np.asarray(b, np.float64))
