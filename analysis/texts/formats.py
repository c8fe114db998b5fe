"""Texts in the layouts that people have them in, one record at a time, of any size.

    sample          the held-out book that comes with the project
    dates           400 dates as people write them, one a line, on which tiny-bart was not trained
    -               standard input, in one of the layouts of a .txt file
    a .txt file     one document a line; or WikiText, where ` = Title = ` begins an article, which
                    is a document
    a .csv file     a header, then one document a row; the text is in the columns that --column
                    names
    a .jsonl file   one object a line; the text is under the keys that --column names
    a folder        with pos/ and neg/: each .txt file in these is a document with that label;
                    else all .txt files inside, in the order of their names
    ids:FILE        token ids in place of words, one document a line (ids.py); --ids FILE for short

Nothing else is guessed: any other name is read as a .txt file.

Order: the records, each layout, columns, bytes, files.
"""

import csv
import functools
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

IDS = "ids:"  # before the name of a file of token ids
SAMPLE = Path(__file__).with_name("sample.txt")
NAMED = {"sample": SAMPLE, "dates": SAMPLE.with_name("dates.txt")}
CLASSES = "neg", "pos"
# columns of TruthfulQA, and of most others: read where --column names none
COLUMNS = ("Question", "Best Answer"), ("text",)
LABEL = "label"  # the same for --label
# bytes of a line, characters of a document: to cut it into tokens takes 200 times as much memory
LONGEST = 1 << 22
# characters: a longer cell has a quote that is never closed
CELL = LONGEST
ARTICLE = re.compile(r"= [^=].* =")  # a section's title has more signs


class Record(NamedTuple):
    """One document as it stands in its file."""

    text: str
    label: str | None  # "": its column is there, but the cell is empty
    where: str  # file, and line or row


def records(text, column="", label=""):
    """Every document of a text -> Record, in the order of the files.

    A labelled folder gives its classes in turn. column: columns of a .csv file or keys of a .jsonl
    file, joined by commas; their texts are joined by a space (without: Question and Best Answer, or
    text, or the only one). label: the column of labels (without: label, if there is one). Raises
    ValueError for a missing column (lists those there are) or cell, for a line that is no object,
    for bytes that are not UTF-8, for a line or document longer than LONGEST; each error names file
    and line, row or byte.
    """
    for record in _records(text, column, label):
        if len(record.text) > LONGEST:
            raise _too_long(record.where)
        yield record


def _too_long(where):
    """The error for a line or a document that would take all memory."""
    return ValueError(
        f"{where} is longer than {LONGEST:,} characters, and what is read at once takes 200 bytes "
        "a character; break it into lines, as `fold -s -w 10000 FILE` does"
    )


def _records(text, column, label):
    labelled = bool(_classes(text))
    for path in files(text):
        ending = path.suffix.lower()
        if ending in TABLES:
            yield from TABLES[ending](path, column, label)
        elif column or label:
            raise ValueError(
                f"{place(text).resolve().name!r} has no columns: --column and --label go with "
                ".csv and .jsonl files"
            )
        elif labelled:
            yield _document(path)
        elif _is_wikitext(path):
            yield from _articles(path)
        else:
            yield from _lines(path)


def lines(text, column=""):
    """Every line of every document that is not blank, stripped. column: as for records."""
    for record in records(text, column):
        yield from filter(None, map(str.strip, record.text.split("\n")))


def _document(path):
    """A whole file, labelled by its folder."""
    whole = "".join(line for _, line in decoded(path)).strip()
    return Record(whole, path.parent.name, _display_name(path))


def _display_name(path):
    """The name of a file, with its folder if that is a class: files of both may have one name."""
    if path.parent.name in CLASSES:
        return f"{path.parent.name}/{path.name}"
    return path.name


def _is_wikitext(path):
    """Whether the first line that is not blank is the title of an article."""
    for _, line in decoded(path):
        if line.strip():
            return bool(ARTICLE.fullmatch(line.strip()))
    return False


def _articles(path):
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
            if article:
                yield Record("\n".join(article), None, where)
            article = []
            where = f"{path.name}, line {number}"
        if line:
            article.append(line)
        after_blank = not line
    yield Record("\n".join(article), None, where)


def _lines(path):
    """One document a line."""
    for number, line in decoded(path):
        if line.strip():
            yield Record(line.strip(), None, f"{path.name}, line {number}")


def _csv(path, column, label):
    """One document a row. Row 1 is the header, as spreadsheets count."""
    csv.field_size_limit(CELL)
    rows = csv.reader((line for _, line in decoded(path)), strict=True)
    try:
        header = next(rows, [])
        names, label = _columns(header, column, label, path.name)
        _check_header(header, (*names, label), path)
        number = 1
        for number, row in enumerate(rows, 2):
            if row:
                yield _row(header, row, names, label, f"{path.name}, row {number}")
        if number == 1:
            raise ValueError(f"{path.name!r} has no rows below its header: {', '.join(header)}")
    except csv.Error as error:
        raise ValueError(f"{path.name!r} is no .csv file: line {rows.line_num}: {error}") from None


def _check_header(header, names, path):
    """Raise ValueError if one of these names stands above more than one column."""
    doubled = [name for name in names if header.count(name) > 1]
    if doubled:
        raise ValueError(
            f"{path.name!r} has more than one column {doubled[0]!r}; there are: {', '.join(header)}"
        )


def _row(header, row, names, label, where):
    """A row of a table as a Record; raises ValueError unless it has as many cells as the header."""
    if len(row) != len(header):
        raise ValueError(
            f"{where}: {len(row)} cells, but the header has {len(header)}: {', '.join(header)}"
        )
    cells = dict(zip(header, row))
    return Record(" ".join(cells[name] for name in names).strip(), cells.get(label), where)


def _jsonl(path, column, label):
    """One document an object."""
    for number, line in decoded(path):
        if line.strip():
            where = f"{path.name}, line {number}"
            cells = _parse_object(line, where)
            names, mark = _columns([*cells], column, label, where)
            text = " ".join(_text_cell(cells, name, where) for name in names)
            yield Record(text.strip(), _label_cell(cells, mark, where), where)


def _parse_object(line, where):
    """A line as a dictionary; raises ValueError if it is no JSON object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: no JSON: {error}") from None
    if not isinstance(value, dict):
        text = f'{where}: no object, but {line.strip()[:40]!r}; wanted {{"text": …}} on every line'
        raise ValueError(text)
    return value


def _text_cell(cells, name, where):
    """One text of an object; raises ValueError if it is something else."""
    value = cells[name]
    if not isinstance(value, str):
        raise ValueError(f"{where}: {name!r} is no text, but {json.dumps(value)[:40]}")
    valid(value, f"{where}: {name!r}")
    return value


def _label_cell(cells, name, where):
    """The label of an object: None without one, "" for null."""
    if name not in cells:
        return None
    value = cells[name]
    if isinstance(value, list | dict):
        raise ValueError(f"{where}: {name!r} is no label, but {json.dumps(value)[:40]}")
    valid(str(value), f"{where}: {name!r}")
    return "" if value is None else str(value)


TABLES = {".csv": _csv, ".jsonl": _jsonl}


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
            f"there are: {', '.join(header) or 'none'}"
        )
    if not label and LABEL in header and LABEL not in names:
        label = LABEL
    return names, label or None


def _check_separator(name, where):
    """Raise ValueError for the only column of a table whose cells stand between other signs."""
    signs = [sign for sign in (";", "\t", "|") if sign in name]
    if signs:
        raise ValueError(
            f"{where}: one column {name!r:.80}; cells stand between commas, here it seems between "
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


def decoded(path):
    """(number, line with its end) of every line of a file.

    Raises ValueError that names the byte where a line is no UTF-8.
    """
    with open(path, "rb") as file:
        start = 0
        for number, raw in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), 1):
            if len(raw) > LONGEST:
                raise _too_long(f"{_display_name(path)}, line {number}")
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{_display_name(path)!r} is no UTF-8 text: line {number}, byte "
                    f"{start + error.start} of the file ({error.reason})"
                ) from None
            start += len(raw)
            yield number, line


def files(text):
    """The files behind the option --text, in the order of their names.

    Those of a labelled folder come from its classes in turn. Raises FileNotFoundError if there is
    none.
    """
    if str(text).removeprefix(IDS) == "-":
        return [Path(_standard_input().name)]
    location = place(text)
    if is_ids(text) and not location.is_file():
        raise FileNotFoundError(
            f"no file {str(location)!r}: wanted token ids, one document a line, or - for standard "
            "input"
        )
    is_folder = bool(text) and location.is_dir()
    paths = _classes(text)
    if not paths:
        paths = _unlabelled(location) if is_folder else [location]
    lost = [str(path) for path in paths if not path.is_file()] if len(paths) > 1 else []
    if lost:
        more = f" and {len(lost) - 1} more" if lost[1:] else ""
        text = f"the folder {str(text)!r} has {lost[0]!r}{more}, which is no file"
        raise FileNotFoundError(f"{text}: a link to what is gone, a pipe or a folder")
    if not paths or not all(path.is_file() for path in paths):
        what = "no .txt file in the folder" if is_folder else "no text file"
        raise FileNotFoundError(
            f"{what} {str(text)!r}: wanted a file with one document or paragraph a line, a .csv or "
            ".jsonl file, a folder of .txt files, '-' for standard input, or 'sample'"
        )
    return paths


def is_ids(text):
    """Whether the option --text names a file of token ids."""
    return str(text).startswith(IDS)


def place(text):
    """The file or folder that the option --text names."""
    # as it is where there is no such user: Path.expanduser would raise RuntimeError
    return NAMED.get(text) or Path(os.path.expanduser(str(text).removeprefix(IDS)))


def shown(text):
    """The name of a text as errors give it."""
    return repr(str(text).removeprefix(IDS))


def _classes(text):
    """The files of a folder with pos/ and neg/, one of each in turn; none for any other text.

    In turn, so that the first documents are of both classes.
    """
    if not text:
        return []
    folders = [place(text) / name for name in CLASSES if (place(text) / name).is_dir()]
    if len(folders) == 1:
        raise ValueError(
            f"the folder {str(text)!r} has {folders[0].name}/ alone; wanted "
            f"{'/ and '.join(CLASSES)}/, or neither"
        )
    by_class = [sorted(folder.glob("*.txt")) for folder in folders]
    return [path for pair in zip_longest(*by_class) for path in pair if path is not None]


def _unlabelled(folder):
    """All .txt files inside a folder.

    Raises ValueError where there are labels further down: they would be lost.
    """
    labelled = set()
    for name in CLASSES:
        labelled |= {str(inside.parent) for inside in folder.rglob(name) if inside.is_dir()}
    if labelled:
        raise ValueError(
            f"the folder {str(folder)!r} has labelled folders inside; name one of them: "
            f"{', '.join(sorted(labelled))}"
        )
    return sorted(folder.rglob("*.txt"))


@functools.cache
def _standard_input():
    """Standard input as a file, so that it can be read more than once."""
    if sys.stdin is None:
        raise ValueError("standard input is closed; give a file in place of -")
    # gone when the process ends
    spool = tempfile.NamedTemporaryFile(prefix="minitx-", suffix=".txt")
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.flush()
    return spool


def described(text):
    """What the settings say about a text: its name, the number of its files, sha256.

    Of several files: sha256 of the lines `sha256  name`, names as seen from the folder, so that a
    file that moves to another class changes it. Raises ValueError for a text that is empty.
    """
    paths = files(text)
    filled(text)
    digests = [sha256(path) for path in paths]
    if len(paths) > 1:
        names = [path.relative_to(place(text)).as_posix() for path in paths]
        listing = "".join(f"{digest}  {name}\n" for digest, name in zip(digests, names))
        digests = [hashlib.sha256(listing.encode()).hexdigest()]
    is_standard_input = str(text).removeprefix(IDS) == "-"
    name = "standard input" if is_standard_input else place(text).name
    return {"name": name, "files": len(paths), "sha256": digests[0]}


def filled(text):
    """Raise ValueError if a text, named as for --text, has nothing but blanks."""
    if not any(line.strip() for path in files(text) for _, line in decoded(path)):
        not_empty("", f"{'--ids' if is_ids(text) else '--text'} {shown(text)}")


def not_empty(text, name):
    """Raise ValueError for a text that has nothing but blanks."""
    if not text.strip():
        raise ValueError(f"{name} is empty; wanted a text to read")


def sha256(path):
    """Hexadecimal digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def valid(text, name):
    """Raise ValueError if a text from the command line has bytes that are not UTF-8."""
    surrogates = [c for c in text if "\ud800" <= c <= "\udfff"]
    if surrogates:
        first = surrogates[0]
        encoding = sys.getfilesystemencoding()
        of_locale = "" if encoding == "utf-8" else f"; the locale is {encoding}: set PYTHONUTF8=1"
        text = f"{first!r} at character {text.index(first)}{of_locale}"
        raise ValueError(f"{name} is not valid UTF-8: {text}")
