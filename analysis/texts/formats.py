"""Texts in the layouts that people have them in, one record at a time, of any size.

    sample          the held-out book that comes with the project
    dates           400 free-form dates, one a line, on which tiny-bart was not trained
    rows            200 rows of random words with pieces of each said again, one a line, on which
                    tiny-induction was not trained
    stories         100 lines of short stories from the grammar of weights/stories.py, ten a line
    -               standard input, in one of the layouts of a .txt file
    several words   the text itself, if nothing has this name and it does not end as a file does
    a .txt file     one document per line; or WikiText, where ` = Title = ` begins an article, which
                    is a document
    a .csv file     a header, then one document a row; the text is in the columns that --column
                    names
    a .tsv file     the same with tabs between cells, and quotes as they stand
    a .json file    an array of texts, or of objects, each a document; or as .jsonl
    a .jsonl file   one object a line; the text is under the keys that --column names
    a .parquet file one document a row, columns as for .csv
    a folder        with pos/ and neg/: each .txt file in these is a document with that label;
                    else all .txt files inside, in the order of their names, or, where there are
                    none, all tables inside
    a glob          all files that it matches, as data/**/*.jsonl.zst
    a URL           of one object, of a folder (ends with /) or with a star, through fsspec

A file but .parquet may be packed: .gz or .zst stands behind its ending. Nothing else is guessed:
any other name is that of a .txt file.
"""

import csv
import functools
import json
import math
import re
from collections import deque
from itertools import islice
from typing import NamedTuple

from . import compression, parquet, sampling, storage
from .naming import Text, is_ids, of, shown
from .storage import (
    CLASSES,
    LONGEST,
    PARQUET,
    SAMPLE,
    decoded,
    described,
    ends_like_a_file,
    files,
    filled,
    is_literal,
    itself,
    not_empty,
    place,
    sha256,
    valid,
)

# what others ask of a text, they ask here
__all__ = [
    "CLASSES",
    "SAMPLE",
    "Record",
    "Text",
    "count",
    "decoded",
    "described",
    "ends_like_a_file",
    "files",
    "filled",
    "is_ids",
    "is_literal",
    "itself",
    "lines",
    "not_empty",
    "of",
    "place",
    "records",
    "sha256",
    "shown",
    "valid",
]
# columns of TruthfulQA, and of most others: read where --column names none
COLUMNS = ("Question", "Best Answer"), ("text",)
LABEL = "label"  # the same for --label
# characters: a longer cell has a quote that is never closed
CELL = LONGEST
LISTED = 300  # letters of the names of columns that a message shows
ARTICLE = re.compile(r"= [^=].* =")  # a section's title has more signs


class Record(NamedTuple):
    """One document as it stands in its file."""

    text: str
    label: str | None  # "": its column is there, but the cell is empty
    where: str  # file, and line or row


def records(text):
    """Every document of a text -> Record, in the order of the files; of a sample those drawn.

    text: a name or a Text. A labelled folder gives its classes in turn. The texts of several
    columns are joined by a space; where none is named, Question and Best Answer are read, or text,
    or the only one. Where no column of labels is named, it is label, if there is one. Raises
    ValueError for a missing column (lists those there are) or cell, for a line that is no object,
    for bytes that are not UTF-8, for a line or document longer than LONGEST; each error names file
    and line, row or byte.
    """
    choice, n = sample_of(text, lambda: count(text))
    for record in islice(_records(text, choice), n):
        if len(record.text) > LONGEST:
            raise storage.too_long(record.where)
        yield record


def sample_of(text, total):
    """(which documents of a text are read, how many): a sample where one is asked for, else all.

    total(): the number of its documents. Raises ValueError if a sample of more is wanted.
    """
    named = of(text)
    if not named.n:
        return sampling.Every(), None
    n_documents = total()
    if n_documents < named.n:
        raise ValueError(f"{shown(text)} has {n_documents} documents; wanted a sample of {named.n}")
    return sampling.Drawn(sampling.draw(n_documents, named.n, named.seed)), named.n


def count(text):
    """The number of documents of a text, sample or not; a first pass, of which the result is kept.

    Rows of Parquet are counted without reading them, and no line is taken apart.
    """
    return _count(storage.stamp(text), text)


@functools.lru_cache(64)
def _count(stamp, text):
    counter = sampling.Count()
    deque(_records(text, counter), 0)
    return counter.n


def _records(text, choice):
    """The records that are taken; choice: see sampling.Every."""
    column, label = of(text).column, of(text).label
    labelled = bool(storage.classes(text))
    for path in files(text):
        layout = compression.layout(path)
        if layout in TABLES:
            yield from TABLES[layout](path, column, label, choice)
        elif column or label:
            raise ValueError(
                f"{place(text).resolve().name!r} has no columns: --column and --label go with "
                f"{', '.join(TABLES)} files"
            )
        elif labelled:
            if choice.takes():
                yield _document(path)
        elif _is_wikitext(path):
            yield from _articles(path, choice)
        else:
            yield from _lines(path, choice)


def lines(text):
    """Every line of every document that is not blank, stripped."""
    for record in records(text):
        yield from _lines_of(record.text)


def _lines_of(content):
    """The lines of a document that are not blank, stripped."""
    return filter(None, map(str.strip, content.split("\n")))


def of_line(path, text, line, where):
    """The lines, as of `lines`, that one line of a .txt or .jsonl file stands for."""
    if compression.layout(path) == ".jsonl" and line.strip():
        named = of(text)
        line = _of_object(_parse_object(line, where), named.column, named.label, where).text
    return _lines_of(line)


def _document(path):
    """A whole file, labelled by its folder."""
    whole = "".join(line for _, line in decoded(path)).strip()
    return Record(whole, path.parent.name, storage.display_name(path))


def _is_wikitext(path):
    """Whether the first line that is not blank is the title of an article."""
    for _, line in decoded(path):
        if line.strip():
            return bool(ARTICLE.fullmatch(line.strip()))
    return False


def _articles(path, choice):
    """One document an article.

    Its title stands after a blank line or at the beginning: a formula inside a paragraph may look
    like one.
    """
    article = []
    where = ""
    after_blank = True
    for number, raw_line in decoded(path):
        line = raw_line.strip()
        if after_blank and ARTICLE.fullmatch(line):
            if article and choice.takes():
                yield Record("\n".join(article), None, where)
            article = []
            where = f"{path.name}, line {number}"
        if line:
            article.append(line)
        after_blank = not line
    if choice.takes():
        yield Record("\n".join(article), None, where)


def _lines(path, choice):
    for number, line in decoded(path):
        if line.strip() and choice.takes():
            yield Record(line.strip(), None, f"{path.name}, line {number}")


def _csv(path, column, label, choice):
    """One document a row. Row 1 is the header, as spreadsheets count."""
    csv.field_size_limit(CELL)
    is_tsv = compression.layout(path) == ".tsv"  # which has no quotes
    how = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if is_tsv else {}
    rows = csv.reader((line for _, line in decoded(path)), strict=True, **how)
    try:
        header = next(rows, [])
        names, label = _columns(header, column, label, path.name)
        _check_header(header, (*names, label), path)
        number = 1
        for number, row in enumerate(rows, 2):
            if row and choice.takes():
                yield _row(header, row, names, label, f"{path.name}, row {number}")
        if number == 1:
            raise ValueError(f"{path.name!r} has no rows below its header: {_listed(header)}")
    except csv.Error as error:
        raise ValueError(
            f"{path.name!r} is not a {compression.layout(path)} file: line {rows.line_num}: {error}"
        ) from None


def _listed(header):
    """The names of columns in one line, whatever they hold."""
    text = ", ".join(header)[:LISTED]
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return shown[:LISTED]


def _check_header(header, names, path):
    """Raise ValueError if one of these names stands above more than one column."""
    doubled = [name for name in names if header.count(name) > 1]
    if doubled:
        raise ValueError(
            f"{path.name!r} has more than one column {doubled[0]!r}; available: {_listed(header)}"
        )


def _row(header, row, names, label, where):
    """A row of a table as a Record; raises ValueError unless it has as many cells as the header."""
    if len(row) != len(header):
        raise ValueError(
            f"{where}: {len(row)} cells, but the header has {len(header)}: {_listed(header)}"
        )
    cells = dict(zip(header, row))
    mark = cells[label].strip() if label in cells else None
    return Record(" ".join(cells[name] for name in names).strip(), mark, where)


def _jsonl(path, column, label, choice):
    for number, line in decoded(path):
        if line.strip() and choice.takes():
            where = f"{path.name}, line {number}"
            yield _of_object(_parse_object(line, where), column, label, where)


def _of_object(cells, column, label, where):
    names, mark = _columns([*cells], column, label, where)
    text = " ".join(_text_cell(cells, name, where) for name in names)
    return Record(text.strip(), _label_cell(cells, mark, where), where)


def _json(path, column, label, choice):
    """One document an item of an array, which is read at once; without one as .jsonl."""
    first = next((line for _, line in decoded(path) if line.strip()), "")
    if not first.lstrip().startswith("["):
        yield from _jsonl(path, column, label, choice)
        return
    items = _parsed("".join(line for _, line in decoded(path)), path.name)
    for number, value in enumerate(items, 1):
        where = f"{path.name}, item {number}"
        item = {"text": value} if isinstance(value, str) else value
        if item is not value and (column or label):
            raise ValueError(f"{where} is a text; --column and --label are for objects")
        if not isinstance(item, dict):
            raise ValueError(f"{where} is {json.dumps(item)[:40]}; wanted a text or an object")
        if choice.takes():
            yield _of_object(item, column, label, where)


def _parse_object(line, where):
    """A line as a dictionary; raises ValueError if it is no JSON object."""
    value = _parsed(line, where)
    if not isinstance(value, dict):
        text = f'{where}: no object, but {line.strip()[:40]!r}; wanted {{"text": …}} on every line'
        raise ValueError(text)
    return value


def _parsed(text, where):
    """A text as JSON; raises ValueError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: not JSON: {error}") from None


def _text_cell(cells, name, where):
    """One text of an object; raises ValueError if it is something else."""
    value = cells[name]
    if not isinstance(value, str):
        raise ValueError(f"{where}: {name!r} is not a text but {json.dumps(value)[:40]}")
    valid(value, f"{where}: {name!r}")
    return value


def _label_cell(cells, name, where):
    """The label of an object: None without one, "" for null and NaN, which stand for none."""
    if name not in cells:
        return None
    value = cells[name]
    if isinstance(value, list | dict):
        raise ValueError(f"{where}: {name!r} is not a label but {json.dumps(value)[:40]}")
    valid(str(value), f"{where}: {name!r}")
    is_nan = isinstance(value, float) and math.isnan(value)
    return "" if value is None or is_nan else str(value).strip()


def _parquet(path, column, label, choice):
    """One document a row; a cell without a value is an empty text."""
    if compression.layout(path) != path.suffix.lower():
        raise ValueError(f"{path.name!r}: it contains a compressed Parquet file; decompress it")
    with parquet.opened(path) as file:
        names, label = _columns(parquet.columns(file), column, label, path.name)
        parquet.check_text(file, names, path.name)
        wanted = [*names, label] if label else names
        for number, cells in parquet.rows(path, file, wanted, choice):
            where = f"{path.name}, row {number}"
            text = " ".join(cells[name] or "" for name in names)
            yield Record(text.strip(), _label_cell(cells, label, where), where)


TABLES = {".csv": _csv, ".tsv": _csv, ".jsonl": _jsonl, ".json": _json, PARQUET: _parquet}


def _columns(header, column, label, where):
    """Names of the columns of the text, and of the label or None.

    Raises ValueError for those that the header lacks.
    """
    if len(header) == 1 and not column:
        _check_separator(header[0], where)
    names = _named_columns(header, column) if column else _known_columns(header)
    wanted = [*names, label] if label else names
    missing = [name for name in wanted if name not in header]
    if missing or not names:
        what = "no column of a known name"
        if names:
            what = f"no column {', '.join(map(repr, missing))}"
        raise ValueError(
            f"{where}: {what}; name the text's with --column, the label's with --label; "
            f"available: {_listed(header) or 'none'}"
        )
    if not label and LABEL in header and LABEL not in names:
        label = LABEL
    return names, label or None


def _check_separator(name, where):
    """Raise ValueError for the only column of a table whose cells stand between other signs."""
    signs = [sign for sign in (";", "\t", "|") if sign in name]
    if signs:
        raise ValueError(
            f"{where}: one column {name!r:.80}; cells must be separated by commas, here by "
            f"{signs[0]!r}: save it with commas, or name the whole column with --column"
        )


def _named_columns(header, column):
    """The columns that --column names: one, whatever its name, or several by commas."""
    if column in header:
        return [column]
    return [name.strip() for name in column.split(",")]


def _known_columns(header):
    """The columns that are read if none is named: those of a known name, or the only one."""
    for names in COLUMNS:
        if {*names} <= {*header}:
            return [*names]
    return header if len(header) == 1 else []
