"""Frequencies of rotary positions as a config.json describes them, changed for longer texts or not.

`frequencies` in positions.py has the formula; here are its known changes, each by the name of its
`rope_type`, with the parameters that it takes. A type or a parameter that is not computed is
rejected by name. r pairs of features.
"""

import math

import numpy as np

from .config import Rotary
from .positions import frequencies

WIDEST = 1 << 14  # features of a head: none is nearly as wide
ALWAYS = {"rope_theta", "rope_type", "type"}


def default(omega, given):
    """As they are (Su et al. 2021)."""
    return omega, 1.0


def linear(omega, given):
    """All slower by one factor: positions are squeezed (Chen et al. 2023)."""
    return omega / given["factor"], 1.0


def llama3(omega, given):
    """Slow ones slower by a factor, fast ones as they are, between them a blend (Llama 3.1).

    Slow is what turns fewer than low_freq_factor times in the length of the first training.
    """
    low, high = given["low_freq_factor"], given["high_freq_factor"]
    turns = given["original_max_position_embeddings"] * omega / (2 * np.pi)
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return kept * omega + (1 - kept) * omega / given["factor"], 1.0


def yarn(omega, given):
    """Slow ones slower by a factor, by the number of the pair (Peng et al. 2023, YaRN).

    Pairs between those that turn beta_fast and beta_slow times in the length of the first training
    are blended. What is turned grows by attention_factor, by default 0.1 log(factor) + 1.
    """
    first, last = (_pair_that_turns(given[name], given) for name in ("beta_fast", "beta_slow"))
    if given["truncate"]:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, given["width"] - 1)
    if first == last:
        last += 0.001  # the library's way round a division by zero
    slowed = np.clip((np.arange(len(omega)) - first) / (last - first), 0, 1)
    scale = given["attention_factor"]
    if scale is None:
        scale = _growth(given)
    return (1 - slowed) * omega + slowed * omega / given["factor"], scale


def _pair_that_turns(times, given):
    """The number of the pair, not rounded, that turns so often in the first training's length."""
    length, base = given["original_max_position_embeddings"], given["rope_theta"]
    return given["width"] * math.log(length / (times * 2 * math.pi)) / (2 * math.log(base))


def _growth(given):
    """YaRN's attention_factor where the config gives none."""

    def grown(weight):
        return 0.1 * weight * math.log(given["factor"]) + 1.0 if given["factor"] > 1 else 1.0

    if given["mscale"] and given["mscale_all_dim"]:
        return grown(given["mscale"]) / grown(given["mscale_all_dim"])
    return grown(1.0)


def dynamic(omega, given):
    """The slower, the longer a text is beyond that of the training (NTK-aware, bloc97 2023)."""
    if given["width"] < 4 or given["width"] % 2:
        text = f"{given['width']} features of a head are rotated"
        raise ValueError(f"{text}; rope_type 'dynamic' needs an even number of at least 4")
    return omega, 1.0, given["n_ctx"], (), float(given["factor"])


def longrope(omega, given):
    """A factor for each pair, of short and of longer texts (Ding et al. 2024, LongRoPE).

    What is turned grows by attention_factor, by default sqrt(1 + log(factor) / log(length)).
    """
    short, longer = (omega / _of_pairs(name, omega, given) for name in FACTORS)
    length, factor = given[LENGTH], given["factor"] or given["n_ctx"] / given[LENGTH]
    scale = given["attention_factor"]
    if scale is None:
        scale = math.sqrt(1 + math.log(factor) / math.log(length)) if factor > 1 else 1.0
    return short, scale, length, tuple(longer.tolist())


def _of_pairs(name, omega, given):
    """The factors of all pairs. Raises ValueError unless each has one."""
    if len(given[name]) != len(omega):
        text = f"{name} has {len(given[name])} numbers; wanted {len(omega)}"
        raise ValueError(f"{text}, one for each pair of rotated features")
    return np.array(given[name], float)


LENGTH = "original_max_position_embeddings"
FACTORS = "short_factor", "long_factor"
KINDS = {  # rope_type -> formula, parameters that it needs, others with what stands for them
    "default": (default, (), {}),
    "linear": (linear, ("factor",), {}),
    "dynamic": (dynamic, ("factor",), {}),
    "longrope": (longrope, (*FACTORS, LENGTH), {"factor": None, "attention_factor": None}),
    "llama3": (llama3, ("factor", "low_freq_factor", "high_freq_factor", LENGTH), {}),
    "yarn": (
        yarn,
        ("factor", LENGTH),
        {
            "attention_factor": None,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": None,
            "mscale_all_dim": None,
            "truncate": True,
        },
    ),
}


def rotary(given, width, n_ctx):
    """The Rotary of a layer.

    given: rope_parameters of a config.json, with its rope_theta. width: of what is turned of a
    head. n_ctx: the length that is meant where none of a first training is given. Raises ValueError
    for a type or a parameter that is not computed, and for one that is missing.
    """
    kind = given.get("rope_type", given.get("type", "default"))
    if kind not in KINDS:
        raise ValueError(f"rope_type is {kind!r:.80}; supported: {', '.join(KINDS)}")
    formula, needed, others = KINDS[kind]
    given = {name: value for name, value in given.items() if value is not None}
    share = given.pop("partial_rotary_factor", 1.0)  # gpt_neox.py takes its own beforehand
    if share != 1.0:
        text = f"partial_rotary_factor is {share!r:.80}; only 1.0 is supported in this model_type"
        raise ValueError(text)
    if LENGTH in needed:
        given.setdefault(LENGTH, n_ctx)
    for name in given:
        if name not in ALWAYS and name not in needed and name not in others:
            raise ValueError(f"rope_parameters have {name!r:.80}, which {kind!r} does not support")
    for name in needed:
        if name not in given:
            raise ValueError(f"rope_parameters lack {name!r}, which {kind!r} needs")
    _check_numbers(given)
    if width > WIDEST:
        raise ValueError(f"{width} features of a head are rotated; wanted at most {WIDEST}")
    given = others | given | {"width": width, "n_ctx": n_ctx}
    omega, scale, *more = formula(frequencies(given["rope_theta"], width), given)
    return Rotary(tuple(omega.tolist()), float(scale), *more)


def _check_numbers(given):
    """Raises ValueError for a parameter that is no number above 0; truncate is true or false."""
    for name, value in given.items():
        if name in ("rope_type", "type"):
            continue
        if name == "truncate":
            if not isinstance(value, bool):
                raise ValueError(f"truncate is {value!r:.80}; wanted true or false")
        elif name in FACTORS:
            if not isinstance(value, list) or not all(map(_is_above_0, value)):
                raise ValueError(f"{name} is {value!r:.80}; wanted a list of numbers above 0")
        elif not _is_above_0(value):
            raise ValueError(f"{name} is {value!r:.80}; wanted a number above 0")


def _is_above_0(value):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf
