"""`minitx compare`: one experiment on two models, head by head."""

from pathlib import Path

from ..contract import registry
from ..machine.language import filled
from ..pages import compare
from . import flags, inputs, output, parsers


def declare(commands):
    """Its flags."""
    about = "one experiment on two models, head by head"
    command = flags.command(commands, "compare", run, about, "A", "B")
    names = ", ".join(compare.comparable())
    about = filled("one of {names}; its flags, as in `minitx run`, may follow", names=names)
    command.add_argument("--experiment", required=True, metavar="NAME", help=about)
    about = "only these, joined by commas (all that have a number for each head; the first "
    about += f"{compare.DRAWN} are drawn)"
    command.add_argument("--of", default="", metavar="MEASURES", help=about)
    flags.of_results(command, "out/A-B-NAME")
    flags.of_workers(command)
    flags.of_figure(command)


def of_the_experiment(commands, argv):
    """The flags of the experiment that these arguments name."""
    if argv[:1] != ["compare"]:
        return
    first = parsers.Parser(add_help=False)
    first.add_argument("--experiment", nargs="?")
    name = first.parse_known_args(argv)[0].experiment
    if name:
        flags.of_experiment(commands.choices["compare"], registry.get(name))


def run(arguments):
    """minitx compare A B --experiment NAME"""
    names = arguments.a, arguments.b
    experiment = registry.get(arguments.experiment)
    compare.check(experiment)
    defaults = {option.name: option.default for option in experiment.options}
    options = defaults | flags.options_of(experiment, arguments)  # the same text for both
    stem = "-".join(inputs.place(name).replace("/", "-") for name in names)
    out = Path(arguments.out or Path("out") / f"{stem}-{experiment.name}")
    models = [inputs.load(name) for name in names]
    how = {"only": arguments.of, "resume": arguments.resume, "format": arguments.format}
    table = compare.make(experiment, models, names, options, out, **how)
    print(table.partition("| head |")[0].strip())
    print("\n" + output.written(f"{out / 'compare'}.html .md .json .{arguments.format}"))
