"""Effects of patches over many pairs, some pairs at a time.

N pairs, [...]: the pieces patched, R: unrelated pairs that are patched as the null, for each.
"""

import numpy as np

from minitx.circuits.effects import Effects, Patched

from ..maths import nulls

SIDES = "into_corrupt", "into_corrupt_null", "into_clean", "into_clean_null"
WAYS = {"restored": ("into_corrupt_null", "corrupt", "clean")}  # null, from where, to where
WAYS |= {"lost": ("into_clean_null", "clean", "corrupt")}


def values(name, effects, size):
    """The measure of each pair and of its patched runs, filled up to `size` pairs with NaN.

    So all groups of pairs have one shape.
    """
    record = {"clean": effects.clean, "corrupt": effects.corrupt}
    record |= {f"{name}_{side}": getattr(effects, side) for side in SIDES}
    return {key: _filled(x, size) for key, x in record.items()}


def names(parts):
    """The names of all that `values` gives of these parts."""
    return ["clean", "corrupt", *(f"{name}_{side}" for name in parts for side in SIDES)]


def _filled(x, n):
    missing = n - len(x)
    return np.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1), constant_values=np.nan)


def effects(name, by_pair, seed):
    """Effects of all pairs together, in both directions, with intervals and one null for each."""
    sides = [by_pair[f"{name}_{side}"] for side in SIDES]
    into_corrupt, into_clean = Patched(*sides[:2]), Patched(*sides[2:])
    whole = Effects(by_pair["clean"], by_pair["corrupt"], into_corrupt, into_clean, seed)
    null, lost_null = (x[..., 0] for x in (whole.null, whole.lost_null))
    return {
        f"restored_by_{name}": whole.effects,
        f"restored_by_{name}_null": null,
        f"restored_ends_{name}": whole.intervals,
        f"lost_by_{name}": whole.lost,
        f"lost_by_{name}_null": lost_null,
        f"lost_ends_{name}": whole.lost_intervals,
    }


def by_chance(parts, by_pair, way, seed):
    """What the best of all pieces of these parts restores or loses by chance in 99 of 100 cases.

    That of unrelated pairs, of which one is drawn for each pair.
    """
    null, *ends = WAYS[way]
    start, end = (by_pair[name] for name in ends)
    columns = []
    for name in parts:
        values = by_pair[f"{name}_{null}"]  # [N ... R]
        N, R = len(values), values.shape[-1]
        columns.append(np.moveaxis(values.reshape(N, -1, R), -1, 0) - start[:, None])
    return nulls.largest_of_partners(np.concatenate(columns, axis=-1) / (end - start).sum(), seed)
