"""Download one checkpoint with huggingface_hub and record its files.

This is the only code that uses the network. Order: `fetch`, what is chosen from a repository, one
checked file, the hub's errors in plain words. The library does the transfer: cache, retries, resume
after a cut, tokens, mirrors, proxies, progress bars.
"""

import contextlib
import json
import os
import shutil
import sys
import threading
import traceback
from dataclasses import replace
from pathlib import Path

from . import states
from .local import (
    INDEX,
    MODEL,
    TEXTS,
    bundled,
    check_revision,
    command,
    faults,
    find,
    git_sha1,
    histories,
    hub_cache,
    hub_ids,
    measure,
    near,
    of_pictures,
    read_record,
    record_path,
    shards,
    snapshot,
    write_record,
    zoo,
)
from .trust import (
    Limited,
    check_answer,
    check_commit,
    check_etag,
    check_place,
    check_room,
    check_shards,
)

ONE_FILE = threading.Lock()
HUB = "https://huggingface.co"
TOKEN = "a token (`hf auth login`, or the variable HF_TOKEN)"


def fetch(name: str, revision: str | None = None, progress: bool = True) -> Path:
    """Download a known name or hub id, pin its commit and record its files; return the folder.

    The record has size and sha256 of each file. The first call pins the current commit of
    `revision` (None: main). Later calls without a revision keep the pin, and need no network if
    every file is intact; a branch, tag or commit moves the pin ("main": to the newest).
    Errors: FileNotFoundError (no such repository, revision), PermissionError (gated, private),
    ConnectionError (offline, unreachable, interrupted), ValueError (no safetensors, wrong bytes).

    A bundled checkpoint needs no download:

    >>> fetch("tiny-gpt2").name
    'tiny-gpt2'
    """
    name = str(name)
    if name in [*bundled(), *of_pictures(), *zoo(), *histories()]:
        return find(name)
    if not hub_ids(name):
        raise ValueError(f"{name!r} is not a hub id; wanted NAME or ORG/NAME.{near(name)}")
    check_revision(revision)
    repo = hub_ids(name)[0]
    record = read_record(repo)
    commit = revision or record["pinned"] or "main"
    recorded = record["files"].get(commit)
    if not recorded or faults(snapshot(repo, commit), recorded, verify=True):
        try:
            commit = _download(repo, commit, record, progress)
        except Exception as error:
            plain = _plain(error, repo, commit, command(name, revision))
            if plain:
                raise plain from error
            raise
    record["pinned"] = commit
    write_record(record)
    return snapshot(repo, commit)


def _download(repo, revision, record, progress):
    """Bring one revision into the cache and its files into `record`; return its commit."""
    from huggingface_hub import HfApi, constants

    offline = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    if offline.upper() in constants.ENV_VARS_TRUE_VALUES:
        raise ConnectionError("HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set")
    api = HfApi(endpoint=_endpoint())
    timeout = constants.HF_HUB_ETAG_TIMEOUT
    info = api.model_info(repo, revision=revision, files_metadata=True, timeout=timeout)
    check_commit(repo, revision, info.sha)
    listing = {file.rfilename: file for file in info.siblings or []}
    recorded = record["files"].get(info.sha, {})
    names = _choose(repo, revision, listing)
    files = {}
    with _bars(progress):
        for name in names:
            files[name] = _file(api, repo, info.sha, listing[name], recorded.get(name))
            if name == INDEX:  # the last of the names so far
                names += _shards(repo, info.sha, listing)
    record["files"][info.sha] = files
    record["revisions"][revision] = info.sha
    return info.sha


@contextlib.contextmanager
def _bars(progress):
    """Without `progress`, no progress bars within; the caller's own downloads keep theirs."""
    from huggingface_hub import utils

    if progress or utils.are_progress_bars_disabled():
        yield
        return
    utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.enable_progress_bars()


def _choose(repo, revision, listing):
    """Names to download, all at the top: configuration, tokenizer and model.safetensors.

    Without model.safetensors, its index. Raises ValueError if configuration or weights are missing.
    """
    weights = [name for name in (MODEL, INDEX) if name in listing][:1]
    if weights and "config.json" in listing:
        return [name for name in TEXTS if name in listing] + weights
    page = f"{_endpoint()}/{repo}"
    missing = "config.json" if weights else MODEL
    what = states.of_adapter(None) if states.is_adapter(listing) else ""
    if not (weights or what):
        what = states.in_other_form(listing)
    text = (
        f"{page} (revision {revision}) has no {missing} at its top, nothing was downloaded; it has"
        f" {what or states.listing(listing) or 'no files'}"
    )
    if not weights and any(name.endswith(states.PICKLES) for name in listing):
        text += (
            f". Often one is proposed on {page}/discussions: if it is number N there, give"
            " --revision refs/pr/N"
        )
    raise ValueError(text)


def _shards(repo, commit, listing):
    """Names of the weight files that the downloaded index lists.

    Raises ValueError if the repository lacks one of them.
    """
    names = shards(snapshot(repo, commit))
    check_shards(repo, names)
    missing = [name for name in names if name not in listing]
    if missing:
        raise ValueError(
            f"{INDEX} of {repo} names {', '.join(missing)}; the repository has {', '.join(listing)}"
        )
    return names


def _file(api, repo, commit, listed, recorded):
    """Download one file; return its size and sha256.

    They are compared with the record or, without one, with the hub's listing, which has git's sha1
    of a small file. A file that differs is downloaded once more; if it differs again it is set
    aside, and ValueError raised.
    """
    kind, stated = "git's sha1", listed.blob_id
    if listed.lfs:
        kind, stated = "sha256", listed.lfs["sha256"]
    in_listing = {"size": listed.size, kind: stated}
    wanted = recorded or in_listing
    source = record_path(repo) if recorded else "the hub's listing"
    place = {"revision": commit, "cache_dir": hub_cache()}
    for again in (False, True):
        with _checked_answers(listed.rfilename, repo, commit, stated, wanted["size"]):
            path = Path(api.hf_hub_download(repo, listed.rfilename, force_download=again, **place))
        check_place(path, repo, commit)
        measured = measure(path)
        hashes = measured if listed.lfs else measured | {"git's sha1": git_sha1(path)}
        wrong = [
            f"{key} is {value}, {wanted[key]} in {source}"
            for key, value in hashes.items()
            if wanted.get(key) not in (None, value)
        ]
        if not wrong:
            return measured
        remedy = "" if again else "; downloading it anew"
        print(f"{path}: {'; '.join(wrong)}{remedy}", file=sys.stderr)
    aside = path.resolve().with_suffix(".wrong")
    os.replace(path.resolve(), aside)
    accept = f" To accept them delete {record_path(repo)} and fetch again." if recorded else ""
    raise ValueError(
        f"{listed.rfilename} of {repo} at {commit}: {'; '.join(wrong)}. It was kept as {aside}"
        " and will not be used: the hub, or a mirror or proxy before it, sends other bytes than"
        f" it should.{accept}"
    )


@contextlib.contextmanager
def _checked_answers(name, repo, commit, etag=None, size=0):
    """Inside this context the library uses an answer about a file only once it is checked.

    Nor does it write more than `size` bytes of the file.

    The library asks the hub itself every time, so an answer checked beforehand would not be the one
    that it uses. One file at a time, so that threads do not remove each other's check; requests of
    other threads are not refused.
    """
    from huggingface_hub import constants, file_download, utils

    own_thread = threading.get_ident()

    def ask(*arguments, **options):
        if threading.get_ident() != own_thread:
            return ask_hub(*arguments, **options)
        try:
            answer = ask_hub(*arguments, **options)
        except utils.HfHubHTTPError as error:  # it may state a commit, too
            headers = error.response.headers
            stated = headers.get(constants.HUGGINGFACE_HEADER_X_REPO_COMMIT)
            check_answer(name, repo, commit, stated)
            raise
        check_answer(name, repo, commit, answer.commit_hash)
        check_etag(name, repo, answer.etag, etag)
        # a mirror's storage servers write the file themselves, where nothing counts their bytes
        return answer if _endpoint() == HUB else replace(answer, xet_file_data=None)

    def get(url, temp_file, **options):
        if threading.get_ident() != own_thread:
            return get_file(url, temp_file, **options)
        check_room(name, repo, size, shutil.disk_usage(hub_cache()).free)
        return get_file(url, Limited(temp_file, name, repo, size), **options)

    with ONE_FILE:
        ask_hub = file_download.get_hf_file_metadata
        get_file = file_download.http_get
        file_download.get_hf_file_metadata = ask
        file_download.http_get = get
        try:
            yield
        finally:
            file_download.get_hf_file_metadata = ask_hub
            file_download.http_get = get_file


def _endpoint():
    """Address of the hub or of the mirror named by HF_ENDPOINT."""
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def _plain(error, repo, revision, again):
    """The exception to raise in place of `error`; None where it speaks for itself."""
    from huggingface_hub import utils

    while isinstance(error, utils.LocalEntryNotFoundError) and error.__cause__:
        error = error.__cause__
    return (
        _refusal(error, repo, revision, again)
        or _failed_transfer(error, repo, again)
        or _no_hub(error, repo)
    )


def _no_hub(error, repo):
    """The exception for an answer of a form that the library did not expect; None for others."""
    from huggingface_hub.utils import HFValidationError

    is_told = isinstance(error, (OSError, MemoryError, HFValidationError))
    if is_told or (isinstance(error, ValueError) and _is_own(error)):
        return None
    kind = type(error).__name__
    return ValueError(f"{_endpoint()}/{repo} does not answer as a hub does ({kind}: {error})")


def _is_own(error):
    """Whether an error was raised by this package's code, not by a library's."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals["__name__"].startswith(__package__.partition(".")[0] + ".")


def _refusal(error, repo, revision, again):
    """The exception for what the hub does not have, or does not give; None for other errors."""
    from huggingface_hub import utils

    page = f"{_endpoint()}/{repo}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    gated = isinstance(error, utils.GatedRepoError)
    if isinstance(error, utils.RevisionNotFoundError):
        return FileNotFoundError(
            f"{page} has no revision {revision!r}; wanted a branch, a tag or a commit"
            " (the newest: --revision main)"
        )
    if isinstance(error, utils.RepositoryNotFoundError) and not gated:
        return FileNotFoundError(
            f"{page} does not exist, or is private and needs {TOKEN}.{near(repo)}"
        )
    if status in (401, 403):
        return PermissionError(
            f"{page} is gated or private and refused this (HTTP {status}). Accept its"
            f" terms on that page where it has any, give {TOKEN}, then: {again}"
        )
    return None


def _failed_transfer(error, repo, again):
    """The exception for a connection that failed; None for other errors, such as a full disk."""
    xet = type(error) is RuntimeError  # all that the library's faster protocol raises when it fails
    http = type(error).__module__.startswith("http")
    transfer = http or isinstance(error, (OSError, json.JSONDecodeError))
    disk = getattr(error, "errno", None) and not isinstance(error, (ConnectionError, TimeoutError))
    if disk or not (transfer or xet):
        return None
    again = f"HF_HUB_DISABLE_XET=1 {again}" if xet else again
    return ConnectionError(
        f"{_endpoint()}/{repo} cannot be downloaded ({type(error).__name__}: {error}). Files that"
        f" are complete are kept; with a connection: {again}\nWithout one, copy a folder with"
        " config.json, tokenizer.json and model.safetensors here and give its path."
    )
