"""Names become folders; downloads from a stand-in hub bring the right bytes or a helpful error.

Downloads run in a process of their own (tools/downloads.py).
"""

import contextlib
import json
import os
import shutil
import sys

import pytest
from downloads import Machine
from hub import Hub, blob_id, sha256
from pytest import raises

from minitx import weights
from minitx.loading.files import read_json
from minitx.weights import local

FILES = {
    "config.json": b'{"model_type": "bert"}',
    "tokenizer.json": b"{}",
    "vocab.txt": b"[PAD]\n[UNK]\n",
    "model.safetensors": bytes(range(256)) * 64,
}
CLUTTER = {
    "README.md": b"# a card",
    "pytorch_model.bin": b"pickled",
    "flax_model.msgpack": b"flax",
    "model.safetensors.index.json": b"{}",
    "model.fp16.safetensors": b"another",
    "onnx/config.json": b"{}",
    "onnx/model.safetensors": b"a part",
}


@pytest.fixture
def hub():
    """A stand-in with one ordinary repository, org/tiny."""
    hub = Hub()
    hub.commit = hub.publish("org/tiny", FILES | CLUTTER)
    yield hub
    hub.close()


@pytest.fixture
def machine(tmp_path, hub):
    """A machine without downloads that knows the stand-in."""
    return Machine(tmp_path, hub.url)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty download cache of this process; nothing here needs the network."""
    for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return tmp_path / "hub"


def store(cache, repo="org/tiny", commit="a" * 40, files=FILES, main=True):
    """Lay a snapshot into the cache as any other program would."""
    folder = cache / local.storage_name(repo)
    snapshot = folder / "snapshots" / commit
    snapshot.mkdir(parents=True)
    for name, data in files.items():
        (snapshot / name).write_bytes(data)
    if main:
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / "main").write_text(commit)
    return snapshot


def content(folder):
    """{name: bytes} of a folder, with sub-folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- what a download brings and records


def test_fetch_brings_only_config_tokenizer_and_safetensors(machine, hub):
    folder = machine.fetch()
    assert content(folder) == FILES
    assert folder == machine.cache / "models--org--tiny" / "snapshots" / hub.commit
    assert not any(hub.requests(f"resolve/{hub.commit}/{name}") for name in CLUTTER)
    assert hub.requests("/store/", "model.safetensors"), (
        "the large file comes from where the redirect points"
    )


def test_fetch_records_commit_and_hashes_and_find_uses_them(machine, hub):
    folder = machine.fetch()
    record = read_json(machine.record)
    assert record["pinned"] == record["revisions"]["main"] == hub.commit
    hashes = {name: {"size": len(data), "sha256": sha256(data)} for name, data in FILES.items()}
    assert record["files"] == {hub.commit: hashes}
    assert not list(machine.record.parent.glob("*.tmp"))
    hub.log.clear()
    assert machine.find(verify=True) == machine.fetch() == folder
    assert hub.log == [], "what is here and intact needs no network"


def test_first_fetch_stays_pinned_and_a_revision_moves_the_pin(machine, hub):
    old = machine.fetch()
    new = hub.publish("org/tiny", FILES | {"model.safetensors": b"newer"})
    assert machine.fetch() == machine.find() == old
    assert machine.fetch(revision="main").name == machine.find().name == machine.fetch().name == new
    assert machine.fetch(revision=hub.commit) == machine.find() == old
    assert machine.find(revision=new).name == machine.find(revision="main").name == new
    with raises(
        FileNotFoundError, match=r"at revision 'v9'.*\n.*: minitx fetch org/tiny --revision v9"
    ):
        machine.find(revision="v9")


def test_fetch_takes_the_shards_of_the_index(machine, hub):
    shards = {"model-1-of-2.safetensors": b"first", "model-2-of-2.safetensors": b"second"}
    index = json.dumps({"weight_map": dict(zip("abc", [*shards, *shards]))}).encode()
    wanted = {"config.json": b"{}", "model.safetensors.index.json": index} | shards
    hub.publish("org/sharded", wanted | {"unlisted.safetensors": b"other"})
    assert content(machine.fetch("org/sharded")) == wanted
    shards.popitem()
    hub.publish("org/torn", {"config.json": b"{}", "model.safetensors.index.json": index} | shards)
    with raises(
        ValueError, match=r"names model-2-of-2.safetensors; the .* has config.json, .*-1-of-2"
    ):
        machine.fetch("org/torn")


def test_known_names_stand_for_their_hub_ids(machine, hub):
    hub.publish("FacebookAI/roberta-base", FILES)
    folder = machine.fetch("roberta-base")
    assert "models--FacebookAI--roberta-base" in folder.parts
    assert machine.find("roberta-base") == machine.find("FacebookAI/roberta-base") == folder


def test_a_renamed_repository_is_followed(machine, hub):
    hub.renamed["old-name"] = "org/tiny"
    assert content(machine.fetch("old-name")) == FILES
    assert machine.find("old-name").name == hub.commit


def test_bars_show_progress_unless_switched_off(machine, hub):
    hub.publish("org/other", FILES)
    for name, progress in [("org/tiny", True), ("org/other", False)]:
        # bars without a terminal
        machine.fetch(name, progress=progress, env={"TQDM_POSITION": "-1"})
        assert ("100%" in machine.stderr) == progress
    code = (
        "import weights; from huggingface_hub.utils import are_progress_bars_disabled as off;"
        "weights.fetch('org/third', progress=False); print(off())"
    )
    hub.publish("org/third", FILES)
    assert machine.python(code).strip() == "False", "the caller's own downloads keep their bars"


# --- broken connections and wrong bytes


def test_a_cut_download_goes_on_where_it_stopped(machine, hub):
    large = os.urandom(24 << 20)  # the library keeps whole pieces of 10 MiB
    hub.publish("org/large", {"config.json": b"{}", "model.safetensors": large})
    hub.cuts["model.safetensors"] = 1
    # older versions of the library go on at the next call only
    with contextlib.suppress(ConnectionError):
        machine.fetch("org/large")
    folder = machine.fetch("org/large")
    assert (folder / "model.safetensors").read_bytes() == large
    first, second = [
        sent.get("Range") for method, _, sent in hub.requests("/store/") if method == "GET"
    ]
    assert first is None and 0 < int(second.removeprefix("bytes=").rstrip("-")) <= len(large) // 2


def test_a_connection_that_breaks_again_and_again_leaves_the_complete_files(machine, hub):
    hub.forged["model.safetensors"] = b""  # promised, but never a byte of it
    with raises(
        ConnectionError, match=r"(?s)org/tiny cannot be .* are kept; .*: minitx fetch org/tiny"
    ):
        machine.fetch()
    with raises(FileNotFoundError, match=r"lacks model.safetensors.\n.*: minitx fetch org/tiny"):
        machine.find()
    hub.forged.clear()
    hub.log.clear()
    assert content(machine.fetch()) == FILES
    # a file that was complete is not asked for again
    assert not hub.requests("resolve", "vocab.txt")


def test_bytes_that_differ_from_the_hub_s_hash_are_set_aside(machine, hub):
    right = FILES["model.safetensors"]
    wrong = right[::-1]
    hub.forged["model.safetensors"] = wrong
    text = f"sha256 is {sha256(wrong)}, {sha256(right)} in the hub's listing.* kept as"
    with raises(ValueError, match=text):
        machine.fetch()
    assert [path.read_bytes() for path in machine.cache.rglob("*.wrong")] == [wrong]
    assert not machine.record.exists()
    with raises(FileNotFoundError, match="lacks model.safetensors"):
        machine.find()
    hub.forged.clear()
    assert content(machine.fetch()) == FILES


def test_another_file_under_the_recorded_commit_is_refused(machine, hub):
    machine.fetch()
    shutil.rmtree(machine.cache)
    hub.commits[hub.commit]["vocab.txt"] = b"[PAD]\n[EVIL\n"
    text = rf"vocab.txt of org/tiny .*{sha256(FILES['vocab.txt'])} in .*tiny.json.* delete"
    with raises(ValueError, match=text):
        machine.fetch()
    hub.commits[hub.commit].update(FILES)
    assert content(machine.fetch()) == FILES


def test_a_truncated_file_is_noticed_and_repaired(machine, hub):
    path = machine.fetch() / "model.safetensors"
    os.truncate(path, 100)
    text = r"model.safetensors: size is 100, recorded 16384.\n.*: minitx fetch org"
    with raises(ValueError, match=text):
        machine.find()
    assert machine.fetch() == path.parent
    assert "size is 100, 16384 in" in machine.stderr, "nothing is replaced silently"
    assert path.read_bytes() == FILES["model.safetensors"]


def test_a_missing_file_is_noticed(machine):
    (machine.fetch() / "vocab.txt").unlink()
    with raises(ValueError, match=r"vocab.txt: size is none \(no such file\), recorded 12"):
        machine.find()


def test_a_flipped_byte_is_noticed_on_request_and_repaired(machine):
    path = machine.fetch() / "model.safetensors"
    damaged = bytearray(FILES["model.safetensors"])
    damaged[1000] ^= 1
    path.write_bytes(damaged)
    assert machine.find() == path.parent
    right = sha256(FILES["model.safetensors"])
    text = rf"sha256 is {sha256(damaged)}, recorded {right}.\n.*: minitx fetch"
    with raises(ValueError, match=text):
        machine.find(verify=True)
    machine.fetch()
    assert machine.find(verify=True) == path.parent


# --- refusals


def test_a_repository_with_only_pickles_is_refused_before_any_download(machine, hub):
    files = {"config.json": b"{}", "pytorch_model.bin": b"pickled"}
    hub.publish("org/old", files)
    text = r"no model.safetensors .* nothing .* pytorch_model.bin, pickles, .* never .*refs/pr/N"
    with raises(ValueError, match=text):
        machine.fetch("org/old")
    assert not hub.requests("resolve") and not machine.cache.exists()
    converted = hub.publish("org/old", files | {"model.safetensors": b"converted"}, "refs/pr/1")
    assert machine.fetch("org/old", revision="refs/pr/1").name == converted
    assert machine.find("org/old").name == converted


CONFIG, WEIGHTS, ADAPTER = "config.json", "model.safetensors", "adapter_model.safetensors"
SHARD = "model-00001-of-00002.safetensors"


@pytest.mark.parametrize(
    "text, names",
    [
        ("no model.safetensors .* has a PEFT adapter .* merge_and_unload", [ADAPTER, CONFIG]),
        (r"it has weights only as model.onnx, an exported graph \(ONNX\)", ["model.onnx"]),
        ("it has weights only as a.gguf, GGUF, mostly quant", ["a.gguf", CONFIG]),
        ("it has weights only as tf_model.h5, of TensorFlow", ["tf_model.h5"]),
        (f"it has shards .{SHARD}. without model.safetensors.index", [SHARD, CONFIG]),
        (f"no {CONFIG} .* it has {WEIGHTS}, unet/{CONFIG}", [WEIGHTS, f"unet/{CONFIG}"]),
        (f"no {WEIGHTS} .* it has no files", []),
    ],
)
def test_another_layout_is_refused(machine, hub, text, names):
    hub.publish("org/odd", dict.fromkeys(names, b""))
    with raises(ValueError, match=text):
        machine.fetch("org/odd")


def test_unknown_repositories_and_revisions_have_their_own_errors(machine):
    with raises(FileNotFoundError, match=r"/robrta-base does not exist, or .* mean roberta-base"):
        machine.fetch("robrta-base")
    with raises(FileNotFoundError, match=r"org/tiny has no revision 'v9'; wanted a branch.*main"):
        machine.fetch(revision="v9")
    with raises(ValueError, match=r"'a/b/c' is not a hub id; wanted NAME or ORG/NAME"):
        machine.fetch("a/b/c")


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    "status, code", [(401, "GatedRepo"), (403, "GatedRepo"), (401, None), (403, None)]
)
def test_gated_and_private_repositories_ask_for_a_token(machine, hub, status, code, listed):
    hub.refuse = status, code
    hub.listed = listed
    text = rf"org/tiny is gated or private .*{status}.* HF_TOKEN\), then: min"
    with raises(PermissionError, match=text):
        machine.fetch(env={"HF_TOKEN": "hf_wrong"})


def test_a_token_opens_a_gated_repository_and_goes_to_the_hub_alone(machine, hub):
    hub.refuse = 401, "GatedRepo"
    assert content(machine.fetch(env={"HF_TOKEN": hub.token})) == FILES
    assert all("Authorization" not in headers for _, _, headers in hub.requests("/store/"))


@pytest.mark.parametrize("code", [500, 503])
def test_a_failing_hub_is_said_to_fail(machine, hub, code):
    hub.refuse = code, None
    with raises(ConnectionError, match=rf"org/tiny cannot be downloaded .*{code}"):
        machine.fetch()


def test_a_page_in_place_of_the_hub_is_said_to_be_no_hub(machine, hub):
    hub.page = b"<html>Please log in</html>"
    with raises(ConnectionError, match=r"cannot be downloaded \(JSONDecodeError"):
        machine.fetch()


def test_failures_that_are_not_http_keep_their_cause():
    plain = sys.modules["minitx.weights.fetch"]._plain
    with raises(
        ConnectionError, match=r"\(RuntimeError: CAS\).*: HF_HUB_DISABLE_XET=1 minitx fetch x"
    ):
        raise plain(RuntimeError("CAS"), "org/x", "main", "minitx fetch x")
    assert plain(OSError(28, "No space left on device"), "org/x", "main", "") is None, (
        "says it best itself"
    )


# --- hubs that name files elsewhere

ELSEWHERE = [
    ("config.json", "ETag", etag)
    for etag in (
        "{home}/.bashrc",
        '"{home}/.bashrc"',
        'W/"../../../../.bashrc"',
        '"{home}/.config/new"',
        '"../../../../new"',
        f'"{"a" * 40}/../../../../../.bashrc"',
        '"."',
        '""',
        f'"{"a" * 39}"',
        f'"{"a" * 65}"',
        f'"{"x" * 40}"',
    )
]
ELSEWHERE += [
    (name, "X-Linked-Etag", etag)
    for name in ("config.json", "model.safetensors")
    for etag in ('"{home}/.bashrc"', '"../../../../new"')
]


@pytest.fixture
def home(tmp_path):
    """A user's own files, beside the cache, which stay as they are; a `Machine` is at home here."""
    (tmp_path / ".bashrc").write_bytes(b"mine")
    for name in (".config", "hf"):
        (tmp_path / name).mkdir()
    before = own(tmp_path)
    yield tmp_path
    assert own(tmp_path) == before


def own(home):
    """{name: bytes} of all that is no download; None for a folder."""
    outside = [path for path in home.rglob("*") if home / "hf" not in path.parents]
    return {str(path): path.read_bytes() if path.is_file() else None for path in outside}


@pytest.mark.parametrize("name, header, etag", ELSEWHERE)
def test_a_hub_does_not_choose_where_a_file_is_written(machine, hub, home, name, header, etag):
    """The library would write to the file that the ETag names, or make a link to it."""
    etag = etag.format(home=home)
    hub.headers[name] = [{header: etag}]
    text = rf"{name} of org/tiny was not .* ETag is .*; wanted 40 to 64 hex digits"
    with raises(ValueError, match=text):
        machine.fetch()
    bodies = [method for method, *_ in hub.requests("resolve", name) if method == "GET"]
    assert not bodies and not list(machine.cache.rglob(name)), "nothing of it was downloaded"


def test_a_hub_that_changes_its_mind_writes_nothing_elsewhere(machine, hub, home):
    """The first answer is right, its bytes are not; the answer to the repeated download is not."""
    hub.forged["model.safetensors"] = FILES["model.safetensors"][::-1]
    hub.headers["model.safetensors"] = [{}, {"X-Linked-Etag": f'"{home}/.bashrc"'}]
    with raises(ValueError, match=r"ETag is .*; wanted 40 to 64 hex digits"):
        machine.fetch()
    assert "downloading it anew" in machine.stderr


def test_a_hub_does_not_replace_the_files_of_another_commit(machine, hub):
    """It names the blob of what was fetched before, and sends other bytes of the same number."""
    old = machine.fetch()
    right = FILES["model.safetensors"]
    hub.publish("org/tiny", FILES | {"model.safetensors": right[::-1]})
    hub.headers["model.safetensors"] = [{"X-Linked-Etag": f'"{sha256(right)}"'}]
    with raises(ValueError, match=rf"{sha256(right)}'; wanted .* here {sha256(right[::-1])}"):
        machine.fetch(revision="main")
    assert machine.find(verify=True) == old


def test_a_small_file_is_held_to_the_listing_too(machine, hub):
    """Its listing has no sha256, but git's name of its bytes."""
    right = FILES["vocab.txt"]
    hub.forged["vocab.txt"] = right[::-1]
    with raises(ValueError, match=f"git's sha1 is {blob_id(right[::-1])}, {blob_id(right)} in the"):
        machine.fetch()
    assert not machine.record.exists()
    hub.forged.clear()
    assert content(machine.fetch()) == FILES


def test_two_files_under_the_name_of_one_are_refused(machine, hub):
    """The second would replace the first, which was measured before."""
    etag = blob_id(FILES["vocab.txt"])
    hub.headers["config.json"] = [{"ETag": f'"{etag}"'}]
    wanted = blob_id(FILES["config.json"])
    with raises(ValueError, match=f"ETag is '{etag}'; wanted 40 to 64 hex digits, here {wanted}"):
        machine.fetch()


def test_a_listing_does_not_choose_an_etag(machine, hub, home):
    hub.listed_sha256 = f"{home}/.bashrc"
    hub.headers["model.safetensors"] = [{"X-Linked-Etag": f'"{home}/.bashrc"'}]
    with raises(ValueError, match=r"ETag is .*; wanted 40 to 64 hex digits"):
        machine.fetch()


@pytest.mark.parametrize("commit", ["{home}/new", "../../../../new", "a/b", "b" * 40, ""])
@pytest.mark.parametrize("absent", [False, True])
def test_a_hub_does_not_choose_the_folder_of_a_file(machine, hub, home, commit, absent):
    """The library notes in that folder, too, which files a repository lacks."""
    hub.headers["config.json"] = [{"X-Repo-Commit": commit.format(home=home)}]
    hub.absent = {"config.json"} if absent else set()
    with raises(ValueError, match=rf"config.json of org/tiny .* commit .*; wanted {hub.commit}"):
        machine.fetch()
    assert not list(machine.cache.rglob("config.json"))


@pytest.mark.parametrize("commit", ["{home}/new", "../../../../.bashrc", "main", "A" * 40])
def test_a_listing_does_not_choose_a_folder(machine, hub, home, commit):
    hub.listed_commit = commit.format(home=home)
    with raises(ValueError, match=r"org/tiny .* revision main is commit .*; wanted 40 hex digits"):
        machine.fetch()
    assert not hub.requests("resolve")


def test_a_hub_sends_no_more_than_it_listed(machine, hub):
    """A hub that listed 16 kB sent 6.3 GB, and the size was compared when the disk was full."""
    hub.forged["model.safetensors"] = bytes(60_000_000)
    with raises(ValueError, match=r"model.safetensors of org/tiny was not kept, .* 16,384 bytes"):
        machine.fetch()
    kept = [path.stat().st_size for path in machine.cache.rglob("*") if path.is_file()]
    assert sum(kept) < 20_000
    hub.forged.clear()
    assert content(machine.fetch()) == FILES


def test_a_listing_of_more_than_the_disk_holds_is_refused_before_the_download(machine, hub):
    hub.listed_size = 1 << 60
    with raises(OSError, match="no room for config.json of org/tiny: 1,152,921,504,606,846,976 b"):
        machine.fetch()
    assert not [method for method, *_ in hub.requests("/store/") if method == "GET"]
    hub.listed_size = None
    assert content(machine.fetch()) == FILES


@pytest.mark.parametrize(
    "listing",
    [
        {"siblings": [5]},
        {"siblings": [{"name": "config.json"}]},
        {"siblings": [{"rfilename": "model.safetensors", "lfs": 5}, {"rfilename": "config.json"}]},
        {"siblings": {"config.json": 1}},
        [],
        5,
        {"createdAt": "x"},
        b"\xff",
        b"[" * 100_000,
    ],
    ids=range(9),
)
def test_a_listing_of_another_form_is_one_error(machine, hub, listing):
    """These were KeyError, TypeError and AttributeError with a traceback."""
    if isinstance(listing, dict):
        listing = {"id": "org/tiny", "sha": hub.commit} | listing
    hub.page = listing if isinstance(listing, bytes) else json.dumps(listing).encode()
    with raises(ValueError, match="org/tiny .*(answer as a hub does|no config.json|cannot be tr)"):
        machine.fetch()


@pytest.mark.parametrize("name", ["../../new.safetensors", "{home}/new.safetensors", "setup.py"])
def test_an_index_names_safetensors_inside_its_repository(machine, hub, home, name):
    name = name.format(home=home)
    index = json.dumps({"weight_map": {"a": name}}).encode()
    files = {"config.json": b"{}", "model.safetensors.index.json": index, name: b"import os"}
    hub.publish("org/tiny", files)
    text = "index.json of org/tiny names .*; wanted .safetensors inside its folder"
    with raises(ValueError, match=text):
        machine.fetch()
    assert not hub.requests("resolve", name)


def test_a_link_out_of_the_cache_is_neither_measured_nor_replaced(machine, hub, home):
    """As an older version may have left it."""
    folder = store(machine.cache, commit=hub.commit)
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to(home / ".bashrc")
    text = rf"config.json is a link to {home}/.bashrc, outside .*models--org--tiny.* Delete it"
    with raises(ValueError, match=text):
        machine.fetch()
    assert "size is" not in machine.stderr
    assert not hub.requests("resolve")


def test_a_cache_without_links_or_behind_one_is_as_good(machine, tmp_path):
    assert content(machine.fetch(env={"HF_HUB_DISABLE_SYMLINKS": "1"})) == FILES
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    folder = machine.fetch(env={"HF_HUB_CACHE": str(tmp_path / "link")})
    assert content(folder) == FILES and (tmp_path / "disk" / "models--org--tiny").is_dir()


def test_the_library_asks_as_before_when_a_download_has_ended(machine):
    code = (
        "from huggingface_hub import file_download as library; import weights;"
        "before = library.get_hf_file_metadata; weights.fetch('org/tiny');"
        "print(library.get_hf_file_metadata is before)"
    )
    assert machine.python(code).strip() == "True"


def test_downloads_in_two_threads_do_not_take_each_other_s_check_away(machine):
    """One file at a time; else the first to end would put back what it had not checked with."""
    code = """
import threading
from huggingface_hub import file_download as library
from minitx.weights.fetch import _checked_answers

before, inside = library.get_hf_file_metadata, threading.Event()

def second():
    with _checked_answers("b", "org/b", "commit"):
        inside.set()

thread = threading.Thread(target=second)
with _checked_answers("a", "org/a", "commit"):
    checked = library.get_hf_file_metadata
    thread.start()
    print(inside.wait(0.3), library.get_hf_file_metadata is checked)
thread.join()
print(inside.is_set(), library.get_hf_file_metadata is before)
"""
    assert machine.python(code).splitlines() == ["False True", "True True"]


def test_what_the_user_s_own_threads_ask_is_not_refused(machine, hub):
    hub.headers["vocab.txt"] = [{"ETag": '"of a mirror"', "X-Repo-Commit": "of its own"}]
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
from huggingface_hub import file_download as library
from minitx.weights.fetch import _checked_answers

url = sys.stdin.read()
ask = lambda: library.get_hf_file_metadata(url).etag
with _checked_answers("vocab.txt", "org/tiny", "commit"), ThreadPoolExecutor() as threads:
    print(threads.submit(ask).result())
    try:
        ask()
    except ValueError as error:
        print(error)
"""
    url = f"{hub.url}/org/tiny/resolve/{hub.commit}/vocab.txt"
    theirs, ours = machine.python(code, stdin=url).splitlines()
    assert theirs == "of a mirror"
    assert ours.endswith("it answers with commit 'of its own'; wanted commit")


# --- without a network

OFFLINE = (
    r"(?s)org/tiny cannot be .*connection: minitx fetch org/tiny\n.*copy a folder with config.json"
)


def test_an_unreachable_hub_gives_the_command_and_the_way_without_it(machine, hub):
    folder = machine.fetch()
    hub.close()
    assert machine.fetch() == machine.find() == folder
    shutil.rmtree(machine.cache)
    with raises(ConnectionError, match=OFFLINE):
        machine.fetch()


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_variables_forbid_the_network(machine, hub, variable):
    with raises(ConnectionError, match=OFFLINE):
        machine.fetch(env={variable: "1"})
    assert hub.log == []
    folder = machine.fetch()
    assert machine.fetch(env={variable: "1"}) == machine.find(env={variable: "1"}) == folder


def test_what_another_program_downloaded_is_found_and_can_be_recorded(machine, hub):
    folder = store(machine.cache, commit=hub.commit)
    assert machine.find() == folder and hub.log == []
    with raises(ValueError, match=r"no hash is known.\n.*: minitx fetch org/tiny"):
        machine.find(verify=True)
    assert machine.fetch() == machine.find(verify=True) == folder
    assert not hub.requests("resolve"), "every file was here, only the listing was read"


def test_main_or_else_the_only_snapshot_of_a_cache_is_found(cache):
    only = store(cache, main=False)
    assert weights.find("org/tiny") == weights.find("org/tiny", revision="a" * 40) == only
    other = store(cache, commit="b" * 40, main=False)
    with raises(FileNotFoundError, match="not in the cache"):
        weights.find("org/tiny")
    assert weights.find("org/tiny", revision="b" * 40) == other
    short = store(cache, "roberta-base")
    assert weights.find("roberta-base") == short, "ids had no owner once, and caches keep them"


def test_part_of_a_checkpoint_in_the_cache_is_not_taken_for_one(cache):
    folder = store(cache, files={"config.json": b"{}", "tokenizer.json": b"{}"})
    with raises(FileNotFoundError, match=r"lacks model.safetensors.\n.*: minitx fetch org/tiny"):
        weights.find("org/tiny")
    index = {"weight_map": {"a": "x-1.safetensors", "b": "x-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "x-1.safetensors").touch()
    with raises(FileNotFoundError, match=r"lacks x-2.safetensors.\n"):
        weights.find("org/tiny")
    (folder / "model.safetensors").touch()
    assert weights.find("org/tiny") == folder, "one whole file needs no shards"


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"XDG_CACHE_HOME": "/x"},
        {"HF_HOME": "/h", "XDG_CACHE_HOME": "/x"},
        {"HF_HOME": "~/h"},
        {"HF_HUB_CACHE": "/c", "HF_HOME": "/h"},
        {"HUGGINGFACE_HUB_CACHE": "/g"},
    ],
)
def test_the_cache_is_where_the_library_has_it(machine, env):
    code = (
        "from huggingface_hub import constants; from weights import local;"
        "print(constants.HF_HOME, constants.HF_HUB_CACHE, local.hf_home(), local.hub_cache())"
    )
    del machine.env["HF_HOME"]
    home, hub, own_home, own_hub = machine.python(code, env).split()
    assert (own_home, own_hub) == (home, hub)


def test_variables_set_after_the_library_was_imported_count(machine, tmp_path, hub):
    late = {"HF_HUB_CACHE": str(tmp_path / "late"), "HF_ENDPOINT": machine.env.pop("HF_ENDPOINT")}
    code = (
        f"import os, huggingface_hub.constants, weights; os.environ.update({late});"
        "print(weights.fetch('org/tiny'), weights.find('org/tiny'))"
    )
    folder = tmp_path / "late" / "models--org--tiny" / "snapshots" / hub.commit
    assert machine.python(code).split() == [str(folder)] * 2
    hub.log.clear()
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        code = (
            f"import os, huggingface_hub.constants, weights; os.environ['{variable}'] = '1'\n"
            "try: weights.fetch('org/other')\nexcept ConnectionError as error: print(error)"
        )
        assert variable in machine.python(code, {"HF_ENDPOINT": hub.url}) and hub.log == []


# --- names and folders


def test_bundled_names_and_folders_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "BUNDLED", tmp_path)
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").touch()
    assert weights.bundled() == ["tiny"]
    assert weights.find("tiny") == weights.find(folder) == weights.find(str(folder)) == folder
    assert weights.fetch("tiny") == folder, "nothing to download"
    with raises(ValueError, match="is a plain folder: only downloads have a revision"):
        weights.find(folder, verify=True)


def test_a_name_that_leads_nowhere_says_what_is_here_and_the_command(cache, tmp_path):
    with raises(FileNotFoundError, match=r"(?s)'The dog ran.' is .*\nNor is it a hub id, such as"):
        weights.find("The dog ran.")
    text = r"(?s)not a bundled model \(.*not in the .*: minitx fetch gpt2$"
    with raises(FileNotFoundError, match=text):
        weights.find("gpt2")
    with raises(FileNotFoundError, match=r"Did you mean distilgpt2"):
        weights.find("distlgpt2")
    text = r"/hub.\nTo download it: minitx fetch FacebookAI/roberta-base$"
    with raises(FileNotFoundError, match=text):
        weights.find("FacebookAI/roberta-base")
    with raises(
        FileNotFoundError, match=r"'~nouser/model' is not a bundled model .*, no folder, and"
    ):
        weights.find("~nouser/model")
    with raises(FileNotFoundError, match=r"is empty; wanted config.json and model.safetensors"):
        weights.find(tmp_path)


def test_a_damaged_record_is_named(cache):
    path = local.record_path("org/tiny")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with raises(ValueError, match=rf"{path} is damaged .* Delete it, then: minitx fetch org/tiny"):
        weights.find("org/tiny")


RIGHT = {"size": 1, "sha256": "0" * 64}
EMPTY = {"repo": "org/tiny", "pinned": None, "revisions": {}, "files": {}}


@pytest.mark.parametrize(
    "changes",
    [
        {"repo": "org/other"},
        {"pinned": "../.."},
        {"pinned": 5},
        {"revisions": {"main": "../../.."}},
        {"revisions": ["main"]},
        {"files": {"../..": {}}},
        {"files": {"a" * 40: ["config.json"]}},
        {"files": {"a" * 40: {"config.json": 5}}},
        {"files": {"a" * 40: {"config.json": {"size": 1}}}},
        {"files": {"a" * 40: {"config.json": {"size": "1", "sha256": "0" * 64}}}},
        {"files": {"a" * 40: {"config.json": {"size": 1, "sha256": "x"}}}},
        {"files": {"a" * 40: {"../config.json": RIGHT}}},
        {"files": {"a" * 40: {"/etc/passwd": RIGHT}}},
    ],
    ids=range(13),
)
def test_a_record_of_another_form_is_named(cache, changes):
    """Half of these were a KeyError or TypeError, or read files outside of the cache."""
    store(cache)
    path = local.record_path("org/tiny")
    path.parent.mkdir(parents=True)
    for record in (EMPTY | changes, [], None, 5, "x"):
        path.write_text(json.dumps(record))
        with raises(ValueError, match=rf"{path} is damaged .* Delete it, then: minitx fetch"):
            weights.find("org/tiny")


@pytest.mark.parametrize(
    "index", ["[]", "5", "{", '{"weight_map": [1]}', '{"weight_map": {"a": 1}}']
)
def test_an_index_in_the_cache_of_another_form_is_named(cache, index):
    folder = store(cache, files={"config.json": b"{}"})
    (folder / "model.safetensors.index.json").write_text(index)
    with raises(ValueError, match="index.json has no weight_map from tensor names to file names"):
        weights.find("org/tiny")
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../../x"}}')
    with raises(ValueError, match="'../../x' leads out of its folder"):
        weights.find("org/tiny")


@pytest.mark.parametrize("revision", ["../..", "/etc", "refs/../../x", "-x", "", "a\nb", "a\0b"])
def test_a_revision_does_not_leave_the_cache(cache, revision):
    store(cache)
    for function in (weights.find, weights.fetch):
        with raises(ValueError, match="revision is .*; wanted a branch, a tag, refs/pr/N or a"):
            function("org/tiny", revision=revision)


def test_a_ref_that_is_no_commit_is_named(cache):
    store(cache)
    for content_ in (b"../../..", b"", b"\xff\xfe"):
        (cache / "models--org--tiny" / "refs" / "main").write_bytes(content_)
        with raises(ValueError, match=r"refs/main is damaged: .* Delete it, then: minitx fetch"):
            weights.find("org/tiny")


def test_a_file_that_nobody_recorded_is_named_where_hashes_are_asked_for(machine):
    """An added tokenizer_config.json changes the ids of every text."""
    folder = machine.fetch()
    (folder / "README.md").write_text("of another program, and not read")
    assert machine.find(verify=True) == folder
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    with raises(ValueError, match="tokenizer_config.json is not in the record: delete it"):
        machine.find(verify=True)


def test_import_and_find_load_no_network_code(machine, tmp_path):
    store(machine.cache)
    code = (
        "import sys, weights; weights.find('org/tiny');"
        "print([m for m in ('huggingface_hub', 'numpy', 'socket', 'tqdm') if m in sys.modules])"
    )
    assert machine.python(code).strip() == "[]"
