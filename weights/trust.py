"""What a hub may choose: the bytes of a file, never where they are written.

huggingface_hub names a blob after the ETag of an answer, and its snapshot after the commit that the
answer states, unchecked: with the ETag "/home/you/.bashrc" it would write there. The functions here
check a listing, an answer, an index, and the place of a file after its download; each raises
ValueError for what it does not accept.
"""

import re
from pathlib import PurePosixPath

from .local import INDEX, hub_cache, snapshot, storage_name

ETAG = re.compile("[0-9a-f]{40,64}")  # git's sha1 of a file, or the sha256 of a large one
COMMIT = re.compile("[0-9a-f]{40}")


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


def check_etag(name, repo, etag, sha256):
    """Check the ETag of an answer, without quotes; sha256: of a large file, from the listing.

    Without the sha256, a file of another commit could be named, and replaced.
    """
    if etag is None:  # the library refuses it itself
        return
    if not ETAG.fullmatch(etag) or sha256 not in (None, etag):
        of_listing = f", here {sha256}" if sha256 else ""
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
