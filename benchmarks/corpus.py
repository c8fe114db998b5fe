"""Experiments that read a corpus: how documents per second and peak memory go with the number of documents.

A point is (documents, seconds of the whole command, peak resident bytes or None). Rate and growth are taken between the
least and the largest number of documents, so that neither what starting costs nor what the model holds counts.
"""
import numpy as np

from analysis import experiments, registry, results

from . import peers

TOKENS = 64            # of a document; the bundled text holds more than enough of them
DOCUMENTS = 20, 80, 320
SLOW = {"joint-grid", "joint-space", "mask-positions"}  # 0.1 s and more for a document: not the largest number

TEXT = """`minitx run EXPERIMENT {model} --documents N --tokens {tokens}` on the bundled text, for every experiment with
the option `--documents`, each in a fresh process, once; {tokens} is the longest document. Seconds from the start of the
process to the written figure; documents/s and growth between the least and the largest N, so that starting does not
count; every pass over the documents does, and so does what an experiment does with their sums. Where the peaks do not
rise from one N to the next, growth tells how a peak varies from run to run, and no more.

{table}{lost}"""


def names():
    """The experiments that read as many documents as one asks for."""
    return [name for name, experiment in registry.EXPERIMENTS.items()
            if "documents" in (option.name for option in experiment.options)]


def readers(n):
    """The peers that read n documents."""
    return tuple(f"experiment/{name}" for name in names() if n < max(DOCUMENTS) or name not in SLOW)


def case(n):
    """The name of the case of n documents."""
    return f"corpus-{n}"


def points(run, peer):
    """The points of one experiment that were measured, fewest documents first; medians where there are several."""
    found = []
    for n in DOCUMENTS:
        told = [one for one in run["cases"].get(case(n), {}).values() if one["seconds"].get(peer)]
        if told:
            seconds, peaks = ([x for one in told for x in one[what][peer]] for what in ("seconds", "memory"))
            peaks = [peak for peak, _ in peaks if peak is not None]
            found.append((n, float(np.median(seconds)), float(np.median(peaks)) if peaks else None))
    return found


def rate(found):
    """Documents per second between the first point and the last; None where that cannot be told."""
    (n, fast, _), (more, slow, _) = found[0], found[-1]
    return (more - n) / (slow - fast) if slow > fast else None


def growth(found):
    """Bytes of peak memory that one more document takes; None where that cannot be told."""
    (n, _, low), (more, _, high) = found[0], found[-1]
    return (high - low) / (more - n) if more > n and None not in (low, high) else None


def rows(run):
    """Cells of the table, a row for each experiment that was measured."""
    for peer in readers(min(DOCUMENTS)):
        if found := points(run, peer):
            each, more = rate(found), growth(found)
            columns = zip(*((n, _number(seconds), _number(peak, 1e6)) for n, seconds, peak in found))
            documents, seconds, peaks = (" · ".join(map(str, column)) for column in columns)
            yield [peer.split("/")[1], documents, seconds, _number(each), peaks, _number(more, 1e3)]


def _number(value, unit=1):
    return results.words(None if value is None else value / unit)


def text(run, table):
    """The section of the page; table: a function of head and rows."""
    head = ["experiment", "documents", "seconds", "documents/s", "peak, MB", "growth per document, kB"]
    lost = {f"{case(n)}: {peer}: {why}" for n in DOCUMENTS for one in run["cases"].get(case(n), {}).values()
            for peer, why in one["lost"].items()}
    return TEXT.format(model=peers.MODEL, tokens=TOKENS, table=table(head, rows(run)),
                       lost="".join(f"\nLeft out: {one}\n" for one in sorted(lost)))
