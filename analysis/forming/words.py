"""What is said of a training: when each measure formed, and what seeds make of it."""

import numpy as np

from ..maths import onsets
from . import moments
from .seeds import FIRST, LEAVES

RULE = (
    "A measure has formed at the step from which it stays above what chance gives and past half "
    "of its way to its last value. The loss leaves its plateau when the part of it that positions "
    "save has formed."
)


def of_history(r):
    """Sentences about one training, from its results."""
    known = [m for m in moments.MEASURES if m.name in r]
    steps = {m.name: onset(r, m.name) for m in known}
    if np.isnan(steps[LEAVES]):
        return [RULE, f"The loss does not leave its plateau in {r['steps'][-1]} steps."]
    said = [RULE, f"The loss leaves its plateau after {steps[LEAVES]:,.0f} steps."]
    rows = sorted((m for m in known if m.name != LEAVES), key=lambda m: _late(steps[m.name]))
    for m in rows:
        said.append(f"{m.means[0].upper()}{m.means[1:]}: {_when(r, m, steps)} ({numbers(r, m)}).")
    return said


def onset(r, name):
    """The step at which a measure of results formed; nan: it did not."""
    return onsets.formed(r["steps"], r[name], r[f"{name}_null"])


def _late(step):
    """A key that puts what did not form last."""
    return np.inf if np.isnan(step) else step


def _when(r, m, steps):
    """When it formed; what is above chance in every snapshot, and does not rise, was there."""
    if np.isfinite(steps[m.name]):
        return f"after {steps[m.name]:,.0f} steps"
    return "there from the start" if is_there(r, m.name) else "did not form"


def is_there(r, name):
    """Whether a measure is above chance in every snapshot, and in every seed."""
    return bool((r[name] > r[f"{name}_null"]).all())


def numbers(r, m):
    """'0.03 at the start, 0.95 at the end; all keys alike: 0.04'."""
    x, null = r[m.name], r[f"{m.name}_null"]
    return f"{x[0]:.2f} at the start, {x[-1]:.2f} at the end; {m.null}: {null[-1]:.2f}"


def of_seeds(compared):
    """Sentences about the order in which measures form, and about each kind, over seeds."""
    n = len(next(iter(compared.formed[FIRST].values())))
    lead = f"Over {n} seeds with learned positions, mean and 95 % interval (Student's t): "
    parts = []
    for m in moments.MEASURES:
        if m.name in compared.after and m.name != LEAVES:
            parts.append(f"{m.means} {_order(compared, m.name)}")
    said = [lead + "; ".join(parts) + "."]
    for kind in compared.kinds:
        if kind != FIRST:
            said.append(f"{KINDS.get(kind, kind)}: {_sooner(compared, kind)}.")
    return said


KINDS = {
    "learned": "Learned positions",
    "rotary": "Rotary positions in place of a table",
    "sinusoidal": "A fixed table of sinusoids",
    "frozen": "Null: the table stays as random as it begins",
    "words": "The words of the text in random order",
}


def _order(compared, name):
    """When a measure formed, as a multiple of the step at which the loss left its plateau."""
    quotient, low, high = compared.after[name]
    if np.isnan(quotient):
        if is_there(compared.kinds[FIRST], name):
            return "was there from the start"
        steps = compared.formed[FIRST][name]
        return f"formed in {np.isfinite(steps).sum()} of {len(steps)} seeds"
    place = side(low, high, ("after", "neither before nor after", "before"))
    share, least, most = 1 / np.array([quotient, high, low])
    return f"formed {place} the loss fell, at {share:.2f} ({least:.2f} to {most:.2f}) of its step"


def _sooner(compared, kind):
    """How much later or sooner than with learned positions the loss left its plateau."""
    steps = compared.formed[kind][LEAVES]
    quotient, low, high = compared.sooner[kind]
    if np.isnan(quotient):
        left = np.isfinite(steps).sum()
        several = "s" if len(steps) > 1 else ""
        text = f"the loss left its plateau in {left} of {len(steps)} seed{several}"
        return text + (f", after {np.nanmean(steps):,.0f} steps" if left else "")
    verdict = side(low, high, ("sooner", "no clear difference", "later"))
    return (
        f"the loss left its plateau after {quotient:.2f} times as many steps "
        f"({low:.2f} to {high:.2f}) as with learned positions: {verdict}"
    )


def side(low, high, names):
    """Of three names: the interval of a quotient lies below 1, holds it, lies above it."""
    return names[1 + int(low > 1) - int(high < 1)]
