"""The nine figures of Yamamoto and Matsuzaki (2023) of one model, on one page that prints.

A figure is the one of the experiment that asks what the paper shows there; below it stand what was
published, with what, and the published values beside this model's. Figures are numbered as in the
paper of the NLP meeting; values of the longer paper have EMNLP before their number.
"""

import re
from html import escape
from typing import NamedTuple

from ..contract import registry
from ..contract.wording import by_chance, words
from ..machine.files import as_json, write
from ..machine.language import filled, translated
from ..running import many, single
from . import glossary, overview, parts, published, report, verdicts
from .section import section


class Figure(NamedTuple):
    """One figure of the paper."""

    experiment: str
    shows: str
    setting: str  # what the paper read for it
    numbers: tuple = ()  # headline numbers in place of the answer


ROBERTA = "roberta-base, its position table"
FIGURES = {  # by their number
    1: Figure(
        "profiles",
        "attention by relative position, in six clusters",
        "roberta-base, 100 documents of 512 tokens of WikiText-2, offsets -10 to 10",
    ),
    2: Figure(
        "attention",
        "attention of four heads to the first tokens",
        "roberta-base, the first 15 tokens of a document",
    ),
    3: Figure("positions", "spectrum of position and word embeddings", ROBERTA),
    4: Figure(
        "queries-keys",
        "two columns of queries and keys",
        "roberta-base, head(1,1), columns 5 and 6, the first 64 positions",
    ),
    5: Figure(
        "extraction",
        "largest amplitudes of input, queries and keys by layer",
        "roberta-base, 512 tokens",
    ),
    6: Figure(
        "rotation",
        "rotation from queries to keys, by frequency and angle",
        "roberta-base, head(1,1) and head(2,3)",
    ),
    7: Figure(
        "lags",
        "cross-correlation of queries and keys, and its weighted sum",
        "roberta-base, head(1,1) and head(8,9), the first 20 columns",
    ),
    8: Figure(
        "models",
        "spectra of the position tables of several models",
        "bert-base-uncased, roberta-base, gpt2 and a Japanese BERT, their position tables",
    ),
    9: Figure(
        "positions",
        "share of the position table's variance in 4 and in 12 principal components",
        ROBERTA,
        ("explained_4", "explained_12"),
    ),
}
SOURCES = re.compile("figures? |EMNLP ")  # of values of the paper
NUMBERING = (
    "Figures are numbered as in the paper of the NLP meeting; values of the longer paper have "
    "EMNLP before their number. Its head(1,1) is L0H0. A claim is tested on every model. A number "
    "is judged for the checkpoint that it was published for, and stands beside that of any other."
)
TITLES = "figure", "what it shows", "answer", "this model, and chance"


def make(model, name, out, options=(), resume=False, n_processes=1):
    """Run the experiments of the figures, write index.html and paper.json into the folder `out`.

    The arguments are those of report.make. Returns 1 if an experiment failed, else 0.
    """
    names = list(dict.fromkeys(figure.experiment for figure in FIGURES.values()))
    given = name, dict(options), out, resume, n_processes
    runs = [*many.every([*map(registry.get, names)], model, *given)]
    runs = sorted((report.asked(model, run) for run in runs), key=lambda x: names.index(x[0].name))
    own = [claim for claim in claims() if claim.options and not claim.on]
    outcomes = published.outcomes(name, model, {}, {}, out, resume, own) | report.outcomes(runs)
    rows = published.rows(name, model, outcomes, claims())
    write(out / "index.html", page(model, name, runs, rows))
    write(out / "paper.json", as_json(record(model, name, runs, rows)) + "\n")
    print(out / "index.html")
    return report.status(outcomes)


def claims():
    """The published values of the figures' experiments that are of this paper."""
    names = {figure.experiment for figure in FIGURES.values()}
    return [x for x in published.CLAIMS if x.experiment in names and SOURCES.match(x.source)]


def page(model, name, runs, rows):
    """The whole document; runs and rows as report.page takes them."""
    title = filled("The nine figures of the paper, in {model}", model=escape(name))
    seconds = sum(seconds for *_, seconds in runs)
    about = f"{report.warning(runs)}{report.about(model, runs, seconds)}"
    source = "Yamamoto and Matsuzaki, Absolute Position Embedding Learns Sinusoid-like Waves for "
    source += "Attention Based on Relative Position, EMNLP 2023. "
    note = f'<p class="soft">{source}{translated(NUMBERING)}</p>'
    sections = "".join(_section(run, name, rows) for run in runs)
    tally = f'<p class="tally">{escape(published.tally(rows))}.</p>'
    body = f"<header><h1>{title}</h1>{about}</header>{note}{_list(runs)}{tally}"
    body += sections + glossary.section()
    return report.document(name, f"{_contents(runs)}<main>{parts.typeset(body)}</main>")


def _contents(runs):
    """The list of sections, each behind the sign of its answer."""
    items = ""
    for experiment, outcome, _ in runs:
        sign = parts.sign(overview.answer_of(outcome).verdict)
        items += f'<li><a href="#{experiment.name}">{sign} {_numbers(experiment)}</a></li>'
    items += f'<li><a href="#glossary">{translated("Glossary")}</a></li>'
    return f'<nav aria-label="{translated("Sections")}"><ol>{items}</ol></nav>'


def _numbers(experiment):
    """Figures 3 and 9"""
    own = [str(n) for n, figure in FIGURES.items() if figure.experiment == experiment.name]
    text = "Figures {numbers}" if len(own) > 1 else "Figure {numbers}"
    return filled(text, numbers=translated(" and ").join(own))


def _list(runs):
    """The nine figures: what each shows, and this model's answer beside chance."""
    outcomes = report.outcomes(runs)
    rows = []
    for n, figure in FIGURES.items():
        verdict, measure, value, chance = _answer(figure, outcomes[figure.experiment])
        beside = f"<b>{escape(value)}</b> " if value else ""
        link = f'<a href="#{figure.experiment}">{n}</a>'
        shows = f'{translated(figure.shows)}<span class="soft">{escape(measure)}</span>'
        cells = link, shows, parts.mark(verdict), beside + parts.soft(by_chance(chance))
        rows.append(cells)
    return f'<section id="answers">{parts.table(TITLES, rows)}</section>'


def _answer(figure, outcome):
    """(verdict, measure, value, chance) of a figure."""
    if isinstance(outcome, single.Failure) or not figure.numbers:
        return overview.answer_of(outcome)
    numbers = [outcome.headline.get(name, {"value": None}) for name in figure.numbers]
    value, null = ([x.get(key) for x in numbers] for key in ("value", "null"))
    about = numbers[0].get("null_means", "")
    about = filled("by chance: {null}", null=about) if about else ""
    return "measured", about, words(value, 4), words(null, 4)


def _section(run, name, rows):
    """The section of one experiment, with its figures' numbers and what was published."""
    experiment, outcome, seconds = run
    own = [x for x in FIGURES.values() if x.experiment == experiment.name]
    title = f"{_numbers(experiment)}: {translated(experiment.question)}"
    html = f"<p>{escape(translated(experiment.published))}</p>"
    html += f'<p class="soft">{escape(differs(own, name, outcome))}</p>'
    theirs = [row for x, row in zip(claims(), rows) if x.experiment == experiment.name]
    html += verdicts.table(theirs) if theirs else ""
    return section(experiment, name, outcome, seconds, title, html)


def differs(figures, name, outcome):
    """What the paper read for these figures, and what this run has."""
    settings = dict.fromkeys(translated(figure.setting) for figure in figures)
    sentence = filled("The paper: {setting}.", setting="; ".join(settings))
    if isinstance(outcome, single.Failure):
        return sentence
    options = outcome.settings["options"]
    here = [str(name)]
    if outcome.settings.get("text"):
        here.append(str(outcome.settings["text"]["name"]))
    here += [f"{key} {value}" for key, value in options.items() if key != "text" and value != ""]
    return f"{sentence} {filled('Here: {setting}.', setting=', '.join(here))}"


def record(model, name, runs, rows):
    """What the page says, for JSON."""
    whole = {"model": str(name), "facts": report.facts(model)}
    whole["figures"] = {str(n): x.experiment for n, x in FIGURES.items()}
    whole["experiments"] = {x.name: report.answered(x, outcome) for x, outcome, _ in runs}
    return whole | {"claims": rows, "files": ["index.html", "paper.json"]}
