"""The top of the report: one answer to every question, by theme; counts of them; the sections."""

import base64
from html import escape
from textwrap import shorten

from ..contract import sensitivity, wording
from ..contract.registry import Answer
from ..machine.language import count, filled, translated
from ..running import single
from . import parts, themes

# names under which results count documents that were not read: empty, or of one token
LEFT_OUT = "left_out", "n_skipped", "skipped"
TITLES = "Answer", "Question, and what was measured", "This model, and chance", "Figure"
LONGEST = 60  # letters of a value that stands for an answer
MEANING = (  # of contract/verdict.py
    "Partly: more than chance gives, but not everywhere, or not enough for a yes. "
    "No: no more than chance gives."
)


def answer_of(outcome):
    """(verdict, measure, value, chance) of an outcome or of a failure.

    An experiment that gives no verdict is represented by its first headline number.
    """
    if isinstance(outcome, single.Failure):
        return Answer("left out" if outcome.left_out else "failed", outcome.reason, "", "")
    if outcome.answer:
        return outcome.answer
    number = next(iter(outcome.headline.values()), {"value": None, "means": translated("nothing")})
    value = shorten(wording.labelled(number), LONGEST, placeholder=" …")
    null = wording.words(number["null"]) if "null" in number else ""
    return Answer("measured", number["means"], value, null)


def hangs(experiment, outcome):
    """From where to where each threshold may lie for the same answer, in words."""
    return sensitivity.words(sensitivity_of(experiment, outcome))


def sensitivity_of(experiment, outcome):
    """The record of it; {} of a failure."""
    if isinstance(outcome, single.Failure):
        return {}
    return sensitivity.of(experiment.answer, outcome.result)


def answers(runs, link):
    """Table with the answer to every question: verdict, question, number beside chance, figure.

    runs: (experiment, outcome, seconds) of each. The questions of one theme stand together.
    link: the Linker of the first screen.
    """
    head = "".join(f'<th scope="col">{title}</th>' for title in map(translated, TITLES))
    body = ""
    for theme, own in themes.grouped(runs).items():
        counts = f'<span class="counts">{_counts(own)}</span>'  # on a phone, which folds the rows
        title = f'<th scope="rowgroup" colspan="4">{escape(translated(theme))}{counts}</th>'
        start = f'<tr class="theme" id="{themes.anchor(theme)}">'
        rows = "".join(_row(experiment, outcome, link) for experiment, outcome, _ in own)
        body += f"<tbody>{start}{title}</tr>{rows}</tbody>"
    return (
        f'<section id="answers"><h2 class="hidden">{translated("Answers")}</h2>'
        f'<table class="answers"><thead><tr>{head}</tr></thead>{body}</table></section>'
    )


def _row(experiment, outcome, link):
    verdict, measure, value, chance = answer_of(outcome)
    question = f'<a href="#{experiment.name}">{escape(translated(experiment.question))}</a>'
    beside = parts.soft(chance and filled("chance: {chance}", chance=chance))
    return (
        f'<tr><td>{parts.mark(verdict, hangs(experiment, outcome))}</td><th scope="row">{question}'
        f'<span class="soft">{link(measure)}</span></th>'
        f"<td><b>{escape(value)}</b>{beside}</td>"
        f"<td>{_thumbnail(experiment, outcome)}</td></tr>"
    )


def _thumbnail(experiment, outcome):
    """A small picture that links to the figure; the question beside it links there, too."""
    if isinstance(outcome, single.Failure) or not outcome.thumbnail:
        return ""
    source = f"data:image/png;base64,{base64.b64encode(outcome.thumbnail).decode()}"
    link = f'href="#{experiment.name}" tabindex="-1" aria-hidden="true"'
    return f'<a class="thumbnail" {link}><img alt="" src="{source}"></a>'


def tally(runs, more=""):
    """How many questions have which answer: one line, which opens to the other counts.

    These are the statements on any transformer, apart; what was left out; and `more`, HTML.
    """
    of_any = themes.grouped(runs).get(themes.ANY, [])
    own = [run for run in runs if run not in of_any]
    asked = filled("{questions} about this model:", questions=count(len(own), "question"))
    stated = count(len(of_any), "statement")
    stated = filled("{statements} about any transformer:", statements=stated)
    lines = [f"{asked} {_counts(own)}"] if own else []
    lines += [f"{stated} {_counts(of_any)}"] if of_any else []
    lines.append(escape(_left_out(runs)))
    first, *rest = lines
    first += f' <span class="soft">{translated(MEANING)}</span>'
    folded = "".join(f'<p class="tally">{line}</p>' for line in rest) + more
    return f'<details class="tally"><summary>{first}</summary>{folded}</details>'


def _counts(runs):
    verdicts = [answer_of(outcome).verdict for _, outcome, _ in runs]
    kinds = [kind for kind in parts.SIGNS if kind in verdicts]
    return " ".join(
        f'<span class="counted">{parts.mark(kind)}&nbsp;<b>{verdicts.count(kind)}</b></span>'
        for kind in kinds
    )


def _left_out(runs):
    """A sentence on the experiments and the documents that were left out."""
    outcomes = [outcome for _, outcome, _ in runs]
    failures = [outcome for outcome in outcomes if isinstance(outcome, single.Failure)]
    late = sum(isinstance(failure, single.NoTime) for failure in failures)
    lacking = sum(failure.left_out for failure in failures) - late
    counts = [documents_left_out(outcome) for outcome in outcomes if outcome not in failures]
    left = []
    if lacking:
        shown = "{experiments} not applicable to this model"
        left.append(filled(shown, experiments=count(lacking, "experiment")))
    if late:
        left.append(filled("{experiments} for lack of time", experiments=count(late, "experiment")))
    if len(failures) > lacking + late:
        failed = count(len(failures) - lacking - late, "experiment")
        left.append(filled("{experiments} that failed", experiments=failed))
    if sum(counts):
        readers = count(sum(n > 0 for n in counts), "experiment")
        documents = count(sum(counts), "document")
        empty = "{documents} in {experiments} (empty, or of one token)"
        left.append(filled(empty, documents=documents, experiments=readers))
    return filled("Left out: {what}.", what="; ".join(left) or translated("nothing"))


def documents_left_out(outcome):
    """How many documents an experiment did not read."""
    counts = [outcome.result[name] for name in LEFT_OUT if name in outcome.result]
    return int(sum(count.sum() for count in counts))


def leads():
    """A link to the answers, on a first screen on which none stands."""
    return f'<a class="leads" href="#answers">{translated("All questions and answers")}</a>'


def contents(runs):
    """The list of sections, each experiment behind the sign of its answer.

    On narrow screens it shows the themes alone, which lead to their answers.
    """
    items = f'<li><a href="#answers">{translated("Answers")}</a></li>'
    for theme, own in themes.grouped(runs).items():
        title = f'<a href="#{themes.anchor(theme)}">{escape(translated(theme))}</a>'
        items += f'<li class="theme">{title}</li>'
        items += "".join(_item(experiment, outcome) for experiment, outcome, _ in own)
    for id_ in ("published", "glossary"):
        items += f'<li><a href="#{id_}">{translated(id_.capitalize())}</a></li>'
    return f'<nav aria-label="{translated("Sections")}">{_key(runs)}<ol>{items}</ol></nav>'


def _key(runs):
    """What the signs of the list mean, those that stand in it; wide screens have both."""
    verdicts = {answer_of(outcome).verdict for _, outcome, _ in runs}
    kinds = [kind for kind in parts.SIGNS if kind in verdicts]
    words = {kind: escape(wording.in_sentence(kind)) for kind in kinds}
    signs = (f"<span>{parts.sign(kind)} {word}</span>" for kind, word in words.items())
    return f'<p class="key">{" ".join(signs)}</p>'


def _item(experiment, outcome):
    """An entry of the list: a link to the section of an experiment."""
    sign = parts.sign(answer_of(outcome).verdict)
    name = escape(themes.short(experiment.name))
    verdict = translated(answer_of(outcome).verdict.capitalize())
    title = escape(f"{translated(experiment.question)} {verdict}")
    return f'<li class="one"><a href="#{experiment.name}" title="{title}">{sign} {name}</a></li>'
