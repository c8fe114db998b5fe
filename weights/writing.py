"""How a file takes the place of another: links stay, devices and pipes are written into."""

import os
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path


def write(path, content):
    """Replace a file by these bytes, or write them into what is no ordinary file."""
    target = replaced_by(path)
    if target is None:
        write_into(path, content)
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(content)
        replace_file(draft, target)
    finally:
        with suppress(OSError):
            draft.unlink()


def replaced_by(path):
    """The file that takes the place of what is at `path`: of a link its target, which stays one.

    None for what is written into and never replaced: a device, a pipe, where this process prints.
    """
    try:
        present = os.stat(path)
    except FileNotFoundError:
        return Path(os.path.realpath(path))
    if not stat.S_ISREG(present.st_mode) or _printed_to(present) is not None:
        return None
    return Path(os.path.realpath(path))


def _printed_to(present):
    """The descriptor of standard output or error that is this file; None if neither is."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed
            if os.path.samestat(os.fstat(descriptor), present):
                return descriptor
    return None


def write_into(path, content):
    """Write bytes into what is no ordinary file, or to where this process prints."""
    sys.stdout.flush()
    descriptor = _printed_to(os.stat(path))
    where = path if descriptor is None else descriptor
    with open(where, "wb", closefd=descriptor is None) as file:
        file.write(content)


def replace_file(draft, target):
    """Rename a draft beside `target` over it, with the permissions and owner of the old file."""
    with suppress(OSError, AttributeError):
        old = os.stat(target)
        shutil.copymode(target, draft)
        if (old.st_uid, old.st_gid) != (os.getuid(), os.getgid()):
            os.chown(draft, old.st_uid, old.st_gid)
    os.replace(draft, target)
