"""Flags that several commands share, and what was given with them."""

import argparse

from minitx import names
from minitx.points import key_of

from ..contract import options, registry, results, sides
from ..machine.language import filled, label, translated
from . import inputs, parsers

TEXT = f"text to read: {options.WAYS}"


def command(commands, name, function, description, *positionals, epilog=""):
    """A command `name` with its positional arguments, which calls `function`."""
    about = translated(description)
    how = {"description": about, "epilog": translated(epilog)}
    parser = commands.add_parser(name, help=about, **how)
    parsers.of_language(parser)
    parser.set_defaults(handler=function)
    model = "bundled name, folder, or hub id"
    helps = {
        "MODEL": model,
        "TEXT": options.ITSELF,
        "A": model,
        "B": f"another {model}",
        "HISTORY": "folder that `minitx train` wrote, or a bundled history",
        "CONFIG": "config.json, or bundled name or folder that has it, with or without a tokenizer",
    }
    for positional in positionals:
        parser.add_argument(positional.lower(), metavar=positional, help=helps[positional])
    return parser


def of_experiment(command, experiment):
    """The flags of an experiment: its options, what it reads of an encoder-decoder, ids."""
    of_options(command, experiment.options)
    of_pair(command, [experiment])
    if not sides.has_own(experiment):
        of_side(command)
    if experiment.reads_texts:
        of_ids(command, experiment.option_names)


def of_experiments(command, experiments):
    """The flags of several experiments: of those with the same name, the first one's."""
    options = {}
    for experiment in experiments:
        options = {option.name: option for option in experiment.options} | options
    of_options(command, options.values())
    of_pair(command, experiments)
    if sides.OPTION.name not in options:
        of_side(command)
    if any(experiment.reads_texts for experiment in experiments):
        of_ids(command, options)


def of_options(command, options):
    """A flag for each option: a switch for a bool, else a text, checked later."""
    for option in options:
        notes = [filled("default {default}", default=repr(option.default))]
        notes = notes * (option.default != "") + [label(str(option.range))] * bool(option.range)
        notes = [translated(option.ways)] * bool(option.ways) + notes
        about = translated(option.help) + f" ({'; '.join(notes)})" * bool(notes)
        about = about.replace("%", "%%")
        how = {"metavar": f"{{{','.join(option.choices)}}}"} if option.choices else {}
        if option.kind is bool:
            how = {"action": argparse.BooleanOptionalAction if option.default else "store_true"}
        command.add_argument(f"--{option.flag}", default=None, help=about, **how)


def of_pair(command, experiments):
    """The flag of a second text, and that of a text's column, where one of these reads a text."""
    options = [option for experiment in experiments for option in experiment.options]
    names = dict.fromkeys(f"--{option.flag}" for option in options if option.takes_pair)
    if names:
        of_second(command, of=", ".join(names))
    if names and not any(experiment.reads_texts for experiment in experiments):
        of_column(command)


def of_side(command):
    """The flag that names what is read of an encoder-decoder."""
    names = f"{{{','.join(sides.OPTION.choices)}}}"
    flag, default = f"--{sides.OPTION.flag}", sides.OPTION.default
    command.add_argument(flag, default=default, metavar=names, help=sides.OPTION.help)


def of_ids(command, own=()):
    """The flags that name a file of token ids, a sample and a column; own: options there are."""
    about = "token ids in place of a text: a file with one document per line, or -"
    command.add_argument("--ids", metavar="FILE", help=about)
    for option in registry.OF_TEXTS:
        if option.name not in own:
            command.add_argument(f"--{option.flag}", default=None, help=option.help)


def of_column(command):
    """The flag that names the columns of a table that is read in place of a text."""
    about = registry.COLUMN.help
    command.add_argument("--column", default="", metavar="NAMES", help=about)


def of_split(command, of="TEXT"):
    """The flag that says that a text is cut into words."""
    about = filled("{of} is words with blanks between: each is encoded alone", of=of)
    command.add_argument("--split", action="store_true", help=about)


def of_second(command, of="TEXT"):
    """The flag that names the second text of a pair."""
    about = filled("a second text, read together with {of} as a pair of sentences", of=of)
    command.add_argument("--second", metavar="TEXT", help=about)


def of_results(command, default):
    """The flags of a command that writes a folder of results."""
    about = filled("folder for the results ({default})", default=default)
    command.add_argument("--out", help=about)
    command.add_argument("--resume", action="store_true", help="resume an interrupted run")


def of_workers(command):
    """The flags of a command that measures documents."""
    about = "worker processes on this machine (default: threads)"
    command.add_argument("--workers", type=int, default=0, metavar="N", help=about)
    about = "use a Dask scheduler, e.g. tcp://HOST:8786"
    command.add_argument("--scheduler", default="", metavar="ADDRESS", help=about)


def of_figure(command):
    """The flag of a command that writes a figure."""
    formats_ = results.FORMATS
    about = f"file format of the figure ({formats_[0]})"
    command.add_argument("--format", choices=formats_, default=formats_[0], help=about)


def in_json(command):
    """The flag of a command whose answer a program can read."""
    about = "only JSON on standard output, for a program to read"
    command.add_argument("--json", action="store_true", help=about)


def point_of(name):
    """The point of a name: "post.L3", or what TransformerLens or transformers calls it."""
    is_other = "hook" in name or name.count(".") > 1
    return names.point_of(name.strip()) if is_other else key_of(name)


def options_of(experiment, arguments):
    """The options of an experiment as they were given, checked, and the side: {name: value}."""
    given = own_options(experiment, arguments)
    if arguments.side is None:  # an option of its own, which was not given
        return given
    return given | {sides.OPTION.name: sides.OPTION.parsed(arguments.side)}


def own_options(experiment, arguments):
    """The options of an experiment as they were given, checked: {name: value}."""
    given = stated(experiment, arguments)
    further = getattr(arguments, "further", [])
    if further and "others" in given:
        raise ValueError(f"--others {given['others']} and {further[0]}: name models in one way")
    if further:
        given["others"] = ",".join(further)
    if experiment.reads_texts:
        given |= of_text(arguments)
    given |= texts_of(experiment, arguments, given)
    return experiment.checked(given, is_text=True)


def stated(experiment, arguments):
    """The options of an experiment that were given: {name: text}."""
    return _stated(arguments, [option.name for option in experiment.options])


def _stated(arguments, names):
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def texts_of(experiment, arguments, given):
    """What is read for the options that are texts themselves, as a pair where --second is given."""
    column = "" if experiment.reads_texts else getattr(arguments, "column", "")
    texts = {}
    for option in experiment.options:
        if option.itself and given.get(option.name):
            text = inputs.text_of(given[option.name], f"--{option.flag}", column)
            second = arguments.second if option.takes_pair else None
            texts[option.name] = inputs.with_second(text, second)
    pairs = [option for option in experiment.options if option.takes_pair]
    if pairs and arguments.second is not None and pairs[0].name not in texts:
        raise ValueError(f"--second is read together with --{pairs[0].flag}, which is not given")
    return texts


def of_text(arguments):
    """What was given beside the name of a text: `ids`, a sample and its seed, a column."""
    return _stated(arguments, ["ids", *(option.name for option in registry.OF_TEXTS)])
