"""Pages written from the code: public names, points, commands, words of the field.

Order: names, points, commands, words.
"""

import importlib
import inspect
import os
import re

import minitx
from minitx.analysis import commands
from minitx.analysis.machine import language
from minitx.analysis.machine.files import write
from minitx.analysis.pages import glossary
from minitx.names import others_of

from .gallery import plain, prose

PACKAGES = {  # package -> what it is for
    "minitx": "The model: load it, run it, read and change what it computes.",
    "minitx.circuits": "Which component did it: logits, heads and circuits, beside chance.",
    "minitx.analysis": "The experiments, from Python.",
    "minitx.weights": "Names to folders: bundled checkpoints, downloads.",
    "minitx.names": "What other libraries call the [points](points.md): a table is there.",
    "minitx.testing": "For tests of your own, without torch: {doc}`an example <../howto/ci>`.",
}
PARTS = {  # what public functions give or take -> where it is defined
    "minitx": (
        "minitx.config.Config",
        "minitx.config_parts.Rotary",
        "minitx.config_parts.Picture",
        "minitx.config_parts.Generation",
        "minitx.arrays.Weights",
        "minitx.arrays.Layer",
        "minitx.words.text.Tokenizer",
        "minitx.images.Preprocessor",
        "minitx.research.collection.Collection",
        "minitx.research.examples.Examples",
        "minitx.research.examples.Example",
        "minitx.research.sae.SparseAutoencoder",
        "minitx.research.sae.Reconstruction",
        "minitx.research.sae_texts.Features",
        "minitx.research.sae_texts.Recovered",
        "minitx.research.steering.SteeringVector",
        "minitx.research.steering.Effect",
    ),
    "minitx.circuits": (
        "minitx.circuits.graph.Node",
        "minitx.circuits.graph.Graph",
        "minitx.circuits.effects.Patched",
        "minitx.circuits.table.Row",
    ),
    "minitx.analysis": (
        "minitx.analysis.contract.results.Number",
        "minitx.analysis.contract.registry.Answer",
        "minitx.analysis.contract.registry.Experiment",
    ),
}
OF_RUN = (
    "Each experiment has options of its own: they are on its page of the "
    "[gallery](../gallery/index.md). Those of `positions`:"
)
ELSEWHERE = (
    "N stands for the layer. Of Hugging Face transformers it is the output of a module whose name "
    "ends so, in one family or another; N includes the name of the list of layers, as in "
    "`encoder.layer.3`. [`point_of`](minitx.names.md) gives the point of such a name. Axes and "
    "scales may differ: {doc}`coming from TransformerLens <../howto/transformerlens>`."
)
WIDTH = 100  # columns of the help of commands


def names(package):
    """Full names of what a package shows to users: {name: object}."""
    module = importlib.import_module(package)
    return {f"{package}.{name}": getattr(module, name) for name in module.__all__}


def write_pages(source):
    """Write all of them below the folder `source`."""
    folder = source / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    for package, about in PACKAGES.items():
        write(folder / f"{package}.md", package_page(package, about))
    write(folder / "points.md", points_page())
    write(folder / "commands.md", commands_page())
    write(source / "words.md", words())
    (source / "ja").mkdir(exist_ok=True)
    write(source / "ja/words.md", words_in("ja"))


def package_page(package, about):
    """Every public name of a package: a table, then each with its docstring."""
    every = names(package)
    lines = ["| name | what |", "|---|---|"]
    for name, value in every.items():
        lines.append(f"| [`{name}`](#{name}) | {prose(first_line(value))} |")
    entries = [entry(name, value) for name, value in every.items()]
    if package in PARTS:
        entries.append("## What they hold")
        entries += [entry(name, located(name)) for name in PARTS[package]]
    table = "\n".join(lines)
    return f"# {package}\n\n{about}\n\n{table}\n\n" + "\n\n".join(entries) + "\n"


def first_line(value):
    """The first line of a docstring; data are said what they are in place."""
    if isinstance(value, dict):
        return f"A dictionary of {len(value)} entries; its keys are below."
    return inspect.getdoc(value).partition("\n")[0]


def located(name):
    """The object with a full name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def entry(name, value):
    """The directive that shows a name."""
    if inspect.isclass(value):
        lines = f".. autoclass:: {name}\n   :members:"
    elif callable(value):
        lines = f".. autofunction:: {name}"
    else:
        about = "{" + ", ".join(f"``{key}``" for key in value) + "}"
        lines = f".. data:: {name}\n\n   {about}"
    return f"```{{eval-rst}}\n{lines}\n```"


def points_page():
    """Every point of the trace."""
    lines = ["| point | axes | where | what |", "|---|---|---|---|"]
    for name, point in minitx.POINTS.items():
        where = "every layer" if point.per_layer else "once"
        lines.append(f"| `{name}` | `{point.axes}` | {where} | {plain(point.meaning)} |")
    about = (
        "Each point can be recorded (`keep`) and replaced (`edits`), in all layers or in one: "
        '`("scores", 2)`. B texts, T tokens, S keys, H heads, d width of a head, D width of the '
        "model, M width inside the MLP, V vocabulary. Points that begin with `enc_` are those of "
        "an encoder-decoder's encoder, those with `cross_` of its decoder's attention to the "
        "source."
    )
    table = "\n".join(lines)
    page = f"# Points of a forward pass\n\n{about}\n\n{table}\n\n"
    return f"{page}## What other libraries call them\n\n{ELSEWHERE}\n\n{elsewhere()}\n"


def elsewhere():
    """The points that have a name in another library, with all of these."""
    rows = ["| point | TransformerLens | transformers |", "|---|---|---|"]
    for point in minitx.POINTS:
        cells = ["<br>".join(f"`{name}`" for name in names) for names in others_of(point)]
        if any(cells):
            rows.append(f"| `{point}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def commands_page():
    """The help of every command."""
    parts = ["# Commands", "What `minitx COMMAND --help` prints."]
    os.environ["COLUMNS"] = str(WIDTH)
    for name, command in below(commands.parser()).items():
        parts.append(f"## minitx {name}")
        shown = command
        if name == "run":
            parts.append(OF_RUN)
            shown = below(command)["positions"]
        parts.append(f"```text\n{shown.format_help().strip()}\n```")
    return "\n\n".join(parts) + "\n"


def below(parser):
    """{name: parser} of the commands of a parser."""
    actions = (action.choices for action in parser._actions)
    return next(choices for choices in actions if isinstance(choices, dict))


def words():
    """The words of the field, each with an anchor that figures' texts lead to."""
    entries = []
    for term in sorted(glossary.TERMS, key=lambda term: term.name.lower()):
        meaning = re.sub(r"\s+", " ", term.meaning)
        entries.append(f"(term-{term.slug})=\n\n## {plain(term.name)}\n\n{plain(meaning)}")
    return "\n\n".join(entries) + "\n"


def words_in(tongue):
    """The words of the field in another language, as a page of their own."""
    with language.using(tongue):
        entries = [f"# {language.translated('Glossary')}"]
        for term in sorted(glossary.TERMS, key=lambda term: term.name.lower()):
            name, meaning = map(language.translated, (term.name, term.meaning))
            entries.append(f"## {plain(name)} ({plain(term.name)})\n\n{plain(meaning)}")
    return "\n\n".join(entries) + "\n"
