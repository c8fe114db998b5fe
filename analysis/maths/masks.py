"""Attention masks with values from 0 to 1, by distance; what a value can mean; the search for one.

Masks are m(distance, head) for T tokens as queries and as S = T keys, H heads.

Order: distances, families, a mask of one; meanings; the search over the P parameters of a family.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy


def distances(T, causal=True, seed=None):
    """Distance in tokens of each key from each query [T S]; 0 for keys that a causal model hides.

    seed: gives the null; each query's distances are permuted among the other keys that it sees, so
    that the distances say nothing about the order.

    >>> distances(3)
    array([[0, 0, 0],
           [1, 0, 0],
           [2, 1, 0]])
    >>> distances(3, causal=False)
    array([[0, 1, 2],
           [1, 0, 1],
           [2, 1, 0]])
    """
    behind = np.arange(T)[:, None] - np.arange(T)
    distance = np.maximum(behind, 0) if causal else abs(behind)
    if seed is None:
        return distance
    others = distance > 0
    noise = np.where(others, np.random.default_rng((seed, T)).random((T, T)), np.inf)
    order = noise.argsort(axis=1).argsort(axis=1)
    ascending = np.sort(np.where(others, distance, T), axis=1)
    return np.where(others, np.take_along_axis(ascending, order, axis=1), 0)


# families: distance [1 T S] in tokens, head [H 1 1] -> [1 or H, T S]; keys far away keep `low`


def linear(distance, head, low=0.1):
    """1 at distance 0, `low` at the farthest key that a query may see, straight in between.

    The mask of Hirata's slides.

    The farthest of five keys keeps a tenth:

    >>> linear(np.arange(5), head=0).round(3)
    array([1.   , 0.775, 0.55 , 0.325, 0.1  ])
    """
    return 1 - (1 - low) * distance / np.maximum(distance.max(axis=-1, keepdims=True), 1)


def exponential(distance, head, half_life=8.0, low=0.0):
    """low + (1 - low) 2^(-distance / half_life); half_life in tokens.

    Half after each 8 tokens:

    >>> exponential(np.array([0, 8, 16]), head=0)
    array([1.  , 0.5 , 0.25])
    """
    return low + (1 - low) * 2.0 ** (-distance / half_life)


def power(distance, head, exponent=1.0, low=0.0):
    """low + (1 - low) (1 + distance)^-exponent.

    >>> power(np.array([0, 1, 3]), head=0)
    array([1.  , 0.5 , 0.25])
    """
    return low + (1 - low) * (1.0 + distance) ** -exponent


def alibi(distance, head, scale=1.0, low=0.0):
    """low + (1 - low) e^(-scale slope distance), with a slope for each head.

    As weights it is ALiBi (Press et al. 2022).

    The first of 8 heads looks nearest, the last one farthest:

    >>> alibi(np.array([0, 1, 10]), np.arange(8)[:, None])[[0, 7]].round(3)
    array([[1.   , 0.607, 0.007],
           [1.   , 0.996, 0.962]])
    """
    return low + (1 - low) * np.exp(-scale * slopes(head.size)[head] * distance)


def window(distance, head, n=8, low=0.0):
    """1 for the n nearest tokens on a side, the query itself among them, `low` for the others.

    >>> window(np.arange(5), head=0, n=3)
    array([1., 1., 1., 0., 0.])
    """
    return np.where(distance < n, 1.0, low)


FAMILIES = {family.__name__: family for family in (linear, exponential, power, alibi, window)}


def slopes(H):
    """ALiBi's slope of every head [H]: 2^(-8i/H), i = 1 ... H, if H is a power of two.

    For other H: the slopes of the power of two below it, then every second one of the power above,
    from the first on.

    >>> slopes(4)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625])
    >>> slopes(3)
    array([0.0625    , 0.00390625, 0.25      ])
    """
    below = 2 ** (H.bit_length() - 1)
    regular = 2.0 ** (-8 * np.arange(1, below + 1) / below)
    if below == H:
        return regular
    return np.append(regular, slopes(2 * below)[: 2 * (H - below) : 2])


def family(name, *values):
    """A family by its name, with its parameters in order; those not given keep their defaults.

    family("linear", 0.2) is m(distance, head) with low=0.2. Raises ValueError for an unknown name,
    too many values, or one out of bounds; the message lists what there is.

    The mask is halved after every 4 tokens:

    >>> f = family("exponential", 4)
    >>> f(np.array([0, 4, 8]), head=0)
    array([1.  , 0.5 , 0.25])
    >>> family("exponential", 4, 0, 1)
    Traceback (most recent call last):
        ...
    ValueError: 3 parameters for exponential; it has 2: half_life, low
    """
    if name not in FAMILIES:
        raise ValueError(f"{name!r} is not a family of masks; available: {', '.join(FAMILIES)}")
    defaults = parameters(name)
    if len(values) > len(defaults):
        raise ValueError(
            f"{len(values)} parameters for {name}; it has {len(defaults)}: {', '.join(defaults)}"
        )
    given = dict(zip(defaults, values))
    for parameter, value in given.items():
        _validate_parameter(name, parameter, value)
    return partial(FAMILIES[name], **defaults | given)


def _validate_parameter(name, parameter, value):
    """Raise ValueError unless the parameter of a family is within its bounds."""
    least, most, scale = BOUNDS[parameter]
    is_whole = scale == "whole"
    if not least <= value <= most or (is_whole and value != int(value)):
        kind = "a whole number from " if is_whole else ""
        raise ValueError(f"{parameter} of {name} is {value:g}; wanted {kind}{least:g} to {most:g}")


def parameters(name):
    """A family's parameters and their defaults, in order.

    >>> parameters("exponential")
    {'half_life': 8.0, 'low': 0.0}
    """
    keywords = inspect.signature(FAMILIES[name]).parameters.values()
    return {p.name: p.default for p in keywords if p.default is not p.empty}


def words(f):
    """A family with its parameters as text: linear(low=0.1).

    >>> words(family("linear", 0.25))
    'linear(low=0.25)'
    """
    values = ", ".join(f"{key}={value:.4g}" for key, value in f.keywords.items())
    return f"{f.func.__name__}({values})"


def build_mask(f, T, H, causal=True, seed=None):
    """The mask [1 or H, T S] of any m(distance [1 T S], head [H 1 1]), in float64.

    It is 0 at the later keys of a causal model. seed: for the null, as in `distances`. Raises
    ValueError if f gives another shape or values outside 0 to 1.

    Any function of distance and head will do:

    >>> build_mask(lambda distance, head: 1 / (1 + distance), T=3, H=2).round(2)
    array([[[1.  , 0.  , 0.  ],
            [0.5 , 1.  , 0.  ],
            [0.33, 0.5 , 1.  ]]])
    """
    values = f(distances(T, causal, seed)[None], np.arange(H)[:, None, None])
    mask = validate_mask(values, T, H)
    return np.where(np.tri(T, dtype=bool) | (not causal), mask, 0.0)


def validate_mask(mask, T, H):
    """A mask that broadcasts to [H T S] as [1 or H, T S] in float64.

    Raises ValueError if it does not, or has values outside 0 to 1.

    One mask for all heads:

    >>> validate_mask([[1, 0], [0.5, 1]], T=2, H=12).shape
    (1, 2, 2)
    >>> validate_mask([[2]], T=2, H=12)
    Traceback (most recent call last):
        ...
    ValueError: the mask has values from 2 to 2; wanted 0 to 1
    """
    mask = np.asarray(mask, np.float64)
    if mask.ndim > 3 or any(n not in (1, m) for n, m in zip(mask.shape[::-1], (T, T, H))):
        raise ValueError(
            f"the mask is {list(mask.shape)}; wanted one that broadcasts to [H T S] = {[H, T, T]}"
        )
    if not ((mask >= 0) & (mask <= 1)).all():
        raise ValueError(
            f"the mask has values from {mask.min():g} to {mask.max():g}; wanted 0 to 1"
        )
    heads = mask.shape[0] if mask.ndim == 3 else 1
    return np.broadcast_to(mask, (heads, T, T))


# meanings


class Meaning(NamedTuple):
    """What the values of a mask do: `combine(x, prepare(mask))` replaces x in the forward pass.

    As weights, a mask of a half takes ln 2 off the scores:

    >>> m = MEANINGS["weights"]
    >>> m.combine(np.array([3.0, 3.0]), m.prepare(np.array([1.0, 0.5]))).round(3)
    array([3.   , 2.307])
    """

    point: str  # of the forward pass: "scores" (-inf at hidden keys) or "pattern"
    prepare: Callable  # mask in x's dtype -> what is combined, once for all layers
    combine: Callable
    bare: bool = False  # x: scores that nothing hides
    values: bool = False  # the values are multiplied by the mask too
    says: str = ""  # in a formula
    label: str = ""  # in a list of them
    python: str = ""  # the edit of the point by a mask m, as a user writes it
    before: str = ""  # a line that it needs


def _logs(mask):
    with np.errstate(divide="ignore"):
        return np.log(mask)


def _scaled(scores, mask):
    """Scores times the mask; those at minus infinity stay there, where 0 would give NaN."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(scores), scores, scores * mask)


def _filled(mask):
    return (1 - mask) * float(np.finfo(mask.dtype).min)


def _hidden(mask):
    return np.where(mask != 0, 0, -np.inf).astype(mask.dtype)


def _same(mask):
    return mask


SCALED = "lambda s: s * np.where(np.isneginf(s), 1, m)"
MEANINGS = {
    "scores": Meaning(
        "scores",
        _same,
        _scaled,
        says="softmax(m s)",
        label="scores × m",
        python=SCALED,
    ),
    # = m softmax(s), rows brought to 1
    "weights": Meaning(
        "scores",
        _logs,
        np.add,
        says="softmax(s + log m)",
        label="weights × m, rows sum to 1",
        python="lambda s: s + log_m",
        before="log_m = np.log(m, out=np.full_like(m, -np.inf), where=m > 0)",
    ),
    "weights_raw": Meaning(
        "pattern",
        _same,
        np.multiply,
        says="m softmax(s)",
        label="weights × m",
        python="lambda p: p * m",
    ),
    # keys and values times the mask, as if it multiplied the embeddings: the slides' hypothesis
    "embedding": Meaning(
        "scores",
        _same,
        _scaled,
        values=True,
        says="softmax(m s) m",
        label="keys and values × m",
        python=SCALED,
    ),
    # the reference library in 2023, measured on its release 4.28: a 2-D float mask; rows as the
    # slides have them
    "library-2023": Meaning(
        "scores",
        _filled,
        np.add,
        says="softmax(s + (1 - m) lowest)",
        label="seen where m is 1 (Hugging Face, 2023)",
        python="lambda s: s + (1 - m) * np.finfo(m.dtype).min",
    ),
    # its release 5.23 of 2026: a 4-D float mask takes the place of the causal one
    "library-now": Meaning(
        "scores",
        _same,
        np.add,
        bare=True,
        says="softmax(s + m), all seen",
        label="scores + m (Hugging Face, 4-D)",
        python="lambda s: s + m",
    ),
    # the same with a 2-D mask: whatever is not 0 counts as 1
    "library-now-2d": Meaning(
        "scores",
        _hidden,
        np.add,
        says="softmax(s) where m is not 0",
        label="seen where m is not 0 (Hugging Face, 2-D)",
        python="lambda s: np.where(m != 0, s, -np.inf)",
    ),
}


def meaning(name):
    """A meaning by its name; raises ValueError with a list of them if there is none.

    >>> meaning("weights").says
    'softmax(s + log m)'
    """
    if name not in MEANINGS:
        raise ValueError(f"{name!r} is an unknown mask meaning; available: {', '.join(MEANINGS)}")
    return MEANINGS[name]


# search

BOUNDS = {  # parameter -> least, most, and the scale on which it is searched
    "low": (0.0, 1.0, "straight"),
    "half_life": (0.25, 1024.0, "log"),
    "exponent": (0.01, 16.0, "log"),
    "scale": (0.01, 100.0, "log"),
    "n": (1, 1024, "whole"),
}
SCALES = {  # fraction of the way [0, 1] -> value
    "straight": lambda fraction, least, most: least + fraction * (most - least),
    "log": lambda fraction, least, most: least * (most / least) ** fraction,
    "whole": lambda fraction, least, most: round(least * (most / least) ** fraction),
}


class SearchResult(NamedTuple):
    """The best parameters [P] and their loss; all that was tried [n P], with the losses [n].

    What `search` returns: its best point is one of those that were tried:

    >>> result = search(lambda x: (x - 3) ** 2, [(0, 10, "straight")], 10)
    >>> bool(result.best in result.tried), bool(result.losses.min() == result.loss)
    (True, True)
    """

    best: np.ndarray
    loss: float
    tried: np.ndarray
    losses: np.ndarray


def search(loss, bounds, evaluations=20):
    """The least loss(*parameters) in a box, from few evaluations.

    Half of the evaluations form a grid of the first parameter, with the other parameters at their
    least; the rest are steps of Nelder and Mead (1965) from the best of these. bounds: for each
    parameter (least, most, scale), as in BOUNDS. Raises ValueError for fewer than 2 P + 2
    evaluations.

    The least of a parabola, from 30 evaluations:

    >>> result = search(lambda x: (x - 3) ** 2, [(0, 10, "straight")], 30)
    >>> result.best.round(1)
    array([3.])
    """
    P = len(bounds)
    n = evaluations // 2
    if evaluations < 2 * P + 2:
        raise ValueError(f"{evaluations} evaluations; {P} parameters need {2 * P + 2} or more")
    losses = {}  # by parameters: none is evaluated twice

    def loss_at(fractions):
        point = _point(fractions, bounds)
        if point not in losses:
            losses[point] = float(loss(*point))
        return losses[point]

    grid = np.zeros((n, P))
    grid[:, 0] = (np.arange(n) + 0.5) / n
    start = grid[np.argmin([loss_at(fractions) for fractions in grid])]
    step = np.where(start < 0.5, 0.5, -0.5) / n
    simplex = np.vstack([start, start + np.diag(step)])
    options = {"initial_simplex": simplex, "maxfev": evaluations - n}
    scipy.optimize.minimize(
        loss_at, start, method="Nelder-Mead", bounds=[(0, 1)] * P, options=options
    )
    best = min(losses, key=losses.get)
    tried = np.array([*losses])
    return SearchResult(np.array(best), losses[best], tried, np.array([*losses.values()]))


def _point(fractions, bounds):
    """The parameters at these fractions [P] of the way along their scales: a tuple."""
    values = []
    for fraction, (least, most, scale) in zip(fractions, bounds):
        value = SCALES[scale](fraction, least, most)
        values.append(float(min(max(value, least), most)))
    return tuple(values)
