"""What a long run will take: a few of its documents measured here, and multiplied.

A run on FEW documents and one on MORE say, for each sum over documents, how many it measures and
how long each takes; the difference of the rest says what reading takes for each document. Nothing
is known of other machines, of a network, or of a text that is longer than what was read.
"""

import resource
import sys
import time
from typing import NamedTuple

import numpy as np

from minitx.loading.finite import named_arrays

from ..contract import own_texts, sides
from ..contract.registry import NotApplicable
from ..machine.language import count, filled
from ..machine.progress import duration
from . import executor, passes, stream

# documents of the two runs, or so many times what an experiment needs at least; with fewer than 8
# some look at all documents of which they else take a few
FEW, MORE = 8, 24
# what shipping takes, as benchmarks/scale.py and benchmarks/workers.py measured it: seconds of a
# worker and of the client for a document, and bytes a second that come back
WORKER, CLIENT, RATE = 1.6e-3, 0.8e-3, 78e6


class Stage(NamedTuple):
    """One sum over documents."""

    n: int  # documents
    seconds: float  # of each, on one thread
    sent: float  # bytes of each document
    returned: float  # bytes of its results
    kept: float  # of these, bytes that stay in memory


class Measured(NamedTuple):
    """One run on a few documents."""

    documents: int
    stages: dict[str, Stage]
    rest: float  # seconds outside of the stages


class Cost(NamedTuple):
    """What a run over N documents takes."""

    documents: int
    measured: int  # documents that this was learnt from
    seconds: float  # of one thread, for all documents
    reading: float  # seconds of the process that reads them and adds up
    fixed: float  # seconds, whatever the number of documents
    sent: float  # bytes to workers
    returned: float  # bytes back
    kept: float  # bytes that this process holds at the end
    calls: float  # documents that all sums measure, each a message to a worker and back
    memory: float  # bytes of a process that measured one document at a time
    weights: float  # of these, bytes of weights: mapped, once for all workers of a machine


class OneByOne:
    """An executor that measures one document at a time in this thread."""

    def results(self, measure, numbered):
        """measure(index, document) of each."""
        for index, document in numbered:
            yield measure(index, document)


class Meter(stream.Run):
    """A run that notes what each of its sums takes."""

    def __init__(self):
        super().__init__()
        self.measured = {}

    def gather(self, measure, documents, what, keep=()):
        """As for Run.gather."""
        rows = []

        def timed(index, document):
            begin = time.perf_counter()
            result = passes.measured(measure, index, document)
            seconds = time.perf_counter() - begin
            sizes = {name: np.asarray(value).nbytes for name, value in result.items()}
            kept = sum(size for name, size in sizes.items() if name in keep)
            sent = getattr(document, "nbytes", 0)
            rows.append((seconds, sent, sum(sizes.values()), kept))
            return result

        result = super().gather(timed, documents, what, keep)
        table = np.array(rows).reshape(-1, 4)
        # the first document of a stage also waits for what is made once
        seconds = float(np.mean(table[1:, 0] if len(table) > 1 else table[:, 0]))
        self.measured[what] = Stage(len(documents), seconds, *table[:, 1:].mean(axis=0).tolist())
        return result


# --- one run, measured


def measured(experiment, part, options, documents):
    """A run on this many documents -> Measured."""
    run = Meter()
    begin = time.perf_counter()
    with executor.use(OneByOne()):
        experiment.run(part, run, **options | {"documents": documents})
    whole = time.perf_counter() - begin
    inside = sum(stage.n * stage.seconds for stage in run.measured.values())
    return Measured(documents, run.measured, max(whole - inside, 0.0))


def plan(experiment, model, options, documents):
    """The Cost of an experiment on N documents of a model, from two short runs.

    Raises NotApplicable where it reads no documents, ValueError where it cannot read so few.
    """
    if all(option.name != "documents" for option in experiment.options):
        raise NotApplicable(
            f"{experiment.name} has no --documents: its time cannot be extrapolated"
        )
    part = sides.model_of(experiment, model, options)
    experiment.check(part)
    _, own = sides.split(options)
    own = experiment.checked(own_texts.with_own(experiment, model, own))
    least = max(1, experiment.least_documents)
    # the first of the three also waits for what is made once
    runs = [measured(experiment, part, own, least * n) for n in (FEW, FEW, MORE)]
    weights = sum(x.nbytes for x in named_arrays(part).values())
    return extrapolated(*runs[1:], documents, peak_memory(), weights)


# --- what follows for N documents


def extrapolated(few, more, documents, memory=0.0, weights=0.0):
    """The Cost of N documents from two Measured runs."""
    ahead = documents - more.documents
    apart = more.documents - few.documents
    seconds = sent = returned = kept = calls = 0.0
    for what, stage in more.stages.items():
        before = few.stages[what].n if what in few.stages else stage.n
        n = stage.n + ahead * (stage.n - before) / apart  # a stage may read each, or a few of them
        seconds += n * stage.seconds
        sent += n * stage.sent
        returned += n * stage.returned
        kept += n * stage.kept
        calls += n
    slope = max(more.rest - few.rest, 0.0) / apart
    fixed = max(more.rest - more.documents * slope, 0.0)
    moved = sent, returned, kept, calls, memory, weights
    return Cost(documents, more.documents, seconds, documents * slope, fixed, *moved)


def peak_memory():
    """The most memory that this process has had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def seconds_with(cost, workers):
    """Seconds of the whole run; reading goes on beside measuring, and one process does it."""
    if workers == 1:  # then nothing is shipped
        return cost.seconds + cost.fixed
    return max(of_workers(cost) / workers, of_client(cost)) + cost.fixed


def of_workers(cost):
    """Seconds of all workers together: measuring, and taking documents in and giving results."""
    return cost.seconds + cost.calls * WORKER


def of_client(cost):
    """Seconds of the process that reads, ships and adds up, with its scheduler."""
    return cost.reading + cost.calls * CLIENT + cost.returned / RATE


# --- as text


LINES = (
    "{documents} documents, {workers}: {whole}",
    "  measuring: {per_document} s a document on one thread here, {seconds} of one worker's time",
    "  reading and adding up, in one process: {reading} beside that; {fixed} whatever their number",
    "  shipping, where there are several workers: {of_workers} of their time, {of_client} of that "
    "process",
    "  memory of a worker: {memory} at most, {weights} of them weights, which the workers of one "
    "machine share",
    "  memory of the process that adds up: {kept} more, for what is kept of each",
    "  moved: {sent} to the workers, {returned} back; beside that the weights, once to each "
    "machine",
)
LIMIT = "  the one process is the limit: more than {n} workers bring nothing"
UNKNOWN = (
    "learnt from {measured} documents on this machine as it is now. Not known: how fast other "
    "machines and a network are, longer or shorter documents further on, whether the text holds so "
    "many"
)


def says(cost, workers):
    """What a plan says, and what it cannot know."""
    values = {"documents": f"{cost.documents:,}", "workers": count(workers, "worker")}
    values["per_document"] = f"{cost.seconds / max(cost.documents, 1):.3g}"
    values["whole"] = duration(seconds_with(cost, workers))
    values |= {name: duration(getattr(cost, name)) for name in ("seconds", "reading", "fixed")}
    values["of_workers"] = duration(of_workers(cost) - cost.seconds)
    values["of_client"] = duration(of_client(cost) - cost.reading)
    for name in ("memory", "weights", "kept", "sent", "returned"):
        values[name] = size(getattr(cost, name))
    lines = [filled(line, **values) for line in LINES]
    if workers > 1 and of_client(cost) > of_workers(cost) / workers:
        lines.append(filled(LIMIT, n=max(1, int(of_workers(cost) / of_client(cost)))))
    return "\n".join([*lines, filled(UNKNOWN, measured=cost.measured)])


def size(n):
    """Bytes as people say them."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= scale:
            x = n / scale
            return f"{x:,.0f} {unit}" if x >= 1000 else f"{x:.3g} {unit}"
    return f"{n:.0f} bytes"
