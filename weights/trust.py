"""What a hub may choose: the bytes of a file, never where they are written.

huggingface_hub names a blob after the ETag of an answer, and its snapshot after the commit that the
answer states, as they come: with the ETag "/home/you/.bashrc" it would write there. Here is what is
taken from a listing, from an answer, from an index, and the place of a file once it is here; each
function raises ValueError for anything else.
"""

import re
from pathlib import PurePosixPath

from .local import INDEX, hub_cache, snapshot, storage_name

ETAG = re.compile("[0-9a-f]{40,64}")  # git's sha1 of a file, or the sha256 of a large one
COMMIT = re.compile("[0-9a-f]{40}")


def check_commit(repo, revision, commit):
    """The commit of a listing names folders, and files with a revision's name."""
    if not COMMIT.fullmatch(str(commit)):
        raise ValueError(
            f"{repo} cannot be trusted: revision {revision} is commit {commit!r}; wanted 40 hex "
            "digits. Nothing was downloaded"
        )


def check_answer(name, repo, commit, etag, answered):
    """The ETag, without its quotes, and the commit of an answer about a file; None: it has none."""
    what = f"{name} of {repo} was not downloaded, the hub cannot be trusted: it answers"
    if answered not in (None, commit):
        raise ValueError(f"{what} with commit {answered!r}; wanted {commit}")
    if etag is not None and not ETAG.fullmatch(etag):
        raise ValueError(f"{what} by the name {etag!r}; wanted an ETag of 40 to 64 hex digits")


def check_shards(repo, names):
    """The names of weight files in an index."""
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
