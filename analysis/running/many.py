"""Many experiments on one model: together where they share passes, side by side in processes.

Drawing a figure, and much else between two products, is Python, which a process does on one core
alone. So where nothing else measures the documents, every core has a process of its own, which
loads the model from its folder and maps its weights: all share them. Results are the same bytes, as
sums do not depend on how many documents are at work. An interrupt ends the processes, and they end
with this one, however it ends.
"""

import contextlib
import functools
import inspect
import itertools
import math
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import connection, resource_tracker
from typing import NamedTuple

from minitx import memory
from minitx.machine import threads

from ..contract import registry, sides
from ..machine import escapes, progress
from ..machine.language import filled
from ..texts import formats
from . import blas, budget, executor, shipping, single, stream
from . import together as meeting
from .single import Failure, NoTime

MOST = 8  # processes
QUICK, READING, SHARING = range(3)  # ranks of jobs
COUNTED = {"documents", "n_pairs"}  # options of what takes seconds: how much is read
EARLY = 2  # quick jobs of each process before long ones
SHOWN = 5  # seconds after which the time that is left is shown again


class Job(NamedTuple):
    """One experiment of many, as a process is told of it."""

    experiment: str
    run: Callable  # its function: what receives it has imported, so registered, the experiment
    model: str  # name or folder
    options: dict
    note: str  # how the options differ from those given for all
    out: os.PathLike
    resume: bool
    format: str = "svg"  # of the figure's file
    reads_many: bool = True  # documents, pictures or pairs


class Done(NamedTuple):
    """What came of a job."""

    outcome: single.Outcome | Failure
    seconds: float


def every(experiments, model, name, options, out, resume=False, n_processes=1, plan=None):
    """Produce each of these experiments, yield (experiment, Outcome or Failure, seconds).

    They come as they are finished: first those that read no documents or pairs. Prints a line on
    stdout for each. options: each experiment gets those that it has, and at least as many documents
    as it needs. n_processes: as many are at work at once; with more than one the model is what the
    name says. plan: a budget.Plan, which leaves some out.
    """
    jobs = []
    for experiment in experiments:
        given = plan.options(experiment) | options if plan else options
        own, note = _options_of(experiment, given, model)
        fields = experiment.name, function_of(experiment), name, own, note, out, resume
        jobs.append(Job(*fields, reads_many=reads_many(experiment, model)))
    jobs.sort(key=_rank)
    late = [job for job in jobs if plan and job.experiment in plan.left_out]
    waiting = [job for job in jobs if job not in late]
    took, start = {}, time.monotonic()
    groups = _groups(waiting, n_processes, plan)
    more = _while_time_is_left(plan, late, waiting, took, start)
    groups = itertools.chain(groups, more)
    if n_processes == 1:
        done = _one_by_one(groups, model)
    else:
        done = _side_by_side(groups, n_processes, is_planned=plan is not None)
    with contextlib.closing(done):
        _show(waiting, plan, took, start)
        for finished in done:
            took |= {name: own.seconds for name, own in finished.items()}
            progress.show("")
            for job in [job for job in waiting if job.experiment in finished]:
                waiting.remove(job)
                yield _said(job, finished[job.experiment])
            _show(waiting, plan, took, start)
    reason = "does not fit into {minutes:g} minutes beside the others"
    for job in late:
        failure = NoTime(filled(reason, minutes=plan.minutes), left_out=True)
        yield _said(job, Done(failure, 0.0))


def _while_time_is_left(plan, late, waiting, took, start):
    """[job] of those that a plan leaves out, when it is asked for and the job still fits.

    What says most is first. The job goes from `late` to `waiting`.
    """
    by_name = {job.experiment: job for job in late}
    names = plan.left_out if plan else ()
    for name in reversed(names):
        if name in by_name and budget.fits(plan, name, took, time.monotonic() - start):
            late.remove(by_name[name])
            waiting.append(by_name[name])
            yield [by_name[name]]


def _said(job, done):
    """(experiment, outcome, seconds) of a job, and a line of it on stdout."""
    outcome, seconds = done
    print(f"{job.experiment:18} {seconds:6.1f} s{_state(outcome, job.note)}", flush=True)
    return registry.get(job.experiment), outcome, seconds


def _show(waiting, plan, took, start):
    """The first experiment that is not done yet and, by a plan, the time that is left."""
    if not waiting:
        return
    names, passed = [job.experiment for job in waiting], time.monotonic() - start
    left = budget.time_left(plan, names, took, passed) if plan else 0.0
    text = filled(", about {time} left", time=progress.duration(left)) if left else ""
    progress.show(f"{names[0]} …{text}")


def function_of(experiment):
    """The function that its file has, which a process can be told of."""
    return inspect.unwrap(experiment.run)


def _rank(job):
    """Where a job stands: what reads no documents or pairs first, what shares passes last."""
    if budget.shares_passes(job.experiment):
        return SHARING
    return READING if job.reads_many else QUICK


def reads_many(experiment, model):
    """Whether an experiment reads documents, pictures or pairs of a model; not if it refuses it."""
    try:
        return bool(registry.of_model(experiment, model).option_names & COUNTED)
    except registry.NotApplicable:
        return False


def _groups(jobs, n_processes, plan=None):
    """Jobs that run together, because they share passes, and each other by itself: [[Job]].

    As many groups share as half of the processes, once each has done EARLY quick jobs; the other
    half does the rest, of what reads documents the longest first, so that none is left alone at the
    end. A single process does them last.
    """
    n = max(1, n_processes // 2)
    ranks = [_rank(job) for job in jobs]
    n_alone = len(jobs) - ranks.count(SHARING)
    sharing = jobs[n_alone:]
    together = [sharing[i::n] for i in range(n)]
    n_quick = ranks.count(QUICK)
    reading = jobs[n_quick:n_alone]
    if n_processes > 1:
        names = [job.experiment for job in reading]
        expected = plan.expected if plan else {}
        length = {name: expected.get(name, budget.passes(name)) for name in names}
        reading.sort(key=lambda job: -length[job.experiment])
    groups = [[job] for job in (*jobs[:n_quick], *reading)]
    early = min(EARLY * n_processes, n_quick)
    place = n_alone if n_processes == 1 else early
    groups[place:place] = filter(None, together)
    return groups


def n_processes(options):
    """How many experiments can be side by side: 1 where others measure, or a text is piped in.

    options: those given for all.
    """
    elsewhere = executor.current() is not executor.THREADS
    if (
        elsewhere
        or formats.of(options.get("text", "")).name == "-"
        or not hasattr(signal, "pthread_sigmask")
    ):
        return 1
    return min(os.cpu_count() or 1, MOST)


def _state(outcome, note):
    """What the line of an experiment says behind its seconds."""
    if isinstance(outcome, Failure):
        state = "left out: {reason}" if outcome.left_out else "failed: {reason}"
        return "  " + filled(state, reason=outcome.reason)
    return f"  {note}" if note else ""


def _options_of(experiment, options, model):
    """Those of the options that an experiment has, and a note where it takes more documents."""
    with contextlib.suppress(registry.NotApplicable):  # which a run says by itself
        experiment = registry.of_model(experiment, model)
    names = {sides.OPTION.name, *experiment.option_names}
    own = {name: value for name, value in options.items() if name in names}
    n, least = own.get("documents", 0), experiment.least_documents
    is_enough = not 0 < n < least  # 0: all that there are
    if is_enough or model.missing:  # weights alone are looked at
        return own, ""
    note = "takes {least} documents, the fewest that it can use; {n} given for all"
    return own | {"documents": least}, filled(note, least=least, n=n)


# --- one of them


def _produced(job, model):
    begin = time.monotonic()
    experiment = registry.get(job.experiment)
    given = job.model, job.options, job.out, job.resume, job.format
    try:
        outcome = single.produce(experiment, model, *given)._replace(note=job.note)
    except Exception as error:  # the other experiments must not be lost with it
        outcome = _failure(error, job.note)
    return Done(outcome, time.monotonic() - begin)


def _failure(error, note=""):
    """What an experiment raised, as a Failure; note: how its options differ from those given.

    Where the model, the text or this machine lacks something, nothing went wrong.
    """
    if isinstance(error, registry.LACKING):
        return Failure(str(error), left_out=True)
    reason = shipping.said(error)
    return Failure(f"{reason} ({note})" if note else reason, left_out=False)


def together(jobs, model):
    """{experiment: Done} of jobs that share their passes over documents.

    Seconds are those of an experiment's own, and its part of the passes that it shared.
    """
    if len(jobs) == 1:
        return {job.experiment: _produced(job, model) for job in jobs}
    members = meeting.run([partial(_produced, job, model) for job in jobs], stream.gathered)
    done = {}
    for job, member in zip(jobs, members):
        if member.error is not None:
            raise member.error
        done[job.experiment] = Done(member.result.outcome, member.seconds)
    return done


def _one_by_one(groups, model):
    """{experiment: Done} of each group, when it is asked for."""
    for jobs in groups:
        yield together(jobs, model)


# --- processes


def _side_by_side(groups, n, is_planned=False):
    """{experiment: Done} of each group, as soon as it is done, from n processes.

    is_planned: a plan says how long all takes, so that no process does. Each has a pipe of its own:
    one that ends while it writes is the end of that pipe alone.
    Raises OSError if one of them is killed.
    """
    n_threads = max(1, threads.count() // n)  # of a product: all cores are taken already
    processes = {}  # pipe -> its process
    groups = iter(groups)
    try:
        with _without_interrupts():
            for jobs in itertools.islice(groups, n):
                pipe, process = _start(n_threads, is_planned)
                processes[pipe] = process
                pipe.send(jobs)
        yield from _from_each(list(processes), groups)
    except (EOFError, ConnectionError):
        raise OSError(
            "a process ended before its experiment; repeat the command with --resume to continue"
        ) from None
    finally:
        for pipe, process in processes.items():
            pipe.close()
            process.join()


def _start(n_threads, is_planned):
    """A process that runs what comes through a pipe: (this side of the pipe, process)."""
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads hold
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, n_threads, is_planned, _in_process))
    process.start()
    theirs.close()
    return ours, process


def _from_each(pipes, groups):
    """{experiment: Done} of each group: a process gets its next one when it has done one.

    {} where none is done for SHOWN seconds.
    """
    while pipes:
        ready = connection.wait(pipes, SHOWN)
        if not ready:
            yield {}
        for pipe in ready:
            done = pipe.recv()
            if jobs := next(groups, None):
                pipe.send(jobs)
            else:
                pipes.remove(pipe)
            if isinstance(done, Exception):
                raise done
            yield done


@contextlib.contextmanager
def _without_interrupts():
    """Processes that start here never get Ctrl-C, which this one gets afterwards."""
    resource_tracker.ensure_running()  # which else is started with them, and lets Ctrl-C through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- inside a process


def _work(pipe, n_threads, is_planned, run):
    """Run each group that comes through a pipe, with a part of the cores, no lines of progress."""
    memory.share_freed_memory()
    blas.limit(n_threads)
    sys.stderr = _Messages(sys.stderr)
    if is_planned:
        progress.LONG = math.inf
    groups = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, groups), daemon=True).start()
    while True:
        try:
            done = run(groups.get())
        except Exception as error:  # such as a model that cannot be loaded
            done = error
        pipe.send(done)


def _receive(pipe, groups):
    """Take groups from a pipe; end this process with its other side, which its parent alone has."""
    try:
        while True:
            groups.put(pipe.recv())
    finally:
        os._exit(1)


class _Messages(escapes.Terminal):
    """A stream on which nothing is written twice in one place: many processes share it."""

    def isatty(self):
        return False


def _in_process(jobs):
    """{experiment: Done} of a group, on one core."""
    with executor.use(executor.Threads(1)), blas.one_thread_of_blas():
        done = together(jobs, _model(jobs[0].model))
    memory.give_back()
    return done


@functools.lru_cache(1)
def _model(name):
    """The model of all jobs, loaded and checked once in each process."""
    return single.loaded(name)[0]
