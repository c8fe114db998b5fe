"""How a place enters a model that is trained here: fixed rows, turned queries and keys, a bias.

One function each: the rows of a sinusoidal table (Vaswani et al. 2017), the angles of rotary
positions (Su et al. 2021), ALiBi's slopes (Press et al. 2022), buckets of distances (Raffel et al.
2020), rows of a table of distances that queries and keys are compared with (He et al. 2021).
Nothing here is learned but the bias of each bucket and that table, which are among the model's
weights.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from minitx.weights.training.torches import torch

MECHANISMS = "learned", "sinusoidal", "rotary", "buckets", "alibi", "none"
DISENTANGLED = "disentangled", "disentangled-buckets"  # DeBERTa, and DeBERTa v2
BASE = 10000.0  # of the frequencies of sinusoidal and rotary positions
N_BUCKETS, MAX_DISTANCE = 32, 128  # as MPNet has them, whatever its config says
FARTHEST = 64  # distance that DeBERTa's table has rows for, to either side


@dataclass(frozen=True)
class Place:
    """What attention is told, or None of it.

    Cosines and sines [2 T d] that turn q and k; a bias [H T T]; a query and a key of each distance
    [H R d], and the distance of every pair [T T].
    """

    turn: object = None
    bias: object = None
    query: object = None
    key: object = None
    row: object = None


def place_of(mechanism, T, heads, d, buckets):
    """The Place of T tokens; buckets [N_BUCKETS H]: the learned bias, where there is one."""
    if mechanism == "rotary":
        return Place(turn=turns(T, d))
    if mechanism == "alibi":
        return Place(bias=alibi(T, heads))
    if mechanism == "buckets":
        return Place(bias=buckets[bucket_of(T)].permute(2, 0, 1))
    return Place()


def frequencies(d):
    """BASE^(-2i/d), i = 0 … d/2 - 1: radians a token."""
    return BASE ** (-np.arange(0, d, 2) / d)


def sinusoids(rows, d, size):
    """Columns sin, cos, sin, cos … of the row's number times each frequency, [rows d]."""
    angles = np.arange(rows)[:, None] * frequencies(d)
    return size * np.stack([np.sin(angles), np.cos(angles)], -1).reshape(rows, d)


@cache
def turns(T, d):
    """Cosines and sines [2 T d] of the token's number times each frequency, both halves alike."""
    angles = np.tile(np.arange(T)[:, None] * frequencies(d), 2)
    return torch.tensor(np.stack([np.cos(angles), np.sin(angles)]), dtype=torch.float32)


def turned(x, turn):
    """x [B H T d] with dimensions i and i + d/2 turned by their angle: x cos + (-x2, x1) sin."""
    first, second = x.chunk(2, -1)
    return x * turn[0] + torch.cat([-second, first], -1) * turn[1]


@cache
def alibi(T, heads):
    """-slope · distance [H T T]; the slopes of a power of 2 of heads: 2^(-8 (h+1)/H)."""
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    distance = np.abs(np.arange(T)[:, None] - np.arange(T))
    return torch.tensor(-slopes[:, None, None] * distance, dtype=torch.float32)


@cache
def bucket_of(T):
    """The bucket of every pair [T T] of query and key, of both directions.

    Half of the buckets are for keys to the right. Of each half, half are one distance each; the
    others grow in width up to MAX_DISTANCE.
    """
    distance = np.arange(T)[:, None] - np.arange(T)
    half, exact = N_BUCKETS // 2, N_BUCKETS // 4
    far = np.log(np.maximum(np.abs(distance), 1) / exact) / np.log(MAX_DISTANCE / exact)
    wide = np.minimum(exact + (far * (half - exact)).astype(int), half - 1)
    buckets = np.where(np.abs(distance) < exact, np.abs(distance), wide)
    return torch.tensor(buckets + half * (distance < 0))


@cache
def distance_row(T):
    """The row of DeBERTa's table for every pair [T T]: query minus key, from -FARTHEST."""
    distance = np.arange(T)[:, None] - np.arange(T)
    return torch.tensor(distance.clip(-FARTHEST, FARTHEST - 1) + FARTHEST)


@cache
def bucket_row(T):
    """The same of v2: half of the buckets are exact, the others grow up to MAX_DISTANCE."""
    distance = np.arange(T)[:, None] - np.arange(T)
    half, exact = N_BUCKETS // 2, N_BUCKETS // 4
    far = np.log(np.maximum(np.abs(distance), exact) / exact) / np.log((MAX_DISTANCE - 1) / exact)
    wide = exact + np.ceil(far * (exact - 1)).astype(int)
    buckets = np.where(np.abs(distance) <= exact, distance, np.sign(distance) * wide)
    return torch.tensor(buckets.clip(-half, half - 1) + half)


def by_distance(x, table, row):
    """x [B H T d] times the rows [H R d] of its distances to all others: [B H T T]."""
    products = x @ table.transpose(-1, -2)
    return products.gather(-1, row.expand(*products.shape[:-1], -1))
