"""Documents on the workers of a Dask cluster: of this machine, or of one that exists.

Batches of documents go out and their results come back in the order of the documents, each added
as one, so that sums are the same bytes as on one thread. A batch takes about a second; what is out
at once is bounded (Dask's `Client.map` sends everything), and results wait on the workers until it
is their turn.

What fails: a worker that dies has its batches done by others (Dask's part). A worker that would
compute otherwise is rejected by name. A batch that fails is done again document by document. A
document that fails on TRIES workers is named, and one under which they die while nothing else is
done. Where nothing at all is finished for PATIENCE seconds, or the scheduler is gone, the run ends
with an error, and `--resume` goes on with it.
"""

import asyncio
import contextlib
import importlib.util
import itertools
import signal
import sys
import time
import warnings
from collections import deque

import numpy as np

from ..contract.registry import NotApplicable
from . import executor, shipping

TRIES = 3  # workers on which a document may fail
PATIENCE = 600.0  # seconds, at least, in which something must be finished
POLL = 1.0  # seconds between two looks at the cluster
LOOK = 10.0  # seconds that the scheduler has for an answer
SCHEMES = "", "tcp", "tls", "ws", "wss"
MOST = 1 << 23  # bytes of documents and results in a batch
LARGEST = 256  # documents in a batch
SHOWN = 60  # characters of a document in an error
TOGETHER = 16  # batches whose results come over at once, if they are finished
EACH = 3  # batches out for each thread of a worker, which so never waits for the next


class Gone(OSError):
    """The cluster is there no longer, or does nothing."""


class Cluster:
    """An executor whose documents are measured by the workers of a Dask client.

    connect() -> the client; it is called when the first documents come.
    """

    def __init__(self, connect):
        self.connect = connect
        self.client = None
        self.sender = shipping.Sender()
        self.refused = set()  # addresses
        self.n_batches = 0  # that went out so far

    def results(self, measure, numbered):
        """measure(index, document) of each, in the order of the documents."""
        if self.client is None:
            self.client = self.connect()
        package = self.sender.pack(measure)
        with warnings.catch_warnings():
            # Dask warns of packages above 10 MB, such as a model changed in memory
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            sent = self.client.submit(_as_it_is, package, pure=False)
        yield from Gathering(self, sent).results(numbered)

    def named(self, index, document):
        """A document's number and the beginning of its text, for an error."""
        text = ""
        with contextlib.suppress(Exception):  # it may have no tokens, the model no tokenizer
            text = self.sender.tokenizer.decode(document)
        text = " ".join(text.split()) or str(document)
        beginning = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
        return f"document {index} ({beginning!r})"


def _as_it_is(package):
    """A task that holds a package: Dask gives it to each worker once, and again if one dies."""
    return package


class Batch:
    """Consecutive documents, and the future of their results."""

    def __init__(self, numbered):
        self.numbered = numbered  # [(index, document), ...]
        self.future = None
        self.outcome = None  # (results, seconds) once they have come over
        self.failed = {}  # worker -> what it said
        self.is_alone = False  # tried while nothing else was done
        self.where = []  # the workers that may have it; []: any


class Pace:
    """What a document takes, from those that were finished: how many make a batch."""

    def __init__(self):
        self.seconds, self.bytes = 0.0, 0
        self.n = 0
        self.longest = 0.0  # seconds of a batch

    def note(self, results, seconds):
        """Count the results of one batch."""
        self.n += len(results)
        self.seconds += seconds
        self.bytes += sum(np.asarray(x).nbytes for result in results for x in result.values())
        self.longest = max(self.longest, seconds)

    def bytes_of(self, batch):
        """Bytes that the results of a batch have, as far as one can know."""
        return self.bytes // max(1, self.n) * len(batch.numbered)

    def size(self, n_threads):
        """How many documents make a batch: half a second of work, more on large clusters.

        So the scheduler has 100 batches a second at most, each of which takes it 2 to 3 ms.
        """
        if not self.n:
            return 1
        target = max(0.5, n_threads / 100)
        by_time = target * self.n / max(self.seconds, 1e-9)
        by_bytes = MOST * self.n / max(self.bytes, 1)
        return int(min(max(1, by_time), max(1, by_bytes), LARGEST))


class Gathering:
    """The documents of one `gather` on their way through a cluster."""

    def __init__(self, cluster, sent):
        self.cluster = cluster
        self.client = cluster.client
        self.sent = sent
        self.pace = Pace()
        self.out = deque()  # of Batches, in the order of their documents
        self.n_threads = 1
        self.addresses = set()  # of the workers
        self.next_look = 0.0
        self.progress = time.monotonic()  # when something was finished last

    def results(self, numbered):
        """The results of all documents, in their order."""
        numbered = iter(numbered)
        while True:
            self.look()
            while len(self.out) < EACH * self.n_threads + 1:
                batch = Batch(_next(numbered, self.pace.size(self.n_threads)))
                if not batch.numbered:
                    break
                self.submit(batch)
                self.out.append(batch)
            if not self.out:
                return
            yield from self.finished(self.out.popleft())

    def finished(self, batch):
        """The results of the batch whose turn it is, whatever has to be done for them."""
        while True:
            try:
                results, seconds = self.wait(batch)
                break
            except shipping.Refused as refused:
                self.refuse(*refused.args)
                for other in (batch, *self.out):
                    if other.future.status == "error":
                        self.submit(other)
            except Gone:
                raise
            except Exception as error:
                if len(batch.numbered) > 1:
                    self.take_apart(batch)
                    return
                self.again(batch, error)
        self.pace.note(results, seconds)
        batch.future = batch.outcome = None  # the worker may forget them
        yield from results

    def take_apart(self, batch):
        """Give out the documents of a batch that failed, or under which workers died, singly."""
        singles = [Batch([pair]) for pair in batch.numbered]
        for single in singles:
            self.submit(single)
        self.out.extendleft(reversed(singles))

    def submit(self, batch):
        """Send a batch to the workers that may have it."""
        batch.where = []
        if self.cluster.refused or batch.failed:
            allowed = self.workers() - self.cluster.refused
            batch.where = sorted(allowed - set(batch.failed) or allowed)
            if not allowed:
                raise self.gone("every worker was rejected")
        batch.outcome = None
        self.cluster.n_batches += 1
        batch.future = self.client.submit(
            shipping.measured, self.sent, batch.numbered, pure=False, workers=batch.where or None
        )

    def settle(self, batch):
        """Wait until a batch is done or has failed; raises Gone."""
        from distributed.client import CancelledError

        while not (batch.outcome or batch.future.done()):
            with contextlib.suppress(TimeoutError, CancelledError):
                batch.future.exception(timeout=POLL)
            self.look()
            if batch.where and self.addresses and not self.addresses.intersection(batch.where):
                self.submit(batch)  # those that were to do it are gone
        self.progress = time.monotonic()

    def wait(self, batch):
        """(results, seconds) of a batch; raises what its worker raised, or Gone."""
        from distributed.client import CancelledError

        self.settle(batch)
        try:
            if batch.outcome is None and batch.future.status == "finished":
                self.fetch(batch)
            return batch.outcome or batch.future.result(timeout=PATIENCE)
        except CancelledError as error:
            raise self.gone("its tasks were cancelled") from error
        except TimeoutError as error:
            raise self.gone(f"no result came within {PATIENCE:.0f} s") from error

    def fetch(self, batch):
        """Bring over the results of a batch and of those behind it that are finished, too."""
        following = itertools.takewhile(lambda other: other.future.status == "finished", self.out)
        n = max(1, min(TOGETHER, 4 * MOST // max(1, self.pace.bytes_of(batch))))
        ready = [batch, *itertools.islice(following, n - 1)]
        futures = [each.future for each in ready]
        outcomes = self.client.sync(self.client._gather, futures, callback_timeout=PATIENCE)
        for each, outcome in zip(ready, outcomes):
            each.outcome = outcome

    def look(self):
        """See which workers there are; raises Gone if the cluster ends, or if nothing goes on."""
        now = time.monotonic()
        if now < self.next_look:
            return
        self.next_look = now + POLL
        if self.client.status != "running":
            raise self.gone("it does not answer")
        self.workers()
        quiet = now - self.progress
        if quiet > max(PATIENCE, 20 * self.pace.longest):
            n = len(self.addresses)
            raise self.gone(f"no task finished for {quiet:.0f} s on its {n} workers")

    def workers(self):
        """Addresses of the workers that there are; as before, where the scheduler is busy."""
        with contextlib.suppress(TimeoutError, OSError):
            by_worker = self.client.nthreads(callback_timeout=LOOK)
            self.addresses = set(by_worker)
            self.n_threads = max(1, sum(by_worker.values()))
        return self.addresses

    def gone(self, why):
        """The error that the cluster is of no more use."""
        address = getattr(self.client.scheduler, "address", "?")
        return Gone(
            f"the cluster at {address}: {why}; repeat the command with --resume to continue"
        )

    def refuse(self, address, reason):
        """Use a worker no longer, and say so once."""
        if address not in self.cluster.refused:
            self.cluster.refused.add(address)
            print(f"minitx: worker {address} is refused: {reason}", file=sys.stderr)

    def again(self, batch, error):
        """Give a document to another worker; raises ValueError where it has failed too often."""
        [(index, document)] = batch.numbered
        is_deadly = type(error).__name__ == "KilledWorker"  # Dask has tried four by then
        if is_deadly and not batch.is_alone:
            self.alone(batch)
            return
        kind = ""
        if isinstance(error, shipping.Unmeasured):
            _, address, said, kind = error.args
        else:
            address, said = f"try {len(batch.failed) + 1}", shipping.said(error)
        batch.failed[address] = said
        others = self.workers() - self.cluster.refused - set(batch.failed)
        if len(batch.failed) >= TRIES or not others or is_deadly:
            failure = NotApplicable if kind else ValueError
            raise failure(f"{self.cluster.named(index, document)}: {said}") from None
        self.submit(batch)

    def alone(self, batch):
        """Try a document while nothing else is done: another one may have killed its workers."""
        for other in self.out:
            self.settle(other)
        batch.is_alone = True
        self.submit(batch)


def _next(numbered, n):
    """The next documents, n or fewer, and no more than a batch may have bytes."""
    taken, size = [], 0
    for index, document in numbered:
        taken.append((index, document))
        size += getattr(document, "nbytes", 0)
        if len(taken) == n or size > MOST:
            break
    return taken


# --- where a cluster comes from


@contextlib.contextmanager
def workers_for(n_workers=0, scheduler=""):
    """Inside `with`, documents go to n processes of this machine, or to a cluster by its address.

    Neither: nothing changes. Raises ValueError if Dask is not installed, OSError if there is no
    scheduler.
    """
    if not n_workers and not scheduler:
        yield
        return
    check(n_workers, scheduler)
    with contextlib.ExitStack() as stack:
        if scheduler:
            client = _connected(scheduler, stack)
            cluster = Cluster(lambda: client)
        else:
            cluster = Cluster(lambda: _started(n_workers, stack))
        stack.enter_context(executor.use(cluster))
        yield


def of_client(client):
    """Inside `with`, documents go to the workers of a Dask client; None: nothing changes."""
    if client is None:
        return contextlib.nullcontext()
    return executor.use(Cluster(lambda: client))


def check(n_workers, scheduler):
    """Raise ValueError unless one of both is given, and Dask is installed."""
    if n_workers and scheduler:
        raise ValueError(
            f"--workers {n_workers} starts processes here, --scheduler {scheduler} names a cluster "
            "that exists; wanted one of them"
        )
    if n_workers < 0:
        raise ValueError(f"--workers is {n_workers}; wanted 1 or more")
    flag = "--scheduler" if scheduler else "--workers"
    for package in ("distributed", "cryptography"):
        if importlib.util.find_spec(package) is None:
            raise ValueError(f"{flag} needs {package}: pip install 'minitx[dask]'")


def _connected(address, stack):
    """A client of the scheduler at this address; Dask's log says nothing meanwhile."""
    from distributed import Client
    from distributed.utils import silence_logging_cmgr

    _check_address(address)
    stack.enter_context(silence_logging_cmgr("CRITICAL"))
    try:
        asyncio.run(_answers(address))
        client = Client(address, timeout=LOOK, set_as_default=False)
    except Exception as error:  # Dask reads what any peer sends: a number too large, no scheme
        why = " ".join(str(error).split()) or f"it said nothing in {LOOK:.0f} s"
        raise Gone(f"there is no scheduler at {address!r:.80}: {why:.200}") from None
    return stack.enter_context(client)


def _check_address(address):
    """Raise ValueError for what is no address of a scheduler."""
    scheme, _, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    if scheme not in SCHEMES or not host.strip() or not port.isdecimal():
        raise ValueError(
            f"--scheduler is {address!r:.80}; wanted HOST:PORT, or this behind one of "
            f"{', '.join(f'{name}://' for name in SCHEMES if name)}"
        )


async def _answers(address):
    """Connect and greet; `Client` would wait without an end where nobody greets back."""
    from distributed.comm import connect
    from distributed.security import Security

    options = Security().get_connection_args("client")
    comm = await asyncio.wait_for(connect(address, timeout=LOOK, **options), LOOK)
    comm.abort()


def _started(n_workers, stack):
    """A client of n processes on this machine, which end with it.

    They listen on this machine alone, with keys that are made for this run, and without Dask's
    pages: other people on the machine could otherwise send programs to them. No limit of memory is
    set, since mapped weights, which all share, would be counted for each.
    """
    import dask
    from distributed import Client, LocalCluster

    quiet = {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
    quiet |= {"distributed.worker.profile.enabled": False}  # it took 4% of a worker's time
    # Dask keeps the last 1000 messages to each worker, with the documents in them
    quiet |= {"distributed.admin.low-level-log-length": 10}
    stack.enter_context(dask.config.set(quiet))
    settings = {
        "n_workers": n_workers,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": None,
        "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},  # any free port
        "memory_limit": 0,
        "security": True,
        "silence_logs": "CRITICAL",
    }
    processes = stack.enter_context(LocalCluster(**settings))
    client = stack.enter_context(Client(processes, set_as_default=False))
    client.register_plugin(_no_interrupts(), "no-interrupts")
    return client


def _no_interrupts():
    """A plugin by which a worker leaves Ctrl-C to its client, which ends it."""
    from distributed import WorkerPlugin

    class Plugin(WorkerPlugin):
        def setup(self, worker):
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Plugin()
