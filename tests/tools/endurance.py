"""Random threads, forks, interrupts and half-read generators on the same models, for hours.

    python tests/tools/endurance.py [--minutes N] [--moves N] [--seed N] [--share N] [--workers N]

Every result must have the bytes that one thread gave beforehand. Three workers call random jobs
(jobs.py) all the time; the main thread makes random moves beside them, at most --moves. The seed
decides what each thread does, the system how they meet. Exit code 0 only if every result was the
same, nothing hung for 60 s (else the stacks of all threads are printed) and, in a run of ten
minutes or more, memory did not grow.

BLAS has one thread, and minitx is told that it has two: so its helpers do their chunks, in pieces
that do not depend on who is at work. --share: of one core, that all of it takes; by default as much
as there is. Children are forked between the passes of other threads; a few are forked in the middle
of them, where OpenBLAS may hang (README, Limits): these are counted, and fail only if their numbers
differ. Linux only.

Memory is counted after malloc has given back what is free: it keeps pages between blocks that are
in use (103 to 132 MiB within minutes, 82 to 90 given back, over 60,000 moves in ten minutes), and
how many depends on what met what. It has one arena: by default glibc gives each thread one of its
own, and what is free in one serves no other.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import _thread
import argparse
import ctypes
import faulthandler
import multiprocessing
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from contextlib import ExitStack, redirect_stderr
from functools import partial
from pathlib import Path

import jobs
import numpy as np

import minitx
from minitx.analysis.running import stream
from minitx.machine import threads
from minitx.machine.interrupt import kept

LIMIT = 60  # seconds without progress of a thread
CHILD_LIMIT = 50  # seconds of a child
N_JOBS, N_TOKENS, N_DOCUMENTS = 48, 12, 24
GROWTH = 8  # MiB that memory may grow by, from the second tenth of a run to its last
M_ARENA_MAX = -8  # of mallopt(3)
SETTLED = 10  # minutes: what a shorter run has grown by may be what grows once
HUNG = -signal.SIGALRM  # exit status of a child that took too long
threads.count = lambda: 2
threads.limit = lambda n: None


def main(argv=None):
    new = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    new.add_argument("--minutes", type=float, default=2)
    new.add_argument("--moves", type=int, default=sys.maxsize)
    new.add_argument("--seed", type=int, default=1)
    new.add_argument("--share", type=float, default=os.cpu_count())
    new.add_argument("--workers", type=int, default=3)
    args = new.parse_args(argv)
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork.*")
    with tempfile.TemporaryDirectory() as folder:
        run = Endurance(args, Path(folder))
        run.work()
    print(run.summary())
    return 1 if run.faults else 0


class Endurance:
    """One run: its models and jobs, what they gave in one thread, and what has happened."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.dice = random.Random(args.seed)
        self.models = jobs.load()
        self.jobs = [jobs.draw(self.models, args.seed, i) for i in range(N_JOBS)]
        self.expected, self.seconds = self.in_one_thread()
        self.documents = np.random.default_rng(args.seed).integers(3, 999, (N_DOCUMENTS, 40))
        self.sums = stream.Run().gather(self.measure, self.documents, "patterns")
        self.prompt = self.documents[:1, :5]
        begin, cache = time.monotonic(), minitx.Cache()
        self.stream = [*jobs.streamed(self.models["tiny-gpt2"], self.prompt, cache, N_TOKENS)]
        self.step_seconds = (time.monotonic() - begin) / N_TOKENS
        self.counts, self.faults, self.memory = Counter(), [], []
        self.locks = [threading.Lock() for _ in range(args.workers)]
        self.armed = False
        self.begin = time.monotonic()
        self.end = self.begin + 60 * args.minutes
        self.cpu = sum(os.times()[:4])
        self.progress = {}

    def in_one_thread(self):
        """Results and seconds of all jobs: the same chunks, but nobody helps."""
        helpers, threads._call_helpers = threads._call_helpers, lambda *arguments: None
        results, seconds = [], []
        for job in self.jobs:
            job.call()  # reads what it needs
            begin = time.monotonic()
            results.append(job.call())
            seconds.append(time.monotonic() - begin)
        threads._call_helpers = helpers
        return results, seconds

    def work(self):
        """Start the watch and the workers, and make moves until the time is over."""
        signal.signal(signal.SIGUSR1, self.on_signal)
        watch = threading.Thread(target=self.watch, daemon=True)
        workers = [
            threading.Thread(target=self.worker, args=(i,)) for i in range(self.args.workers)
        ]
        for thread in (threading.current_thread(), *workers):
            self.progress[thread.name] = time.monotonic()
        for thread in (watch, *workers):
            thread.start()
        try:
            for _ in range(self.args.moves):
                (move,) = self.dice.choices([*MOVES], MOVES.values())
                self.noted(partial(move, self))
                self.done(move.__name__)
                if self.is_over():
                    break
        finally:
            self.end = 0.0
            for thread in workers:
                thread.join()
            self.progress.clear()
            watch.join()

    def noted(self, call):
        """call(), whose error is a fault."""
        try:
            call()
        except Exception:
            self.faults.append(traceback.format_exc())

    def is_over(self):
        return bool(self.faults) or time.monotonic() > self.end

    def done(self, what):
        """Count something, and rest if this process took more than its share."""
        self.counts[what] += 1
        self.progress[threading.current_thread().name] = time.monotonic()
        while not self.is_over():
            used = sum(os.times()[:4]) - self.cpu
            if used <= self.args.share * (time.monotonic() - self.begin):
                break
            time.sleep(0.01)
            self.progress[threading.current_thread().name] = time.monotonic()

    def worker(self, number):
        """Job after job; the lock is held during one."""
        dice = random.Random(f"{self.args.seed} {number}")
        while not self.is_over():
            with self.locks[number]:
                self.noted(partial(self.check, dice.randrange(N_JOBS)))
            self.done("jobs of workers")

    def check(self, number):
        self.compare(self.jobs[number].name, self.jobs[number].call(), self.expected[number])

    def compare(self, what, result, expected):
        """Note a fault unless two results have the same bytes."""
        if jobs.digest(result) != jobs.digest(expected):
            distance = jobs.distance(result, expected)
            self.faults.append(f"{what} in {threading.current_thread().name} is off by {distance}")

    def measure(self, index, document):
        """What `gather` sums over documents."""
        trace = minitx.run(self.models["tiny-roberta"], document, ["pattern", "resid_post"])
        return {"pattern": trace.stack("pattern"), "norm": np.abs(trace["resid_post", -1]).sum()}

    # --- moves of the main thread

    def job(self):
        self.check(self.dice.randrange(N_JOBS))

    def interrupted_job(self):
        """A job with an interrupt, and the same again without."""
        number = self.dice.randrange(N_JOBS)
        result = self.interrupted(self.jobs[number].call, self.seconds[number])
        if result is not None:
            self.compare(self.jobs[number].name, result, self.expected[number])
        self.check(number)

    def interrupted_cache(self):
        """Token after token over a cache; each pass is interrupted until it comes through."""
        model, cache, tokens = self.models["tiny-gpt2"], minitx.Cache(), self.prompt
        for i, expected in enumerate(self.stream):

            def step(tokens=tokens):
                return next(jobs.streamed(model, tokens, cache, 1))

            n_before = len(cache)
            y = self.interrupted(step, self.step_seconds)
            if y is None and len(cache) == n_before:
                y = step()
            if y is not None:  # else the interrupt came after the pass
                self.compare(f"token {i} over a cache", y, expected)
            tokens = expected.argmax(axis=-1)[:, None]

    def half_read(self):
        """A generator that is closed after some tokens; another one goes on over its cache."""
        model, cache, n = self.models["tiny-gpt2"], minitx.Cache(), self.dice.randrange(1, N_TOKENS)
        first = jobs.streamed(model, self.prompt, cache, N_TOKENS)
        results = [next(first) for _ in range(n)]
        if self.dice.random() < 0.5:
            first.close()
        del first
        tokens = results[-1].argmax(axis=-1)[:, None]
        results += jobs.streamed(model, tokens, cache, N_TOKENS - n)
        self.compare(f"a generator left after {n} tokens", results, self.stream)

    def half_swept(self):
        """A sweep that ends in the middle: its `progress` raises."""
        model, stop = self.models["tiny-gpt2"], self.dice.randrange(1, 12)

        def progress(done, total):
            if done == stop:
                raise StopIteration

        try:
            minitx.sweep(model, self.prompt, self.prompt, np.max, progress=progress)
            self.faults.append("a sweep did not end")
        except StopIteration:
            self.job()

    def gathered(self):
        """Sums over documents, interrupted and gone on with until they are whole."""
        sums, resume, seconds = None, False, 0.2
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):  # "going on after …"
            while sums is None:
                run = stream.Run(self.folder, "test", "key", resume)
                gather = partial(run.gather, self.measure, self.documents, "patterns")
                sums = self.interrupted(gather, seconds)
                resume, seconds = True, 1.5 * seconds  # a busy machine gets there, too
        run.remove()
        self.compare("a sum over documents", sums, self.sums)

    def loaded(self):
        models = jobs.load()
        number = self.dice.randrange(N_JOBS)
        job = jobs.draw(models, self.args.seed, number)
        self.compare(f"{job.name} of a model loaded again", job.call(), self.expected[number])

    def forked(self):
        """A child of os.fork, while no other thread computes."""
        with ExitStack() as stack:
            for lock in self.locks:
                stack.enter_context(lock)
            child = self.fork()
        if status := waited(child):
            self.faults.append(f"a forked child ended with {status}")

    def forked_in_a_pass(self):
        """A child of os.fork, while other threads compute."""
        status = waited(self.fork())
        if status == HUNG:
            self.counts["of these hung"] += 1
        elif status:
            self.faults.append(f"a child forked in a pass ended with {status}")

    def fork(self):
        """os.fork -> the child's process id; the child does three jobs and ends."""
        numbers = self.dice.sample(range(N_JOBS), 3)
        child = os.fork()
        if child == 0:
            try:
                os._exit(self.in_child(numbers))
            finally:
                os._exit(9)
        return child

    def in_child(self, numbers):
        """Jobs of a child -> 0 if all gave the same, else 1."""
        limit_seconds(CHILD_LIMIT)
        self.faults = []
        for number in numbers:
            self.check(number)
        return 1 if self.faults else 0

    def process(self):
        """A child of multiprocessing, forked while no other thread computes."""
        numbers = self.dice.sample(range(N_JOBS), 3)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=lambda: os._exit(self.in_child(numbers)))
        with ExitStack() as stack:
            for lock in self.locks:
                stack.enter_context(lock)
            child.start()
        self.joined(child)

    def spawned(self):
        """A child of multiprocessing that begins from nothing."""
        numbers = self.dice.sample(range(N_JOBS), 3)
        digests = {i: jobs.digest(self.expected[i]) for i in numbers}
        context = multiprocessing.get_context("spawn")
        child = context.Process(target=spawned_child, args=(self.args.seed, digests))
        child.start()
        self.joined(child)

    def joined(self, child):
        child.join(LIMIT)
        if child.exitcode:
            self.faults.append(f"a child of multiprocessing ended with {child.exitcode}")
        child.close()

    # --- interrupts

    def interrupted(self, call, seconds):
        """call() with an interrupt at a random moment -> its result, None if it was interrupted."""
        here = threading.main_thread().ident
        ways = [
            lambda: _thread.interrupt_main(signal.SIGUSR1),
            lambda: signal.pthread_kill(here, signal.SIGUSR1),
        ]
        timer = threading.Timer(self.dice.uniform(0, 1.5 * seconds), self.dice.choice(ways))
        try:
            self.armed = True
            with kept():
                timer.start()
            try:
                return call()
            finally:
                self.armed = False
        except KeyboardInterrupt:
            self.counts["interrupts"] += 1
            return None
        finally:
            timer.cancel()
            timer.join()
            self.progress[threading.current_thread().name] = time.monotonic()

    def on_signal(self, number, frame):
        """Raise what Ctrl-C raises; too late it does nothing."""
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    # --- watch and summary

    def watch(self):
        """Each second: has every thread made progress? How much memory is in use?"""
        due = 0.0
        while self.progress:
            signal.alarm(2 * LIMIT)  # if even this thread cannot go on
            now = time.monotonic()
            self.memory.append((now - self.begin, resident()))
            if now > due:
                due = now + 60
                size, n = self.memory[-1][1] >> 20, sum(self.counts.values())
                print(f"{(now - self.begin) / 60:6.1f} min: {n:,} done, {size} MiB", flush=True)
            for name, last in [*self.progress.items()]:
                if now - last > LIMIT and name in {x.name for x in threading.enumerate()}:
                    print(f"{name} has hung for {now - last:.0f} s", flush=True)
                    faulthandler.dump_traceback(all_threads=True)
                    os._exit(3)
            time.sleep(min(1, self.args.minutes))

    def summary(self):
        counts = ", ".join(f"{n} {what}" for what, n in sorted(self.counts.items()))
        elapsed, cpu = time.monotonic() - self.begin, sum(os.times()[:4]) - self.cpu
        times = f"{elapsed / 60:.1f} minutes, {cpu / 60:.1f} of the processor"
        memory = self.growth()
        faults = [*self.faults, "failed" if self.faults else "all the same bytes"]
        return "\n".join([counts, times, memory, *faults])

    def growth(self):
        """How memory grew after the first tenth of the run, which is for what grows once."""
        tenth = len(self.memory) // 10
        if not tenth:
            return "memory: too few samples"
        minutes, mib = np.array(self.memory).T / [[60], [1 << 20]]
        slope = 1024 * np.polyfit(minutes[tenth:], mib[tenth:], 1)[0]
        early, late = np.median(mib[tenth : 2 * tenth]), np.median(mib[-tenth:])
        if late - early > GROWTH and minutes[-1] > SETTLED:
            self.faults.append("memory grew")
        return f"memory: {early:.1f} MiB, at the end {late:.1f}; {slope:+.1f} KiB a minute"


MOVES = {  # how often each is made
    Endurance.job: 20,
    Endurance.interrupted_job: 60,
    Endurance.interrupted_cache: 12,
    Endurance.half_read: 12,
    Endurance.half_swept: 6,
    Endurance.gathered: 6,
    Endurance.loaded: 2,
    Endurance.forked: 6,
    Endurance.forked_in_a_pass: 3,
    Endurance.process: 4,
    Endurance.spawned: 1,
}


def resident():
    """Bytes of memory that this process has when malloc has given back what is free."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def limit_seconds(n):
    """After n seconds this process prints its stacks and ends."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(n)


def waited(child):
    """Exit code of a child; -n if signal n ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spawned_child(seed, digests):
    """Jobs in a process of its own; it ends with 1 unless they give the same."""
    limit_seconds(CHILD_LIMIT)
    models = jobs.load()
    for number, digest in digests.items():
        if jobs.digest(jobs.draw(models, seed, number).call()) != digest:
            sys.exit(1)


if __name__ == "__main__":
    faulthandler.enable()
    limit_seconds(10 * LIMIT)  # until the watch begins
    sys.exit(main())
