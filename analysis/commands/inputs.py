"""Models, texts and folders that a command line names."""

import os
import sys
from pathlib import Path

import minitx
from minitx import weights
from minitx.weights import local

from ..contract import options
from ..machine.files import writable
from ..machine.language import filled
from ..texts import corpus, formats, joined

PARTIAL = (
    "a partial checkpoint: {n} tensors are missing ({names}); only experiments that need nothing "
    "but weights will run"
)


def load(name):
    """A model by name, its weights checked for NaN and infinities.

    If it is a partial checkpoint, a line on stderr tells what it lacks.
    """
    model = minitx.load(weights.find(name), partial=True)
    minitx.check(model)
    n = len(model.missing)
    if n:
        names = ", ".join(model.missing[:6]) + (", …" if n > 6 else "")
        print(f"minitx: {filled(PARTIAL, n=n, names=names)}", file=sys.stderr)
    return model


OUTPUTS = "out", "save", "junit"  # the arguments that name what is written


def check_outputs(given):
    """Raise ValueError if a file that is to be written is one that the same command reads.

    given: {name: argument}. What is read: the files that other arguments name, and a model's.
    """
    sources = set()
    for name, value in given.items():
        if name not in OUTPUTS and isinstance(value, str):
            sources |= {path.resolve() for path in files_of(value)}
    for name in OUTPUTS:
        value = given.get(name)
        if value and os.path.isfile(value) and Path(value).resolve() in sources:
            raise ValueError(f"--{name} {value} is a file that this command reads; wanted another")


def files_of(name):
    """The file of this name, or the files of a model in this folder; of another text none."""
    if os.path.isdir(name):
        return [Path(name) / file for file in (*local.TEXTS, local.INDEX, local.MODEL)]
    return [Path(name)] if os.path.isfile(name) else []


def folder(arguments, what):
    """The folder for results, made and tried out before any work.

    Raises FileNotFoundError, and makes no folder, if there is no such model.
    """
    weights.find(arguments.model)
    default = Path("out") / f"{place(arguments.model)}-{what}"
    return writable(arguments.out or default)


def place(name):
    """Where a model's results go below out/: its name, or its folder's path from here.

    The whole path for a folder elsewhere, so that two folders of the same name have two places.
    """
    path, here = Path(name).resolve(), Path.cwd()
    if path == here:
        return path.name
    return path.relative_to(here if path.is_relative_to(here) else path.anchor).as_posix()


def with_second(text, second, split=False):
    """A text, or the pair of it and what --second stands for; split: they are cut into words."""
    texts = (text,) if second is None else (text, text_of(second, "--second"))
    texts = tuple(map(joined.Words, texts)) if split else texts
    return texts if len(texts) == 2 else texts[0]


TYPED = (
    "{separator} stands inside the text: its ids are those of a pair, but all token types are 0; "
    "--second TEXT reads a pair of sentences with types 0 and 1"
)


def point_out_separator(model, text):
    """Say on stderr that a separator inside a text makes no pair, where types would differ."""
    separator = joined.typed_separator(model, text)
    if separator:
        print(f"minitx: {filled(TYPED, separator=separator)}", file=sys.stderr)


def text_of(given, name="the text", column=""):
    """The text that TEXT stands for: the text of a file, standard input for -, or TEXT itself.

    column: of a table the columns of the text.
    Raises ValueError if it is empty, FileNotFoundError for one word that ends as a file does.
    """
    formats.valid(given, name)
    if given != "-" and not os.path.isfile(given):
        formats.not_empty(given, name)
        if len(given.split()) == 1 and formats.ends_like_a_file(given):
            raise FileNotFoundError(f"no file {given!r}; wanted {options.ITSELF}")
        return given
    text = corpus.whole_text(formats.of(given, column=column))
    formats.not_empty(text, f"{name} {given!r}")
    return text
