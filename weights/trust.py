"""What a hub may choose: the bytes of a file, never where they are written, nor how many.

huggingface_hub names a blob after the ETag of an answer, and its snapshot after the commit that the
answer states, unchecked: with the ETag "/home/you/.bashrc" it would write there. The functions here
check a listing, an answer, an index, and the place of a file after its download; each raises
ValueError for what it does not accept.
"""

import errno
import re
from pathlib import PurePosixPath

from .local import COMMIT, INDEX, hub_cache, snapshot, storage_name

ETAG = re.compile("[0-9a-f]{40,64}")  # git's sha1 of a file, or the sha256 of a large one


def check_commit(repo, revision, commit):
    """Check the commit of a listing, which names folders, and files with a revision's name."""
    if not COMMIT.fullmatch(str(commit)):
        raise ValueError(
            f"{repo} cannot be trusted: revision {revision} is commit {commit!r}; wanted 40 hex "
            "digits. Nothing was downloaded"
        )


def check_answer(name, repo, commit, answered):
    """Check the commit of an answer about a file; None: it has none."""
    if answered not in (None, commit):
        raise ValueError(
            f"{name} of {repo} was not downloaded, the hub cannot be trusted: it answers with "
            f"commit {answered!r}; wanted {commit}"
        )


def check_etag(name, repo, etag, listed):
    """Check the ETag of an answer, without quotes, against the hash that the listing has, or None.

    Without that, another file could be named, and replaced.
    """
    if etag is None:  # the library refuses it itself
        return
    if not ETAG.fullmatch(etag) or listed not in (None, etag):
        of_listing = f", here {listed}" if listed else ""
        raise ValueError(
            f"{name} of {repo} was not downloaded, the hub cannot be trusted: its ETag is "
            f"{etag!r}; wanted 40 to 64 hex digits{of_listing}"
        )


def check_shards(repo, names):
    """Check the names of weight files in an index."""
    for name in names:
        path = PurePosixPath(name)
        leaves = path.is_absolute() or ".." in path.parts or "\\" in name
        if leaves or path.suffix != ".safetensors":
            raise ValueError(
                f"{INDEX} of {repo} names {name!r}; wanted .safetensors inside its folder"
            )


def check_place(path, repo, commit):
    """A file of a snapshot: a link to a blob, or a file where the cache has no links."""
    storage = hub_cache() / storage_name(repo)
    # the last: blobs that several repositories share
    folders = (storage / "blobs", snapshot(repo, commit), hub_cache() / "blobs")
    target = path.resolve()
    if not any(folder.resolve() in target.parents for folder in folders):
        raise ValueError(
            f"{path} is a link to {target}, outside of {storage}; neither was read or changed."
            " Delete it and fetch again"
        )


def check_room(name, repo, size, free):
    """Check that a file of this size has room on the disk: a listing may promise any."""
    if size is None:
        raise ValueError(f"{name} of {repo} was not downloaded: the listing has no size of it")
    if size > free:
        text = f"no room for {name} of {repo}: {size:,} bytes, and {free:,} are free"
        raise OSError(errno.ENOSPC, text)


class Limited:
    """A file that takes no more bytes than a listing promised, for the library to write into."""

    def __init__(self, file, name, repo, most):
        self.file = file
        self.name = name
        self.repo = repo
        self.most = most

    def write(self, data):
        """Write; raises ValueError, and empties the file, where it would be too many bytes."""
        if self.file.tell() + len(data) > self.most:
            self.file.seek(0)
            self.file.truncate()
            raise ValueError(
                f"{self.name} of {self.repo} was not kept, the hub cannot be trusted: it sends "
                f"more than the {self.most:,} bytes of its listing"
            )
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)
