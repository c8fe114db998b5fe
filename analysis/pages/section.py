"""One experiment's section of the report: the answer first, the figure, then what explains it."""

import base64
import shlex
from html import escape
from urllib.parse import quote

from ..contract import results, wording
from ..machine.files import as_json
from ..running import single
from . import overview, parts
from .glossary import Linker

SHOWN = 6  # headline numbers; the others are folded


def section(experiment, name, outcome, seconds):
    """The section of an Outcome or a Failure; name: the model as the user called it."""
    link = Linker()
    if isinstance(outcome, single.Failure):
        body = ""
    else:
        body = _figure(experiment, outcome) + _notes(outcome)
        body += _says(outcome.says, link) + _numbers(outcome.headline, link)
        body += _reading(experiment, link)
    return (
        f'<section id="{experiment.name}"><h2>{escape(experiment.question)}</h2>'
        f"{_answer(outcome)}{body}{_making(experiment, name, outcome, seconds)}</section>"
    )


def _answer(outcome):
    """The answer in a sentence; or why there is none."""
    verdict, measure, value, chance = overview.answer_of(outcome)
    if verdict == "left out":
        text = f"Left out for this model: {escape(measure)}"
    elif verdict == "failed":
        text = f"This experiment failed: {escape(measure)}"
    else:
        beside = f' <span class="soft">(chance: {escape(chance)})</span>' if chance else ""
        text = f"{escape(measure)}: <b>{escape(value)}</b>{beside}"
    return f'<p class="answer">{parts.mark(verdict)} {text}</p>'


def _figure(experiment, outcome):
    """The figure as an image, so that a name inside it cannot clash with a name of the page."""
    source = f"data:image/svg+xml;base64,{base64.b64encode(outcome.svg.encode()).decode()}"
    alt = escape(f"Figure: {experiment.question}")
    return f'<figure tabindex="0"><img alt="{alt}" src="{source}"></figure>'


def _notes(outcome):
    """How this run differs from others: documents left out, or more than were asked for."""
    notes = [f"it {outcome.note}."] if outcome.note else []
    n = overview.documents_left_out(outcome)
    if n:
        notes.append(f"{parts.count(n, 'document')} left out, empty or of one token.")
    return f'<p class="note">Note: {escape(" ".join(notes))}</p>' if notes else ""


def _says(text, link):
    """What the numbers show."""
    return f"<h3>What it says</h3><p>{link(text)}</p>" if text else ""


def _numbers(headline, link):
    """Tables of the headline numbers, each beside its null: the first few, and the others."""
    rows = [_number(number, link) for number in headline.values()]
    if not rows:
        return ""
    titles = "number", "this model", "by chance"
    shown, folded = rows[:SHOWN], rows[SHOWN:]
    html = parts.table(titles, shown, "numbers")
    if folded:
        more = parts.table(titles, folded, "numbers")
        html += parts.fold(parts.count(len(folded), "more number"), more)
    return html


def _number(number, link):
    """Cells of one headline number: what it means, its value, its null."""
    meaning = link(number["means"])
    null = ""
    if "null" in number:
        meaning += f'<span class="soft">by chance: {link(number["null_means"])}</span>'
        null = escape(_labelled(number, number["null"]))
    return meaning, f"<b>{escape(wording.labelled(number))}</b>", null


def _labelled(number, null):
    """A null as text; one of several entries has the labels of the value's."""
    labels = number.get("labels", ())
    if isinstance(null, list) and len(null) == len(labels):
        return wording.labelled({"value": null, "labels": labels})
    return wording.words(null)


def _reading(experiment, link):
    """What to look for in the figure, and what was published."""
    html = f"<p>{link(experiment.look)}</p>" if experiment.look else ""
    if experiment.published:
        where = f" ({escape(experiment.figure)})" if experiment.figure else ""
        html += f"<p><b>Published{where}:</b> {link(experiment.published)}</p>"
    return parts.fold("How to read the figure, and what was published", html) if html else ""


def _making(experiment, name, outcome, seconds):
    """The command; for a run that gave results, also its files and settings."""
    command = escape(f"minitx run {experiment.name} {shlex.quote(name)}")
    html = f"<p>{escape(experiment.summary)} <code>{command}</code>, {seconds:.1f} s</p>"
    if isinstance(outcome, single.Failure):
        return parts.fold("How it is run", html)
    settings = escape(as_json(outcome.settings))
    html += f'<p>Files: {_links(experiment)}</p><pre tabindex="0">{settings}</pre>'
    return parts.fold("How it was run: command, files, settings", html, "making")


def _links(experiment):
    """Links to the files of an experiment."""
    name = experiment.name
    links = (f'<a href="{quote(name)}{end}">{name}{end}</a>' for end in results.ENDINGS)
    return " · ".join(links)
