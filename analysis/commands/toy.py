"""`minitx toy`: a recurrent toy copies sequences with and without attention."""

from pathlib import Path

from ..machine.files import writable
from ..machine.language import filled
from ..toys import recurrent
from . import flags, output
from .run import show


def declare(commands):
    """Its flags; it takes no model."""
    about = "a small recurrent model on the copy task, with and without attention"
    command = flags.command(commands, "toy", run, about)
    flags.of_experiment(command, recurrent.EXPERIMENT)
    about = filled("folder for the results ({default})", default="out/toy")
    command.add_argument("--out", help=about)
    flags.of_figure(command)
    flags.in_json(command)


def run(arguments):
    """minitx toy"""
    experiment = recurrent.EXPERIMENT
    options = flags.own_options(experiment, arguments)
    out = writable(arguments.out or Path("out") / "toy")
    result = recurrent.run(**options)
    result.save(out, arguments.format)
    if arguments.json:
        print((out / f"{experiment.name}.json").read_text(encoding="utf-8"), end="")
        return
    show(experiment, result)
    print(output.written(f"{out / experiment.name}.{arguments.format} .npz .json"))
