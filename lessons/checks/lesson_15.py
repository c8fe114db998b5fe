"""Checks of lesson 15: two directions, a group of heads, a head that is defended on other pairs."""

from functools import cache

import numpy as np

import minitx
from minitx import circuits
from minitx.weights.local import bundled

from . import NOT_YET, Wrong

DIRECTIONS = {"either": (1, 0), "both": (0, 1)}  # restored, lost
GROUP, FEW = 3, 0.1  # heads at most, share of the words
N_WORDS, N_TEXTS = 24, 32
N_PAIRS = 12


def check_directions(answer):
    """What patching one of two heads restores and loses, where either or both are needed."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, dict) or {*answer} != {*DIRECTIONS}:
        raise Wrong(f"{answer!r}: wanted {{'either': (restored, lost), 'both': (restored, lost)}}")
    for name, right in DIRECTIONS.items():
        if np.shape(answer[name]) != (2,):
            raise Wrong(f"{name} is {answer[name]!r}; wanted two numbers, (restored, lost)")
        for way, value, wanted in zip(("restored", "lost"), answer[name], right):
            if not np.isclose(value, wanted):
                raise Wrong(f"{name}: {way} is not {value:g}; {HINTS[way]}")
    return "right: restoring misses heads that need each other, losing misses backups"


HINTS = {
    "restored": "b is still corrupt, 0; what is the answer of a = 1 and b = 0, less that of 0, 0?",
    "lost": "b is still clean, 1; what is the answer of 1, 1 less that of a = 0 and b = 1?",
}


def check_group(answer):
    """At most three heads of layer 0, without L0H0, whose loss leaves few words right."""
    if answer is ...:
        return NOT_YET
    try:
        group = sorted({int(head) for head in answer})
    except TypeError:
        raise Wrong(f"{answer!r}: wanted some heads, such as {{1, 2}}") from None
    if not set(group) <= set(range(8)):
        raise Wrong(f"{group}: heads are 0 to 7")
    if 0 in group:
        raise Wrong("L0H0 alone breaks the model, as the first figure shows: without it, please")
    if len(group) > GROUP:
        raise Wrong(f"{len(group)} heads; at most {GROUP} are wanted")
    share = share_right(tuple(group))
    if share >= FEW:
        raise Wrong(f"{share:.0%} of the words are still right: which other head can stand in?")
    return f"right: {share:.1%} of the words are left"


@cache
def share_right(off):
    """Share of repeated words that tiny-induction guesses without some heads of layer 0."""
    model = minitx.load("tiny-induction")
    words = np.arange(1, model.config.n_vocab)
    rng = np.random.default_rng(1)
    first = np.array([rng.permutation(words)[:N_WORDS] for _ in range(N_TEXTS)])
    tokens = np.hstack([first, first])

    def silent(z):
        z[:, list(off)] = 0
        return z

    y = minitx.run(model, tokens, "logits", {("z", 0): silent})["logits"]
    guesses = y.argmax(axis=-1)[:, N_WORDS:-1]
    return float((guesses == tokens[:, N_WORDS + 1 :]).mean())


def check_evidence(answer):
    """A head that restores most on half of the pairs, and beats chance on the other half."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, tuple | list) or len(answer) != 4:
        raise Wrong(f"wanted (model, pairs, layer, head); this has {_length(answer)} parts")
    name, pairs, *place = answer
    if name not in bundled():
        raise Wrong(f"no bundled model {name!r}; available: {', '.join(bundled())}")
    if len(pairs) < N_PAIRS:
        raise Wrong(f"{len(pairs)} pairs; wanted {N_PAIRS} or more, of which half choose the head")
    model = minitx.load(name)
    choosing, tested = (_patched(model, pairs[start::2]) for start in (0, 1))
    n_layers, n_heads = choosing.shape
    layer, head = place
    if not (0 <= layer < n_layers and 0 <= head < n_heads):
        raise Wrong(f"L{layer}H{head}: this model has {n_layers} layers of {n_heads} heads")
    best = tuple(int(i) for i in np.unravel_index(choosing.effects.argmax(), choosing.shape))
    if (layer, head) != best:
        raise Wrong(
            f"L{layer}H{head} restores {choosing[layer, head]:.2f} of the pairs that choose; "
            "another head restores more"
        )
    if (tested.clean > tested.corrupt).mean() < 0.9:
        raise Wrong("the model does not know the answer: clean texts must make it likelier")
    low, chance = tested.intervals[0, layer, head], abs(tested.null).max()
    said = f"L{layer}H{head} restores {tested[layer, head]:.2f} of other pairs, at least {low:.2f}"
    if low <= chance:
        raise Wrong(f"{said}; the best head by chance {chance:.2f}: more pairs, or another claim?")
    return f"right: {said}; the best head by chance {chance:.2f}"


def _length(answer):
    return len(answer) if hasattr(answer, "__len__") else 1


def _patched(model, pairs):
    """Effects of every head on pairs (clean, corrupt, right, wrong); Wrong with the reason."""
    try:
        clean, corrupt, right, wrong = (list(column) for column in zip(*pairs))
        return circuits.patch(model, clean, corrupt, list(zip(right, wrong)))
    except ValueError as error:
        raise Wrong(f"these pairs cannot be compared: {error}") from None
