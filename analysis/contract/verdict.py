"""One rule for all answers: yes, partly, no or undecided, from a value, its null and a margin.

A value counts as an effect only if it exceeds its null, what chance reaches, by more than the
margin: a tenth of the largest value possible, or of the null where there is no largest value. Where
not even the largest value could exceed the null by the margin, a value near the null leaves the
question undecided; so does an interval with ends on both sides of null and margin, or one that is
not there (nan).
"""

import math
from typing import NamedTuple

VERDICTS = ("yes", "partly", "no", "undecided", "nothing")  # the last by nothing.py
MARGIN = 0.1  # of the largest value possible, by which a value has to exceed its null
NATS = 0.05  # per token: margin of losses, about a tenth of what small models gain from positions
EFFECTS = ("yes", "partly")


def of_few(n):
    """The margin of a share of n heads: that of all shares, but more than one head of few."""
    return max(MARGIN, 1.001 / n)


class Finding(NamedTuple):
    """A measured value beside what chance reaches."""

    value: float  # of an interval its lower end
    null: float
    enough: float  # value from which the answer is yes
    most: float  # largest value possible
    margin: float  # by which the value has to exceed the null
    high: float  # upper end of its interval; without one the value

    @property
    def verdict(self):
        """One of VERDICTS, by the rule.

        >>> beside(28, null=27, enough=14, most=28).verdict
        'undecided'
        >>> [beside(n, null=3, enough=25, most=28).verdict for n in (28, 14, 5)]
        ['yes', 'partly', 'no']
        >>> beside(5, null=3, most=28, high=12).verdict
        'undecided'
        """
        if any(map(math.isnan, (self.value, self.null, self.high))):
            return "undecided"
        if self.most - self.null <= self.margin and self.value >= self.null - self.margin:
            return "undecided"
        if self.value - self.null <= self.margin:
            return "no" if self.high - self.null <= self.margin else "undecided"
        return "yes" if self.value >= self.enough else "partly"


def beside(value, null, *, enough=0.0, most=1.0, margin=None, high=None):
    """The Finding of a value and its null.

    enough: value from which the answer is yes (0: from the margin on). most: largest value
    possible: 1 for shares, n for n of n, inf where there is none. margin: where a tenth of `most`,
    or of the null for inf, would be wrong. high: upper end of an interval, of which `value` is the
    lower one.
    """
    if margin is None:
        margin = MARGIN * (most if math.isfinite(most) else abs(null))
    numbers = value, null, enough, most, margin, value if high is None else high
    return Finding(*map(float, numbers))


def below(value, null, *, low=None, **options):
    """The Finding of a value whose effect is to be less than its null, with options of `beside`.

    low: lower end of an interval, of which `value` is the upper one. The difference stands beside
    0; where there is no largest value its margin is a tenth of the null.

    >>> [below(x, null=10, most=math.inf).verdict for x in (9.99, 8.9)]
    ['no', 'yes']
    """
    options["margin"] = beside(null, null, **options).margin
    return beside(null - value, 0, high=None if low is None else null - low, **options)


def every(*findings):
    """Findings of equal weight: yes if all say yes, partly if only some show an effect.

    >>> shown, absent = beside(0.9, null=0.1), beside(0.1, null=0.1)
    >>> every(shown, shown), every(shown, absent), every(absent, absent)
    ('yes', 'partly', 'no')
    """
    verdicts = [finding.verdict for finding in findings]
    if not any(verdict in EFFECTS for verdict in verdicts):
        return "undecided" if "undecided" in verdicts else "no"
    return "yes" if all(verdict == "yes" for verdict in verdicts) else "partly"


def led(leading, *others):
    """One finding decides whether there is an effect; yes takes all the others, too.

    >>> shown, absent = beside(0.9, null=0.1), beside(0.1, null=0.1)
    >>> led(shown, absent), led(absent, shown)
    ('partly', 'no')
    """
    if leading.verdict != "yes" or all(finding.verdict == "yes" for finding in others):
        return leading.verdict
    return "partly"
