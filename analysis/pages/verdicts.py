"""Published values beside those of a model: a section of the report, and a line about it."""

import shlex
from html import escape

from ..contract.wording import words
from . import parts

JUDGED = "pass", "fail"
WHY = {  # why values with this verdict were not judged
    "other checkpoint": "published for other checkpoints",
    "needs its text": "published for texts other than the one read",
    "not measured": "that this run could not measure",
}
TITLES = "claim", "verdict", "published", "this run", "by chance", "criterion"


def line(rows):
    """One sentence on all rows, as published.rows gives them, with a link to them."""
    judged = [row for row in rows if row["verdict"] in JUDGED]
    general = [row for row in judged if row["of"].startswith("any model")]
    own = [row for row in judged if row not in general]
    sentences = [f"{_passed(general)} claims about any model hold"] if general else []
    if own:
        sentences.append(f"{_passed(own)} numbers published for this checkpoint are reproduced")
    for verdict, others in _others(rows).items():
        sentences.append(_unjudged(verdict, others))
    text = escape("; ".join(sentences))
    return f'<p class="tally">{text}. <a href="#published">Claims and numbers</a></p>'


def _passed(rows):
    """'10 of 12'"""
    return f"{sum(row['verdict'] == 'pass' for row in rows)} of {len(rows)}"


def _others(rows):
    """The rows that were not judged, by verdict: {verdict: rows}."""
    others = {}
    for row in rows:
        if row["verdict"] not in JUDGED:
            others.setdefault(row["verdict"], []).append(row)
    return others


def _unjudged(verdict, rows):
    """'15 values published for other checkpoints'"""
    return f"{parts.count(len(rows), 'value')} {WHY.get(verdict, f'({verdict})')}"


def section(rows, name):
    """Tables of all rows; those that were not judged are folded."""
    command = f"<code>minitx published {escape(shlex.quote(name))}</code>"
    judged = [_cells(row) for row in rows if row["verdict"] in JUDGED]
    html = parts.table(TITLES, judged, "claims") if judged else ""
    for verdict, others in _others(rows).items():
        folded = parts.table(TITLES, map(_cells, others), "claims")
        html += parts.fold(_unjudged(verdict, others), folded)
    return (
        '<section id="published"><h2>What was published, and what this model gives</h2>'
        '<p class="soft">A claim is tested on every model; a number is compared only for the '
        f"checkpoint that it was published for. {command}</p>{html}</section>"
    )


def _cells(row):
    """Cells of one row, in the order of TITLES."""
    verdict = row["verdict"]
    shown = parts.mark(verdict) if verdict in JUDGED else escape(verdict)
    where = f'{escape(row["what"])}<span class="soft">{escape(row["source"])}</span>'
    published = f'{escape(str(row["published"]))}<span class="soft">{escape(row["of"])}</span>'
    ours, null = escape(words(row["ours"], 4)), escape(words(row["null"], 4))
    return [where, shown, published, f"<b>{ours}</b>", null, escape(row["reason"])]
