"""How much attention goes to each fixed offset: a profile of 2 reach + 1 numbers for each head.

Offset t = key position - query position, in tokens, so t > 0 looks right. T queries, S keys, R = 2
reach + 1.

Order: profiles of patterns, the profile of uniform attention, heads with a direction; then clusters
of profiles and their names.
"""

import numpy as np
from scipy.cluster.vq import ClusterError, kmeans2, vq

REACH = 10
# of the attention to one offset, from which a direction is not weak, and strong
STRONG = (0.25, 0.5)
GRADES = ("weak ", "", "strong ")
# a head has a direction if it gives an offset other than 0 this many times uniform attention
TIMES = 5


def offsets(reach=REACH):
    """-reach ... reach."""
    return np.arange(-reach, reach + 1)


def profile(pattern, reach=REACH):
    """tr_t(A) = sum of a[i, i + t] over i, for each offset t, in float64: [... T S] -> [... R]."""
    diagonals = [np.trace(pattern, t, axis1=-2, axis2=-1, dtype=np.float64) for t in offsets(reach)]
    return np.stack(diagonals, -1)


def mean_attention(profiles, T):
    """Mean weight on the key at each offset: [... R] -> [... R].

    The mean is over the T - |t| queries that have a key at offset t.
    """
    reach = profiles.shape[-1] // 2
    return profiles / np.maximum(T - abs(offsets(reach)), 1)


def uniform(T, causal=False, reach=REACH):
    """Profile [R] of a head that looks equally at all it may see.

    It is a triangle; of a causal model bent, and on the left side only.
    """
    visible = np.tri(T) if causal else np.ones((T, T))
    return profile(visible / visible.sum(axis=1, keepdims=True), reach)


def directed(attention, T, reach=REACH, causal=False):
    """Heads with a direction: mean attention by offset [... R] -> bool [...].

    A head has one if, of the offsets within reach, most attention goes to one other than 0, and
    that is at least TIMES what uniform attention gives to it. T: tokens of the documents.
    """
    middle = attention.shape[-1] // 2
    within_reach = attention[..., middle - reach : middle + reach + 1]
    best = within_reach.argmax(axis=-1)
    most = within_reach.max(axis=-1)
    by_uniform = mean_attention(uniform(T, causal, reach), T)
    return (best != reach) & (most >= TIMES * by_uniform[best])


def centre_of_mass(profiles):
    """Mean offset, weighted by the profile, in tokens: [... R] -> [...]."""
    return profiles @ offsets(profiles.shape[-1] // 2) / np.maximum(profiles.sum(axis=-1), 1e-300)


def clusters(profiles, k=6, seed=0, restarts=10):
    """k-means from k-means++: [N R] -> centres [k R], left to right, and labels [N].

    The best of `restarts`. Raises ValueError if fewer than k profiles differ, or if a cluster ran
    empty in every start.
    """
    distinct = len(np.unique(profiles, axis=0))
    if distinct < k:
        raise ValueError(
            f"{k} clusters wanted from {distinct} different profiles: take more documents?"
        )
    rng = np.random.default_rng(seed)
    starts = [_once(profiles, k, rng) for _ in range(restarts)]
    complete = [start for start in starts if start is not None]
    if not complete:
        raise ValueError(
            f"no split of {distinct} different profiles into {k} clusters: take fewer clusters"
        )
    centres = min(complete, key=lambda start: start[0])[1]
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
    """The most attention to one offset, on the side of the centre of mass: [k R] -> [k].

    T: tokens of the documents.
    """
    same_side = (
        np.sign(offsets(centres.shape[-1] // 2)) == np.sign(centre_of_mass(centres))[:, None]
    )
    return np.where(same_side, mean_attention(centres, T), 0).max(axis=1)


def sides(centres, T, even=0.25, flat=0.1):
    """{'left': …, 'even': …, 'right': …}: indices of the centres on each side, the strongest first.

    A centre is even when its centre of mass is within `even` tokens of the query, or when it gives
    no other offset as much as `flat` of its attention: near uniform, which a causal model bends. T:
    tokens of the documents.
    """
    mass = centre_of_mass(centres)
    strong = strength(centres, T)
    away = offsets(centres.shape[-1] // 2) != 0
    is_flat = mean_attention(centres, T)[:, away].max(axis=1) < flat
    is_even = (abs(mass) <= even) | is_flat
    members = {"left": ~is_even & (mass < 0), "even": is_even, "right": ~is_even & (mass > 0)}
    return {
        side: sorted(np.flatnonzero(inside).tolist(), key=lambda i: -strong[i])
        for side, inside in members.items()
    }


def names(centres, T):
    """A name for each centre: its side, with 'strong' or 'weak' before 'left' or 'right'.

    'strong left' from half of the attention to one offset, 'left' from a quarter, else 'weak left',
    or 'even'. Those of one name are numbered, the strongest first.
    """
    strong = strength(centres, T)
    named = {}
    for side, members in sides(centres, T).items():
        grades = [_grade(side, strong[i]) for i in members]
        named |= zip(members, _numbered(grades))
    return [named[i] for i in range(len(centres))]


def _grade(side, strong):
    """A side, with how strong it is unless it is even."""
    if side == "even":
        return side
    return GRADES[np.digitize(strong, STRONG)] + side


def _numbered(grades):
    """Names in which those that occur more than once carry a number."""
    numbered = []
    for i, grade in enumerate(grades):
        number = f" {1 + grades[:i].count(grade)}" if grades.count(grade) > 1 else ""
        numbered.append(grade + number)
    return numbered


def label_frequencies(labels, k):
    """How often each label occurs: [N H] of 0 ... k - 1 -> [H k], rows summing to 1."""
    return (labels[:, :, None] == np.arange(k)).mean(axis=0)
