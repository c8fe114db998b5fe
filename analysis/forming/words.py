"""What is said of a training: when each measure formed, and what seeds make of it."""

import numpy as np

from ..machine.language import count, filled, translated
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
        never = "The loss does not leave its plateau in {n} steps."
        return [translated(RULE), filled(never, n=r["steps"][-1])]
    leaves = "The loss leaves its plateau after {n:,.0f} steps."
    said = [translated(RULE), filled(leaves, n=steps[LEAVES])]
    rows = sorted((m for m in known if m.name != LEAVES), key=lambda m: _late(steps[m.name]))
    for m in rows:
        means = translated(m.means)
        values = {"means": means[0].upper() + means[1:], "when": _when(r, m, steps)}
        said.append(filled("{means}: {when} ({numbers}).", numbers=numbers(r, m), **values))
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
        return filled("after {n:,.0f} steps", n=steps[m.name])
    return translated("there from the start" if is_there(r, m.name) else "did not form")


def is_there(r, name):
    """Whether a measure is above chance in every snapshot, and in every seed."""
    return bool((r[name] > r[f"{name}_null"]).all())


def numbers(r, m):
    """'0.03 at the start, 0.95 at the end; all keys alike: 0.04'."""
    x, null = r[m.name], r[f"{m.name}_null"]
    line = "{first:.2f} at the start, {last:.2f} at the end; {what}: {null:.2f}"
    return filled(line, first=x[0], last=x[-1], what=translated(m.null), null=null[-1])


def of_seeds(compared):
    """Sentences about the order in which measures form, and about each kind, over seeds."""
    n = len(next(iter(compared.formed[FIRST].values())))
    lead = "Over {n} seeds with learned positions, mean and 95% interval (Student's t): {parts}."
    parts = []
    for m in moments.MEASURES:
        if m.name in compared.after and m.name != LEAVES:
            order = _order(compared, m.name)
            parts.append(filled("{means} {order}", means=translated(m.means), order=order))
    said = [filled(lead, n=n, parts="; ".join(parts))]
    for kind in compared.kinds:
        if kind != FIRST:
            name = translated(KINDS.get(kind, kind))
            said.append(filled("{name}: {sooner}.", name=name, sooner=_sooner(compared, kind)))
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
            return translated("was there from the start")
        steps = compared.formed[FIRST][name]
        return filled("formed in {n} of {all} seeds", n=np.isfinite(steps).sum(), all=len(steps))
    share, least, most = 1 / np.array([quotient, high, low])
    return filled(side(low, high, ORDERS), share=share, least=least, most=most)


ORDERS = (  # of a measure and the fall of the loss
    "formed after the loss fell, at {share:.2f} ({least:.2f} to {most:.2f}) of its step",
    "formed neither before nor after the loss fell, at {share:.2f} ({least:.2f} to {most:.2f}) of "
    "its step",
    "formed before the loss fell, at {share:.2f} ({least:.2f} to {most:.2f}) of its step",
)


def _sooner(compared, kind):
    """How much later or sooner than with learned positions the loss left its plateau."""
    steps = compared.formed[kind][LEAVES]
    quotient, low, high = compared.sooner[kind]
    if np.isnan(quotient):
        left = np.isfinite(steps).sum()
        line = "the loss left its plateau in {n} of {seeds}"
        text = filled(line, n=left, seeds=count(len(steps), "seed"))
        return text + (filled(", after {n:,.0f} steps", n=np.nanmean(steps)) if left else "")
    return filled(side(low, high, SOONER), quotient=quotient, low=low, high=high)


SOONER = tuple(
    "the loss left its plateau after {quotient:.2f} times as many steps ({low:.2f} to {high:.2f}) "
    f"as with learned positions: {verdict}"
    for verdict in ("sooner", "no clear difference", "later")
)


def side(low, high, names):
    """Of three names: the interval of a quotient lies below 1, holds it, lies above it."""
    return names[1 + int(low > 1) - int(high < 1)]
