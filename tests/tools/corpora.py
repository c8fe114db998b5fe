"""How fast a large corpus is read, and what memory that takes: the long form of test_corpora.py.

    python tests/tools/corpora.py --gigabytes 2         # made by repetition, in each packing
    python tests/tools/corpora.py --documents 100 100000     # memory of a client against documents

Each step runs in a process of its own, whose peak memory is that of the operating system. No model
runs but for its tokenizer: forward passes of 2 GB would take days.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import numpy as np

import minitx
from minitx import weights
from minitx.analysis.running import stream
from minitx.analysis.texts import corpus, formats

PACKINGS = ".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"
TOKENIZED = 20_000  # documents that are cut into tokens
DRAWN = 1000


# --- a corpus by repetition


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


def step_start(path):
    """What Python and its packages take by themselves."""
    return 0


def step_count(path):
    """The number of documents."""
    return formats.count(path)


def step_all(path):
    """Every document, taken apart."""
    counted = deque(enumerate(formats.records(path), 1), 1)
    return counted[0][0]


def step_sample(path):
    """A sample."""
    return len([*formats.records(formats.of(path, n=DRAWN))])


def step_tokens(path):
    """Tokens of the first documents, once from the text and once more."""
    model = minitx.load(weights.find("tiny-gpt2"))
    documents = corpus.texts(model, path, TOKENIZED)
    return sum(len(document) for document in documents)


def step_client(n):
    """A run over n short documents, with a measure that takes no time."""
    documents = [np.arange(16)] * int(n)
    stream.Run().gather(lambda i, document: {"sum": document.sum()}, documents, "documents")
    return len(documents)


STEPS = {
    name.removeprefix("step_"): step for name, step in globals().items() if name.startswith("step_")
}


def one_step(name, of):
    """Run one step here and print what it took, as JSON."""
    begin = time.perf_counter(), time.process_time()
    n = STEPS[name](of)
    seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"n": n, "seconds": seconds[0], "of_a_core": seconds[1], "peak": peak}))


def measured(name, of):
    """What a step took in a process of its own."""
    command = [sys.executable, __file__, "--step", name, str(of)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    """Make corpora, run each step, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0)
    parser.add_argument("--documents", type=int, nargs="*", default=[])
    parser.add_argument("--packings", nargs="*", default=PACKINGS)
    parser.add_argument("--steps", nargs="*", default=["start", "count", "sample", "all", "tokens"])
    parser.add_argument("--step", nargs=2)
    given = parser.parse_args()
    if given.step:
        one_step(*given.step)
        return
    for n in given.documents:
        print(f"client {n:>9} documents: peak {measured('client', n)['peak']:.0f} MB", flush=True)
    if given.gigabytes:
        with tempfile.TemporaryDirectory(prefix="minitx-corpora-") as folder:
            for ending in given.packings:
                of_packing(Path(folder) / f"corpus{ending}", given.gigabytes, given.steps)


def of_packing(path, gigabytes, steps):
    """The lines of one packing; the corpus is removed behind."""
    write(path, gigabytes * 1e9)
    print(f"{path.suffix:9} {path.stat().st_size / 1e6:.0f} MB on disk", flush=True)
    for name in steps:
        took = measured(name, path)
        rate = gigabytes * 1e3 / took["of_a_core"] if name in ("count", "all", "sample") else 0
        mb = f", {rate:.0f} MB of text per second of a core" if rate else ""
        seconds = f"{took['seconds']:.1f} s ({took['of_a_core']:.1f} of a core)"
        print(f"  {name:7} {took['n']:>9} {seconds}{mb}, peak {took['peak']:.0f} MB", flush=True)
    path.unlink()


if __name__ == "__main__":
    main()
