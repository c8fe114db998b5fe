"""From a name to a folder without the network: bundled, a path, or what the download cache holds.

Read downward: the known models, `find`, names, places, the record. Downloads lie in the ordinary
Hugging Face cache, shared with other programs. The record of a repository,
HF_HOME/minitx/models--ORG--NAME.json, holds the pinned commit, the commit behind each revision
asked for, and size and sha256 of every file of each commit. It outlives the cache, so that a later
download must bring the same bytes.
"""

import difflib
import hashlib
import json
import os
import re
import shlex
from pathlib import Path, PurePosixPath

from . import states
from .states import INDEX, MODEL
from .writing import write

BUNDLED = Path(__file__).parent
PICTURES = "pictures"  # folder of the checkpoints that read these
TEXTS = (  # configuration and tokenizer, as far as a checkpoint has them
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "spiece.model",
    "source.spm",
    "target.spm",
    "target_vocab.json",
)
COMMIT = re.compile("[0-9a-f]{40}")
HASH = re.compile("[0-9a-f]{64}")
REVISION = re.compile(r"\w[\w.+/-]*")  # of a branch, a tag, refs/pr/N, a commit
WRONG = ValueError, TypeError, AttributeError, KeyError, RecursionError  # of a file's form
TOHOKU = "tohoku-nlp/bert-base-japanese-whole-word-masking"

KNOWN = {  # name: (hub id, what it is for)
    "roberta-base": (
        "FacebookAI/roberta-base",
        "English masked LM; the model of Yamamoto and Matsuzaki 2023",
    ),
    "bert-base-uncased": (
        "google-bert/bert-base-uncased",
        "English masked LM; the most studied encoder",
    ),
    "bert-base-cased": (
        "google-bert/bert-base-cased",
        "English masked LM that keeps upper and lower case",
    ),
    "distilbert-base-uncased": (
        "distilbert/distilbert-base-uncased",
        "BERT distilled to 6 layers; quick",
    ),
    "gpt2": ("openai-community/gpt2", "English causal LM, 12 layers; continues a text"),
    "xlm-roberta-base": (
        "FacebookAI/xlm-roberta-base",
        "masked LM of 100 languages; RoBERTa's architecture",
    ),
    "bart-base": (
        "facebook/bart-base",
        "English encoder-decoder, 6 + 6 layers; fills gaps in a text (denoising)",
    ),
    "opus-mt-en-de": (
        "Helsinki-NLP/opus-mt-en-de",
        "Marian: translates English into German",
    ),
    "t5-small": (
        "google-t5/t5-small",
        "T5: translates or summarizes; a prefix of its source names the task",
    ),
    "distilgpt2": ("distilbert/distilgpt2", "GPT-2 distilled to 6 layers; quick"),
    TOHOKU: (TOHOKU, "Japanese masked LM, for comparing languages"),
}


def check_name(name):
    """Raises ValueError for what cannot be a model's name."""
    if not isinstance(name, str | os.PathLike):
        raise ValueError(
            f"the model is {name!r:.80} ({type(name).__name__}); wanted a bundled name, a folder, "
            "or a hub id"
        )


def find(name: str | os.PathLike[str], revision: str | None = None, verify: bool = False) -> Path:
    """Folder of a bundled name, a path, or a hub id in the cache.

    Without `revision`: the commit that `fetch` pinned or, if it was not fetched with minitx, the
    cache's main or only commit. Raises FileNotFoundError, with the command to get it, if there is
    no such folder, and ValueError if its files differ from the record of `fetch`: in size or, with
    `verify`, in sha256.

    A bundled name, and the hub id of a known one, to download:

    >>> find("tiny-bert").name
    'tiny-bert'
    >>> KNOWN["gpt2"][0]
    'openai-community/gpt2'
    """
    check_revision(revision)
    check_name(name)
    own = [*bundled(), *zoo(), *histories()]
    folder = BUNDLED / name if str(name) in own else states.folder_of(home(name))
    if str(name) in of_pictures():
        folder = BUNDLED / PICTURES / name
    if os.path.isfile(folder / states.CONFIG):
        if revision or verify:
            raise ValueError(
                f"{folder} is a plain folder: only downloads have a revision and recorded hashes"
            )
        return folder
    for repo in hub_ids(str(name)):
        record = read_record(repo)
        download = snapshot(repo, _cached_commit(repo, record, revision))
        if download.is_dir():
            recorded = record["files"].get(download.name)
            _check(download, recorded, verify, command(name, revision))
            return download
    if os.path.exists(folder):
        raise states.no_checkpoint(folder)
    at_revision = f" at revision {revision!r}" if revision else ""
    raise FileNotFoundError(
        f"{str(name)!r} is not a bundled model ({', '.join(bundled())}),"
        f" no folder, and not in the cache {hub_cache()}{at_revision}.{near(name)}\n"
        + _where_from(name, revision)
    )


def _where_from(name, revision):
    """How to get a model that is not on this machine."""
    if hub_ids(str(name)):
        return f"To download it: {command(name, revision)}"
    return "Nor is it a hub id, such as FacebookAI/roberta-base, that could be downloaded."


def _check(folder, recorded, verify, again):
    """Compare a snapshot with its record.

    Raises an error if they differ or if, without a record, a part is missing or `verify` is given.
    """
    lines = faults(folder, recorded, verify) if recorded else []
    if recorded and verify:
        lines += _strangers(folder, recorded)
    if lines:
        raise ValueError(
            f"{folder} is not what was fetched: {'; '.join(lines)}.\nTo repair it: {again}"
        )
    parts = [inside(name) for name in shards(folder)]
    needed = [] if recorded else [states.CONFIG, *(parts or [MODEL])]
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing and states.is_adapter(states.names_in(folder)):
        raise states.no_checkpoint(folder)
    if missing:
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)}.\nTo download the rest: {again}"
        )
    if verify and not recorded:
        raise ValueError(
            f"{folder}: another program downloaded it; no hash is known.\nTo record them: {again}"
        )


def _strangers(folder, recorded):
    """A line for each file that would be read, but that nobody recorded."""
    read_too = [*TEXTS, MODEL] if MODEL in recorded else [*TEXTS, MODEL, INDEX]
    present = [name for name in read_too if name not in recorded and (folder / name).exists()]
    return [f"{name} is not in the record: delete it" for name in present]


def check_revision(revision):
    """Raise ValueError for a revision that would lead out of the cache."""
    if revision is None:
        return
    if not REVISION.fullmatch(str(revision)) or ".." in str(revision):
        raise ValueError(
            f"revision is {revision!r}; wanted a branch, a tag, refs/pr/N or a commit of 40 digits"
        )


def _cached_commit(repo, record, revision):
    """Commit meant by `revision`; without one the pinned, else main, else the only one cached."""
    storage = hub_cache() / storage_name(repo)
    wanted = revision or record["pinned"] or "main"
    if wanted in record["revisions"]:
        return record["revisions"][wanted]
    ref = storage / "refs" / wanted
    if ref.is_file():
        commit = ref.read_text(encoding="ascii", errors="replace").strip()
        if not COMMIT.fullmatch(commit):
            text = f"{ref} is damaged: {commit!r:.80}, wanted a commit of 40 digits"
            raise ValueError(f"{text}. Delete it, then: {command(repo, revision)}")
        return commit
    cached = [path.name for path in storage.glob("snapshots/*")]
    return cached[0] if len(cached) == 1 and wanted == "main" else wanted


def bundled() -> list[str]:
    """Names of the checkpoints that come with the project.

    >>> bundled()[:4]
    ['deep-roberta', 'tiny-bart', 'tiny-bert', 'tiny-gpt2']
    """
    return sorted(path.parent.name for path in BUNDLED.glob("*/config.json"))


def of_pictures() -> list[str]:
    """Names of the bundled checkpoints that read pictures; `bundled` has those that read texts.

    >>> of_pictures()
    ['tiny-vit']
    """
    return sorted(path.parent.name for path in BUNDLED.glob(f"{PICTURES}/*/config.json"))


def zoo() -> list[str]:
    """Names of the tiny checkpoints with different position mechanisms (weights/zoo/README.md).

    They are bundled, too, but `bundled` and commands that run on all models leave them out.

    >>> from minitx import weights
    >>> "zoo/causal-alibi" in weights.zoo()
    True
    """
    return sorted(f"zoo/{path.parent.name}" for path in BUNDLED.glob("zoo/*/config.json"))


def histories() -> list[str]:
    """Names of the trainings that come with their snapshots (weights/histories/README.md).

    As a model such a name means the last snapshot; `minitx.History.from_folder` opens them all.

    >>> from minitx import weights
    >>> weights.histories()
    ['histories/masked-learned']
    """
    return sorted(
        f"histories/{path.parent.name}" for path in BUNDLED.glob("histories/*/train.json")
    )


def hub_ids(name):
    """Hub ids that `name` may be cached under, the one to download first; [] if it is none."""
    for short, (hub, _) in KNOWN.items():
        if name in (short, hub):
            return [hub, short]
    return [name] if re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", name) else []


def near(name):
    """' Did you mean …?' with the bundled and known names spelt much like `name`, or ''."""
    known = *bundled(), *of_pictures(), *zoo(), *histories(), *KNOWN
    close = difflib.get_close_matches(str(name), known)
    return f" Did you mean {' or '.join(close)}?" if close and len(hub_ids(str(name))) < 2 else ""


def command(name, revision=None):
    """The one command that downloads `name`."""
    words = ["minitx", "fetch", str(name), *(["--revision", revision] if revision else [])]
    return shlex.join(words)


def hf_home():
    """Folder of everything Hugging Face; the environment is read at every call."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return home(os.path.expandvars(os.environ.get("HF_HOME") or f"{cache}/huggingface"))


def home(path):
    """A path with ~ as the user's folder; as it is where there is no such user."""
    return Path(os.path.expanduser(path))


def hub_cache():
    """Folder of the downloads, chosen as huggingface_hub does."""
    given = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    return home(os.path.expandvars(given)) if given else hf_home() / "hub"


def storage_name(repo):
    """ORG/NAME → models--ORG--NAME, its folder in the cache."""
    return "models--" + repo.replace("/", "--")


def snapshot(repo, commit):
    """Folder of one commit's files."""
    return hub_cache() / storage_name(repo) / "snapshots" / commit


def shards(folder):
    """Weight files named by the index in `folder`; [] where one file does without an index."""
    if (folder / MODEL).is_file() or not (folder / INDEX).is_file():
        return []
    path = folder / INDEX
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()
        return sorted({str.strip(name) for name in names})  # a TypeError for what is no text
    except WRONG as error:
        text = f"{path} has no weight_map from tensor names to file names"
        raise ValueError(f"{text} ({type(error).__name__}: {error})") from None


def inside(name):
    """A file's name; raises ValueError for one that leads out of its folder."""
    if leads_out(name):
        raise ValueError(f"{name!r} leads out of its folder")
    return name


def leads_out(name):
    """Whether the name of a file, as another file gives it, leads out of its folder."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name


def faults(folder, recorded, verify):
    """A line for each difference from the record: missing files, sizes and, to verify, sha256."""
    lines = []
    for name, wanted in recorded.items():
        path = folder / name
        measured = measure(path, verify) if path.is_file() else {"size": "none (no such file)"}
        lines += [
            f"{name}: {key} is {value}, recorded {wanted[key]}"
            for key, value in measured.items()
            if value != wanted[key]
        ]
    return lines


def measure(path, hashed=True):
    """{"size": bytes, "sha256": hex digits} of a file; without `hashed` the size only."""
    measured = {"size": path.stat().st_size}
    if hashed:
        with open(path, "rb") as file:
            measured["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return measured


def git_sha1(path):
    """Git's name of the bytes in a file."""
    sha1 = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: sha1).hexdigest()


def record_path(repo):
    """File of the record of `repo`."""
    return hf_home() / "minitx" / f"{storage_name(repo)}.json"


def read_record(repo):
    """The record of `repo`; an empty one where nothing was fetched."""
    path = record_path(repo)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        _check_record(record, repo)
        return record
    except FileNotFoundError:
        return {"repo": repo, "pinned": None, "revisions": {}, "files": {}}
    except WRONG as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(
            f"{path} is damaged ({kind}{error}). Delete it, then: {command(repo)}"
        ) from error


def _check_record(record, repo):
    """Raise one of WRONG unless a record has the form in which write_record left it."""
    if record["repo"] != repo:
        raise ValueError(f"it is that of {record['repo']!r:.80}")
    pinned = [] if record["pinned"] is None else [record["pinned"]]
    for commit in [*pinned, *record["revisions"].values(), *record["files"]]:
        if not COMMIT.fullmatch(commit):
            raise ValueError(f"{commit!r:.80} is not a commit of 40 digits")
    for files in record["files"].values():
        for name, measured in files.items():
            size, digest = measured["size"], measured["sha256"]
            if type(size) is not int or not HASH.fullmatch(digest):
                raise ValueError(f"{inside(name)} has size {size!r:.80}, sha256 {digest!r:.80}")
            inside(name)


def write_record(record):
    """Replace the record in one step."""
    path = record_path(record["repo"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, (json.dumps(record, indent=1) + "\n").encode())
