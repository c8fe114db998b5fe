"""`minitx explore`: a page to explore every head on one text, or on one picture."""

import time

from ..pages import explore
from . import flags, inputs

UNCHANGED = "The page shows the model as it is. `minitx serve MODEL` switches heads off."


def declare(commands):
    """Its flags."""
    about = "a page to explore every head on one text"
    command = flags.command(commands, "explore", run, about, "MODEL", "TEXT", epilog=UNCHANGED)
    flags.of_second(command)
    flags.of_column(command)
    flags.of_split(command)
    about = "whole words: attention summed over a key's pieces, averaged over a query's"
    command.add_argument("--words", action="store_true", help=about)
    about = "output of an encoder-decoder for the source TEXT (its own greedy output)"
    command.add_argument("--target", metavar="TEXT", help=about)
    about = "a second text beside the first, with the difference where both are of one length"
    command.add_argument("--beside", metavar="TEXT", help=about)
    about = "a second model beside the first, on the same text or on that of --beside"
    command.add_argument("--beside-model", metavar="MODEL", help=about)
    about = "also show what each token and head contributes to a prediction, beside random weights"
    command.add_argument("--attribution", action="store_true", help=about)
    command.add_argument("--out", help="folder for explore.html (out/MODEL-explore)")


def run(arguments):
    """minitx explore MODEL TEXT"""
    start = time.monotonic()
    page = inputs.folder(arguments, "explore") / "explore.html"
    model, name = inputs.load(arguments.model), arguments.model
    more = arguments.second, arguments.column, arguments.split
    text = shown(model, arguments.text, *more)
    target = arguments.target and inputs.text_of(arguments.target)
    beside = ()
    if arguments.beside is not None or arguments.beside_model:
        other = arguments.beside_model or name
        second = inputs.load(other) if arguments.beside_model else model
        other_text = arguments.text if arguments.beside is None else arguments.beside
        beside = second, other, shown(second, other_text, *more, called="--beside")
    given = arguments.words, target, beside, arguments.attribution
    megabytes = explore.write(model, name, text, page, *given) / 1e6
    seconds = time.monotonic() - start
    print(f"{page} written: {megabytes:.2f} MB in {seconds:.1f} s; open it in a browser")


def shown(model, given, second=None, column="", split=False, called="the text"):
    """The text that is meant, or for a model of pictures the picture as it is named.

    second: of a pair the other text. column: of a table that has the first text. split: whether
    they are cut into words.
    """
    if model.config.picture is not None:
        return given if second is None else (given, second)
    text = inputs.with_second(inputs.text_of(given, called, column), second, split)
    inputs.point_out_separator(model.encoder or model, text)
    return text
