"""Texts behind a URL: an object store or a web server, read through fsspec.

Beside minitx.weights.fetch this is the only code that touches a network, and only where a user
names a URL. `fsspec` knows what there is: s3://, gs://, https://, and `simplecache::` before any of
them, which keeps a copy in a temporary folder.
"""

import contextlib
import hashlib
import io
import re
from pathlib import PurePosixPath

URL = re.compile(r"[a-z][a-z0-9+.:-]+://")
# what stores call that which changes with an object's bytes
TAGS = "ETag", "etag", "md5Hash", "Content-MD5", "content_md5", "Digest", "crc32c", "sha256"
TIMES = "Last-Modified", "LastModified", "last_modified", "updated", "mtime"
BLOCK = 1 << 16  # bytes
EXTRA = "'minitx[remote]'"
# kind of store -> the package that fsspec reads it with
PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs"}
PACKAGES |= {"az": "adlfs", "http": EXTRA, "https": EXTRA}


def is_url(place):
    """Whether the place of a text is a URL."""
    return bool(URL.match(place))


class Url:
    """One object of a store, with as much of a path as reading needs."""

    def __init__(self, system, path):
        self.system = system
        self.path = path
        inside = PurePosixPath(path.partition("?")[0])
        self.name = inside.name
        self.suffix = inside.suffix
        self.parent = inside.parent

    def __str__(self):
        return self.system.unstrip_protocol(self.path)

    def open(self, mode="rb"):
        """A stream of its bytes, in which one can also go back."""
        with _named(self):
            return io.BufferedReader(_Stream(self, self.system.open(self.path, mode)), BLOCK)

    def stated(self):
        """Text that changes with the object: what the store says of it, else sha256 of its bytes.

        No byte of it is moved where the store gives a tag, or the time of its last change.
        """
        with _named(self):
            info = self.system.info(self.path)
        tag = next((str(info[name]) for name in (*TAGS, *TIMES) if info.get(name)), "")
        if tag:
            return f"{info.get('size')} {tag}"
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


class _Stream(io.RawIOBase):
    """A store's stream, whose errors name the URL and how far it was read."""

    def __init__(self, url, file):
        self.url = url
        self.file = file

    def readable(self):
        return True

    def seekable(self):
        return bool(self.file.seekable())

    def seek(self, offset, whence=io.SEEK_SET):
        return self.file.seek(offset, whence)

    def tell(self):
        return self.file.tell()

    def readinto(self, buffer):
        with _named(self.url, f" after {self.file.tell():,} bytes"):
            content = self.file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self):
        self.file.close()
        super().close()


@contextlib.contextmanager
def _named(url, where=""):
    """Whatever a store's package raises inside becomes a ConnectionError with the URL.

    Each has types of its own, and no common one.
    """
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"there is nothing at {url}") from None
    except Exception as error:
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise ConnectionError(f"{url} cannot be read{where}: {said}") from error


def files(place):
    """The objects that a URL names, in the order of their names: one, a glob's, or a folder's.

    A folder ends with a slash; a glob has a star. Raises ValueError where a package is missing.
    """
    system, path = _connected(place)
    if "*" in path:
        with _named(place):
            paths = sorted(system.glob(path))
    elif path.endswith("/") or place.endswith("/"):
        with _named(place):
            paths = sorted(system.find(path))
    else:
        paths = [path]
    return [Url(system, path) for path in paths]


def _connected(place):
    """(file system, path) of a URL."""
    if re.search(r"://[^/@]*:[^/@]*@", place):
        raise ValueError(
            "a password in a URL would be written into the results; give it as the store's own "
            "package takes it: in the environment, or in its file of settings"
        )
    try:
        from fsspec.core import url_to_fs

        return url_to_fs(place)
    except ImportError as error:  # of fsspec, or of what it needs for this kind of store
        package = PACKAGES.get(place.rpartition("://")[0].rpartition("::")[2])
        if package == EXTRA or error.name:  # a module that is not there
            text = f"{place!r} is a URL; to read it: pip install {EXTRA}"
            raise ValueError(text) from None
        command = f"; to read it: pip install {package}" if package else ""
        raise ValueError(f"{place!r} needs another package: {error}{command}") from None
