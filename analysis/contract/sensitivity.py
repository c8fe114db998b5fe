"""How much a verdict hangs on its thresholds: the same rule asked again with each of them scaled.

What is enough for yes, and the margin by which an effect exceeds its null, are conventions. From
results, without another pass, a verdict is asked at half and at twice a threshold, and where it
changes (a multiverse of choices, Steegen et al. 2016).
"""

from ..machine.language import filled, translated
from . import nothing, wording
from .rules import Asks

NEAR = 0.2  # a verdict that changes within this share of a threshold hangs on it
FAR = 4.0  # times a threshold, and as a divisor: how far is looked
STEPS = 10  # of the search for where a verdict changes: to a seventh of a percent
HOLDS = "{threshold}: holds from {low} to {high} (at {at_half} {half}, at {at_twice} {twice})"
THRESHOLDS = {"enough": "what is enough for yes", "margin": "the margin above chance"}


def of(asks, result):
    """{threshold: its record} of an experiment's answer to results; {} where a rule has none.

    from, to: times the threshold between which the verdict holds; half, twice: the verdict there;
    hangs: whether it changes within NEAR; value: the threshold, where it is one number; reach: how
    far is looked, also for twice, in times the threshold: to the largest value and no farther.
    """
    if not isinstance(asks, Asks) or nothing.KIND in result:
        return {}
    own = asks(result).verdict
    return {name: _record(asks, result, own, name) for name in THRESHOLDS if _values(asks, name)}


def _values(asks, name):
    """The thresholds of this name in the rules; those that stay what they are left out."""
    return {getattr(finding, name) for finding in asks.findings()} - {0, float("inf")}


def _record(asks, result, own, name):
    """The record of one threshold."""

    def scaled(times):
        return asks.scaled(((name, times),))(result).verdict

    reach = _reach(asks) if name == "enough" else FAR
    low, high = (_edge(lambda times: scaled(times) == own, far) for far in (1 / FAR, reach))
    values = _values(asks, name)
    record = {"from": low, "to": high, "half": scaled(0.5), "twice": scaled(min(2.0, reach))}
    record |= {"hangs": low > 1 - NEAR or high < min(1 + NEAR, reach), "reach": reach}
    value = values.pop() if len(values) == 1 else None
    return record | {"value": float(value) if isinstance(value, (int, float)) else None}


def _reach(asks):
    """How many times what is enough for yes the largest value is, of all rules; up to FAR."""
    times = []
    for rule in asks.findings():
        most = 1 if rule.out_of is not None else rule.most
        if rule.enough and all(isinstance(x, (int, float)) for x in (most, rule.enough)):
            times.append(most / rule.enough)
    return min(FAR, max(1.0, *times)) if times else FAR


def _edge(holds, far):
    """How far from 1, at most up to `far`, a verdict holds; between them it changes once."""
    if holds(far):
        return far
    near = 1.0
    for _ in range(STEPS):
        middle = (near * far) ** 0.5
        near, far = (middle, far) if holds(middle) else (near, middle)
    return near


def words(sensitivity):
    """A line for each threshold of a record; "" without any."""
    return "\n".join(_line(name, **record) for name, record in sensitivity.items())


def _line(name, half, twice, hangs, value, reach, **ends):
    """Where the verdict holds: as times the threshold, or where it is one number as that."""
    unit = "" if value else translated(" times")
    numbers = [x * (value or 1) for x in (ends["from"], ends["to"], 0.5, min(2, reach))]
    numerals = (f"{x:.2g}{unit}" for x in numbers)
    places = dict(zip(("low", "high", "at_half", "at_twice"), numerals))
    places |= {"half": wording.in_sentence(half), "twice": wording.in_sentence(twice)}
    text = filled(HOLDS, threshold=translated(THRESHOLDS[name]), **places)
    return text + (translated("; hangs on the threshold") if hangs else "")
