"""Published values beside those of a model: a section of the report, and a line about it."""

import shlex
from html import escape

from ..contract.wording import words
from ..machine.language import count, filled, label, translated
from . import parts
from .published import CHECKPOINTS

JUDGED = "pass", "fail"
WHY = {  # why values with this verdict were not judged
    "other checkpoint": "{values} published for other checkpoints, not compared",
    "needs its text": "{values} published for texts other than the one read",
    "not measured": "{values} that this run could not measure",
}
ABOUT = (
    "A claim is tested on every model; a number is compared only with the checkpoint for which it "
    "was published."
)
EXACT = 10  # digits of published numbers: all of them
TITLES = "claim", "verdict", "published", "this run", "chance, or beside it", "criterion"


def line(rows):
    """One sentence on all rows, as published.rows gives them, with a link to them."""
    judged = [row for row in rows if row["verdict"] in JUDGED]
    own = [row for row in judged if row["of"].partition(",")[0] in CHECKPOINTS]
    general = [row for row in judged if row not in own]
    sentences = []
    if general:
        sentences.append(filled("{passed} general claims hold", passed=_passed(general)))
    if own:
        reproduced = "{passed} published values of this checkpoint are reproduced"
        sentences.append(filled(reproduced, passed=_passed(own)))
    for verdict, others in _others(rows).items():
        sentences.append(_unjudged(verdict, others))
    text, link = escape("; ".join(sentences)), translated("Claims and numbers")
    return f'<p class="tally">{text}. <a href="#published">{link}</a></p>'


def _passed(rows):
    """'10 of 12'"""
    n = sum(row["verdict"] == "pass" for row in rows)
    return filled("{n} of {all}", n=n, all=len(rows))


def _others(rows):
    """The rows that were not judged, by verdict: {verdict: rows}."""
    others = {}
    for row in rows:
        if row["verdict"] not in JUDGED:
            others.setdefault(row["verdict"], []).append(row)
    return others


def _unjudged(verdict, rows):
    """'15 values published for other checkpoints'"""
    values = count(len(rows), "value")
    return filled(WHY.get(verdict, f"{{values}} ({verdict})"), values=values)


def section(rows, name):
    """Tables of all rows; those that were not judged are folded."""
    command = f"<code>minitx published {escape(shlex.quote(name))}</code>"
    judged = [row for row in rows if row["verdict"] in JUDGED]
    html = table(judged) if judged else ""
    for verdict, others in _others(rows).items():
        html += parts.fold(_unjudged(verdict, others), table(others))
    html = f'<p class="soft">{translated(ABOUT)} {command}</p>{html}'
    title = translated("Published values beside this model")
    return f'<section id="published">{parts.whole(title, html)}</section>'


def table(rows):
    """One table of rows, judged or not."""
    return parts.table(TITLES, map(_cells, rows), "claims")


def _cells(row):
    """Cells of one row, in the order of TITLES."""
    verdict = row["verdict"]
    shown = parts.mark(verdict) if verdict in JUDGED else escape(translated(verdict.capitalize()))
    names = "what", "source", "of", "reason"
    what, source, of, reason = (escape(label(str(row[name]))) for name in names)
    value = row["published"]
    published = escape(words(value, EXACT) if isinstance(value, list) else label(str(value)))
    where = f'{what}<span class="soft">{source}</span>'
    published = f'{published}<span class="soft">{of}</span>'
    ours, null = escape(words(row["ours"], 4)), escape(words(row["null"], 4))
    return [where, shown, published, f"<b>{ours}</b>", null, reason]
