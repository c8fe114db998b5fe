"""The commands of `minitx`, one a file: its flags, `declare`, beside its handler, `run`."""

import contextlib
import os
import sys
import warnings

import minitx
from minitx.machine import interrupt
from minitx.words.text import told_once

from .. import experiments  # noqa: F401  (fills the registry)
from ..machine import escapes, files, language
from ..running import cluster
from . import (
    atlas,
    collect,
    compare,
    completion,
    component,
    decode,
    doctor,
    examples,
    explore,
    fetch,
    forming,
    inputs,
    lesson,
    listing,
    paper,
    parsers,
    plan,
    probe,
    published,
    record,
    report,
    run,
    scan,
    serve,
    steer,
    toy,
    trace,
    train,
    tune,
    verify,
)

ABOUT = "See inside transformers with NumPy alone."
FIRST = (
    "`minitx COMMAND --help` explains a command. A good start: `minitx explore tiny-stories 'The "
    "dog ran after the'`. To switch a head off: `minitx serve MODEL`, or in Python "
    "`minitx.run(model, text, edits=...)`."
)
COMMANDS = (  # in the order of `minitx --help`
    listing,
    run,
    scan,
    component,
    plan,
    report,
    paper,
    published,
    trace,
    explore,
    atlas,
    decode,
    steer,
    probe,
    collect,
    examples,
    serve,
    compare,
    record,
    verify,
    fetch,
    tune,
    train,
    forming,
    toy,
    lesson,
    doctor,
)


def run_command(argv):
    """Run one command and return its exit status: 0, or 2 for an error that the user can mend.

    Such an error is one line on stderr. An interruption is one, too, and its status is 130.
    """
    out = sys.stdout if "--json" in argv else escapes.for_people(sys.stdout)
    errors = escapes.for_people(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            return status_of(argv)


def show_warning(message, *_, **__):
    """A warning in one line on stderr, without the line of code that it comes from."""
    print(f"minitx: {message}", file=sys.stderr)


def status_of(argv):
    """The same, on streams that show control characters as escapes, with warnings in one line."""
    arguments = None
    try:
        interrupt.raise_again()
        if argv[:1] == ["run"]:
            run.check(argv[1:])  # argparse would list the names, but not the near ones
        with parsers.in_language(parsers.language_of(argv)):
            arguments = parser(argv).parse_args(argv)
            inputs.check_outputs(vars(arguments))
            with told_once(), workers_of(arguments):
                return arguments.handler(arguments) or 0
    except BrokenPipeError:  # the reader has stopped, as `head` does after ten lines
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:  # Ctrl-C
        print(f"minitx: {interruption(arguments)}", file=sys.stderr)
        return 130
    except (ValueError, OSError, MemoryError) as error:
        print(f"minitx: {plain(error)}", file=sys.stderr)
        return 2
    finally:
        files.remove_empty()  # of a run that was refused


def workers_of(arguments):
    """What measures documents, for a command that reads many: see running/cluster.py."""
    if not hasattr(arguments, "workers"):
        return contextlib.nullcontext()
    return cluster.workers_for(arguments.workers, arguments.scheduler)


def interruption(arguments):
    """What an interrupted command says: how to go on with it, if it can."""
    can_resume = hasattr(arguments, "resume")
    return "interrupted" + ("; repeat the command with --resume to continue" if can_resume else "")


def plain(error):
    """An error's text, without the operating system's number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {str(error.filename)!r}" if error.filename else error.strerror
    return "out of memory. " * isinstance(error, MemoryError) + str(error)


def parser(argv=()):
    """The parser of all commands; where arguments are given, it may have the flags of theirs alone.

    The experiments that `run` takes, and the flags of `run` and `compare`, come from the registry.
    """
    about, first = map(language.translated, (ABOUT, FIRST))
    top = parsers.Parser("minitx", description=about, epilog=first)
    parsers.of_language(top)
    version, about = f"minitx {minitx.__version__}", "show program's version number and exit"
    top.add_argument("--version", action="version", version=version, help=about)
    completion.declare(top, parser)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.declare(commands)
    for module in (compare, run, plan):
        module.of_the_experiment(commands, argv)
    run.declare_several(commands, argv)
    return top
