"""Pieces of HTML that the parts of the report share: verdicts, folds, tables."""

import re
from html import escape

from ..drawing import draw
from ..machine.language import translated

SIGNS = {
    "yes": "✓",
    "partly": "◐",
    "no": "○",
    "undecided": "?",
    "nothing": "∅",
    "pass": "✓",
    "fail": "✗",
    "failed": "!",
    "left out": "–",
    "measured": "·",
}
KINDS = {
    "pass": "yes",
    "fail": "bad",
    "failed": "bad",
    "left out": "none",
    "measured": "none",
}
NOT_TEXT = r"(<(pre|code)\b.*?</\2>|<[^>]*>)"  # or code, whose numbers are to be copied
SIGNS_AND_SIDES = re.compile(
    f"{NOT_TEXT}|({draw.MINUS.pattern})|{draw.RIGHT_TO_LEFT.pattern}", re.DOTALL
)


def mark(verdict, tip=""):
    """A verdict in a word, a sign and a colour; tip: what is shown on hover."""
    kind = KINDS.get(verdict, verdict)
    word = escape(translated(verdict.capitalize()))
    title = f' title="{escape(tip)}"' if tip else ""
    return f'<span class="mark {kind}"{title}>{sign(verdict)} {word}</span>'


def sign(verdict):
    """The sign of a verdict, for the eye alone: its word stands beside it."""
    kind = KINDS.get(verdict, verdict)
    return f'<span class="sign {kind}" aria-hidden="true">{SIGNS[verdict]}</span>'


def typeset(html):
    """HTML whose texts have the signs of `draw.signs`; code and attributes stay.

    Words from right to left keep their side of what stands beside them (`draw.sided`).

    >>> typeset('<a href="#x-1">L0-L2: -0.5</a> <code>-1</code>')
    '<a href="#x-1">L0-L2: −0.5</a> <code>-1</code>'
    """
    return SIGNS_AND_SIDES.sub(
        lambda match: match[1] or ("−" if match[3] else draw.sided(match[0])), html
    )


def soft(text):
    """A text that stands back, escaped; "" of none."""
    return f'<span class="soft">{escape(text)}</span>' if text else ""


def fold(summary, content, kind=""):
    """Content that opens when its summary is chosen; `summary` is a text, `content` HTML."""
    return f'<details class="{kind}"><summary>{escape(summary)}</summary>{content}</details>'


def whole(title, content):
    """A section's heading and what stands below it: open, but folded by a program on a phone."""
    return f'<details class="whole" open><summary><h2>{title}</h2></summary>{content}</details>'


def table(titles, rows, kind=""):
    """A table of rows of HTML cells; the first cell of a row names it.

    It scrolls in a box of its own where the page is too narrow. With the kind "sorts" its columns
    can be sorted.
    """
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in map(translated, titles))
    body = ""
    for first, *others in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in others)
        body += f'<tr><th scope="row">{first}</th>{cells}</tr>'
    content = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table class="{kind}">{content}</table></div>'
