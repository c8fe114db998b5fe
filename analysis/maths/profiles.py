"""How much attention goes to each fixed offset: a profile of 2 reach + 1 numbers for each head.

Offset t = key position - query position, in tokens, so t > 0 looks right. T queries, S keys, R = 2
reach + 1.

Order: profiles of patterns, the profile of uniform attention, heads with a direction; then clusters
of profiles and their names.
"""

import numpy as np
import scipy

REACH = 10
# a head has a direction if it gives one offset other than 0 this share of its attention, and this
# many times uniform attention, which is less the longer the documents are
LEAST = 0.1
TIMES = 5
SAME = 6  # decimals in which two profiles differ: rounding in float32 is less
DIRECTION = (  # the rule in words
    f"the offset with most attention is not 0, and gets at least {LEAST} of it and {TIMES} times "
    f"uniform attention"
)
# bands of attention in which heads with a direction are counted: name -> least attention
STRENGTHS = {f"{LEAST} to 0.25": LEAST, "0.25 to 0.5": 0.25, "0.5 or more": 0.5}


def offsets(reach=REACH):
    """-reach ... reach.

    >>> offsets(2)
    array([-2, -1,  0,  1,  2])
    """
    return np.arange(-reach, reach + 1)


def profile(pattern, reach=REACH):
    """tr_t(A) = sum of a[i, i + t] over i, for each offset t, in float64: [... T S] -> [... R].

    A head that looks at the token before; the first token looks at itself:

    >>> previous = np.eye(4, k=-1)
    >>> previous[0, 0] = 1
    >>> profile(previous, reach=1)
    array([3., 1., 0.])
    """
    diagonals = [pattern.trace(t, -2, -1, np.float64) for t in offsets(reach)]
    return np.stack(diagonals, -1)


def mean_attention(profiles, T):
    """Mean weight on the key at each offset: [... R] -> [... R].

    The mean is over the T - |t| queries that have a key at offset t.

    Three of four queries have a token before them and look there; the first looks at itself:

    >>> mean_attention(np.array([3.0, 1.0, 0.0]), T=4)
    array([1.  , 0.25, 0.  ])
    """
    reach = profiles.shape[-1] // 2
    return profiles / np.maximum(T - abs(offsets(reach)), 1)


def visible(T, causal=False):
    """Whether a query sees a key: [T T] bool.

    >>> visible(2, causal=True)
    array([[ True, False],
           [ True,  True]])
    """
    return np.tri(T, dtype=bool) | (not causal)


def uniform(T, causal=False, reach=REACH):
    """Profile [R] of a head that looks equally at all it may see.

    It is a triangle; for a causal model it is a bent curve on the left side only.

    Each token gives a quarter to each key, and there are fewer pairs farther apart:

    >>> uniform(4, reach=2)
    array([0.5 , 0.75, 1.  , 0.75, 0.5 ])
    """
    seen = visible(T, causal)
    return profile(seen / seen.sum(axis=1, keepdims=True), reach)


def directed(attention, T, reach=REACH, causal=False):
    """Heads with a direction: mean attention by offset [... R] -> bool [...].

    A head has one if, of the offsets within reach, most attention goes to one other than 0, and
    that is at least LEAST, and TIMES what uniform attention gives. T: tokens of the documents.

    A head that looks at the token before, one that hardly looks there, though 40 times as much as
    uniform attention, and one that looks at all tokens equally:

    >>> attention = np.zeros((3, 5))
    >>> attention[:, 1] = 1.0, 0.08, 1 / 512
    >>> directed(attention, T=512, reach=2)
    array([ True, False, False])
    """
    best = within(attention, reach).argmax(axis=-1)
    return (best != reach) & stands_out(attention, T, reach, causal)


def stands_out(attention, T, reach=REACH, causal=False):
    """Heads that give some offset, 0 included, as much as a direction takes: bool [...].

    A head that looks at its own token, and one that looks at all tokens equally:

    >>> own = np.where(offsets() == 0, 0.9, 0.0)
    >>> even = mean_attention(uniform(64), 64)
    >>> stands_out(np.array([own, even]), 64)
    array([ True, False])
    """
    within_reach = within(attention, reach)
    by_uniform = mean_attention(uniform(T, causal, reach), T)
    least = np.maximum(LEAST, TIMES * by_uniform)
    return within_reach.max(axis=-1) >= least[within_reach.argmax(axis=-1)]


def strength(attention):
    """Which of STRENGTHS an amount of attention falls into, -1 below them all: [...] -> [...].

    >>> strength(np.array([0.05, 0.12, 0.25, 0.99])).tolist()
    [-1, 0, 1, 2]
    """
    return np.searchsorted([*STRENGTHS.values()], attention, side="right") - 1


def by_strength(attention, counted):
    """How many of those counted fall into each of STRENGTHS: [...], bool [...] -> [STRENGTHS].

    Four heads by their attention to one offset, of which one is not counted:

    >>> attention = np.array([0.12, 0.3, 0.5, 0.99])
    >>> by_strength(attention, np.array([True, False, True, True])).tolist()
    [1, 0, 2]
    """
    bands = strength(attention)[counted]
    return (bands[:, None] == np.arange(len(STRENGTHS))).sum(axis=0)


def within(attention, reach):
    """The offsets -reach ... reach of more: [... R] -> [... 2 reach + 1].

    >>> within(np.array([0.1, 0.2, 0.4, 0.2, 0.1]), reach=1)
    array([0.2, 0.4, 0.2])
    """
    middle = attention.shape[-1] // 2
    return attention[..., middle - reach : middle + reach + 1]


def centre_of_mass(profiles):
    """Mean offset, weighted by the profile, in tokens: [... R] -> [...].

    >>> centre_of_mass(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))
    array([-1. ,  0.5])
    """
    return profiles @ offsets(profiles.shape[-1] // 2) / np.maximum(profiles.sum(axis=-1), 1e-300)


def highest(scores):
    """The offset with the highest value: [... R] -> [...].

    >>> highest(np.array([[5.0, -1.0, 0.0], [0.0, 1.0, 2.0]]))
    array([-1,  1])
    """
    return offsets(scores.shape[-1] // 2)[scores.argmax(axis=-1)]


def clusters(profiles, k=6, seed=0, restarts=10, place=centre_of_mass):
    """k-means from k-means++: [N R] -> centres [k R], left to right, and labels [N].

    The best of `restarts`; where a cluster ran empty in each, k profiles that are far apart. place:
    where a centre looks, which gives their order. Raises ValueError if fewer than k differ.

    Heads that look left, and heads that look right:

    >>> left, right = np.array([9.0, 1.0, 0.0]), np.array([0.0, 1.0, 9.0])
    >>> centres, labels = clusters(np.array([right, left, left + 2, right + 2]), k=2)
    >>> centres
    array([[10.,  2.,  1.],
           [ 1.,  2., 10.]])
    >>> labels.tolist()
    [1, 0, 0, 1]
    """
    distinct = different(profiles)
    if len(distinct) < k:
        raise ValueError(
            f"{k} clusters requested for {len(distinct)} different profiles: use more documents"
        )
    rng = np.random.default_rng(seed)
    starts = [_once(profiles, k, rng) for _ in range(restarts)]
    complete = [start for start in starts if start is not None]
    if complete:
        centres = min(complete, key=lambda start: start[0])[1]
    else:
        centres = _far_apart(distinct, k)
    centres = centres[np.argsort(place(centres), kind="stable")]
    return centres, nearest(profiles, centres)


def different(profiles):
    """The profiles that differ by more than rounding: [N R] -> [n R].

    A pruned head looks at all tokens alike, in every document up to rounding:

    >>> len(different(np.array([[0.5, 0.5], [0.5, 0.5 + 1e-15], [0.2, 0.8]])))
    2
    """
    return np.unique(profiles.round(SAME), axis=0)


def _once(profiles, k, rng):
    """(sum of squared distances, centres) of one start; None where a cluster ran empty."""
    try:
        centres, _ = scipy.cluster.vq.kmeans2(
            profiles, k, iter=50, minit="++", missing="raise", rng=rng
        )
    except scipy.cluster.vq.ClusterError:
        return None
    return np.square(scipy.cluster.vq.vq(profiles, centres)[1]).sum(), centres


def _far_apart(distinct, k):
    """k of the different profiles, each the farthest from those before it: [N R] -> [k R]."""
    numbers = [0]
    for _ in range(k - 1):
        distances = scipy.spatial.distance.cdist(distinct, distinct[numbers])
        numbers.append(int(distances.min(axis=1).argmax()))
    return distinct[numbers]


def nearest(profiles, centres):
    """Index of the nearest centre: [N R], [k R] -> [N].

    >>> nearest(np.array([[1.0, 0.0], [0.0, 0.9]]), np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [1, 0]
    """
    return scipy.cluster.vq.vq(profiles, centres)[0]


def best_on_side(centres, T):
    """The offset with most attention on the side of the centre of mass, and how much: [k R] -> [k].

    T: tokens of the documents.

    Most attention goes one token to the left, 5 from the 10 tokens that have one there:

    >>> offset, attention = best_on_side(np.array([[1.0, 5.0, 1.0, 1.0, 0.0]]), T=11)
    >>> offset, attention
    (array([-1]), array([0.5]))
    """
    places = offsets(centres.shape[-1] // 2)
    same_side = np.sign(places) == np.sign(centre_of_mass(centres))[:, None]
    attention = np.where(same_side, mean_attention(centres, T), 0)
    return places[attention.argmax(axis=1)], attention.max(axis=1)


def sides(centres, T, even=0.25, flat=LEAST):
    """{'left': …, 'even': …, 'right': …}: indices of the centres on each side, the strongest first.

    A centre is even when its centre of mass is within `even` tokens of the query, or when it gives
    no other offset as much as `flat` of its attention: near uniform, which a causal model bends. T:
    tokens of the documents.

    One head looks left, one right, one equally everywhere:

    >>> sides(np.array([[0.0, 9.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 9.0, 0.0], np.ones(5)]), T=20)
    {'left': [0], 'even': [2], 'right': [1]}
    """
    mass = centre_of_mass(centres)
    _, strong = best_on_side(centres, T)
    away = offsets(centres.shape[-1] // 2) != 0
    is_flat = mean_attention(centres, T)[:, away].max(axis=1) < flat
    is_even = (abs(mass) <= even) | is_flat
    members = {"left": ~is_even & (mass < 0), "even": is_even, "right": ~is_even & (mass > 0)}
    return {
        side: sorted(np.flatnonzero(inside).tolist(), key=lambda i: -strong[i])
        for side, inside in members.items()
    }


def names(centres, T):
    """A name for each centre: 'even', or its side with the offset there that has most attention.

    For example 'left, -1'. Where two centres of a side would have the same name, the amount of that
    attention is added, 'left, -1 (0.38)'; names that are still equal get numbers, the strongest
    first.

    >>> names(np.array([[0.0, 9.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 9.0, 0.0], np.ones(5)]), T=20)
    ['left, -1', 'right, +1', 'even']
    """
    best, strong = best_on_side(centres, T)
    named = {}
    for side, members in sides(centres, T).items():
        plain = [side if side == "even" else f"{side}, {best[i]:+d}" for i in members]
        exact = [f"{name} ({strong[i]:.2f})" for name, i in zip(plain, members)]
        if side != "even":
            plain = [e if plain.count(p) > 1 else p for p, e in zip(plain, exact)]
        named |= zip(members, _numbered(plain))
    return [named[i] for i in range(len(centres))]


def sides_of_scores(scores):
    """`sides` of profiles of scores [k R], which may be negative: where the highest one stands.

    >>> sides_of_scores(np.array([[5.0, -1.0, 0.0], [0.0, 1.0, 2.0], [7.0, 0.0, 0.0]]))
    {'left': [2, 0], 'even': [], 'right': [1]}
    """
    peak, height = highest(scores), scores.max(axis=-1)
    members = {"left": peak < 0, "even": peak == 0, "right": peak > 0}
    return {
        side: sorted(np.flatnonzero(inside).tolist(), key=lambda i: -height[i])
        for side, inside in members.items()
    }


def names_of_scores(scores):
    """A name for each profile of scores [k R], all different: 'highest at -1'.

    Where two would have the same name, the highest score is added; names that are still equal get
    numbers.

    >>> names_of_scores(np.array([[5.0, -1.0, 0.0], [0.0, 1.0, 2.0]]))
    ['highest at -1', 'highest at +1']
    >>> names_of_scores(np.array([[5.0, -1.0, 0.0], [2.0, 1.0, 0.0]]))
    ['highest at -1 (5.0)', 'highest at -1 (2.0)']
    """
    signed = [f"{offset:+d}" if offset else "0" for offset in highest(scores)]
    plain = [f"highest at {offset}" for offset in signed]
    exact = [f"{name} ({score:.1f})" for name, score in zip(plain, scores.max(axis=-1))]
    return _numbered([e if plain.count(p) > 1 else p for p, e in zip(plain, exact)])


def _numbered(names):
    """Names in which those that occur more than once carry a number."""
    numbered = []
    for i, name in enumerate(names):
        number = f" {1 + names[:i].count(name)}" if names.count(name) > 1 else ""
        numbered.append(name + number)
    return numbered


def label_frequencies(labels, k):
    """How often each label occurs: [N H] of 0 ... k - 1 -> [H k], rows summing to 1.

    One head in cluster 1 for both documents, another in 0 and in 1:

    >>> label_frequencies(np.array([[1, 0], [1, 1]]), k=2)
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    return (labels[:, :, None] == np.arange(k)).mean(axis=0)
