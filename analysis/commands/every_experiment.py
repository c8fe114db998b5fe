"""What `report`, `paper` and `published` share: options that they pass on to every experiment."""

from ..contract import registry, sides
from ..contract.options import Size, understand
from ..running import many
from ..texts import corpus, formats
from . import flags, inputs, output

COMMON = (
    understand("text", str, "sample", flags.TEXT),
    understand("documents", Size, 0, "documents to read"),
    understand("tokens", Size, 0, "length of each document"),
)


def declare(commands, name, function, about):
    """A command that runs every experiment on one model."""
    command = flags.command(commands, name, function, about, "MODEL")
    for option in COMMON:
        about = f"{option.help}, for every experiment that reads texts"
        command.add_argument(f"--{option.flag}", help=about)
    flags.of_side(command)
    flags.of_ids(command)
    flags.of_results(command, f"out/MODEL-{name}")
    flags.of_workers(command)
    flags.in_json(command)
    return command


def write(arguments, name, make, **how):
    """Write the page of all experiments into a folder; --json: print its record. The status."""
    out, model = inputs.folder(arguments, name), inputs.load(arguments.model)
    given = options(arguments, model)
    with output.progress_beside(arguments.json):
        n = many.n_processes(given)
        status = make(model, arguments.model, out, given, arguments.resume, n, **how)
    if arguments.json:
        print((out / f"{name}.json").read_text(encoding="utf-8"), end="")
    return status


def options(arguments, model):
    """The options in COMMON, `sentence` and `ids`, where they were given.

    Raises ValueError if the text cannot be read with them.
    """
    given = {}
    side = sides.OPTION.parsed(arguments.side)
    for option in COMMON:
        value = getattr(arguments, option.name)
        if value is not None:
            given[option.name] = option.parsed(value)
    if getattr(arguments, "sentence", None) is not None:
        given["sentence"] = inputs.text_of(arguments.sentence, "--sentence")
    given = registry.with_text(given | flags.of_text(arguments), is_text=True)
    text = given.get("text", "sample")
    can_read = formats.is_ids(text) or not _no_tokenizer(sides.reader(model))
    if given and not model.missing and can_read:
        formats.not_empty(formats.of(text).name, "--text")
        formats.filled(text)
        reader = sides.reader(model)
        corpus.documents(reader, text, given.get("documents", 0), given.get("tokens", 0))
    return given if side == sides.AUTO else given | {sides.OPTION.name: side}


def _no_tokenizer(model):
    try:
        model.tokenizer.encode("a")
    except FileNotFoundError:
        return True
    return False
