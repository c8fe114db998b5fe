"""The parts of Markdown documents that programs write, and tables."""

import re


def place(text, name):
    """Where the part between `<!-- name -->` and `<!-- end -->` begins and ends in a document."""
    return re.search(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", text, re.S).span()


def filled(text, name, part):
    start, end = place(text, name)
    return text[:start] + part + text[end:]


def table(heads, rows):
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])
