"""Experiments that tests plant in place of the list, and the page that a report makes of them.

They are quick, with texts and numbers of all kinds.
"""

from html.parser import HTMLParser

import numpy as np

import minitx
from minitx import weights
from minitx.analysis.contract import registry
from minitx.analysis.contract.numbers import Number
from minitx.analysis.contract.registry import Answer
from minitx.analysis.drawing import draw
from minitx.analysis.pages import report
from minitx.analysis.running import many

EMPTY = {"meta", "img", "br", "link", "input", "hr"}  # tags without an end
HOSTILE = "</td><img src=x onerror=alert(1)> & \"null\" 'offset'"


def plant(monkeypatch, *runs, **changes):
    """A list of these functions only, registered with texts that HTML could trip over."""
    monkeypatch.setattr(registry, "EXPERIMENTS", {})
    monkeypatch.setattr(many, "n_processes", lambda options: 1)  # no other one has this list
    for run in runs:
        fields = {
            "question": f"Is {run.__name__} <tame>?",
            "draw": plot,
            "look": f"Look at the offset of the null. {HOSTILE}",
            "published": "Nothing, at no offset.",
            "numbers": [Number("value", "a & b", null="c")],
        }
        registry.register(run, **fields | changes)


def plot(result):
    """A figure as wide as those of the report may be, with letters as small as the style has."""
    figure = draw.figure(12.5, 4)
    axes = figure.subplots()
    axes.plot(result["line"], label="a curve")
    axes.set(xlabel="position (tokens)", ylabel="amplitude", title="A title")
    axes.legend()
    return figure


def good(model, run, *, documents: int = 20, seed: int = 0):
    """A good one."""
    return {"line": np.arange(3), "value": 2.0, "value_null": 0.5, "documents": documents}


def giving(name, **results):
    """A good one of this name, which gives these results, too."""

    def run(model, run):
        """Gives more."""
        return good(model, run) | results

    run.__name__ = name
    return run


def bad(model, run):
    """A bad one."""
    raise RuntimeError("something <broke>")


def unfit(model, run):
    """Needs a head."""
    raise registry.NotApplicable("no <head> here")


def answers(verdict, value="7 of 9"):
    def answer(result):
        return Answer(verdict, f"heads beyond their null {HOSTILE}", value, "1 of 9")

    return answer


class Page(HTMLParser):
    """Tags with their attributes and what they stand in, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.tags = []  # (tag, attributes)
        self.texts = []  # (text, the tags it stands in, the section's id)
        self.open = []
        self.section = ""
        self.feed(text)
        self.close()
        assert self.open == [], "every tag has its end"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY and tag != "!doctype":
            is_open = tag == "details" and "open" in dict(attributes)
            self.open.append("details open" if is_open else tag)
        if tag == "section":
            self.section = dict(attributes)["id"]

    def handle_endtag(self, tag):
        assert self.open.pop().partition(" ")[0] == tag

    def handle_data(self, data):
        self.texts.append((data, tuple(self.open), self.section))

    @property
    def text(self):
        return "".join(text for text, _, _ in self.texts)

    def of(self, section, folded=None):
        """The text of a section: all of it, or what is folded away, or what is not."""
        return "".join(
            text
            for text, tags, name in self.texts
            if name == section and folded in (None, "details" in tags)
        )

    def all(self, attribute):
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]


def write_report(tmp_path, name="tiny-roberta"):
    """The report of the experiments there are, as text and parsed."""
    model = minitx.load(weights.find("tiny-roberta"))
    report.make(model, name, tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    return text, Page(text)
