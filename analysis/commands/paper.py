"""`minitx paper`: the nine figures of Yamamoto and Matsuzaki (2023) of one model, on one page."""

from ..pages import paper
from ..running import many
from . import every_experiment, inputs, output


def declare(commands):
    """Its flags."""
    about = "a page with the nine figures of Yamamoto and Matsuzaki, and their values beside these"
    every_experiment.declare(commands, "paper", run, about)


def run(arguments):
    """minitx paper MODEL"""
    out, model = inputs.folder(arguments, "paper"), inputs.load(arguments.model)
    options = every_experiment.options(arguments, model)
    with output.progress_beside(arguments.json):
        n = many.n_processes(options)
        status = paper.make(model, arguments.model, out, options, arguments.resume, n)
    if arguments.json:
        print((out / "paper.json").read_text(encoding="utf-8"), end="")
    return status
