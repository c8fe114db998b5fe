"""`minitx report`: every experiment on one model, on one page."""

from typing import Annotated

from minitx import weights

from ..contract import options
from ..pages import report
from ..running import budget, executor, many
from . import every_experiment, inputs, output

MINUTES = options.understand(
    "minutes",
    Annotated[float, options.AtLeast(0)],
    budget.USUAL,
    "minutes for which all is planned, with fewer documents and experiments where it needs more "
    "(0: no limit; so by itself for bundled models, and where --workers or a --scheduler measure)",
)


def declare(commands):
    """Its flags."""
    about = "a page with every experiment on one model"
    command = every_experiment.declare(commands, "report", run, about)
    about = f"for every experiment that plots a sentence: {options.ITSELF}"
    command.add_argument("--sentence", help=about)
    about = f"{MINUTES.help} (default {MINUTES.default:g})"
    command.add_argument("--minutes", metavar="N", help=about)


def run(arguments):
    """minitx report MODEL"""
    minutes = _minutes(arguments.minutes, arguments.model)
    out, model = inputs.folder(arguments, "report"), inputs.load(arguments.model)
    options = every_experiment.options(arguments, model)
    with output.progress_beside(arguments.json):
        n = many.n_processes(options)
        status = report.make(model, arguments.model, out, options, arguments.resume, n, minutes)
    if arguments.json:
        print((out / "report.json").read_text(encoding="utf-8"), end="")
    return status


def _minutes(given, name):
    """The limit; by itself a bundled model has none, nor what others than these threads measure."""
    if given is not None:
        return MINUTES.parsed(given)
    is_limited = executor.current() is executor.THREADS and name not in weights.bundled()
    return MINUTES.default if is_limited else 0.0
