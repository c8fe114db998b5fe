"""How fast a large corpus is read, and what memory that takes: the long form of test_corpora.py.

    python tests/tools/corpora.py --gigabytes 2         # made by repetition, in each packing

Each step runs in a process of its own, whose peak memory is that of the operating system (Linux).
No model runs but for its tokenizer: forward passes of 2 GB would take days.
"""

import argparse
import gzip
import json
import multiprocessing
import re
import tempfile
import time
from pathlib import Path

import minitx
from minitx.analysis.texts import corpus, formats

PACKINGS = ".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"
TOKENIZED = 20_000  # documents that are cut into tokens
DRAWN = 1000


def texts():
    """The paragraphs of the sample, again and again, each with its number: about 12 MB."""
    paragraphs = [record.text for record in formats.records("sample")]
    return [f"{i} {paragraphs[i % len(paragraphs)]}" for i in range(40_000)]


def write(path, size):
    """A corpus of `size` bytes of text or more: one block of lines, again and again."""
    if path.suffix == ".parquet":
        write_parquet(path, size)
        return
    block = "".join(json.dumps({"text": text}) + "\n" for text in texts()).encode()
    content = packed(path, block)
    with open(path, "wb") as file:
        for _ in range(0, int(size), len(block)):
            file.write(content)


def packed(path, block):
    """The block packed as the file's ending says; several such follow each other in one file."""
    if path.suffix == ".gz":
        return gzip.compress(block, 6)
    if path.suffix == ".zst":
        from backports import zstd

        return zstd.compress(block)
    return block


def write_parquet(path, size):
    """The same as rows, 10,000 in a group."""
    import pyarrow as arrow
    from pyarrow import parquet

    schema = arrow.schema([("text", arrow.string())])
    block = texts()
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        table = arrow.table({"text": block}, schema)
        for _ in range(0, int(size), table.nbytes):
            writer.write_table(table, row_group_size=10_000)


# --- steps, each in a process of its own


def tokens(path):
    return sum(map(len, corpus.texts(minitx.load("tiny-gpt2"), path, TOKENIZED)))


STEPS = {  # of a path -> how many there are
    "start": lambda path: 0,  # what Python and its packages take by themselves
    "count": formats.count,
    "sample": lambda path: sum(1 for _ in formats.records(formats.of(path, n=DRAWN))),
    "all": lambda path: sum(1 for _ in formats.records(path)),  # every document, taken apart
    "tokens": tokens,
}


def took(name, path):
    """What a step gives, its seconds, those of a core, and the peak of this process in MB."""
    begin = time.perf_counter(), time.process_time()
    n = STEPS[name](path)
    seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
    # getrusage would count what the process had from which this one was started
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]
    return n, *seconds, int(peak) / 1024


def of_packing(path, gigabytes):
    """The lines of one packing; the corpus is removed behind."""
    write(path, gigabytes * 1e9)
    print(f"{path.suffix:9} {path.stat().st_size / 1e6:.0f} MB on disk", flush=True)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name in STEPS:
            n, seconds, of_a_core, peak = pool.apply(took, (name, path))
            rate = gigabytes * 1e3 / of_a_core if name in ("count", "all", "sample") else 0
            mb = f", {rate:.0f} MB of text per second of a core" if rate else ""
            times = f"{seconds:.1f} s ({of_a_core:.1f} of a core)"
            print(f"  {name:7} {n:>9} {times}{mb}, peak {peak:.0f} MB", flush=True)
    path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, required=True)
    gigabytes = parser.parse_args().gigabytes
    with tempfile.TemporaryDirectory(prefix="minitx-corpora-") as folder:
        for ending in PACKINGS:
            of_packing(Path(folder) / f"corpus{ending}", gigabytes)


if __name__ == "__main__":
    main()
