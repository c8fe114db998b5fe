"""Pairs of texts: a source, what is said of it, and where each part of that comes from.

A file of pairs is JSON Lines; target and links may be left out:

    {"source": "3 May 1912", "target": "1912-05-03", "links": [[[0, 4], [6, 10]]]}

A link is a pair of ranges of characters, of the target and of the source it is from; a range is the
first character and the one after the last.
"""

import json
from itertools import islice
from typing import NamedTuple

import numpy as np

from minitx.weights import dates

from . import formats

DATES = "dates"  # stands for free-form dates and as ISO writes them


class Pair(NamedTuple):
    """A source, and what is said of it where that is known."""

    source: str
    target: str | None = None
    links: tuple = ()  # ((first, end) in the target, (first, end) in the source), ...


def pairs(location, n, seed=0):
    """The first n pairs of a file, or n random dates that no model was trained on.

    Raises ValueError for a line that is not a pair, or if there are none.
    """
    if location == DATES:
        return [
            _of_date(date) for date in dates.draw(np.random.default_rng(seed), n, held_out=True)
        ]
    listed = [*islice(_of_file(formats.place(location)), n)]
    if not listed:
        raise ValueError(f"{formats.shown(location)} has no pairs; wanted one line for each")
    return listed


def _of_date(date):
    """A date as people write it, its ISO form, and where year, month and day are from."""
    links = []
    for part, written in date.spans.items():
        said = dates.ISO[part]
        links.append(((said.start, said.stop), (written.start, written.stop)))
    return Pair(date.text, date.iso, tuple(links))


def _of_file(path):
    for number, line in formats.decoded(path):
        if line.strip():
            yield _pair(line, f"{path.name}, line {number}")


def _pair(line, where):
    """One line as a Pair; raises ValueError if it is none."""
    try:
        record = json.loads(line)
        source, target = record["source"], record.get("target")
        links = tuple(_link(link, source, target) for link in record.get("links", ()))
        is_text = isinstance(source, str) and isinstance(target, str | None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{where} is not a pair ({error}); {WANTED}") from None
    if not (is_text and source):
        raise ValueError(f"{where} is not a pair; {WANTED}")
    return Pair(source, target, links)


WANTED = 'wanted {"source": "…", "target": "…", "links": [[[0, 4], [6, 10]]]}'


def _link(link, source, target):
    """One link; raises ValueError for characters that are not there."""
    (first, end), (source_first, source_end) = link
    if {type(x) for part in link for x in part} != {int}:
        raise ValueError(f"link {link!r:.80} has other values than whole numbers")
    if not (0 <= first < end <= len(target) and 0 <= source_first < source_end <= len(source)):
        raise ValueError(f"link {link!r:.80} is of characters that are not there")
    return (first, end), (source_first, source_end)
