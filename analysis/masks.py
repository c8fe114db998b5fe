"""Attention masks with values between 0 and 1, by distance; what such a value can mean; the search for a good one.

Masks are m(distance, head) for T tokens as queries and as S = T keys, H heads. Order: distances, families, a mask of
one; meanings; the search over the P parameters of a family.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize


def distances(T, causal=True, seed=None):
    """Tokens between query and key [T S]; 0 for the later keys that a causal model hides.

    seed: the null; each query's distances are dealt anew among the other keys that it sees, so that the same
    distances tell nothing of the order.
    """
    ahead = np.arange(T)[:, None] - np.arange(T)
    distance = np.maximum(ahead, 0) if causal else abs(ahead)
    if seed is None:
        return distance
    others = distance > 0
    noise = np.where(others, np.random.default_rng((seed, T)).random((T, T)), np.inf)
    in_order = np.sort(np.where(others, distance, T), axis=1)
    return np.where(others, np.take_along_axis(in_order, noise.argsort(axis=1).argsort(axis=1), axis=1), 0)


# families: distance [1 T S] in tokens, head [H 1 1] -> [1 or H, T S]; keys far away keep `low`

def linear(distance, head, low=0.1):
    """1 at distance 0, `low` at the farthest key that a query may see, straight in between (Hirata's slides)."""
    return 1 - (1 - low) * distance / np.maximum(distance.max(axis=-1, keepdims=True), 1)


def exponential(distance, head, half_life=8.0, low=0.0):
    """low + (1 - low) 2^(-distance / half_life); half_life in tokens."""
    return low + (1 - low) * 2.0 ** (-distance / half_life)


def power(distance, head, exponent=1.0, low=0.0):
    """low + (1 - low) (1 + distance)^-exponent."""
    return low + (1 - low) * (1.0 + distance) ** -exponent


def alibi(distance, head, scale=1.0, low=0.0):
    """low + (1 - low) e^(-scale slope distance), a slope for each head: as weights, ALiBi (Press et al. 2022)."""
    return low + (1 - low) * np.exp(-scale * slopes(head.size)[head] * distance)


def window(distance, head, n=8, low=0.0):
    """1 for the n nearest tokens on a side, the query itself among them, `low` for the others."""
    return np.where(distance < n, 1.0, low)


FAMILIES = {family.__name__: family for family in (linear, exponential, power, alibi, window)}


def slopes(H):
    """ALiBi's slope of every head [H]: 2^(-8i/H), i = 1 ... H, if H is a power of two.

    Of other numbers: the slopes of the power below, then every second one, from the first, of the power above.
    """
    below = 2 ** (H.bit_length() - 1)
    found = 2.0 ** (-8 * np.arange(1, below + 1) / below)
    return found if below == H else np.append(found, slopes(2 * below)[:2 * (H - below):2])


def named(name, *values):
    """A family by its name, with its parameters in order (those not given: its own); ValueError says what there is.

    named("linear", 0.2) is m(distance, head) with low=0.2.
    """
    if name not in FAMILIES:
        raise ValueError(f"{name!r} is no family of masks; there are: {', '.join(FAMILIES)}")
    defaults = parameters(name)
    if len(values) > len(defaults):
        raise ValueError(f"{len(values)} parameters for {name}; it has {len(defaults)}: {', '.join(defaults)}")
    given = dict(zip(defaults, values))
    for parameter, value in given.items():
        least, most, scale = BOUNDS[parameter]
        if not least <= value <= most or scale == "whole" and value != int(value):
            whole = "a whole number from " if scale == "whole" else ""
            raise ValueError(f"{parameter} of {name} is {value:g}; wanted {whole}{least:g} to {most:g}")
    return partial(FAMILIES[name], **defaults | given)


def parameters(name):
    """A family's parameters and their defaults, in order."""
    keywords = inspect.signature(FAMILIES[name]).parameters.values()
    return {p.name: p.default for p in keywords if p.default is not p.empty}


def words(f):
    """linear(low=0.1)."""
    return f"{f.func.__name__}({', '.join(f'{key}={value:.4g}' for key, value in f.keywords.items())})"


def made(f, T, H, causal=True, seed=None):
    """The mask [1 or H, T S] of any m(distance [1 T S], head [H 1 1]) in float64; 0 at a causal model's later keys.

    seed: of the null, as in `distances`. ValueError for a result of another shape or with values outside 0 to 1.
    """
    mask = checked(f(distances(T, causal, seed)[None], np.arange(H)[:, None, None]), T, H)
    return np.where(np.tri(T, dtype=bool) | (not causal), mask, 0.0)


def checked(mask, T, H):
    """A mask as [1 or H, T S] in float64; ValueError unless it broadcasts to [H T S], with values from 0 to 1."""
    mask = np.asarray(mask, np.float64)
    if mask.ndim > 3 or any(n not in (1, m) for n, m in zip(mask.shape[::-1], (T, T, H))):
        raise ValueError(f"the mask is {list(mask.shape)}; wanted what broadcasts to [H T S] = {[H, T, T]}")
    if not ((mask >= 0) & (mask <= 1)).all():
        raise ValueError(f"the mask has values from {mask.min():g} to {mask.max():g}; wanted 0 to 1")
    return np.broadcast_to(mask, (mask.shape[0] if mask.ndim == 3 else 1, T, T))


# meanings

class Meaning(NamedTuple):
    """What the values of a mask do: `combine(x, prepare(mask))` takes the place of x at a point of the forward pass."""
    point: str           # "scores" (-inf at hidden keys) or "pattern"
    prepare: Callable    # mask in x's dtype -> what is combined, once for all layers
    combine: Callable
    bare: bool = False   # x: scores that nothing hides
    says: str = ""       # in a formula


def _logs(mask):
    with np.errstate(divide="ignore"):
        return np.log(mask)


def _scaled(scores, mask):  # hidden keys stay hidden: no 0 times infinity
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(scores), scores, scores * mask)


def _filled(mask):
    return (1 - mask) * float(np.finfo(mask.dtype).min)


def _hidden(mask):
    return np.where(mask != 0, 0, -np.inf).astype(mask.dtype)


def _same(mask):
    return mask


MEANINGS = {
    "scores": Meaning("scores", _same, _scaled, says="softmax(m s)"),
    "weights": Meaning("scores", _logs, np.add, says="softmax(s + log m)"),  # = m softmax(s), rows brought to 1
    "weights_raw": Meaning("pattern", _same, np.multiply, says="m softmax(s)"),
    # the common library in 2023, measured on its release 4.28: a 2-D float mask; rows as the slides have them
    "library-2023": Meaning("scores", _filled, np.add, says="softmax(s + (1 - m) lowest)"),
    # its release 5.23 of 2026: a 4-D float mask takes the place of the causal one
    "library-now": Meaning("scores", _same, np.add, bare=True, says="softmax(s + m), nothing hidden"),
    # the same with a 2-D mask: whatever is not 0 counts as 1
    "library-now-2d": Meaning("scores", _hidden, np.add, says="softmax(s) where m is not 0")}


def meaning(name):
    """A meaning by its name; ValueError says what there is."""
    if name not in MEANINGS:
        raise ValueError(f"{name!r} is no meaning of a mask; there are: {', '.join(MEANINGS)}")
    return MEANINGS[name]


# search

BOUNDS = {  # parameter -> least, most, and the scale on which it is searched
    "low": (0.0, 1.0, "straight"), "half_life": (0.25, 1024.0, "log"), "exponent": (0.01, 16.0, "log"),
    "scale": (0.01, 100.0, "log"), "n": (1, 1024, "whole")}
SCALES = {  # share of the way [0, 1] -> value
    "straight": lambda share, least, most: least + share * (most - least),
    "log": lambda share, least, most: least * (most / least) ** share,
    "whole": lambda share, least, most: round(least * (most / least) ** share)}


class Found(NamedTuple):
    """The result of a search: the best parameters [P] and their loss; all that was tried [n P], [n]."""
    best: np.ndarray
    loss: float
    tried: np.ndarray
    losses: np.ndarray


def search(loss, bounds, evaluations=20):
    """The least loss(*parameters) in a box, from few evaluations.

    Half of them go to a grid of the first parameter, the others at their least; the rest to Nelder and Mead (1965)
    from the best of these. bounds: for each parameter (least, most, scale), as in BOUNDS. ValueError for fewer than
    2 P + 2 evaluations.
    """
    P, n, seen = len(bounds), evaluations // 2, {}
    if evaluations < 2 * P + 2:
        raise ValueError(f"{evaluations} evaluations; {P} parameters need {2 * P + 2} or more")

    def at(shares):
        point = tuple(float(min(max(SCALES[scale](share, least, most), least), most))
                      for share, (least, most, scale) in zip(shares, bounds))
        if point not in seen:
            seen[point] = float(loss(*point))
        return seen[point]
    grid = np.zeros((n, P))
    grid[:, 0] = (np.arange(n) + 0.5) / n
    start = grid[np.argmin([at(point) for point in grid])]
    step = np.where(start < 0.5, 0.5, -0.5) / n
    minimize(at, start, method="Nelder-Mead", bounds=[(0, 1)] * P, options={
        "initial_simplex": np.vstack([start, start + np.diag(step)]), "maxfev": evaluations - n})
    best = min(seen, key=seen.get)
    return Found(np.array(best), seen[best], np.array([*seen]), np.array([*seen.values()]))
