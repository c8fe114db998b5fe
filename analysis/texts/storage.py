"""The files behind the name of a text, their lines, and what the settings say of them.

Files lie here or behind a URL (remote.py), as they are or packed (compression.py).
"""

import functools
import glob
import hashlib
import io
import os
import shutil
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from . import compression, naming, parquet, remote

SAMPLE = Path(__file__).with_name("sample.txt")
NAMED = {"sample": SAMPLE}  # texts that come with the project
NAMED |= {name: SAMPLE.with_name(f"{name}.txt") for name in ("dates", "rows", "stories")}
CLASSES = "neg", "pos"
TEXT, PARQUET = ".txt", ".parquet"
LAYOUTS = TEXT, ".csv", ".tsv", ".jsonl", ".json", PARQUET  # of which a folder may have files
# which are read from the beginning: a line by itself says nothing
WHOLE = ".csv", ".tsv", ".json", PARQUET, *compression.ENDINGS
# what a name began with in 1.0 -> its option now
OF_1_0 = {"ids": "; use --ids FILE", "column": "; use --column", "draw": "; use --sample N"}
# bytes of a line, characters of a document: to cut it into tokens takes 200 times as much memory
LONGEST = 1 << 22


def place(text):
    """The file or folder that the option --text names."""
    named = naming.of(text).name
    # as it is where there is no such user: Path.expanduser would raise RuntimeError
    return NAMED.get(named) or Path(os.path.expanduser(named))


def files(text):
    """The files behind the option --text, in the order of their names.

    Those of a labelled folder come from its classes in turn. Each is a Path or a remote.Url.
    Raises FileNotFoundError if there is none.
    """
    named = naming.of(text)
    if named.name == "-" or is_literal(text):
        return [Path(_spooled(named.name).name)]
    if remote.is_url(named.name):
        return _of_url(named.name)
    location = place(text)
    if glob.has_magic(str(location)) and not location.exists():
        return _of_glob(str(location))
    if named.is_ids and not location.is_file():
        raise FileNotFoundError(
            f"no file {str(location)!r}: wanted token ids, one document per line, or - for "
            "standard input"
        )
    is_folder = bool(named.name) and location.is_dir()
    paths = classes(text)
    if not paths:
        paths = _unlabelled(location) if is_folder else [location]
    lost = [str(path) for path in paths if not path.is_file()] if len(paths) > 1 else []
    if lost:
        more = f" and {len(lost) - 1} more" if lost[1:] else ""
        text = f"the folder {named.name!r} has {lost[0]!r}{more}, which is not a file"
        raise FileNotFoundError(f"{text}: a link to what is gone, a pipe or a folder")
    if not paths or not all(path.is_file() for path in paths):
        raise FileNotFoundError(_nowhere(named.name, is_folder))
    return paths


def _nowhere(name, is_folder):
    """The error for a name behind which there is no file."""
    what = "no .txt file in the folder" if is_folder else "no text file"
    former = OF_1_0.get(name.partition(":")[0], "")
    return (
        f"{what} {name!r}{former}: wanted a file with one document or paragraph per line, a .csv, "
        ".jsonl or .parquet file, any of them as .gz or .zst, a folder or a glob of such files, a "
        "URL, '-' for standard input, 'sample', or a text itself, of several words"
    )


def is_literal(text):
    """Whether a name is the text itself: several words that name no file, folder, glob or URL.

    What ends as a file of text does, as in "my texts/a.txt", is a file's name.
    """
    named = naming.of(text)
    if named.is_ids or len(named.name.split()) < 2 or remote.is_url(named.name):
        return False
    location = os.path.expanduser(named.name)
    if ends_like_a_file(named.name) or os.path.exists(location):
        return False
    return not (glob.has_magic(location) and any(glob.iglob(location, recursive=True)))


def itself(text):
    """A text that was given itself, or piped without a line break at its end, as it stands.

    None for any other text, for a sample or columns of one, and for one longer than LONGEST.
    """
    named = naming.of(text)
    piped = named.name == "-"
    if named != naming.Text(named.name) or not (piped or is_literal(text)):
        return None
    (path,) = files(text)
    if path.stat().st_size > LONGEST:
        return None
    whole = "".join(line for _, line in decoded(path))
    return None if piped and whole.endswith("\n") else whole


def ends_like_a_file(name):
    """Whether a name has the ending of a layout, packed or not."""
    return compression.layout(PurePosixPath(name)) in LAYOUTS


def _of_url(place):
    """The objects that a URL names; of a folder those of a layout."""
    urls = remote.files(place)
    if place.endswith("/"):
        urls = _of_a_layout(urls, place)
    if not urls:
        wanted = f"wanted {', '.join(LAYOUTS)}, or any of them as .gz or .zst"
        raise FileNotFoundError(f"there is no file at {place}: {wanted}")
    return urls


def _of_glob(pattern):
    """The files that match a pattern, ** for folders inside folders among them."""
    paths = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise FileNotFoundError(
            f"no file matches {pattern!r}; wanted {', '.join(LAYOUTS)} files, or any of them as "
            ".gz or .zst"
        )
    return paths


def classes(text):
    """The files of a folder with pos/ and neg/, one of each in turn; none for any other text.

    In turn, so that the first documents are of both classes.
    """
    named = naming.of(text).name
    if not named or remote.is_url(named) or is_literal(text):
        return []
    folders = [place(text) / name for name in CLASSES if (place(text) / name).is_dir()]
    if len(folders) == 1:
        raise ValueError(
            f"the folder {named!r} has {folders[0].name}/ alone; wanted "
            f"{'/ and '.join(CLASSES)}/, or neither"
        )
    by_class = [sorted(folder.glob("*.txt")) for folder in folders]
    return [path for pair in zip_longest(*by_class) for path in pair if path is not None]


def _unlabelled(folder):
    """The files inside a folder that are of a layout.

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
    return _of_a_layout(sorted(folder.rglob("*.*")), folder)


def _of_a_layout(paths, folder):
    """Of all files in a folder, those that are texts: .txt files, else those of the only layout.

    Tables beside .txt files say something about these. Raises ValueError for tables of several
    layouts.
    """
    by_layout = {}
    for path in paths:
        by_layout.setdefault(compression.layout(path), []).append(path)
    layouts = [layout for layout in LAYOUTS if layout in by_layout]
    if len(layouts) > 1 and ".json" in layouts:  # which says something about the tables
        layouts.remove(".json")
    if len(layouts) > 1 and layouts[0] != TEXT:
        raise ValueError(
            f"the folder {str(folder)!r} has files of several layouts: {', '.join(layouts)}; name "
            f"those of one, as {str(folder).rstrip('/')}/**/*{layouts[0]}"
        )
    return by_layout[layouts[0]] if layouts else []


@functools.cache
def _spooled(place):
    """Standard input (-), or a text itself, as a file, so that it can be read more than once."""
    if place == "-" and sys.stdin is None:
        raise ValueError("standard input is closed; give a file in place of -")
    # gone when the process ends
    spool = tempfile.NamedTemporaryFile(prefix="minitx-", suffix=".txt")
    source = sys.stdin.buffer if place == "-" else io.BytesIO(place.encode())
    shutil.copyfileobj(source, spool)
    spool.flush()
    return spool


# --- lines


def decoded(path, start=0):
    """(number, line with its end) of every line of a file, from the byte `start` on.

    Raises ValueError that names the byte where a line is not valid UTF-8, or a file is damaged.
    """
    with compression.opened(path) as file:
        if start:
            file.seek(start)
        for number, raw in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), 1):
            if len(raw) > LONGEST:
                raise too_long(f"{display_name(path)}, line {number}")
            try:
                line = raw.decode("utf-8" if start else "utf-8-sig")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{display_name(path)!r} is not valid UTF-8: line {number}, byte "
                    f"{start + error.start} of the file ({error.reason})"
                ) from None
            start += len(raw)
            yield number, line


def display_name(path):
    """The name of a file, with its folder if that is a class: files of both may have one name."""
    if path.parent.name in CLASSES:
        return f"{path.parent.name}/{path.name}"
    return path.name


def too_long(where):
    """The error for a line or a document that would take all memory."""
    return ValueError(
        f"{where} is longer than {LONGEST:,} characters, and what is read at once takes 200 bytes "
        "a character; break it into lines, as `fold -s -w 10000 FILE` does"
    )


# --- what is said of a text


def described(text):
    """What the settings say about a text: its name, the number of its files, sha256.

    Of several files: sha256 of the lines `sha256  name`, names as seen from the folder, so that a
    file that moves to another class changes it. Of a URL: the same of what its store says of each
    object. Raises ValueError for a text that is empty.
    """
    paths = files(text)
    filled(text)
    named = naming.of(text).name
    is_remote = remote.is_url(named)
    digests = [path.stated() if is_remote else sha256(path) for path in paths]
    if len(paths) > 1 or is_remote:
        names = _names_inside(paths, is_remote)
        listing = "".join(f"{digest}  {name}\n" for digest, name in zip(digests, names))
        digests = [hashlib.sha256(listing.encode()).hexdigest()]
    return {"name": _display(text), "files": len(paths), "sha256": digests[0]}


def _display(text):
    """The name that the settings give a text."""
    named = naming.of(text).name
    if named == "-":
        return "standard input"
    if is_literal(text):
        return "the text itself"
    return PurePosixPath(named).name if remote.is_url(named) else place(text).name


def _names_inside(paths, is_remote):
    """Names of files as seen from the folder that all of them lie in."""
    if is_remote:
        return [path.path for path in paths]
    folder = os.path.commonpath([path.parent for path in paths])
    return [path.relative_to(folder).as_posix() for path in paths]


def filled(text):
    """Raise ValueError if a text, named as for --text, has nothing but blanks."""
    if not any(map(_is_filled, files(text))):
        option = "--ids" if naming.is_ids(text) else "--text"
        not_empty("", f"{option} {naming.shown(text)}")


def _is_filled(path):
    """Whether a file has more than blanks; of a table of rows, whether it has rows."""
    if compression.layout(path) == PARQUET:
        return parquet.n_rows(path) > 0
    return any(line.strip() for _, line in decoded(path))


def stamp(text):
    """What changes with the files of a text, as far as that is known without reading them."""
    paths = files(text)
    if any(isinstance(path, remote.Url) for path in paths):
        return tuple((str(path), path.stated()) for path in paths)
    states = [(path, path.stat()) for path in paths]
    return tuple((str(path), state.st_size, state.st_mtime_ns) for path, state in states)


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
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        first = text[error.start]
        encoding = sys.getfilesystemencoding()
        of_locale = "" if encoding == "utf-8" else f"; the locale is {encoding}: set PYTHONUTF8=1"
        where = f"{first!r} at character {error.start}{of_locale}"
        raise ValueError(f"{name} is not valid UTF-8: {where}") from None
