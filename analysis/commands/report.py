"""`minitx report`: every experiment on one model, on one page."""

from typing import Annotated

from minitx import weights

from ..contract import options
from ..pages import report
from ..running import budget, executor
from . import every_experiment

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
    return every_experiment.write(arguments, "report", report.make, minutes=minutes)


def _minutes(given, name):
    """The limit; by itself a bundled model has none, nor what others than these threads measure."""
    if given is not None:
        return MINUTES.parsed(given)
    is_limited = executor.current() is executor.THREADS and name not in weights.bundled()
    return MINUTES.default if is_limited else 0.0
