"""Every text that a reader of commands, reports and pages meets, as an entry of the catalogues.

`python tests/tools/strings.py` writes analysis/locale/LANGUAGE/LC_MESSAGES/minitx.po, in which
translations that are there stay (needs Babel, which Sphinx brings), and says how many are missing;
with --count it says that alone. A text without a translation is shown in English; only a release
lacks none (tests marked `release`). A text that is not given to `translated`, to `count` or to the
page's `say` by itself belongs to the experiments, to the parser of the commands, to a figure, or is
in one of TABLES.
"""

import argparse
import ast
import inspect
import re
import string
import sys
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]  # so that it also runs without an installation

from minitx.analysis.machine import language  # noqa: E402

HEADER = "# Translations of minitx, written by tests/tools/strings.py; edit the lines of msgstr."
DATES = dict.fromkeys(("creation_date", "revision_date"), datetime(2026, 1, 1))  # same bytes
DRAWERS = "experiments", "pictures", "drawing", "measures", "toys", "circuits"  # folders
PAGES = ROOT / "analysis/pages/page"
WORDS = re.compile(r"[^\W\d_]{2}")  # a text without two letters side by side has nothing to say
NAME = re.compile(r"\w_\w|\w\[|\w\.\w|^#\w+$")  # of a result, or pieced together
FIGURES = "title", "xlabel", "ylabel", "label", "null", "heading"  # keywords whose texts are drawn
PIECES = (
    """__wrapped__ measure value chance without then otherwise template join none pieces""".split()
)
DRAWN = """set_title set_xlabel set_ylabel set_label suptitle text annotate line_sample bar_sample
    Line Bar Map Scale head_map curves set_xticks set_yticks plot fill_between nothing""".split()
TABLES = """
    analysis.commands.steer PARTS
    analysis.commands.trace TITLES
    analysis.experiments.lags BY_HEAD
    analysis.experiments.profiles BY_HEAD
    analysis.experiments.extraction KINDS STANDS_OUT
    analysis.experiments.mechanisms AXES BY_KERNEL LOSSES LOST MOVES WITHOUT WORDS
    analysis.experiments.rotation COUNTS MEANS
    analysis.experiments.sources PEAK
    analysis.measures.scanning KINDS
    analysis.pages.scan HEADINGS
    analysis.forming.words KINDS ORDERS SOONER
    analysis.machine.advice CASES KNOWN PINNED ROWS
    analysis.atlas.flags BESIDE FAR MISLEADS REPEATED SHAPES SIDES
    analysis.atlas.patches DIRECTIONS
    analysis.atlas.sentences ALL SOME TYPES
    analysis.pages.atlas PROJECTIONS
    weights.shapes CLASSES
    analysis.contract.own_texts SAID
    analysis.live.patching NO_HEAD WAYS
    analysis.contract.own_texts TRAINED
    analysis.contract.sensitivity THRESHOLDS
    analysis.contract.results TITLES
    analysis.contract.sides SENTENCES HELP
    analysis.contract.verdict VERDICTS
    analysis.experiments.profiles SIDES
    analysis.maths.profiles DIRECTION
    analysis.measures.context_extension HOW
    analysis.pages.compare NAMES TITLES
    analysis.pages.decode READINGS TITLES
    analysis.pages.overview TITLES
    analysis.pages.published NOT_RUN TITLES UNJUDGED VERDICTS
    analysis.pages.section IN_DARK
    analysis.pages.sketch IN_STREAM NAMES OF_HIDDEN OF_NEXT STREAM TITLE
    analysis.pages.story WAYS WITHOUT_EFFECT
    analysis.pages.themes SHORT
    analysis.pages.verdicts TITLES WHY ABOUT
    analysis.parity.compare DIFFERENT
    analysis.parity.record HELPS
    analysis.running.cost LINES
    research.probe VERDICTS
    research.steering VERDICTS
"""  # a module, and its names of what holds texts


ARGPARSE = (  # what it says to a user, in Python 3.11 to 3.14
    "usage: ",
    "positional arguments",
    "options",
    "%(heading)s:",
    "show this help message and exit",
    "%(prog)s: error: %(message)s\n",
    "argument %(argument_name)s: %(message)s",
    "the following arguments are required: %s",
    "one of the arguments %s is required",
    "unrecognized arguments: %s",
    "ambiguous option: %(option)s could match %(matches)s",
    ("expected %s argument", "expected %s arguments"),
    "expected one argument",
    "expected at most one argument",
    "expected at least one argument",
    "invalid %(type)s value: %(value)r",
    "invalid choice: %(value)r (choose from %(choices)s)",
    "ignored explicit argument %r",
    "not allowed with argument %s",
)


# what experiments declare


def experiments():
    """All that have options: those of the registry, on pictures too, a toy, and three commands."""
    from minitx.analysis import EXPERIMENTS
    from minitx.analysis.commands import forming, train
    from minitx.analysis.contract.registry import OF_PICTURES
    from minitx.analysis.toys import recurrent
    from minitx.analysis.tuning import tune

    yield from [*EXPERIMENTS.values(), *OF_PICTURES.values(), recurrent.EXPERIMENT]
    yield from (tune.EXPERIMENT, train.EXPERIMENT, forming.EXPERIMENT)


def of_experiments():
    """Texts of all experiments: what they ask, say, measure and take."""
    for experiment in experiments():
        yield from (experiment.question, experiment.look, experiment.published)
        yield from (experiment.figure, experiment.summary)
        yield from (option.help for option in experiment.options)
        for number in experiment.numbers:
            yield from (number.means, getattr(number, "null", ""))
        scope = inspect.unwrap(experiment.run).__globals__
        for template in [*templates(experiment.says), *templates(experiment.answer)]:
            yield template
            yield from of_fields(template, scope)


def templates(piece):
    """The templates that a piece of a sentence, or a question, is made of."""
    if isinstance(piece, str):
        yield piece
        return
    inner = piece if isinstance(piece, list | tuple) else []
    for part in [*inner, *(getattr(piece, name) for name in PIECES if hasattr(piece, name))]:
        yield from templates(part)


def of_fields(template, scope):
    """Constants of the experiment's file that a template names, and what they hold."""
    for _, field, spec, _ in string.Formatter().parse(template):
        name = re.match(r"\w*", field or "")[0]
        if not spec and name in scope:
            yield from inside(scope[name])


def inside(value):
    """The texts in nested lists and dictionaries."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from inside([*value.values()])
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from inside(entry)


# calls in Python


def modules():
    """Every module whose texts people read: (path, its syntax)."""
    folders = "analysis", "minitx/circuits", "lessons"
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def of_calls():
    """Literal texts given to `translated`, nouns given to `count`."""
    for _, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = named(node)
            if name == "count" and isinstance(node.args[-1], ast.Constant):
                noun = node.args[-1].value
                if isinstance(noun, str) and len(node.args) == 2:
                    yield f"{{n}} {noun}", f"{{n}} {noun}s"
            if name in ("translated", "filled"):
                yield from literal(node.args[0])
                yield from assigned(node.args[0], tree)


def assigned(node, tree):
    """The texts that a name stands for, or each of `a if b else c`, if the module assigns it."""
    if isinstance(node, ast.IfExp):
        yield from (*assigned(node.body, tree), *assigned(node.orelse, tree))
    for other in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(other, ast.Assign):
            if any(getattr(target, "id", "") == node.id for target in other.targets):
                yield from literal(other.value)


def named(call):
    """The name of what is called, without its module."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def literal(node):
    """The texts that an argument may be: of `a if b else c` both."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from literal(node.body)
        yield from literal(node.orelse)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "#" for part in node.values)


def of_tables():
    """Texts in TABLES, and verdicts as they are shown."""
    import importlib

    import minitx
    from minitx import weights

    for line in TABLES.strip().splitlines():
        name, *tables = line.split()
        module = importlib.import_module(f"minitx.{name}")
        yield from inside([getattr(module, table) for table in tables])
    yield from (purpose for _, purpose in weights.KNOWN.values())
    yield "encoder: "
    yield from (x.meaning for x in minitx.POINTS.values() if "encoder: " not in x.meaning)
    from minitx.analysis.forming import moments
    from minitx.analysis.pages import glossary, parts, published, story, themes

    yield from themes.THEMES
    yield from (text for x in story.SENTENCES for text in (x.topic, *templates(x.pieces)))
    yield from (text for pieces in story.SHORT.values() for text in templates(pieces))
    yield from (text for m in moments.MEASURES for text in (m.means, m.null))
    yield from (text.what for text in published.TEXTS.values())

    for term in glossary.TERMS:
        yield from (term.name, term.meaning)
    yield from (sign.capitalize() for sign in parts.SIGNS)
    yield from (verdict.capitalize() for verdict in published.VERDICTS)
    for claim in published.CLAIMS:
        yield from (claim.what, claim.source, published.of(claim), f"wanted: {claim.rule}")
        yield from (*inside(claim.published), *claim.readings)


def of_parser():
    """Helps and descriptions of every command, and what argparse says by itself."""
    from minitx.analysis import commands

    yield from ARGPARSE
    waiting = [commands.parser()]
    for parser in waiting:
        yield from filter(None, (parser.description, parser.epilog))
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
                yield from (choice.help for choice in action._choices_actions)
            elif action.help != argparse.SUPPRESS and not is_composed(action.help or ""):
                yield action.help


def is_composed(text):
    """Whether a help is an option's with its default behind it, or names a folder of results."""
    from minitx.analysis.parity import record

    if text.startswith(("folder for the results (", "one of ")):
        return True
    options = [option.help for experiment in experiments() for option in experiment.options]
    return text.startswith(tuple(f"{known} (" for known in (*options, *record.HELPS.values())))


# figures


def of_figures():
    """Literal texts that figures show, with # for numbers and what is filled in."""
    for path, tree in modules():
        if path.parent.name not in DRAWERS:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield from drawn(node)


def drawn(call):
    """The texts of one call that draws, or that declares a panel."""
    for keyword in call.keywords:
        if keyword.arg in FIGURES:
            texts = literal(keyword.value)
            yield from (pattern(text) for text in texts if not NAME.search(text))
    if named(call) in DRAWN:
        for text in (text for argument in call.args for text in literal(argument)):
            if not re.fullmatch(r"[\w\[\].#]*", text):  # no name of a result
                yield pattern(text)


def pattern(text):
    """A text with # for each number, as language.label looks for it; templates stay."""
    return text if "{" in text else language.NUMBER.sub("#", text)


def of_labels():
    """Labels that code puts together or that results hold, one a line, with # for numbers.

    Those of several lines have \\n between them.
    """
    lines = (language.FOLDER / "labels.txt").read_text(encoding="utf-8").splitlines()
    yield from (line.replace(r"\n", "\n") for line in lines)


# pages


def of_javascript():
    """Texts given to the page's `say`: say("...") and say`... ${x} ...`, with {0} and so on."""
    for path in sorted(PAGES.glob("*.js")):
        if path.name.endswith((".min.js", "language.js")):
            continue
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r'(?<![\w.-])say\(\s*("(?:[^"\\]|\\.)*")', text):
            yield ast.literal_eval(match[1])
        for match in re.finditer(r"(?<![\w.-])say`", text):
            yield template_at(text, match.end())


def template_at(text, start):
    """The template literal that begins there, with {0} and so on for what is filled in."""
    said, n, i = "", 0, start
    while text[i] != "`":
        if text.startswith("${", i):
            i = after_braces(text, i + 1)
            said, n = f"{said}{{{n}}}", n + 1
        elif text[i] == "\\":
            said, i = said + {"n": "\n"}.get(text[i + 1], text[i + 1]), i + 2
        else:
            said, i = said + text[i], i + 1
    return said


def after_braces(text, i):
    """Where the brace that opens at i is closed, and one further."""
    depth = 0
    while True:
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        i += 1
        if not depth:
            return i


class Shown(HTMLParser):
    """The texts of a page: between tags, and in attributes that are read."""

    def __init__(self):
        super().__init__()
        self.texts, self.depth = [], 0

    def handle_starttag(self, tag, attrs):
        self.depth += tag in ("script", "style")
        shown = "title", "aria-label", "placeholder"
        self.texts += [squeezed(value) for name, value in attrs if name in shown and value]

    def handle_endtag(self, tag):
        self.depth -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.depth and "{{" not in data:
            self.texts.append(squeezed(data))


def squeezed(text):
    return " ".join(text.split())


def of_html():
    for name in ("explore.html", "live.html", "forming.html", "atlas.html"):
        reader = Shown()
        reader.feed((PAGES / name).read_text(encoding="utf-8"))
        yield from reader.texts


# the catalogue


def every():
    """Each text once, in order: {text, or the text for one of many: its plural or ''}."""
    plurals = {}
    sources = of_experiments, of_calls, of_tables, of_parser, of_figures, of_labels
    sources += of_javascript, of_html
    for given in (given for source in sources for given in source()):
        text, plural = given if isinstance(given, tuple) else (given, "")
        if isinstance(text, str) and WORDS.search(re.sub(r"\{[^}]*\}", "", text)):
            plurals.setdefault(text, plural)
    return plurals


def lacking(tongue):
    """The texts that a language's catalogue does not translate."""
    language.catalogue.cache_clear()
    return [text for text in every() if text not in language.catalogue(tongue).known]


def write(tongue):
    """Write a language's catalogue with every text, keeping its translations."""
    from babel.messages import pofile
    from babel.messages.catalog import Catalog

    path = language.path_of(tongue)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = Catalog(locale=tongue)
    if path.exists():
        with path.open("rb") as file:
            before = pofile.read_po(file, locale=tongue)
    new = Catalog(tongue, project=language.DOMAIN, header_comment=HEADER, fuzzy=False, **DATES)
    for text, plural in every().items():
        old = before.get(text)
        new.add((text, plural) if plural else text, old.string if old else None)
    with path.open("wb") as file:
        pofile.write_po(file, new, width=100, omit_header=False, no_location=True)


if __name__ == "__main__":
    for tongue in language.LANGUAGES[1:]:
        if sys.argv[1:] != ["--count"]:
            write(tongue)
        print(tongue, f"{len(every())} texts, {len(lacking(tongue))} without a translation")
