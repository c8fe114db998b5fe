"""Corpora as they are: packed files, Parquet, globs, URLs, and samples drawn by a seed."""

import gzip
import http.server
import json
import pickle
import re
import sys
import threading
from typing import ClassVar

import counting
import numpy as np
import pytest

from minitx.analysis import EXPERIMENTS
from minitx.analysis.texts import corpus, formats, ids, sampling, spool, storage

TEXTS = [f"Document {i}, which has a few words." for i in range(40)]


def lines(texts=TEXTS):
    return "".join(f"{text}\n" for text in texts).encode()


def objects(texts=TEXTS):
    return lines(json.dumps({"text": text, "n": i}) for i, text in enumerate(texts))


def packed(ending, content):
    """Content as a file of this ending has it."""
    if ending == ".gz":
        return gzip.compress(content)
    if ending == ".zst":
        zstd = pytest.importorskip("backports.zstd")
        checked = {zstd.CompressionParameter.checksum_flag: 1}  # as the command zstd writes them
        return zstd.compress(content, options=checked)
    return content


def texts(name):
    return [record.text for record in formats.records(name)]


def write_parquet(path, table, rows=7):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.table(table), path, row_group_size=rows)
    return str(path)


# packed files


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("layout, content", [(".txt", lines()), (".jsonl", objects())])
def test_a_packed_file_is_read_as_what_is_inside(tmp_path, ending, layout, content):
    path = tmp_path / f"a{layout}{ending}"
    half = len(content) // 2
    path.write_bytes(packed(ending, content[:half]) + packed(ending, content[half:]))  # two frames
    assert texts(str(path)) == TEXTS
    assert [*formats.records(str(path))][2].where == f"a{layout}{ending}, line 3"
    assert formats.described(str(path))["sha256"] == formats.sha256(path)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("how", ["cut", "changed", "other"])
def test_a_damaged_file_is_named_with_where(tmp_path, ending, how):
    """A stream that ends too early is damaged too: its last documents would be lost."""
    rng = np.random.default_rng(0)
    content = packed(
        ending, lines(["".join(map(chr, rng.integers(97, 123, 60))) for _ in range(9000)])
    )
    if how == "cut":
        content = content[: len(content) // 2]
    elif how == "changed":
        half = len(content) // 2
        content = content[:half] + bytes(64) + content[half + 64 :]
    else:
        content = lines()
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"'a.txt\{ending}' is damaged: .* \(after [\d,]+ bytes of"
    ):
        texts(str(path))


def test_a_missing_package_is_named_with_its_command(tmp_path, monkeypatch):
    for name in ("compression", "backports", "pyarrow", "pyarrow.parquet", "fsspec", "fsspec.core"):
        monkeypatch.setitem(sys.modules, name, None)
    for name, extra in (("a.txt.zst", "zstd"), ("a.parquet", "parquet")):
        (tmp_path / name).write_bytes(b"x")
        wanted = rf"'{name}' is .*; to read it: pip install 'minitx\[{extra}\]'"
        with pytest.raises(ValueError, match=wanted):
            texts(str(tmp_path / name))
    for place in ("https://127.0.0.1/a.txt", "s3://bucket/a.txt"):
        with pytest.raises(ValueError, match=r"is a URL; .*pip install 'minitx\[remote\]'"):
            texts(place)


def test_what_a_kind_of_store_needs_is_named_where_only_fsspec_is_there(monkeypatch):
    """The hub's package brings fsspec along, without what reads the web."""
    core = pytest.importorskip("fsspec.core")

    def refuse(place):
        raise ImportError(f"{place} needs something")

    monkeypatch.setattr(core, "url_to_fs", refuse)
    with pytest.raises(ValueError, match=r"is a URL; to read it: pip install 'minitx\[remote\]'$"):
        texts("https://127.0.0.1/a.txt")
    with pytest.raises(ValueError, match=r"another package: .*; to read it: pip install s3fs$"):
        texts("s3://bucket/a.txt")


# folders and globs


def test_a_glob_and_a_folder_give_files_in_the_order_of_their_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "c.jsonl").write_bytes(objects(["third"]))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(objects(["first"])))
    (tmp_path / "b/x.jsonl").write_bytes(objects(["second"]))
    (tmp_path / "notes.md").write_text("no")
    for name in (tmp_path, tmp_path / "**/*.jsonl*"):
        assert texts(str(name)) == ["first", "second", "third"]
    assert texts(str(tmp_path / "*.jsonl")) == ["third"]
    stated = formats.described(str(tmp_path / "**/*.jsonl*"))
    assert stated["files"] == 3
    (tmp_path / "c.jsonl").write_bytes(objects(["other"]))
    assert formats.described(str(tmp_path / "**/*.jsonl*"))["sha256"] != stated["sha256"]


def test_a_glob_of_nothing_and_a_folder_of_two_layouts_are_errors(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(objects())
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(
        FileNotFoundError, match=r"no file matches '.*\*\.txt'; wanted \.txt, \.csv"
    ):
        texts(str(tmp_path / "*.txt"))
    with pytest.raises(ValueError, match=r"several layouts: \.csv, \.jsonl; name those of one, as"):
        texts(str(tmp_path))


# Parquet


def test_rows_of_parquet_are_documents(tmp_path):
    table = {"text": [*TEXTS[:9], None], "label": [*"abcdefghi", None], "n": [*range(10)]}
    path = write_parquet(tmp_path / "a.parquet", table, rows=4)
    records = [*formats.records(path)]
    assert [record.text for record in records] == [*TEXTS[:9], ""]
    assert [record.label for record in records] == [*"abcdefghi", ""]
    assert records[4].where == "a.parquet, row 5"
    assert formats.count(path) == 10


@pytest.mark.parametrize(
    "options, message",
    [
        ({"column": "n"}, "a.parquet: column 'n' holds int64, no text; wanted string"),
        ({"column": "body"}, "no column 'body'.*available: text, n"),
    ],
)
def test_columns_of_parquet_that_cannot_be_read(tmp_path, options, message):
    path = write_parquet(tmp_path / "a.parquet", {"text": TEXTS, "n": [*range(40)]})
    with pytest.raises(ValueError, match=message):
        texts(formats.of(path, **options))


def test_a_damaged_parquet_file_is_named_with_its_group(tmp_path):
    rng = np.random.default_rng(0)
    long = ["".join(map(chr, rng.integers(97, 123, 999))) for _ in range(40)]
    path = write_parquet(tmp_path / "a.parquet", {"text": long}, rows=10)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    (tmp_path / "a.parquet").write_bytes(content[:-100])
    with pytest.raises(
        ValueError, match="'a.parquet' is not a Parquet file, or is damaged: it cannot"
    ):
        texts(path)
    start = content.index(long[20][:200].encode())
    content[start - 60 : start + 60] = bytes([255]) * 120
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(ValueError, match="damaged: group [12] of 4 groups of rows cannot be read"):
        texts(path)


# samples


def test_a_sample_is_the_same_for_a_seed_and_part_of_a_larger_one():
    few = sampling.draw(200_000, 50, 1)
    more = sampling.draw(200_000, 500, 1)
    other = sampling.draw(200_000, 50, 2)
    again = sampling.draw(200_000, 50, 1)
    assert few.tolist() == again.tolist() == sorted({*few.tolist()})
    assert len(few) == 50 and len(more) == 500 and {*few} < {*more}
    assert len({*few} & {*other}) <= 2
    # the numbers themselves, so that a sample stays what a paper says it was
    assert sampling.draw(1000, 5, 7).tolist() == [112, 264, 344, 846, 902]


def test_every_document_is_as_likely():
    """40 numbers, 2,000 samples of 10: chi-square with 39 degrees of freedom."""
    counts = np.zeros(40)
    for seed in range(2000):
        counts[sampling.draw(40, 10, seed)] += 1
    assert counts.sum() == 20_000
    spread = ((counts - 500) ** 2 / (500 * 30 / 40)).sum() * 39 / 40
    assert 15 < spread < 75  # 99.9% lie within 16 to 73


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl.gz", "a.parquet", "w.txt"])
def test_a_sample_of_any_layout_is_its_documents_by_number(tmp_path, name):
    path = tmp_path / name
    if name == "a.csv":
        path.write_text("text\n" + "".join(f'"{text}"\n' for text in TEXTS))
    elif name == "a.parquet":
        write_parquet(path, {"text": TEXTS})
    elif name == "w.txt":
        path.write_text("".join(f"= Title {i} =\n\n{text}\n\n" for i, text in enumerate(TEXTS)))
    else:
        path.write_bytes(packed(path.suffix, objects() if "jsonl" in name else lines()))
    everything = texts(str(path))
    numbers = sampling.draw(40, 11, 3)
    drawn = formats.of(path, n=11, seed=3)
    assert texts(drawn) == [everything[i] for i in numbers]
    assert texts(formats.of(path, n=40, seed=3)) == everything
    with pytest.raises(ValueError, match=f"'.*{name}' has 40 documents; wanted a sample of 41"):
        texts(formats.of(path, n=41, seed=3))


def test_a_sample_of_ids_is_lines(tmp_path, bundled):
    path = tmp_path / "a.ids"
    path.write_text("".join(f"0 {i + 10} 9 2\n\n" for i in range(40)))
    name = formats.of(path, is_ids=True, n=6, seed=1)
    rows = [line.tokens[1] - 10 for line in ids.lines(name, bundled.config)]
    assert rows == sampling.draw(40, 6, 1).tolist()
    assert len(corpus.texts(bundled, name)) == 6


def test_a_file_that_grows_is_counted_again(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(lines())
    assert formats.count(str(path)) == 40
    path.write_bytes(lines() * 2)
    assert formats.count(str(path)) == 80


def test_sample_seed_and_column_become_one_text():
    experiment = EXPERIMENTS["profiles"]
    given = {"text": "a.parquet", "sample": 30, "seed": 2, "column": "body"}
    text = formats.Text("a.parquet", column="body", n=30, seed=2)
    assert experiment.checked(given)["text"] == text
    assert text.stated() == {"name": "a.parquet", "column": "body", "sample": 30, "seed": 2}
    flags = {"ids": "a.ids", "sample": "30"}
    assert experiment.checked(flags, is_text=True)["text"] == formats.Text("a.ids", True, n=30)
    own = EXPERIMENTS["probe"]  # with a seed by itself
    checked = own.checked({"text": "a.csv", "sample": 3, "seed": 5, "column": "body"})
    assert checked["text"] == formats.Text("a.csv", column="body", n=3, seed=5)
    assert checked["seed"] == 5
    for wrong, message in (
        ({"sample": 30}, "sample is 30, but there is no text; wanted text, too"),
        ({"text": "a", "sample": -1}, "sample is -1; wanted 0 or more"),
        ({"text": "a", "column": 3}, "column is 3 (int); wanted text"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            experiment.checked(wrong)


# URLs


class Store(http.server.BaseHTTPRequestHandler):
    """Objects by path, parts of them too, as an object store serves them."""

    objects: ClassVar[dict] = {}
    sent = 0

    def do_HEAD(self):
        self.reply(head=True)

    def do_GET(self):
        self.reply()

    def reply(self, head=False):
        content = self.objects.get(self.path)
        if content is None:
            self.send_error(404)
            return
        first, end = 0, len(content)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first = int(asked[1])
            end = min(int(asked[2] or end) + 1, end)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(end - first))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{hash(content)}"')
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(content)}")
        self.end_headers()
        if not head:
            type(self).sent += end - first
            self.wfile.write(content[first:end])

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def store():
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Store.objects, Store.sent = {}, 0
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_texts_behind_a_url_are_those_of_the_file(tmp_path, store):
    write_parquet(tmp_path / "a.parquet", {"text": TEXTS})
    files = {"/a.txt": lines(), "/b/a.jsonl.gz": gzip.compress(objects())}
    Store.objects = files | {"/a.parquet": (tmp_path / "a.parquet").read_bytes()}
    for path in Store.objects:
        assert texts(store + path) == TEXTS
    assert texts(formats.of(f"{store}/a.parquet", n=5)) == [
        TEXTS[i] for i in sampling.draw(40, 5, 0)
    ]


def test_what_was_read_of_a_store_is_in_the_settings_without_moving_it(store):
    Store.objects = {"/a.txt": lines() * 30_000}  # 46 MB
    stated = formats.described(f"{store}/a.txt")
    assert Store.sent < 11e6  # a block, to see that it is not empty
    assert (stated["name"], stated["files"]) == ("a.txt", 1)
    Store.objects = {"/a.txt": lines() * 30_000 + b"."}
    assert formats.described(f"{store}/a.txt")["sha256"] != stated["sha256"]


def test_urls_that_cannot_be_read_are_named(store):
    with pytest.raises(FileNotFoundError, match=f"there is nothing at {store}/none.txt"):
        texts(f"{store}/none.txt")
    with pytest.raises(OSError, match="http://127.0.0.1:9/a.txt"):
        texts("http://127.0.0.1:9/a.txt")
    with pytest.raises(ValueError, match="a password in a URL would be written into the results"):
        texts("https://me:secret@127.0.0.1/a.txt")


def test_folders_and_globs_of_a_store():
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for name, text in (("b.jsonl", "second"), ("a.jsonl", "first"), ("deep/c.jsonl", "third")):
        system.pipe(f"/corpus/{name}", objects([text]))
    assert texts("memory://corpus/*.jsonl") == ["first", "second"]
    assert texts("memory://corpus/") == ["first", "second", "third"]
    with pytest.raises(FileNotFoundError, match="there is no file at memory://none/"):
        texts("memory://none/")


# memory


def test_memory_is_that_of_a_few_documents(tmp_path):
    """20 MB of documents, a sample of 50: what is held at once."""
    line = "A line of words that goes on and on, as lines do. " * 8
    path = tmp_path / "a.jsonl"
    path.write_bytes(objects([line] * 50_000))
    with counting.memory() as used:
        assert len(texts(formats.of(path, n=50))) == 50
    assert used.peak < 4e6  # measured 1.6e6


def test_stamp_is_of_each_file(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_bytes(lines())
    assert len(storage.stamp(str(tmp_path))) == 2


# tokens


def test_a_text_is_read_and_cut_into_tokens_once(tmp_path, bundled, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(lines())
    calls = []
    encode = type(bundled.tokenizer).encode

    def counted(self, *args, **options):
        calls.append(args)
        return encode(self, *args, **options)

    monkeypatch.setattr(type(bundled.tokenizer), "encode", counted)
    real, full = corpus.texts(bundled, str(path)), corpus.documents(bundled, str(path), tokens=64)
    before = len(calls)
    kept = [[*real], [*full], [*real], [*full]]
    assert len(calls) == before
    copies = [pickle.loads(pickle.dumps(documents)) for documents in (real, full)]
    again = [[*documents] for documents in copies]  # another process reads the text
    assert len(calls) > before
    for a, b in ((0, 2), (1, 3)):
        for x, y, z in zip(kept[a], kept[b], again[a], strict=True):
            assert x.dtype == z.dtype and x.tolist() == y.tolist() == z.tolist()


@pytest.mark.parametrize("n_vocab, size", [(1 << 16, 2), ((1 << 16) + 1, 4)])
def test_tokens_are_kept_as_they_are(n_vocab, size):
    documents = [np.array([0, n_vocab - 1, 5]), np.zeros(0, np.intp), np.arange(1000)]
    kept = spool.Spool(n_vocab)
    for document in documents:
        kept.add(document)
    assert kept.size == 3 * 4 + 1003 * size
    assert [x.tolist() for x in kept] == [x.tolist() for x in documents]
