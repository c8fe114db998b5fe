"""How much attention goes to each fixed offset: a profile of 2 reach + 1 numbers for each head.

Offset t = key position - query position, in tokens, so t > 0 looks right. T queries, S keys, R = 2 reach + 1.
Order: profiles of patterns, the profile of uniform attention; then clusters of profiles and their names.
"""

import numpy as np
from scipy.cluster.vq import ClusterError, kmeans2, vq

REACH = 10
STRONG = (0.25, 0.5)  # of the attention to one offset, from which a direction is not weak, and strong
GRADES = ("weak ", "", "strong ")


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


def strength(centres, T):
    """The most attention to one offset, on the side of the centre of mass, in documents of T tokens: [k R] -> [k]."""
    same = np.sign(offsets(centres.shape[-1] // 2)) == np.sign(centre_of_mass(centres))[:, None]
    return np.where(same, mean_attention(centres, T), 0).max(axis=1)


def sides(centres, T, even=0.25, flat=0.1):
    """{'left': …, 'even': …, 'right': …}: indices of the centres on each side, the strongest first.

    A centre is even when its centre of mass is within `even` tokens of the query, or when it gives no other offset
    as much as `flat` of its attention: near uniform, which a causal model bends. Documents of T tokens.
    """
    mass, strong = centre_of_mass(centres), strength(centres, T)
    away = offsets(centres.shape[-1] // 2) != 0
    none = (abs(mass) <= even) | (mean_attention(centres, T)[:, away].max(axis=1) < flat)
    members = {"left": ~none & (mass < 0), "even": none, "right": ~none & (mass > 0)}
    return {side: sorted(np.flatnonzero(inside).tolist(), key=lambda i: -strong[i])
            for side, inside in members.items()}


def names(centres, T):
    """A name for each centre: 'strong left' from half of the attention to one offset, 'left' from a quarter, else
    'weak left', or 'even'. Those of one name are numbered, the strongest first.
    """
    strong, named = strength(centres, T), {}
    for side, members in sides(centres, T).items():
        grades = [side if side == "even" else GRADES[np.digitize(strong[i], STRONG)] + side for i in members]
        named |= {i: grade if grades.count(grade) == 1 else f"{grade} {1 + grades[:place].count(grade)}"
                  for place, (i, grade) in enumerate(zip(members, grades))}
    return [named[i] for i in range(len(centres))]


def shares(labels, k):
    """How often each label occurs: [N H] of 0 ... k - 1 -> [H k], rows summing to 1."""
    return (labels[:, :, None] == np.arange(k)).mean(axis=0)
