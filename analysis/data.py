"""What people have: texts in the layouts that they come in, one record at a time, whatever their size.

    sample               the held-out book that comes with the project
    -                    standard input, in one of the layouts of a .txt file
    a .txt file          one document a line; or WikiText, where ` = Title = ` begins an article, which is a document
    a .csv file          a header, then one document a row; the text is in the columns that --column names
    a .jsonl file        one object a line; the text is under the keys that --column names
    a folder             with pos/ and neg/: each .txt file in these is a document with that label;
                         else all .txt files inside, in the order of their names

Nothing else is guessed: any other name is read as a .txt file. Order: the records, each layout, columns, bytes, files.
"""

import csv
import functools
import hashlib
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

SAMPLE = Path(__file__).with_name("sample.txt")
CLASSES = "neg", "pos"
COLUMNS = ("Question", "Best Answer"), ("text",)  # of TruthfulQA, of most others: read where --column names none
LABEL = "label"                                   # the same for --label
CELL = 1 << 24                                    # characters: a longer cell has a quote that is never closed
ARTICLE = re.compile(r"= [^=].* =")               # a section's title has more signs


class Record(NamedTuple):
    """One document as it was found."""
    text: str
    label: str | None  # "": its column is there, but the cell is empty
    where: str         # file, and line or row


def records(text, column="", label=""):
    """Every document of a text -> Record, in the order of the files; a labelled folder gives its classes in turn.

    column: columns of a .csv file or keys of a .jsonl file, by commas; their texts are joined by a space (without:
    Question and Best Answer, or text, or the only one). label: the column of labels (without: label, if there is one).
    ValueError for a missing column (lists those there are) or cell, for a line that is no object, for what is no
    UTF-8: each names file and line, row or byte.
    """
    labelled = bool(_classes(text))
    for path in files(text):
        table = TABLES.get(path.suffix.lower())
        if table:
            yield from table(path, column, label)
        elif column or label:
            raise ValueError(f"{place(text).resolve().name!r} has no columns: --column and --label go with .csv and "
                             ".jsonl files")
        else:
            yield from _document(path) if labelled else _articles(path) if _is_wikitext(path) else _lines(path)


def lines(text, column=""):
    """Every line of every document that is not blank, without the blanks around it. column: as for records."""
    for record in records(text, column):
        yield from filter(None, map(str.strip, record.text.split("\n")))


def _lines(path):
    """One document a line."""
    for number, line in decoded(path):
        if line.strip():
            yield Record(line.strip(), None, f"{path.name}, line {number}")


def _is_wikitext(path):
    """Whether the first line that is not blank is the title of an article."""
    return bool(ARTICLE.fullmatch(next((line.strip() for _, line in decoded(path) if line.strip()), "")))


def _articles(path):
    """One document an article. A title stands after a blank line: formulas look like it, but do not."""
    article, where, blank = [], "", True
    for number, line in decoded(path):
        if blank and ARTICLE.fullmatch(line.strip()):
            if article:
                yield Record("\n".join(article), None, where)
            article, where = [], f"{path.name}, line {number}"
        blank = not line.strip()
        article += [] if blank else [line.strip()]
    yield Record("\n".join(article), None, where)


def _document(path):
    """A whole file, labelled by its folder."""
    whole = "".join(line for _, line in decoded(path)).strip()
    yield Record(whole, path.parent.name, _called(path))


def _called(path):
    """The name of a file; with its folder where this is a class, for the files of both are often called alike."""
    return f"{path.parent.name}/{path.name}" if path.parent.name in CLASSES else path.name


def _csv(path, column, label):
    """One document a row. Row 1 is the header, as spreadsheets count."""
    csv.field_size_limit(CELL)
    rows = csv.reader((line for _, line in decoded(path)), strict=True)
    try:
        header = next(rows, [])
        names, mark = _columns(header, column, label, path.name)
        if doubled := [name for name in (*names, mark) if header.count(name) > 1]:
            raise ValueError(f"{path.name!r} has more than one column {doubled[0]!r}; there are: {', '.join(header)}")
        number = 1
        for number, row in enumerate(rows, 2):
            where = f"{path.name}, row {number}"
            if row and len(row) != len(header):
                raise ValueError(f"{where}: {len(row)} cells, but the header has {len(header)}: {', '.join(header)}")
            cells = dict(zip(header, row))
            if row:
                yield Record(" ".join(cells[name] for name in names).strip(), cells.get(mark), where)
        if number == 1:
            raise ValueError(f"{path.name!r} has no rows below its header: {', '.join(header)}")
    except csv.Error as error:
        raise ValueError(f"{path.name!r} is no .csv file: line {rows.line_num}: {error}") from None


def _jsonl(path, column, label):
    """One document an object."""
    for number, line in decoded(path):
        where = f"{path.name}, line {number}"
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{where}: no JSON: {error}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{where}: no object, but {line.strip()[:40]!r}; wanted {{\"text\": …}} on every line")
        names, mark = _columns([*found], column, label, where)
        if wrong := [name for name in names if not isinstance(found[name], str)]:
            raise ValueError(f"{where}: {wrong[0]!r} is no text, but {json.dumps(found[wrong[0]])[:40]}")
        if isinstance(found.get(mark), (list, dict)):
            raise ValueError(f"{where}: {mark!r} is no label, but {json.dumps(found[mark])[:40]}")
        given = None if mark not in found else "" if found[mark] is None else str(found[mark])
        yield Record(" ".join(found[name] for name in names).strip(), given, where)


TABLES = {".csv": _csv, ".jsonl": _jsonl}


def _columns(there, column, label, where):
    """Names of the columns of the text, and of the label or None; ValueError for those that are not there."""
    split = [column] if column in there else [name.strip() for name in column.split(",")]
    known = [names for names in (*COLUMNS, there[:1] * (len(there) == 1)) if names and {*names} <= {*there}]
    names = split if column else [*known[0]] if known else []
    if missing := [name for name in (*names, *filter(None, [label])) if name not in there] or not names:
        what = f"no column {', '.join(map(repr, missing))}" if names else "no column of a known name"
        raise ValueError(f"{where}: {what}; name the text's with --column, the label's with --label; there are: "
                         f"{', '.join(there) or 'none'}")
    return names, label or (LABEL if LABEL in there and LABEL not in names else None)


def decoded(path):
    """(number, line with its end) of every line of a file; ValueError names the byte that is no UTF-8."""
    with open(path, "rb") as file:
        start = 0
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{_called(path)!r} is no UTF-8 text: line {number}, byte {start + error.start} of "
                                 f"the file ({error.reason})") from None
            start += len(raw)
            yield number, line


def files(text):
    """The files behind the option --text: in the order of their names, those of a labelled folder class by class."""
    if text == "-":
        return [Path(_standard_input().name)]
    found = place(text)
    inside = _classes(text) or (_unlabelled(found) if text and found.is_dir() else [found])
    if not inside or not all(path.is_file() for path in inside):
        what = "no .txt file in the folder" if text and found.is_dir() else "no text file"
        raise FileNotFoundError(f"{what} {str(text)!r}: wanted a file with one document or paragraph a line, a .csv or "
                                ".jsonl file, a folder of .txt files, '-' for standard input, or 'sample'")
    return inside


def place(text):
    """The file or folder that the option --text names."""
    return SAMPLE if text == "sample" else Path(text).expanduser()


def _classes(text):
    """The files of a folder with pos/ and neg/, one of each in turn, so that the first of them are of both classes."""
    folders = [folder for name in CLASSES if text and (folder := place(text) / name).is_dir()]
    if len(folders) == 1:
        raise ValueError(f"the folder {str(text)!r} has {folders[0].name}/ alone; wanted "
                         f"{'/ and '.join(CLASSES)}/, or neither")
    ranked = [(i, path) for folder in folders for i, path in enumerate(sorted(folder.glob("*.txt")))]
    return [path for _, path in sorted(ranked, key=lambda one: one[0])]


def _unlabelled(folder):
    """All .txt files inside a folder; ValueError where there are labels further down: they would be lost."""
    if deeper := sorted({str(one.parent) for name in CLASSES for one in folder.rglob(name) if one.is_dir()}):
        raise ValueError(f"the folder {str(folder)!r} has labelled folders inside; name one of them: "
                         f"{', '.join(deeper)}")
    return sorted(folder.rglob("*.txt"))


@functools.cache
def _standard_input():
    """Standard input as a file, so that it can be read more than once."""
    spool = tempfile.NamedTemporaryFile(prefix="minitx-", suffix=".txt")  # gone when the process ends
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.flush()
    return spool


def described(text):
    """What the settings say about a text: its name, the number of its files, sha256.

    Of several files: sha256 of the lines `sha256  name`, names as seen from the folder, so that a file that moves to
    another class changes it.
    """
    paths = files(text)
    digests = []
    for path in paths:
        with open(path, "rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    if len(paths) > 1:
        names = [path.relative_to(place(text)).as_posix() for path in paths]
        listing = "".join(f"{digest}  {name}\n" for digest, name in zip(digests, names))
        digests = [hashlib.sha256(listing.encode()).hexdigest()]
    return {"name": "standard input" if text == "-" else place(text).name, "files": len(paths), "sha256": digests[0]}


def valid(text, name):
    """ValueError where bytes that are no UTF-8 came with a text from the command line."""
    if bad := [c for c in text if "\ud800" <= c <= "\udfff"]:
        raise ValueError(f"{name} is not valid UTF-8: {bad[0]!r} at character {text.index(bad[0])}")
