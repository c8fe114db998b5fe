"""The gallery: a page for each experiment, from the list of experiments and one run of each.

Order: the runs, the page of an experiment, its parts, the page of all.
"""

import base64
import re
from html import escape
from pathlib import Path

from minitx import analysis
from minitx.analysis.contract import wording
from minitx.analysis.machine.files import write
from minitx.analysis.machine.language import count
from minitx.analysis.pages import glossary, parts

from . import works

MODEL = "tiny-roberta"
# experiment -> the model that has what it needs
WORDS = "attribute", "heads", "patch", "paths", "circuit", "predict"
OTHERS = {"alignment": "tiny-bart"} | dict.fromkeys(WORDS, "tiny-stories")
SHOWN = 6  # numbers; the others are folded
KINDS = {bool: "switch", int: "whole number", float: "number", str: "text"}
ROOT = Path(__file__).parents[1]
SOURCES = Path("analysis/experiments")


def model_of(name):
    """The bundled model that an experiment is shown on."""
    return OTHERS.get(name, MODEL)


def computed(name):
    """What one run of an experiment gives a page: texts, numbers, pictures; as JSON holds it."""
    result = analysis.run(name, model_of(name))
    figures, thumbnail = result.drawn
    given = {"says": result.says, "headline": result.headline, "figures": figures}
    given["answer"] = result.answer and result.answer._asdict()
    return given | {"thumbnail": base64.b64encode(thumbnail).decode()}


def write_page(name, run, source):
    """Write the page and the pictures of an experiment below the folder `source`."""
    folder = source / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for file, figure in zip(files_of(name, run), run["figures"]):
        write(folder / file, figure)
    write(folder / f"{name}.png", base64.b64decode(run["thumbnail"]))
    write(folder / f"{name}.md", page(analysis.EXPERIMENTS[name], run))
    write_source(analysis.EXPERIMENTS[name], folder / "source")


def files_of(name, run):
    """The names of its figures: NAME.svg, NAME-2.svg and so on."""
    return [f"{name}{-i or ''}.svg" for i in (0, *range(2, len(run["figures"]) + 1))]


def page(experiment, run):
    """The page of an experiment in Markdown."""
    link = Linker()
    name = experiment.name
    body = [
        f"# {plain(experiment.question)}",
        html(answer(run, link)),
        *(f"[![{plain(experiment.question)}]({file})]({file})" for file in files_of(name, run)),
        f"*`{name}` on the bundled `{model_of(name)}`, with no options given.*",
    ]
    if run["says"]:
        body += ["## What it says", html(f"<p>{link(run['says'])}</p>")]
    if experiment.look:
        body += ["## How to read the figure", html(f"<p>{link(experiment.look)}</p>")]
    body += ["## The numbers, and what chance gives", html(numbers(run["headline"], link))]
    if experiment.published:
        where = f" ({works.link(experiment.figure)})" if experiment.figure else ""
        text = f"<p>{link(experiment.published)}{where}</p>"
        body += ["## What was published", html(text)]
    body += ["## Run it", run_it(experiment), "## Options", options(experiment)]
    body += ["## Source", f"[{file_of(experiment)}](source/{name}.md)"]
    return "\n\n".join(body) + "\n"


class Linker(glossary.Linker):
    """Links words of the field to the page that explains them."""

    def __call__(self, text):
        linked = super().__call__(text).replace('href="#term-', 'href="../numbers.html#term-')
        return re.sub("`([^`]+)`", r"<code>\1</code>", linked)


def html(text):
    """HTML as a block of Markdown."""
    return f"``````{{raw}} html\n{text}\n``````"


def plain(text):
    """A text whose signs mean nothing to Markdown."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>#|$~^" else sign for sign in text)


def prose(text):
    """A text whose signs mean nothing to Markdown but the backquotes of code."""
    pieces = text.split("`")
    return "".join(f"`{piece}`" if i % 2 else plain(piece) for i, piece in enumerate(pieces))


def answer(run, link):
    """The answer in a sentence."""
    if not run["answer"]:
        return "<p>It draws, and gives no answer in a word.</p>"
    verdict, measure, value, chance = run["answer"].values()
    beside = f" (chance: {escape(chance)})" if chance else ""
    mark = f'<strong class="verdict">{escape(verdict.capitalize())}.</strong>'
    return f"<p>{mark} {link(measure)}: <strong>{escape(value)}</strong>{beside}</p>"


def numbers(headline, link):
    """The headline numbers, each beside its null."""
    rows = [row(number, link) for number in headline.values()]
    titles = "number", "this model", "by chance"
    text = parts.table(titles, rows[:SHOWN], "numbers")
    if rows[SHOWN:]:
        more = parts.table(titles, rows[SHOWN:], "numbers")
        text += parts.fold(count(len(rows) - SHOWN, "more number"), more)
    if not any("null" in number for number in headline.values()):
        text += "<p>These numbers are exact or compared with each other: none has a null.</p>"
    return text


def row(number, link):
    """Cells of one headline number: what it means, its value, its null."""
    means, null = link(number["means"]), ""
    if "null" in number:
        means += f"<br><small>by chance: {link(number['null_means'])}</small>"
        null = escape(wording.words(number["null"]))
    return means, escape(wording.labelled(number)), null


def run_it(experiment):
    """The command, and the same from Python."""
    name, model = experiment.name, model_of(experiment.name)
    command = f"```\nminitx run {name} {model}\n```"
    code = f'```python\nfrom minitx import analysis\n\nresult = analysis.run("{name}", "{model}")'
    about = prose(experiment.summary)
    return f"{about}\n\n{command}\n\n{code}\nresult.answer, result.numbers, result.figure()\n```"


def options(experiment):
    """The options: what each may be, its default, what it does."""
    lines = ["| option | may be | default | what it does |", "|---|---|---|---|"]
    for option in experiment.options:
        cells = [f"`--{option.flag}`", may_be(option), f"`{option.default!r}`", prose(option.help)]
        lines.append(f"| {' | '.join(cells)} |")
    if not experiment.options:
        return "It has none."
    where = "From Python they are keywords, with `_` for `-`."
    return f"{where}\n\n" + "\n".join(lines)


def may_be(option):
    """What an option may be, in words."""
    if option.choices:
        return ", ".join(f"`{choice}`" for choice in option.choices)
    limits = f", {option.range}" if option.range is not None else ""
    return plain(KINDS[option.kind] + limits)


def file_of(experiment):
    """The experiment's file."""
    return SOURCES / f"{experiment.run.__module__.rpartition('.')[2]}.py"


def write_source(experiment, folder):
    """Write the page that shows the experiment's file; the search leaves it out."""
    path = file_of(experiment)
    code = (ROOT / path).read_text(encoding="utf-8")
    text = f"---\norphan: true\nnosearch: true\n---\n# {path.as_posix()}\n\n"
    text += f"The source of [{plain(experiment.question)}](../{experiment.name}.md)\n\n"
    folder.mkdir(exist_ok=True)
    write(folder / f"{experiment.name}.md", f"{text}``````python\n{code}``````\n")


def write_index(runs, source):
    """Write the page of all experiments: a card each, in the order of the report."""
    cards = "\n".join(card(analysis.EXPERIMENTS[name], run) for name, run in runs.items())
    names = "\n".join(runs)
    text = (
        "# Gallery\n\n"
        f"Every experiment on a bundled model, `{MODEL}` where it has what is needed: the figure, "
        "what it says, how to read it, and what chance would give.\n\n"
        f":::::{{container}} cards\n{cards}\n:::::\n\n"
        f"```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    )
    write(source / "gallery/index.md", text)


def card(experiment, run):
    """A picture, the question as a link, the answer."""
    name, verdict = experiment.name, ""
    if run["answer"]:
        verdict = f"**{run['answer']['verdict'].capitalize()}**: {plain(run['answer']['value'])}"
    question = plain(experiment.question)
    return (
        f"::::{{container}} card\n[![]({name}.png)]({name}.md)\n\n"
        f"[{question}]({name}.md)\n\n{verdict} `{name}`\n::::"
    )
