"""Names and texts of others, where they could be more than text: in a terminal, in Markdown.

Control characters move a terminal's cursor, change its title or its colours; those of writing
direction show text in another order than it has.
"""

import re
from html import escape

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # not tab, newline
MARKS = re.compile(r"([\\`*_{}\[\]|])")  # of Markdown


def in_terminal(text):
    """Text with \\x1b and the like in place of control characters."""
    return CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def in_markdown(text):
    """Text as one line of Markdown that shows it as it is."""
    line = " ".join(in_terminal(text).split())
    return MARKS.sub(r"\\\1", escape(line, quote=False))


def table(rows):
    """A Markdown table of rows of cells; the first row is its head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def for_people(stream):
    """A Terminal of a stream; None, as Python has it where the stream is closed, stays None."""
    return None if stream is None else Terminal(stream)


class Terminal:
    """A stream for people: what is written goes through `in_terminal`."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, text):
        """Write text; `stream.write` takes the control characters that are meant."""
        return self.stream.write(in_terminal(text))

    def __getattr__(self, name):
        return getattr(self.stream, name)
