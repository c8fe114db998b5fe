"""`minitx collect`: a corpus's activations in a folder of files that NumPy maps into memory."""

import time

import numpy as np

import minitx
from minitx.research.passes import reader
from minitx.research.shards import points_of

from ..machine import progress
from ..machine.language import filled
from . import documents, flags, inputs


def declare(commands):
    """Its flags."""
    about = "write a corpus's activations to disk; an interrupted run goes on where it was"
    of_documents(flags.command(commands, "collect", run, about, "MODEL"))


def declare_plan(names):
    """`minitx plan collect`, with the same flags."""
    about = "disk and time of minitx collect"
    of_documents(flags.command(names, "collect", plan, about, "MODEL"))


def of_documents(command):
    """What is read, and what is kept of it."""
    about = "points, joined by commas: resid_post,z.L3 (resid_post)"
    command.add_argument("--keep", default="resid_post", metavar="POINTS", help=about)
    documents.declare(command)
    about = "folder for the arrays (out/MODEL-collect)"
    command.add_argument("--out", help=about)
    about = "documents that are read side by side (1)"
    command.add_argument(
        "--workers", dest="n_workers", type=int, default=1, metavar="N", help=about
    )


PLANNED = (
    "{n} documents, {tokens:,} tokens: {size:,.1f} MB in {folder}, about {seconds:,.0f} s with one "
    "worker"
)
WRITTEN = "{n} documents, {tokens:,} tokens in {seconds:.1f} s; minitx.open_collection({folder!r})"


def run(arguments):
    """minitx collect MODEL"""
    begin = time.monotonic()
    model, keep, rows, n = planned(arguments)
    minitx.collect(model, shown(rows), keep, n["folder"], workers=arguments.n_workers)
    print(filled(WRITTEN, seconds=time.monotonic() - begin, **n))


def plan(arguments):
    """minitx plan collect MODEL"""
    planned(arguments)


def planned(arguments):
    """Print what it takes: (model, points, rows, what is told of them)."""
    model = reader(inputs.load(arguments.model))
    keep = points_of(model, [flags.point_of(name) for name in arguments.keep.split(",")])
    rows = documents.of(arguments, model)
    folder = str(inputs.folder(arguments, "collect"))
    n_tokens = sum(len(row) for row in rows)
    size = n_tokens * minitx.cost(model, np.zeros(1, int), keep) / 1e6
    n = {"n": len(rows), "tokens": n_tokens, "folder": folder}
    seconds = n_tokens * of_a_token(model, next(iter(rows)), keep)
    print(filled(PLANNED, size=size, seconds=seconds, **n))
    return model, keep, rows, n


def of_a_token(model, row, keep):
    """Seconds that a pass takes for each of its tokens, the second time."""
    minitx.run(model, row, keep)
    begin = time.monotonic()
    minitx.run(model, row, keep)
    return (time.monotonic() - begin) / len(row)


def shown(rows):
    """The rows, with a line that says how far they are."""
    with progress.Line("documents", len(rows)) as line:
        for done, row in enumerate(rows):
            line.update(done)
            yield row
