"""`minitx report`: every experiment on one model, on one page."""

from ..contract import options
from ..pages import report
from ..running import many
from . import every_experiment, inputs, output


def declare(commands):
    """Its flags."""
    about = "a page with every experiment on one model"
    command = every_experiment.declare(commands, "report", run, about)
    about = f"for every experiment that plots a sentence: {options.ITSELF}"
    command.add_argument("--sentence", help=about)


def run(arguments):
    """minitx report MODEL"""
    out, model = inputs.folder(arguments, "report"), inputs.load(arguments.model)
    options = every_experiment.options(arguments, model)
    with output.progress_beside(arguments.json):
        n = many.n_processes(options)
        status = report.make(model, arguments.model, out, options, arguments.resume, n)
    if arguments.json:
        print((out / "report.json").read_text(encoding="utf-8"), end="")
    return status
