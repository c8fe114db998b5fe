"""`minitx toy`: a recurrent toy copies sequences, with a fixed context vector or attention."""

from pathlib import Path

from ..runner import results
from ..toys import recurrent
from . import flags, shown


def declare(commands):
    """Its flags; it takes no model."""
    about = "a fixed context vector, or attention: a recurrent toy copies sequences"
    command = flags.command(commands, "toy", run, about)
    flags.of_experiment(command, recurrent.EXPERIMENT)
    command.add_argument("--out", help="folder for the results (out/toy)")
    flags.of_figure(command)
    flags.in_json(command)


def run(arguments):
    """minitx toy"""
    experiment = recurrent.EXPERIMENT
    options = flags.own_options(experiment, arguments)
    out = results.writable(arguments.out or Path("out") / "toy")
    result = recurrent.run(**options)
    result.save(out, arguments.format)
    if arguments.json:
        print((out / f"{experiment.name}.json").read_text(encoding="utf-8"), end="")
        return
    print(f"{experiment.question} {results.sentence(result.answer)}\n\n{result.says}\n")
    for number in result.headline.values():
        print(shown.headline(number))
    print(f"{out / experiment.name}.{arguments.format} .npz .json written")
