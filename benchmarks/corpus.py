"""Experiments that read a corpus: how speed and peak memory depend on the number of documents.

A point is (documents, seconds of the whole command, peak resident bytes or None). Rate and growth
are computed between the least and the largest number of documents, so that neither the cost of
starting nor the memory of the model counts.
"""

import numpy as np

from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry, wording

from . import peers

TOKENS = 64  # of a document; the bundled text holds more than enough of them
DOCUMENTS = 20, 80, 320
# 0.1 s and more for a document: not the largest number
SLOW = {"joint-grid", "joint-space", "mask-positions"}

TEXT = """`minitx run EXPERIMENT {model} --documents N --tokens {tokens}` on the bundled text, \
for every experiment with
the option `--documents`, each in a fresh process, once; {tokens} is the longest document. \
Seconds from the start of the
process to the written figure; documents/s and growth between the least and the largest N, \
so that starting does not
count; every pass over the documents does, and so does what an experiment does with their sums. \
Where the peaks do not
rise from one N to the next, growth tells how a peak varies from run to run, and no more.

{table}{lost}"""


def names():
    """The experiments with the options --documents and --tokens."""
    asked = {"documents", "tokens"}
    return [name for name, each in registry.EXPERIMENTS.items() if asked <= each.option_names]


def readers(n):
    """The peers that read n documents."""
    return tuple(f"experiment/{name}" for name in names() if n < max(DOCUMENTS) or name not in SLOW)


def case(n):
    """The name of the case of n documents."""
    return f"corpus-{n}"


def points(run, peer):
    """The points of one experiment that were measured, fewest documents first.

    Medians over all sets and rounds.
    """
    measured = []
    for n in DOCUMENTS:
        sets = [record for record in records(run, n) if record["seconds"].get(peer)]
        seconds = [x for record in sets for x in record["seconds"][peer]]
        peaks = [peak for record in sets for peak, _ in record["memory"][peer] if peak is not None]
        if seconds:
            peak = float(np.median(peaks)) if peaks else None
            measured.append((n, float(np.median(seconds)), peak))
    return measured


def records(run, n):
    """What was measured of n documents, one record for each set."""
    return run["cases"].get(case(n), {}).values()


def rate(measured):
    """Documents per second between the first and the last point; None if no time passed."""
    (n, fast, _), (more, slow, _) = measured[0], measured[-1]
    return (more - n) / (slow - fast) if slow > fast else None


def growth(measured):
    """Bytes of peak memory that one more document takes; None where that is unknown."""
    (n, _, low), (more, _, high) = measured[0], measured[-1]
    return (high - low) / (more - n) if more > n and None not in (low, high) else None


def rows(run):
    """Cells of the table, a row for each experiment that was measured."""
    for peer in readers(min(DOCUMENTS)):
        measured = points(run, peer)
        if measured:
            documents = " · ".join(str(n) for n, _, _ in measured)
            seconds = " · ".join(_number(seconds) for _, seconds, _ in measured)
            peaks = " · ".join(_number(peak, 1e6) for _, _, peak in measured)
            speed, more = _number(rate(measured)), _number(growth(measured), 1e3)
            yield [peer.split("/")[1], documents, seconds, speed, peaks, more]


def _number(value, unit=1):
    """A value in this unit, for people; a dash for None."""
    return wording.words(None if value is None else value / unit)


HEAD = (
    "experiment",
    "documents",
    "seconds",
    "documents/s",
    "peak, MB",
    "growth per document, kB",
)


def text(run, table):
    """The section of the page; table: a function of head and rows."""
    lost = set()
    for n in DOCUMENTS:
        for record in records(run, n):
            lost |= {f"{case(n)}: {peer}: {why}" for peer, why in record["lost"].items()}
    left_out = "".join(f"\nLeft out: {line}\n" for line in sorted(lost))
    filled = table(HEAD, rows(run))
    return TEXT.format(model=peers.MODEL, tokens=TOKENS, table=filled, lost=left_out)
