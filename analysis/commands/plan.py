"""`minitx plan`: estimate the time and memory of a long run."""

from ..contract import registry
from ..machine.files import as_json
from ..machine.language import translated
from ..running import blas, cost
from . import collect, flags, inputs


def declare(commands):
    """`plan`, with a command for each experiment that reads documents, and for `collect`."""
    about = "estimate a long run's time, memory and data transfer from a few documents"
    about = translated(about)
    plan = commands.add_parser("plan", help=about, description=about)
    names = plan.add_subparsers(required=True, metavar="EXPERIMENT")
    plan.set_defaults(names=names)
    for experiment in registry.EXPERIMENTS.values():
        if any(option.name == "documents" for option in experiment.options):
            flags.command(names, experiment.name, run, experiment.question, "MODEL")
    collect.declare_plan(names)


def of_the_experiment(commands, argv):
    """The flags of the experiment that these arguments name, without arguments of all."""
    for name, command in commands.choices["plan"].get_default("names").choices.items():
        if name in registry.EXPERIMENTS and (name in argv or not argv):
            command.set_defaults(experiment=registry.get(name))
            flags.of_experiment(command, registry.get(name))
            about = "workers that measure documents side by side (1)"
            command.add_argument("--n-workers", "--workers", type=int, default=1, help=about)
            flags.in_json(command)


def run(arguments):
    """minitx plan EXPERIMENT MODEL"""
    experiment, n_workers = arguments.experiment, arguments.n_workers
    if n_workers < 1:
        raise ValueError(f"--workers is {n_workers}; wanted 1 or more")
    documents = whole_number("documents", arguments.documents)
    arguments.documents = None
    options = flags.options_of(experiment, arguments)
    with blas.one_thread_of_blas():
        expected = cost.plan(experiment, inputs.load(arguments.model), options, documents)
    if arguments.json:
        seconds = cost.seconds_with(expected, n_workers)
        print(as_json(expected._asdict() | {"workers": n_workers, "all": seconds}))
    else:
        print(cost.says(expected, n_workers))


def whole_number(name, given):
    """A number of 1 or more as people write large ones: 1e6."""
    try:
        value = float(given or "nan")
    except ValueError:
        value = 0.0
    if not (1 <= value < 1e18 and value == int(value)):
        raise ValueError(f"--{name} is {given!r}; wanted a whole number such as 1000000 or 1e6")
    return int(value)
