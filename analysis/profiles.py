"""How much attention goes to each fixed offset: a profile of 2 reach + 1 numbers for each head.

Offset t = key position - query position, in tokens, so t > 0 looks right. T queries, S keys, R = 2 reach + 1.
Order: profiles of patterns, the profile of uniform attention; then clusters of profiles and their names.
"""

import numpy as np
from scipy.cluster.vq import ClusterError, kmeans2, vq

REACH = 10


def offsets(reach=REACH):
    """-reach ... reach."""
    return np.arange(-reach, reach + 1)


def profile(pattern, reach=REACH):
    """tr_t(A) = sum of a[i, i + t] over i, for each offset t, summed in float64: [... T S] -> [... R]."""
    return np.stack([np.trace(pattern, t, axis1=-2, axis2=-1, dtype=np.float64) for t in offsets(reach)], -1)


def mean_attention(profiles, T):
    """Mean weight on the key at each offset, over the T - |t| queries that have one: [... R] -> [... R]."""
    reach = profiles.shape[-1] // 2
    return profiles / np.maximum(T - abs(offsets(reach)), 1)


def uniform(T, causal=False, reach=REACH):
    """Profile [R] of a head that looks at all it may see alike: a triangle (causal: bent, left side only)."""
    visible = np.tri(T) if causal else np.ones((T, T))
    return profile(visible / visible.sum(axis=1, keepdims=True), reach)


def centre_of_mass(profiles):
    """Mean offset, weighted by the profile, in tokens: [... R] -> [...]."""
    return profiles @ offsets(profiles.shape[-1] // 2) / np.maximum(profiles.sum(axis=-1), 1e-300)


def clusters(profiles, k=6, seed=0, restarts=10):
    """k-means from k-means++, the best of `restarts`: [N R] -> centres [k R], left to right, labels [N]."""
    distinct = len(np.unique(profiles, axis=0))
    if distinct < k:
        raise ValueError(f"{k} clusters wanted from {distinct} different profiles: take more documents?")
    rng = np.random.default_rng(seed)
    found = [start for start in (_once(profiles, k, rng) for _ in range(restarts)) if start is not None]
    if not found:
        raise ValueError(f"no split of {distinct} different profiles into {k} clusters: take fewer clusters")
    centres = min(found, key=lambda start: start[0])[1]
    centres = centres[np.argsort(centre_of_mass(centres))]
    return centres, nearest(profiles, centres)


def _once(profiles, k, rng):
    """(sum of squared distances, centres) of one start; None where a cluster ran empty."""
    try:
        centres, _ = kmeans2(profiles, k, iter=50, minit="++", missing="raise", rng=rng)
    except ClusterError:
        return None
    return np.square(vq(profiles, centres)[1]).sum(), centres


def nearest(profiles, centres):
    """Index of the nearest centre: [N R], [k R] -> [N]."""
    return vq(profiles, centres)[0]


def sides(centres, T=None, even=0.25, flat=0.1):
    """{'left': …, 'even': …, 'right': …}: indices of the centres on each side, those farthest out first.

    A centre is even when its centre of mass is within `even` tokens of the query, or, for documents of T tokens,
    when it gives no other offset as much as `flat` of its attention: near uniform, which a causal model bends.
    """
    mass = centre_of_mass(centres)
    away = offsets(centres.shape[-1] // 2) != 0
    none = abs(mass) <= even
    if T is not None:
        none |= mean_attention(centres, T)[:, away].max(axis=1) < flat
    members = {"left": ~none & (mass < 0), "even": none, "right": ~none & (mass > 0)}
    return {side: sorted(np.flatnonzero(inside).tolist(), key=lambda i: -abs(mass[i]))
            for side, inside in members.items()}


def names(centres, T=None):
    """A name for each centre: 'strong left', 'left', 'weak left', 'even', …, by its centre of mass."""
    named = {i: name for side, members in sides(centres, T).items()
             for i, name in zip(members, _grades(side, len(members)))}
    return [named[i] for i in range(len(centres))]


def _grades(side, n):
    """n names for one side, the strongest first."""
    if side != "even" and n in (2, 3):
        return [f"strong {side}", side, f"weak {side}"] if n == 3 else [f"strong {side}", f"weak {side}"]
    return [side] if n == 1 else [f"{side} {i + 1}" for i in range(n)]


def shares(labels, k):
    """How often each label occurs: [N H] of 0 ... k - 1 -> [H k], rows summing to 1."""
    return (labels[:, :, None] == np.arange(k)).mean(axis=0)
