"""`minitx run`: one experiment on one model."""

import time

from ..runner import registry, results
from . import flags, inputs, shown


def declare(commands):
    """`run`, with a command for each experiment."""
    top = commands.add_parser("run", help="one experiment on one model: figure, numbers, settings")
    names = top.add_subparsers(required=True, metavar="EXPERIMENT")
    for experiment in registry.EXPERIMENTS.values():
        command = flags.command(names, experiment.name, run, experiment.question, "MODEL")
        of_run(command, experiment)


def of_run(command, experiment):
    """What a command that runs one experiment takes beside the model."""
    command.set_defaults(experiment=experiment)
    of_further_models(command, experiment)
    flags.of_experiment(command, experiment)
    flags.of_results(command, f"out/MODEL-{experiment.name}")
    flags.of_workers(command)
    flags.of_figure(command)
    flags.in_json(command)


def of_further_models(command, experiment):
    """Models after the first, in place of --others, where an experiment takes several."""
    if any(option.name == "others" for option in experiment.options):
        about = "more of them, beside the first; the same as --others, joined by commas"
        command.add_argument("further", nargs="*", metavar="MODEL", help=about)


def check(argv):
    """Raise ValueError if the first argument of `run` is neither a flag nor an experiment."""
    if not argv or argv[0].startswith("-"):
        return
    later = [name for name in argv[1:] if name in registry.EXPERIMENTS]
    if argv[0] not in registry.EXPERIMENTS and later:
        raise ValueError(
            f"{later[0]} is an experiment and comes before the model: "
            f"minitx run {later[0]} {argv[0]}"
        )
    registry.get(argv[0])


def run(arguments):
    """minitx run EXPERIMENT MODEL"""
    start = time.monotonic()
    experiment = arguments.experiment
    options = flags.options_of(experiment, arguments)
    out = inputs.folder(arguments, experiment.name)
    model, name = inputs.load(arguments.model), arguments.model
    how = {"resume": arguments.resume, "format": arguments.format}
    outcome = results.produce(experiment, model, name, options, out, **how)
    if arguments.json:
        print((out / f"{experiment.name}.json").read_text(encoding="utf-8"), end="")
        return
    if outcome.answer:
        print(f"{experiment.question} {results.sentence(outcome.answer)}\n")
    if outcome.says:
        print(f"{outcome.says}\n")
    for number in outcome.headline.values():
        print(shown.headline(number))
    written = f"{out / experiment.name}.{arguments.format} .npz .json written"
    print(f"{written} in {time.monotonic() - start:.1f} s")
