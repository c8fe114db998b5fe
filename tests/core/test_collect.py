"""Activations of a corpus on disk: those of runs, the same bytes after any kill, refusals."""

import json
import os
import shutil
import signal

import numpy as np
import pytest
import tiny
from processes import python

import minitx
from minitx.research import shards as writing
from minitx.research.collection import check_of

KEEP = "resid_post", ("z", 1), ("post", 0)
KILLED = """
import os, signal, sys
import numpy as np
import tiny
import minitx
from minitx.research import shards as writing

model, rows = tiny.load("gpt2-causal"), np.load(sys.argv[2])
writing.SHARD = 6000
whole = writing.append
for kill in range(1, 11):
    if os.fork():
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        continue
    calls = []

    def half(path, first, begin, pieces):
        calls.append(path)
        if len(calls) == kill * 3:
            whole(path, first, begin, pieces[: len(pieces) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        whole(path, first, begin, pieces)

    writing.append = half
    minitx.collect(model, rows, ["resid_post", ("z", 1)], sys.argv[1])
    os._exit(0)
"""


def documents(model, n=12, seed=0):
    lengths = np.random.default_rng(seed).integers(1, 9, n)
    return [tiny.ids(model, T, seed=(seed, i)) for i, T in enumerate(lengths)]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def record_of(folder):
    return json.loads((folder / "collection.json").read_text())


def write_record(folder, record):
    """As if all of it had been said so from the beginning."""
    if "check" in record:
        record = record | {"check": check_of(record)}
    (folder / "collection.json").write_text(json.dumps(record))


@pytest.mark.parametrize("variant", tiny.SINGLE)
def test_rows_are_those_of_runs(variant, tmp_path):
    model = tiny.single(variant)
    rows = documents(model)
    kept = minitx.collect(model, iter(rows), KEEP, tmp_path / "c")
    assert [*np.concatenate(rows)] == [*kept.tokens] and len(kept) == len(kept.tokens)
    for i, row in enumerate(rows):
        trace = minitx.run(model, row, KEEP)
        own = kept.documents == i
        assert np.array_equal(kept["resid_post", -1][own], trace["resid_post", -1][0])
        z = trace["z", 1][0].swapaxes(0, 1).reshape(len(row), -1)
        assert np.array_equal(kept["z", 1][own], z)
    assert isinstance(kept["post", 0], np.memmap) and "post.0" in kept.keys
    whole = np.load(tmp_path / "c" / "z.1.npy", mmap_mode="r")  # by NumPy alone
    assert np.array_equal(whole, kept["z", 1])


def test_texts_and_pairs_are_read_as_runs_read_them(tmp_path):
    pair = "The dog", "It ran"
    kept = minitx.collect("tiny-bert", ["A dog", pair], [("resid_post", 0)], tmp_path / "c")
    x = minitx.run("tiny-bert", [pair], ("resid_post", 0))["resid_post", 0][0]
    assert np.array_equal(kept["resid_post", 0][kept.documents == 1], x)
    again = minitx.open_collection(tmp_path / "c")
    assert repr(again) == repr(kept) and "2 documents" in repr(kept)


def test_ten_kills_leave_the_same_bytes(tmp_path):
    """SIGKILL in the middle of a file, ten times in one collection."""
    model = tiny.load("gpt2-causal")
    rows = tiny.ids(model, 200, 7)
    np.save(tmp_path / "rows.npy", rows)
    minitx.collect(model, rows, ["resid_post", ("z", 1)], tmp_path / "whole")
    code, said = python("-c", KILLED, str(tmp_path / "killed"), str(tmp_path / "rows.npy"))
    assert code == 0 and said.split().count(str(-signal.SIGKILL)) == 10, said
    begun = minitx.open_collection(tmp_path / "killed")
    assert 0 < begun.record["documents"] < 200 and "not whole" in repr(begun)
    assert content(tmp_path / "killed") != content(tmp_path / "whole")
    minitx.collect(model, rows, ["resid_post", ("z", 1)], tmp_path / "killed")
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_workers_write_the_bytes_of_one_and_go_on(begun, tmp_path):
    """Also where the call was begun by one; and the threads of BLAS are what they were."""
    model, rows, folder = begun
    n_threads = minitx.machine.threads.count()
    minitx.collect(model, rows, KEEP, tmp_path / "one")
    for n in (2, 5):
        minitx.collect(model, rows, KEEP, tmp_path / str(n), workers=n)
        assert content(tmp_path / str(n)) == content(tmp_path / "one")
    minitx.collect(model, rows, KEEP, folder, workers=3)
    assert content(folder) == content(tmp_path / "one")
    assert minitx.machine.threads.count() == n_threads
    with pytest.raises(ValueError, match="workers is 0; expected a number of threads, 1 or more"):
        minitx.collect(model, rows, KEEP, folder, workers=0)


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A model, its documents, and a collection that was interrupted after a few of them."""
    model = tiny.load("gpt2-causal")
    rows = documents(model)
    monkeypatch.setattr(writing, "SHARD", 3000)

    def given():
        yield from rows[:8]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minitx.collect(model, given(), KEEP, tmp_path / "c")
    assert 0 < minitx.open_collection(tmp_path / "c").record["documents"] < 8
    return model, rows, tmp_path / "c"


def test_an_interrupted_call_goes_on_where_it_was(begun, monkeypatch, tmp_path):
    model, rows, folder = begun
    passes = []
    original = writing.vectors
    monkeypatch.setattr(writing, "vectors", lambda *x: passes.append(0) or original(*x))
    done = minitx.open_collection(folder).record["documents"]
    minitx.collect(model, rows, KEEP, folder)
    assert len(passes) == len(rows) - done + 1  # one tells the widths
    minitx.collect(model, rows, KEEP, tmp_path / "whole")
    assert content(folder) == content(tmp_path / "whole")
    minitx.collect(model, rows, KEEP, folder)  # it is whole already
    assert content(folder) == content(tmp_path / "whole")


def test_another_model_is_refused(begun):
    model, rows, folder = begun
    W_E = np.array(model.weights.W_E)
    W_E[3, 3] += 1e-9
    for other in (tiny.with_weights(model, W_E=W_E), tiny.load("gpt2-causal", np.float32)):
        with pytest.raises(ValueError, match="was begun with another model"):
            minitx.collect(other, rows, KEEP, folder)


def test_other_points_and_documents_are_refused(begun):
    model, rows, folder = begun
    with pytest.raises(ValueError, match=r"begun with keep .*resid_post.0.*is now to have .*z.1"):
        minitx.collect(model, rows, ["z"], folder)
    with pytest.raises(ValueError, match=r"the first \d documents are not those"):
        minitx.collect(model, [rows[1], *rows[1:]], KEEP, folder)
    with pytest.raises(ValueError, match=r"1 documents were given; expected \d or more"):
        minitx.collect(model, rows[:1], KEEP, folder)
    minitx.collect(model, rows, KEEP, folder)
    with pytest.raises(ValueError, match="whole collection of 12 documents, and more were given"):
        minitx.collect(model, [*rows, rows[0]], KEEP, folder)


@pytest.mark.parametrize(
    "given, match",
    [
        ({"documents": "A dog"}, "documents are 'A dog'; expected a list of texts"),
        ({"documents": 3}, "documents are 3; expected a list of texts"),
        ({"documents": []}, "0 documents were given; expected 1 or more"),
        ({"documents": [[1] * 99]}, "text 0 has 99 tokens; this model reads at most"),
        ({"keep": ["pattern"]}, "expected a point with one vector for each token"),
        ({"keep": []}, r"keep is \[\]; expected names of points"),
        ({"keep": ["resid"]}, "unknown point 'resid'"),
        ({"out": __file__}, "is no folder; expected the name of one"),
        ({"out": os.path.dirname(__file__)}, "holds other files: .*expected a new folder"),
    ],
)
def test_what_does_not_fit_is_said(given, match, tmp_path):
    given = {"documents": [[1, 2]], "keep": "resid_post", "out": tmp_path / "c"} | given
    with pytest.raises(ValueError, match=match):
        minitx.collect(tiny.load("gpt2-causal"), **given)


def test_a_damaged_collection_is_refused(begun, tmp_path):
    _, _, folder = begun
    with pytest.raises(FileNotFoundError, match="is no collection: it has no collection.json"):
        minitx.open_collection(tmp_path)
    with pytest.raises(KeyError, match=r"\('q', 0\) is not in this collection; it has resid_post"):
        minitx.open_collection(folder)["q", 0]
    record = record_of(folder)
    copy = shutil.copytree(folder, tmp_path / "copy")
    os.truncate(copy / "z.1.npy", 100)
    with pytest.raises(ValueError, match=r"z.1.npy has 100 bytes; expected \d+ or more"):
        minitx.open_collection(copy)
    for name, value in {"tokens": -1, "format": "x", "arrays": [], "whole": 1}.items():
        write_record(copy, record | {name: value})
        with pytest.raises(ValueError, match=f"is damaged: '{name}' is"):
            minitx.open_collection(copy)


@pytest.mark.parametrize(
    "entry", [["<f4", 1], ["<i4", 24], ["<f8", 12], ["<f4", -1], ["V4", 24], ["zz", 1], "<f4", None]
)
def test_a_record_that_its_files_contradict_is_refused(begun, tmp_path, entry):
    """Another type or width of a point, which would be read as other numbers."""
    copy = shutil.copytree(begun[2], tmp_path / "copy")
    record = record_of(copy)
    record["arrays"]["z.1"] = entry
    write_record(copy, record)
    with pytest.raises(ValueError, match=r"z.1.npy has .*of the two is damaged|'arrays' is|bytes;"):
        minitx.open_collection(copy)


def test_fewer_rows_than_a_whole_collection_has_and_another_file_are_refused(begun, tmp_path):
    model, rows, _ = begun
    folder = minitx.collect(model, rows, KEEP, tmp_path / "c").folder
    record = record_of(folder)
    for n in 0, 1, record["tokens"] - 1:
        write_record(folder, record | {"tokens": n})
        with pytest.raises(ValueError, match="one of the two is damaged"):
            minitx.open_collection(folder)
    write_record(folder, record)
    shutil.copy(folder / "post.0.npy", folder / "z.1.npy")
    with pytest.raises(ValueError, match="z.1.npy has not the header of"):
        minitx.open_collection(folder)


@pytest.mark.parametrize(
    ("name", "value"), [("documents", 0), ("documents", 10**6), ("whole", True), ("sha256", "0")]
)
def test_a_record_that_says_something_else_is_refused(begun, name, value):
    """With 0 documents, what is written would be written once more."""
    model, rows, folder = begun
    (folder / "collection.json").write_text(json.dumps(record_of(folder) | {name: value}))
    for ask in (minitx.open_collection, lambda folder: minitx.collect(model, rows, KEEP, folder)):
        with pytest.raises(ValueError, match="collection.json is damaged: it has another crc32"):
            ask(folder)


def a_bit_flips(folder, record):
    path = folder / "z.1.npy"
    x = bytearray(path.read_bytes())
    x[200] ^= 1
    path.write_bytes(x)


def files_change_places(folder, record):
    (folder / "resid_post.0.npy").rename(folder / "x")
    (folder / "resid_post.1.npy").rename(folder / "resid_post.0.npy")
    (folder / "x").rename(folder / "resid_post.1.npy")


def layers_are_fewer(folder, record):  # resid_post.-1 would be another layer's
    record["layers"] -= 1


def an_entry_is_lost(folder, record):
    del record["arrays"]["z.1"], record["crc32"]["z.1"]


DAMAGES = a_bit_flips, files_change_places, layers_are_fewer, an_entry_is_lost


@pytest.mark.parametrize("damage", DAMAGES)
def test_numbers_that_are_not_those_written_are_refused(begun, damage):
    """When a point is asked for, but not if `check` is false; and before a call is continued."""
    model, rows, folder = begun
    record = record_of(folder)
    damage(folder, record)
    write_record(folder, record)
    collection = minitx.open_collection(folder)
    with pytest.raises(ValueError, match=r"\.npy or collection.json is damaged: crc32 is \d+; exp"):
        [collection[key] for key in collection.keys]
    unchecked = minitx.open_collection(folder, check=False)
    assert [len(unchecked[key]) for key in unchecked.keys]
    with pytest.raises(ValueError, match="is damaged|begun with keep"):
        minitx.collect(model, rows, KEEP, folder)


def test_a_collection_of_before_checksums_is_read_and_gets_them(begun, tmp_path):
    model, rows, folder = begun
    record = record_of(folder)
    crc32 = record.pop("check") and record.pop("crc32")
    write_record(folder, record | {"crc32": {"z.1": 1}})
    with pytest.raises(ValueError, match="'crc32' is of other files than 'arrays'"):
        minitx.open_collection(folder)
    write_record(folder, record)
    assert len(minitx.open_collection(folder)["z", 1]) and crc32
    minitx.collect(model, rows, KEEP, folder)
    minitx.collect(model, rows, KEEP, tmp_path / "whole")
    assert content(folder) == content(tmp_path / "whole")


def test_two_at_once_are_refused(tmp_path):
    model = tiny.load("gpt2-causal")

    def documents():
        yield [1, 2]
        minitx.collect(model, [[1, 2]], out=tmp_path / "c")

    with pytest.raises(ValueError, match=r"another collect is writing to .*\.lock is locked"):
        minitx.collect(model, documents(), out=tmp_path / "c")
