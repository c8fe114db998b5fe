"""The bytes of a file as they were before gzip (.gz) or Zstandard (.zst) packed them."""

import contextlib
import gzip
import io
import zlib
from pathlib import PurePosixPath

ENDINGS = ".gz", ".zst"
ARCHIVES = ".zip", ".tar", ".tgz", ".bz2", ".xz", ".7z", ".rar"  # not read


def layout(path):
    """The ending that names what is inside: 'a.jsonl.gz' -> '.jsonl'; of '.gz' alone ''."""
    inner = PurePosixPath(path.name)
    if inner.suffix.lower() in ENDINGS:
        inner = inner.with_suffix("")
    return inner.suffix.lower()


@contextlib.contextmanager
def opened(path):
    """A file's unpacked bytes, as a stream.

    Raises ValueError, with the file's name and how far it could be read, for one that is damaged or
    ends too early, and for .zst where nothing here can unpack it.
    """
    ending = PurePosixPath(path.name).suffix.lower()
    _check_packing(path)
    damage = (EOFError, gzip.BadGzipFile, zlib.error)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        if ending == ".gz":
            file = stack.enter_context(gzip.GzipFile(fileobj=file))
        if ending == ".zst":
            zstd = _zstd(path)
            damage = (*damage, zstd.ZstdError)
            file = stack.enter_context(zstd.ZstdFile(file))
        if ending in ENDINGS:
            file = stack.enter_context(io.BufferedReader(file, 1 << 17))
        try:
            yield file
        except damage as error:
            raise ValueError(
                f"{path.name!r} is damaged: {error} (after {file.tell():,} bytes of its contents)"
            ) from None


def _check_packing(path):
    """Raise ValueError for an archive, or for what was packed twice."""
    inner = layout(path)
    if inner in ARCHIVES:
        raise ValueError(
            f"{path.name!r} is an archive or packed as {inner}; unpack it, and name the file or "
            f"folder; packed files are read as {' or '.join(ENDINGS)}"
        )
    if inner in ENDINGS:
        raise ValueError(f"{path.name!r} is packed twice; unpack it once")


def _zstd(path):
    """Python's own module for .zst, which before 3.14 is a package."""
    with contextlib.suppress(ImportError):
        from compression import zstd

        return zstd
    try:
        from backports import zstd
    except ImportError:
        text = f"{path.name!r} is packed with Zstandard; to read it: pip install 'minitx[zstd]'"
        raise ValueError(text) from None
    return zstd
