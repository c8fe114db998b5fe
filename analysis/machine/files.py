"""Files that are replaced in one step, so that none is ever half written."""

import errno
import itertools
import json
import math
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path

from minitx.weights.writing import replace_file, replaced_by, write_into

MADE: list[Path] = []  # folders that `writable` made, each before those that it lies in
FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG  # no room on the disk, or not for this user


def write(path, content):
    """Replace a file by this text or these bytes.

    They are written to a temporary name, which is then renamed: whoever opens `path` gets all of
    the old file or all of the new one, also if the process ends in between.
    """
    write_all({path: content})


@contextmanager
def writing(path):
    """A binary file that takes the place of `path` once the block has ended without an error.

    For arrays that should not be held a second time as the bytes of a file.
    """
    target = replaced_by(path) or path
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with _explained(path):
            with open(draft, "wb") as file:
                yield file
            replace_file(draft, target)
    finally:
        with suppress(OSError):
            draft.unlink()


def write_all(contents, before=lambda: None):
    """Replace several files, {path: text or bytes}, in this order, once there is room for all.

    A link stays, and its target is replaced; a device, a pipe or standard output is written into.

    before: called between the last that is written and the first that is renamed. Raises OSError
    that names the file and what was in its way; the old files are then as they were.
    """
    contents = {path: _as_bytes(content) for path, content in contents.items()}
    targets, drafts = {}, {}
    try:
        for path, content in contents.items():
            with _explained(path, len(content)):
                targets[path] = target = replaced_by(path)
                if target is not None:
                    drafts[path] = target.with_name(f".{target.name}.{os.getpid()}.tmp")
                    drafts[path].write_bytes(content)
        before()
        for path, target in targets.items():
            with _explained(path):
                if target is None:
                    write_into(path, contents[path])
                else:
                    replace_file(drafts[path], target)
    finally:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink()


def _as_bytes(content):
    return content.encode() if isinstance(content, str) else content


@contextmanager
def _explained(path, size=0):
    """An OSError inside names the file at `path`, and says what was in the way.

    size: bytes to write, 0 where that is not known before.
    """
    try:
        yield
    except OSError as error:
        if not path.parent.is_dir():  # ENOENT would say that something was not found
            text, place = "the folder was removed during the run", path.parent
            raise OSError(errno.ENOTDIR, text, str(place)) from None
        reason = error.strerror
        if error.errno in FULL:
            free = shutil.disk_usage(path.parent).free
            reason += f", {size:,} bytes wanted" if size else ""
            reason += f", {free:,} free"
        raise OSError(error.errno, reason, str(path)) from None


def writable(folder):
    """The folder, created if it is missing; raises OSError where files cannot be written."""
    folder = Path(folder)
    MADE.extend(path for path in (folder, *folder.parents) if not path.exists())
    folder.mkdir(parents=True, exist_ok=True)
    trial = folder / f".{os.getpid()}.tmp"
    try:
        trial.write_bytes(b"")
    finally:
        trial.unlink(missing_ok=True)
    return folder


def writable_file(path):
    """The path of a file to write, its folder created; raises OSError where it cannot be."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder; wanted the name of a file", str(path))
    target = replaced_by(path)
    if target is not None:
        writable(target.parent)
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return path


def unused(path):
    """The path, or the first of NAME-2, NAME-3, … that is not there: what was written stays."""
    names = (f"{path.stem}-{n}{path.suffix}" for n in itertools.count(2))
    while path.exists():
        path = path.with_name(next(names))
    return path


def is_new_with(path):
    """Whether `writable` made the folder of this file and nothing else was written to it."""
    return path.parent in MADE and path.exists() and [*path.parent.iterdir()] == [path]


def remove_empty():
    """Remove the folders that `writable` made and that nothing was written to."""
    for folder in sorted(MADE, key=lambda folder: -len(folder.parts)):
        with suppress(OSError):  # it holds something, or is gone
            folder.rmdir()
    MADE.clear()


def cache():
    """The folder of what is kept between runs, by MINITX_CACHE, XDG_CACHE_HOME or ~/.cache."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("MINITX_CACHE") or caches / "minitx")


def as_json(value):
    """A value as JSON text; raises ValueError for NaN and infinities, which JSON lacks."""
    how = {"indent": 1, "ensure_ascii": False, "allow_nan": False}
    return json.dumps(value, default=lambda record: record.stated(), **how)


def finite(value):
    """A value with None for every NaN and infinity in its lists and dictionaries."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
