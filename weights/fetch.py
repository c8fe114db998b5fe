"""Download one checkpoint with huggingface_hub and record what came: the only code that uses the network.

Order: `fetch`, what is chosen from a repository, one checked file, the hub's errors in plain words. The
library does the transfer: cache, retries, resume after a cut, tokens, mirrors, proxies, progress bars.
"""

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from .local import (INDEX, MODEL, bundled, command, faults, find, hub_cache, hub_ids, measure, near, read_record,
                    record_path, shards, snapshot, write_record)

TEXTS = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "vocab.txt",
         "special_tokens_map.json")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
TOKEN = "a token (`hf auth login`, or the variable HF_TOKEN)"


def fetch(name, revision=None, progress=True):
    """Download a known name or hub id, pin its commit, record size and sha256 of each file; the folder.

    The first call pins what `revision` (None: main) then is. Later calls without one stay there, and need no
    network where every file is intact; a branch, tag or commit moves the pin ("main": to the newest).
    Errors: FileNotFoundError (no such repository, revision), PermissionError (gated, private),
    ConnectionError (offline, unreachable, broken off), ValueError (no safetensors, wrong bytes).
    """
    name = str(name)
    if name in bundled():
        return find(name)
    if not hub_ids(name):
        raise ValueError(f"{name!r} is no hub id: wanted NAME or ORG/NAME.{near(name)}")
    repo = hub_ids(name)[0]
    record = read_record(repo)
    commit = revision or record["pinned"] or "main"
    recorded = record["files"].get(commit)
    if not recorded or faults(snapshot(repo, commit), recorded, verify=True):
        try:
            commit = _download(repo, commit, record, progress)
        except Exception as error:
            if plain := _plain(error, repo, commit, command(name, revision)):
                raise plain from error
            raise
    record["pinned"] = commit
    write_record(record)
    return snapshot(repo, commit)


def _download(repo, revision, record, progress):
    """Bring one revision into the cache, its sizes and hashes into `record`; its commit."""
    from huggingface_hub import HfApi, constants, utils

    offline = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    if offline.upper() in constants.ENV_VARS_TRUE_VALUES:
        raise ConnectionError("HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set")
    api, files = HfApi(endpoint=_endpoint()), {}
    info = api.model_info(repo, revision=revision, files_metadata=True, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    listing = {file.rfilename: file for file in info.siblings or []}
    recorded = record["files"].get(info.sha, {})
    names = _choose(repo, revision, listing)
    with ExitStack() as afterwards:
        if not progress and not utils.are_progress_bars_disabled():
            utils.disable_progress_bars()
            afterwards.callback(utils.enable_progress_bars)
        for name in names:
            files[name] = _file(api, repo, info.sha, listing[name], recorded.get(name))
            if name == INDEX:  # the last of the names so far
                names += _shards(repo, info.sha, listing)
    record["files"][info.sha] = files
    record["revisions"][revision] = info.sha
    return info.sha


def _choose(repo, revision, listing):
    """Names to download, all at the top: configuration, tokenizer, model.safetensors or else its index."""
    weights = [name for name in (MODEL, INDEX) if name in listing][:1]
    if weights and "config.json" in listing:
        return [name for name in TEXTS if name in listing] + weights
    page = f"{_endpoint()}/{repo}"
    text = (f"{page} (revision {revision}) has no {'config.json' if weights else MODEL} at its top, nothing"
            f" was downloaded; it has {', '.join(listing) or 'no files'}.")
    if not weights and any(name.endswith(PICKLES) for name in listing):
        text += (" Pickles run whatever code is in them, so only safetensors are read. Often a converted copy"
                 f" is proposed on {page}/discussions: if it is number N there, give --revision refs/pr/N.")
    raise ValueError(text)


def _shards(repo, commit, listing):
    """Names of the weight files of the downloaded index, all of which the repository must have."""
    names = shards(snapshot(repo, commit))
    if missing := [name for name in names if name not in listing]:
        raise ValueError(f"{INDEX} of {repo} names {', '.join(missing)}; the repository has"
                         f" {', '.join(listing)}")
    return names


def _file(api, repo, commit, listed, recorded):
    """Size and sha256 of one downloaded file, set aside if the record, or else the hub, says otherwise."""
    wanted = recorded or {"size": listed.size, "sha256": listed.lfs and listed.lfs["sha256"]}
    source = record_path(repo) if recorded else "the hub's listing"
    for again in (False, True):
        path = Path(api.hf_hub_download(repo, listed.rfilename, revision=commit, cache_dir=hub_cache(),
                                        force_download=again))
        found = measure(path)
        wrong = [f"{key} is {found[key]}, {wanted[key]} in {source}" for key in found
                 if wanted[key] not in (None, found[key])]
        if not wrong:
            return found
        print(f"{path}: {'; '.join(wrong)}{'' if again else '; downloading it anew'}", file=sys.stderr)
    aside = path.resolve().with_suffix(".wrong")
    os.replace(path.resolve(), aside)
    accept = f" To accept them delete {record_path(repo)} and fetch again." if recorded else ""
    raise ValueError(f"{listed.rfilename} of {repo} at {commit}: {'; '.join(wrong)}. It was kept as {aside}"
                     " and will not be used: the hub, or a mirror or proxy before it, sends other bytes than"
                     f" it should.{accept}")


def _endpoint():
    """Address of the hub or of the mirror named by HF_ENDPOINT."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _plain(error, repo, revision, again):
    """The exception to raise in place of `error`, or None where it speaks for itself."""
    from huggingface_hub import utils

    while isinstance(error, utils.LocalEntryNotFoundError) and error.__cause__:
        error = error.__cause__
    page = f"{_endpoint()}/{repo}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, utils.RevisionNotFoundError):
        return FileNotFoundError(f"{page} has no revision {revision!r}; wanted a branch, a tag or a commit"
                                 " (the newest: --revision main)")
    if isinstance(error, utils.RepositoryNotFoundError) and not isinstance(error, utils.GatedRepoError):
        return FileNotFoundError(f"{page} does not exist, or is private and needs {TOKEN}.{near(repo)}")
    if status in (401, 403):
        return PermissionError(f"{page} is gated or private and refused this (HTTP {status}). Accept its"
                               f" terms on that page where it has any, give {TOKEN}, then: {again}")
    xet = type(error) is RuntimeError  # all that the library's faster protocol raises when it fails
    transfer = isinstance(error, (OSError, json.JSONDecodeError)) or type(error).__module__.startswith("http")
    disk = getattr(error, "errno", None) and not isinstance(error, (ConnectionError, TimeoutError))
    if disk or not (transfer or xet):
        return None
    again = f"HF_HUB_DISABLE_XET=1 {again}" if xet else again
    return ConnectionError(f"{page} cannot be downloaded ({type(error).__name__}: {error}). Files that are"
                           f" complete are kept; with a connection: {again}\nWithout one, copy a folder with"
                           " config.json, tokenizer.json and model.safetensors here and give its path.")
