"""Effects of patches over many pairs, some pairs at a time.

N pairs, [...]: the pieces patched, R: unrelated pairs that are patched as the null, for each.
"""

import numpy as np

from minitx.circuits.effects import Effects, Patched

from ..maths import nulls

TOGETHER = 16  # pairs in one pass
SIDES = "into_corrupt", "into_corrupt_null", "into_clean", "into_clean_null"
WAYS = {"restored": ("into_corrupt_null", "corrupt", "clean")}  # null, from where, to where
WAYS |= {"lost": ("into_clean_null", "clean", "corrupt")}


def by_pair(asked, parts, patched, what, run):
    """The measure of each pair and of its patched runs: {"clean", "corrupt", …: [N …]}.

    asked: the pairs. patched(part, group): the effects of one of these parts on some pairs.
    """
    N = len(asked.clean)
    size = min(TOGETHER, N)

    def measure(_, group):
        record = {}
        for part in parts:
            effects = patched(part, group)
            record |= {"clean": effects.clean, "corrupt": effects.corrupt}
            record |= {f"{part}_{side}": getattr(effects, side) for side in SIDES}
        return {name: _filled(x, size) for name, x in record.items()}

    keep = ["clean", "corrupt", *(f"{part}_{side}" for part in parts for side in SIDES)]
    groups = run.gather(measure, asked.groups(size), what, keep=keep)
    return {name: np.concatenate([*x])[:N] for name, x in groups.items()}


def _filled(x, n):
    """The same with NaN up to n pairs, so that all groups have one shape."""
    missing = n - len(x)
    return np.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1), constant_values=np.nan)


def effects(name, values, seed):
    """Effects of all pairs together, in both directions, with intervals and one null for each."""
    sides = [values[f"{name}_{side}"] for side in SIDES]
    into_corrupt, into_clean = Patched(*sides[:2]), Patched(*sides[2:])
    whole = Effects(values["clean"], values["corrupt"], into_corrupt, into_clean, seed)
    null, lost_null = (x[..., 0] for x in (whole.null, whole.lost_null))
    return {
        f"restored_by_{name}": whole.effects,
        f"restored_by_{name}_null": null,
        f"restored_ends_{name}": whole.intervals,
        f"lost_by_{name}": whole.lost,
        f"lost_by_{name}_null": lost_null,
        f"lost_ends_{name}": whole.lost_intervals,
    }


def by_chance(parts, values, way, seed):
    """What the best of all pieces of these parts restores or loses by chance in 99 of 100 cases.

    That of unrelated pairs, of which one is drawn for each pair.
    """
    null, *ends = WAYS[way]
    start, end = (values[name] for name in ends)
    columns = []
    for name in parts:
        runs = values[f"{name}_{null}"]  # [N ... R]
        N, R = len(runs), runs.shape[-1]
        columns.append(np.moveaxis(runs.reshape(N, -1, R), -1, 0) - start[:, None])
    return nulls.largest_of_partners(np.concatenate(columns, axis=-1) / (end - start).sum(), seed)
