"""How an experiment answers its question: which number is set beside which null, and how it counts.

    Asks(
        "consecutive layers that keep half of it",
        value="{n_kept} of {n_layers}",
        chance="{n_kept_null} of {n_layers}",
        rule=Of("n_kept", out_of="n_layers", enough=1),
    )

Measure, value and chance are templates (sentences.py); the rule is data, so that it can be asked
which null a verdict looks at.
"""

import copy
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from ..drawing.sentences import Names, tell
from ..machine.language import filled
from . import nothing, verdict

ROWS, DOCUMENTS = 10, 8  # rows a feature, and documents, from which on a fit may say no
NATS = {"most": np.inf, "margin": verdict.NATS}  # options of a rule for losses


class Answer(NamedTuple):
    """What one run answers to the experiment's question."""

    verdict: str  # yes, partly, no or undecided, by the rule of verdict.py; nothing (nothing.py)
    measure: str  # what was measured, in words that stand alone
    value: str  # as a reader is to see it: "7 of 7", "59%"
    chance: str  # the same by chance, or by the text alone


@dataclass(frozen=True)
class Of:
    """The result NAME beside its null, with the options of verdict.beside.

    Each option is a number, a field of the results such as "n" or "mean[0]", or a function of the
    results. null: where that is not NAME_null; of several the largest. out_of: what is counted, of
    which `enough` is a share. interval: two ends, NAME_interval where there is one: for an
    effect the lower one has to exceed the null, and for none the upper one must not; where there
    are none, of one document, nothing is decided.
    """

    name: str
    null: object = None
    enough: object = 0.0
    most: object = 1.0
    margin: object = None
    out_of: object = None
    interval: object = None
    times: tuple = ()  # (threshold, factor) pairs: see sensitivity.py

    @property
    def null_name(self):
        """NAME_null, of an entry NAME[i] NAME_null[i], or what stands in its place."""
        if self.null is not None:
            return self.null
        name, bracket, place = self.name.partition("[")
        return f"{name}_null{bracket}{place}"

    def finding(self, names):
        """The Finding of verdict.py."""
        low, high = self._ends(names)
        finding = verdict.beside(low, self._null(names), high=high, **self._options(names))
        return self._times(finding)

    def _times(self, finding):
        """A finding with its thresholds scaled; no more is enough than the largest value."""
        scaled = {name: times * getattr(finding, name) for name, times in self.times}
        if "enough" in scaled:
            scaled["enough"] = min(scaled["enough"], max(finding.most, finding.enough))
        return finding._replace(**scaled)

    def scaled(self, times):
        """The rule with its thresholds scaled, by (threshold, factor) pairs."""
        return replace(self, times=times)

    def _ends(self, names):
        """The least and the largest of the value and the ends of its interval."""
        ends = [names.value(self.name)]
        own = f"{self.name}_interval"
        if self.interval is not None:
            ends = [*ends, *names.value(self.interval)]
        elif own in names.result and np.shape(names[own]) == (2,):
            ends = [*ends, *names[own]]
        return np.min(ends), np.max(ends)

    def _null(self, names):
        nulls = self.null_name if isinstance(self.null_name, tuple) else [self.null_name]
        return np.max([names.value(null) for null in nulls])

    def _options(self, names):
        """The options of verdict.beside."""
        enough, most = names.value(self.enough), names.value(self.most)
        if self.out_of is not None:
            n = names.value(self.out_of)
            enough, most = enough * n, n
        return {"enough": enough, "most": most, "margin": names.value(self.margin)}

    def verdict(self, names):
        """One of verdict.VERDICTS."""
        return self.finding(names).verdict

    def findings(self):
        """Every comparison of a value with its null that the rule makes."""
        return [self]

    def lack(self, names):
        """What there is too little of for a verdict, in words; see Enough."""
        return ""


@dataclass(frozen=True)
class Share(Of):
    """A share of heads or of an answer; no is said only where one that is enough would stand out.

    Where all pairs have one answer, unrelated pairs restore it, too; of few tokens a shuffled one
    is often the nearest: nothing can be told.
    """

    def verdict(self, names):
        """By verdict.py, but undecided where the null itself is as high as what is asked for."""
        finding = self.finding(names)
        hidden = finding.null + finding.margin >= finding.enough
        return "undecided" if hidden and finding.verdict == "no" else finding.verdict


@dataclass(frozen=True)
class Below(Of):
    """By how much the result NAME is below its null: what is less than chance gives is the effect.

    enough: of this difference.
    """

    def finding(self, names):
        """The Finding of the difference beside 0."""
        low, high = self._ends(names)
        finding = verdict.below(high, self._null(names), low=low, **self._options(names))
        return self._times(finding)


@dataclass(frozen=True)
class Each(Of):
    """Entries of the list NAME beside those of NAME_null, as findings of equal weight.

    where: only those entries of which this result is not 0. A list among the options gives each
    entry its own.
    """

    where: str = ""

    def by_entry(self, names):
        """{number of the entry: Finding}."""
        values, nulls = (np.atleast_1d(names.value(x)) for x in (self.name, self.null_name))
        rows = np.flatnonzero(names[self.where]) if self.where else range(len(values))
        columns = {"name": values, "null": nulls}
        if self.out_of is not None:
            columns["out_of"] = np.broadcast_to(names.value(self.out_of), values.shape)
        if self.interval is not None:
            columns["interval"] = names.value(self.interval)
        return {int(i): self._alone(columns, i).finding(names) for i in rows}

    def _alone(self, columns, i):
        """The rule of entry i."""
        own = {option: column[i] for option, column in columns.items()}
        kept = {name: getattr(self, name) for name in ("enough", "most", "margin", "times")}
        return Of(**kept | own)

    def verdict(self, names):
        """By verdict.every."""
        return verdict.every(*self.by_entry(names).values())


class _Together:
    """Rules that make one verdict."""

    def __init__(self, *rules):
        self.rules = rules

    def findings(self):
        """Every comparison of a value with its null that the rules make."""
        return [finding for rule in self.rules for finding in rule.findings()]

    def scaled(self, times):
        """These rules with their thresholds scaled."""
        new = copy.copy(self)
        new.rules = tuple(rule.scaled(times) for rule in self.rules)
        return new

    def lack(self, names):
        """What the first of the rules lacks that lacks anything."""
        return next(filter(None, (rule.lack(names) for rule in self.rules)), "")

    def _by_rule(self, names):
        """What verdict.every and verdict.led read."""
        return [SimpleNamespace(verdict=rule.verdict(names)) for rule in self.rules]


class Every(_Together):
    """Rules of equal weight: yes if all say yes, partly if only some show an effect."""

    def verdict(self, names):
        """By verdict.every."""
        return verdict.every(*self._by_rule(names))


class Led(_Together):
    """The first rule decides whether there is an effect; yes takes all the others, too."""

    def verdict(self, names):
        """By verdict.led."""
        return verdict.led(*self._by_rule(names))


class Provided(_Together):
    """The last rule, provided that all before it show an effect; if not, the verdict `otherwise`.

    What has to be there for the question to make sense: a model that uses positions at all. Where
    one of these is undecided, so is the answer.
    """

    def __init__(self, *rules, otherwise="undecided"):
        super().__init__(*rules)
        self.otherwise = otherwise

    def verdict(self, names):
        """Of the last rule, or `otherwise`."""
        *conditions, asked = self.rules
        missing = {rule.verdict(names) for rule in conditions} - {*verdict.EFFECTS}
        if not missing:
            return asked.verdict(names)
        return "undecided" if "undecided" in missing else self.otherwise


class Enough(_Together):
    """A rule on what was fitted to n_rows of n_features: where these are too few, only yes stands.

    Least squares loses (1 - R²) D / (n - D) of R² on other rows (Browne 1975): with ROWS rows a
    feature about as much as the margin. stands: the verdicts that few rows leave; () where the null
    is fitted to as few and loses as much.
    """

    def __init__(self, rule, stands=("yes",)):
        super().__init__(rule)
        self.stands = stands

    def verdict(self, names):
        """Of the rule; undecided in place of what does not stand where rows are too few."""
        kind = self.rules[0].verdict(names)
        return kind if kind in self.stands or not self.lack(names) else "undecided"

    def lack(self, names):
        """How many rows or documents there are, and how many would do; "" where they do."""
        n, D = int(names["n_rows"]), int(names["n_features"])
        if n < ROWS * D:
            text = "; {n:,} rows for {features} features, {enough:,} would do"
            return filled(text, n=n, features=D, enough=ROWS * D)
        n = int(np.sum(names.result.get("documents", DOCUMENTS)))
        if n < DOCUMENTS:
            return filled("; {n} documents, {enough} would do", n=n, enough=DOCUMENTS)
        return ""


@dataclass(frozen=True)
class Without:
    """What is answered where a result is 0 or missing, so that there is nothing to ask of."""

    name: str
    value: object = None  # templates; None: those of the question; an Asks: asked in its place
    chance: object = None
    verdict: str = "undecided"


@dataclass(frozen=True)
class Asks:
    """What is measured for the answer, how a reader sees it, and the rule of its verdict."""

    measure: object
    value: object
    chance: object
    rule: object
    without: Without | None = None
    scope: dict = field(default_factory=dict, repr=False)  # the experiment's file

    def __call__(self, result):
        if nothing.KIND in result:
            return Answer(nothing.KIND, *nothing.words(result), "")
        names = Names(result, self.scope)
        value, chance = self.value, self.chance
        lacks = self._lacks(names)
        if lacks and isinstance(lacks.value, Asks):
            return replace(lacks.value, scope=self.scope)(result)
        if lacks:
            value = value if lacks.value is None else lacks.value
            chance = chance if lacks.chance is None else lacks.chance
        kind = lacks.verdict if lacks else self.rule.verdict(names)
        texts = [tell(piece, names) for piece in (self.measure, value, chance)]
        if kind == "undecided" and not lacks:
            texts[1] += self.rule.lack(names)
        return Answer(kind, *texts)

    def _lacks(self, names):
        """`without`, where there is nothing to ask of; else None."""
        return self.without if self.without and not names.has(self.without.name) else None

    def is_idle(self, result):
        """Whether an answer is undecided because there was nothing to ask of."""
        lacks = self._lacks(Names(result, self.scope))
        return bool(lacks) and lacks.verdict == "undecided" and not isinstance(lacks.value, Asks)

    def scaled(self, times):
        """The same with thresholds scaled, also of what is asked in its place."""
        without = self.without
        if without and isinstance(without.value, Asks):
            without = replace(without, value=without.value.scaled(times))
        return replace(self, rule=self.rule.scaled(times), without=without)

    def findings(self):
        """Every comparison of a value with its null, also of what is asked in its place."""
        other = self.without and self.without.value
        return self.rule.findings() + (other.findings() if isinstance(other, Asks) else [])
