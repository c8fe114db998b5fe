"""One experiment's section of the report: the answer first, the figure, then what explains it."""

import base64
import re
import shlex
from html import escape
from urllib.parse import quote

from ..contract import nothing, results, wording
from ..drawing import draw
from ..machine.files import as_json
from ..machine.language import count, filled, label, translated
from ..running import single
from . import overview, parts, passage
from .glossary import Linker

TITLE = re.compile("<title>([^<]*)</title>")  # of an SVG: what its panels are
SHOWN = 6  # headline numbers; the others are folded
IN_DARK = (
    "In a dark page light and dark of a figure are exchanged: what is dark on paper is bright here."
)
LONG = 3  # entries from which a list is a table
ACROSS = 6  # entries, at most, that are its columns


def section(experiment, name, outcome, seconds, title="", beside=""):
    """The section of an Outcome or a Failure; name: the model as the user called it.

    title: in place of the question. beside: HTML between the figure and what explains it.
    """
    link = Linker()
    if isinstance(outcome, single.Failure):
        body = beside
    else:
        body = _figure(experiment, outcome) + _notes(outcome) + beside
        body += _says(outcome.says, link) + _by_head(experiment, outcome)
        body += _numbers(_in_percent(experiment, outcome.headline), link)
        body += _reading(experiment, link)
    body = f"{_answer(experiment, outcome)}{body}{_making(experiment, name, outcome, seconds)}"
    title = escape(title or translated(experiment.question))
    return (
        f'<section class="experiment" id="{experiment.name}">{parts.whole(title, body)}</section>'
    )


def _answer(experiment, outcome):
    """The answer in a sentence; or why there is none."""
    verdict, measure, value, chance = overview.answer_of(outcome)
    if verdict == "left out":
        text = filled("Left out for this model: {reason}", reason=escape(measure))
    elif verdict == "failed":
        text = filled("This experiment failed: {reason}", reason=escape(measure))
    else:
        beside = parts.soft(wording.by_chance(chance))
        text = f"{escape(measure)}: <b>{escape(value)}</b>{beside}"
    tip = overview.hangs(experiment, outcome)
    return f'<p class="answer">{parts.mark(verdict, tip)} {text}</p>'


def _figure(experiment, outcome):
    """The figures as images, so that a name inside one cannot clash with a name of the page.

    The first is shown, and the others where a summary is opened.
    """
    _, measure, value, _ = overview.answer_of(outcome)
    answer = filled("Figure: {answer}", answer=f"{measure}: {value}")
    leads = [answer, *([translated("Another figure")] * len(outcome.figures))]
    first, *others = map(image, outcome.figures, leads) if outcome.figures else [""]
    return first + (
        parts.fold(count(len(others), "more figure"), "".join(others)) if others else ""
    )


def image(svg, lead):
    """A figure that scrolls where the page is narrow; its text begins with `lead`."""
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    titled = TITLE.search(svg)
    panels = f". {titled[1]}" if titled else ""  # escaped in SVG, as in HTML
    alt = f"{escape(draw.signs(lead))}{panels}".replace('"', "&quot;")
    sign = escape(translated("wider than the page: scroll"))
    return f'<figure tabindex="0" data-wide="{sign}"><img alt="{alt}" src="{source}"></figure>'


def _notes(outcome):
    """How this run differs from others: documents left out, or more than were asked for."""
    notes = [filled("it {note}.", note=outcome.note)] if outcome.note else []
    n = overview.documents_left_out(outcome)
    if n:
        left = "{documents} left out, empty or of one token."
        notes.append(filled(left, documents=count(n, "document")))
    note = filled("Note: {text}", text=" ".join(notes))
    return f'<p class="note">{escape(note)}</p>' if notes else ""


def _says(text, link):
    """What the numbers show: a few sentences, and behind them the others."""
    if not text:
        return ""
    shown, rest = passage.cut(text)
    html = f"<h3>{translated('What it says')}</h3><p>{link(shown)}</p>" if shown else ""
    if rest:
        title = "More of what it says" if shown else "What it says, in full"
        html += parts.fold(translated(title), f"<p>{link(rest)}</p>", "says")
    return html


def _by_head(experiment, outcome):
    """The numbers of every head with a direction, as a table that sorts."""
    if experiment.by_head is None or nothing.KIND in outcome.result:
        return ""
    columns = experiment.by_head(outcome.result)
    rows = [[*map(escape, map(str, row))] for row in zip(*columns.values(), strict=True)]
    if not rows:
        return ""
    title = filled("Head by head: {heads}", heads=count(len(rows), "head"))
    return parts.fold(title, parts.table(columns, rows, "sorts"))


def _in_percent(experiment, headline):
    """The headline numbers, those that are shares as texts in percent.

    A share is what its meaning begins with; "1" would be read as a number of heads.
    """
    names = {number.name for number in experiment.numbers if number.means.startswith("share")}
    return {name: _percent(x) if name in names else x for name, x in headline.items()}


def _percent(number):
    """A headline number whose value and null are texts in percent."""
    return number | {name: _times_100(number[name]) for name in ("value", "null") if name in number}


def _times_100(value):
    """A share, or a list of shares, in percent.

    >>> _times_100([1.0, 0.0625])
    ['100%', '6.25%']
    """
    if isinstance(value, list):
        return [*map(_times_100, value)]
    return f"{wording.words(100 * value)}%" if isinstance(value, int | float) else value


def _numbers(headline, link):
    """Tables of the headline numbers, each beside its null: the first few, and the others.

    Lists whose entries have the same labels are one table: of a few entries a column for each
    entry, of many one that sorts, a column for each list.
    """
    lists = {}
    for number in headline.values():
        lists.setdefault(tuple(number.get("labels", ())), []).append(number)
    tables = {labels: own for labels, own in lists.items() if _is_table(labels, own)}
    rows = [_number(x, link) for x in headline.values() if tuple(x.get("labels", ())) not in tables]
    html = _folded(rows) if rows else ""
    return html + "".join(_lists(labels, own, link) for labels, own in tables.items())


def _is_table(labels, numbers):
    """Whether lists with these labels are more than a line holds: long ones, or several."""
    return len(labels) >= (LONG if len(numbers) > 1 else SHOWN)


def _folded(rows):
    """A table of the first rows, and one of the others."""
    titles = "number", "this model", "by chance"
    html = parts.table(titles, rows[:SHOWN], "numbers")
    if rows[SHOWN:]:
        more = parts.table(titles, rows[SHOWN:], "numbers")
        html += parts.fold(count(len(rows) - SHOWN, "more number"), more)
    return html


def _lists(labels, numbers, link):
    """One table of lists with the same labels."""
    shown = ", ".join(escape(label(str(name))) for name in labels[:2])
    title = filled(
        "{labels}, …: {numbers} each", labels=shown, numbers=count(len(numbers), "number")
    )
    table = (
        _across(labels, numbers, link) if len(labels) <= ACROSS else _down(labels, numbers, link)
    )
    return parts.fold(title, table, "lists")


def _across(labels, numbers, link):
    """A row for each list with what it means, a column for each entry; nulls below the values."""
    rows = []
    for number in numbers:
        null = number.get("null")
        cells = [f"<b>{escape(wording.words(value))}</b>" for value in number["value"]]
        if isinstance(null, list):
            below = (parts.soft(wording.words(x)) for x in null)
            cells = [a + b for a, b in zip(cells, below)]
        rows.append([_meaning(number, link), *cells])
    return parts.table(("number", *map(label, map(str, labels))), rows, "across")


def _down(labels, numbers, link):
    """A row for each entry, a column for each list; what the columns mean above it."""
    columns, meanings = {translated("entry"): map(label, map(str, labels))}, ""
    for n, number in enumerate(numbers, 1):
        columns[f"({n})"] = map(wording.words, number["value"])
        null = number.get("null")
        if isinstance(null, list):
            columns[filled("chance ({n})", n=n)] = map(wording.words, null)
        meanings += f"<li>{_meaning(number, link)}</li>"
    rows = [[*map(escape, row)] for row in zip(*columns.values())]
    return f"<ol>{meanings}</ol>{parts.table(columns, rows, 'sorts')}"


def _number(number, link):
    """Cells of one headline number: what it means, its value, its null."""
    value = f"<b>{escape(wording.labelled(number))}</b>"
    if isinstance(number["value"], list) and len(number["value"]) > SHOWN:
        value = parts.fold(count(len(number["value"]), "value"), value)
    null = escape(_labelled(number, number["null"])) if "null" in number else ""
    return _meaning(number, link, has_cell=True), value, null


def _meaning(number, link, has_cell=False):
    """What a number means, and below it its null, which is told if it is one and has no cell."""
    meaning = link(number["means"])
    if "null" not in number:
        return meaning
    chance = link(filled("by chance: {null}", null=number["null_means"]))
    if not has_cell and not isinstance(number["null"], list):
        chance += f": {escape(wording.words(number['null']))}"
    return f'{meaning}<span class="soft">{chance}</span>'


def _labelled(number, null):
    """A null as text; one of several entries has the labels of the value's."""
    labels = number.get("labels", ())
    if isinstance(null, list) and len(null) == len(labels):
        return wording.labelled({"value": null, "labels": labels})
    return wording.words(null)


def _reading(experiment, link):
    """What to look for in the figure, and what was published."""
    html = f"<p>{link(translated(experiment.look))}</p>" if experiment.look else ""
    html += f'<p class="in-dark">{translated(IN_DARK)}</p>' if html else ""
    if experiment.published:
        where = f" ({translated(experiment.figure)})" if experiment.figure else ""
        title = filled("Published{where}:", where=escape(where))
        html += f"<p><b>{title}</b> {link(translated(experiment.published))}</p>"
    title = translated("How to read the figure, and what was published")
    return parts.fold(title, html) if html else ""


def _making(experiment, name, outcome, seconds):
    """The command; for a run that gave results, also its files and settings."""
    command = escape(f"minitx run {experiment.name} {shlex.quote(name)}")
    summary = escape(translated(experiment.summary))
    html = f"<p>{summary} <code>{command}</code>, {seconds:.1f} s</p>"
    if isinstance(outcome, single.Failure):
        return parts.fold(translated("How it is run"), html)
    settings = escape(as_json(outcome.settings))
    files = filled("Files: {links}", links=_links(experiment))
    html += f'<p>{files}</p><pre tabindex="0">{settings}</pre>'
    title = translated("How it was run: command, files, settings")
    return parts.fold(title, html, "making")


def _links(experiment):
    name = experiment.name
    links = (f'<a href="{quote(name)}{end}">{name}{end}</a>' for end in results.ENDINGS)
    return " · ".join(links)
