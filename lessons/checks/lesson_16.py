"""Checks of lesson 16: the loss of a blind guess, when something was learned, a better model."""

import numpy as np

import minitx

from . import NOT_YET, Wrong
from .arrays import needs_function

VOCABULARIES = 2, 41, 50257
CURVES = (  # steps, values, the answer
    ([0, 1, 10, 100], [0.0, 0.1, 0.6, 0.9], 10),
    ([0, 1, 10, 100], [0.0, 0.7, 0.3, 0.8], 100),  # it fell below again
    ([0, 5, 50], [0.6, 0.8, 0.9], 0),
    ([0, 5, 50], [0.1, 0.9, 0.2], None),
    ([0, 5, 50], [0.0, 0.5, 0.7], 5),  # half is enough
)
ENOUGH, LINES, LONGEST = 0.94, 400, 25
DAYS = dict(zip(range(1, 13), (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)))
MONTHS = (
    "January February March April May June July August September October November December"
).split()


def check_first_loss(answer):
    """The loss of a guess that gives every token the same probability."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda V: 1 / V")
    for V in VOCABULARIES:
        loss = float(answer(V))
        if np.isclose(loss, 1 / V):
            raise Wrong("1 / V is the probability; the loss is minus its logarithm")
        if np.isclose(loss, np.log2(V)) and V > 2:
            raise Wrong("this is in bits; the loss here is in nats, the natural logarithm")
        if np.isclose(loss, -np.log(V)):
            raise Wrong("a loss is positive: minus the logarithm of 1 / V")
        if not np.isclose(loss, np.log(V)):
            raise Wrong(
                f"for V = {V} this gives {loss:.3g}; the probability of each token is 1 / V"
            )
    return "right: ln V, since each token has the probability 1 / V"


def check_step(answer):
    """The first step from which on a share stays at half or more."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda steps, shares: steps[0]")
    for steps, values, expected in CURVES:
        given = answer(list(steps), np.array(values))
        if given == expected and (given is None) == (expected is None):
            continue
        shown = f"steps {steps}, shares {values}: wanted {expected}, this gives {given}"
        if expected is None:
            raise Wrong(f"{shown}; at the end it is below half, so it was not learned")
        if given is not None and given in steps and values[steps.index(given)] >= 0.5:
            raise Wrong(f"{shown}; after that step the share falls below half once more")
        raise Wrong(shown)
    return "right: a share that falls below half again does not count"


def dates():
    """All dates as the lesson writes them."""
    return {f"the {d}{_ending(d)} of {MONTHS[m - 1]}" for m in DAYS for d in range(1, DAYS[m] + 1)}


def _ending(day):
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def check_model(answer, unseen):
    """A model more than ENOUGH of whose lines are dates, some of them never read."""
    if answer is ...:
        return NOT_YET
    if isinstance(answer, minitx.History):
        raise Wrong("this is the history; wanted its .model")
    if not isinstance(answer, minitx.Model):
        raise Wrong(
            f"wanted a model, such as minitx.train(…).model; this is {type(answer).__name__}"
        )
    lines = written(answer)
    known = dates()
    share = np.mean([line in known for line in lines])
    if share <= ENOUGH:
        raise Wrong(f"{share:.1%} of its lines are dates; wanted more than {ENOUGH:.0%}: go on")
    n_new = sum(line in unseen for line in lines)
    if not n_new:
        raise Wrong("none of the dates that were kept back: it knows the others by heart")
    return f"right: {share:.1%} of its lines are dates, {n_new} of {len(lines)} were never read"


def written(model, seed=2):
    """LINES lines that a model writes, none of which the lesson has shown."""
    rng = np.random.default_rng(seed)
    ids = np.tile(model.tokenizer.encode("\n"), (LINES, 1))
    for _ in range(LONGEST):
        y = minitx.run(model, ids, "logits")["logits"][:, -1].astype(float)
        p = np.exp(y - y.max(axis=1, keepdims=True))
        p = (p / p.sum(axis=1, keepdims=True)).cumsum(axis=1)
        ids = np.column_stack([ids, (p > rng.random((LINES, 1))).argmax(axis=1)])
    return [model.tokenizer.decode(row)[1:].split("\n")[0] for row in ids]
