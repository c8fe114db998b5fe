"""The report: one page that stands alone, whatever happens to its parts."""

import base64
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import minitx
from minitx import weights
from minitx.analysis import __main__ as cli
from minitx.analysis.pages import report
from minitx.analysis.runner import draw, registry
from minitx.analysis.texts.formats import sha256

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, attribute):
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report on the bundled model, made once by the command."""
    out = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-m", "minitx.analysis", "report", "tiny-roberta"]
    command += ["--documents", "16", "--tokens", "64", "--out", str(out)]
    process = subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, timeout=200, check=False
    )
    assert process.returncode == 0, process.stderr
    for name in (*registry.EXPERIMENTS, "all"):
        assert re.search(rf"^{name} +\d+\.\d s$", process.stdout, re.M)
    assert process.stderr == ""  # no warnings
    return out


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "index.html").read_text(encoding="utf-8"))


def test_the_page_needs_no_network_and_no_other_file(folder, page):
    assert not {"script", "link", "iframe", "object", "base"} & {tag for tag, _ in page.tags}
    sources = page.all("src")
    assert len(sources) == len(registry.EXPERIMENTS)
    for source in sources:
        kind, _, data = source.partition(",")
        assert kind == "data:image/svg+xml;base64"
        svg = base64.b64decode(data).decode()
        ElementTree.fromstring(svg)
        inside = re.findall(r'(?:href|src)="([^"]*)"', svg)
        assert all(link.startswith(("#", "data:")) for link in inside)
        assert not re.search(r"@import|url\((?!#)", svg)
    assert not re.search(r"@import|url\(", report.STYLE)


def test_every_link_leads_somewhere(folder, page):
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    for link in page.all("href"):
        assert link[1:] in ids if link.startswith("#") else (folder / link).is_file()


def test_every_experiment_has_its_question_texts_numbers_and_files(page, folder):
    for experiment in registry.EXPERIMENTS.values():
        question = experiment.question
        for text in (question, experiment.look, experiment.published, experiment.summary):
            assert text in page.text
        assert page.text.count(question) == 2  # contents and heading
        assert question in page.all("alt")
        stated = json.loads((folder / f"{experiment.name}.json").read_text(encoding="utf-8"))
        for number in stated["headline"].values():
            assert number["means"] in page.text and report.words(number["value"]) in page.text
            assert number.get("null_means", "") in page.text
        for ending in (".svg", ".npz", ".json"):
            assert f"{experiment.name}{ending}" in page.all("href")


def test_the_header_says_what_the_model_is(page):
    path = weights.find("tiny-roberta")
    cfg = minitx.load(path).config
    for text in (
        "What tiny-roberta computes",
        f"{cfg.n_layers} layers × {cfg.n_heads} heads, width {cfg.d_model}",
        f"at most {cfg.n_ctx} tokens, vocabulary {cfg.n_vocab}",
        sha256(path / "model.safetensors"),
        f"{(path / 'model.safetensors').stat().st_size / 1e6:.1f} MB on disk",
    ):
        assert text in page.text


def test_the_page_follows_the_readers_colours(page):
    assert "prefers-color-scheme: dark" in report.STYLE
    assert "color-scheme: light dark" in report.STYLE


def planted(monkeypatch, *runs):
    """A registry with these functions only."""

    def plot(result):
        figure = draw.figure(2, 2)
        figure.subplots().plot(result["line"])
        return figure

    monkeypatch.setattr(registry, "EXPERIMENTS", {})
    for run in runs:
        registry.register(
            run,
            question=f"Is {run.__name__} <tame>?",
            draw=plot,
            look="Look.",
            published="Nothing.",
            numbers={"value": "a & b", "value_null": "c"},
        )


def good(model, run, *, seed: int = 0):
    """A good one."""
    return {"line": np.arange(3), "value": 2.0, "value_null": 0.5}


def bad(model, run):
    """A bad one."""
    raise RuntimeError("something <broke>")


def test_one_failure_does_not_lose_the_others(tmp_path, monkeypatch, capsys):
    planted(monkeypatch, bad, good)
    assert cli.main(["report", "tiny-roberta", "--out", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "failed: RuntimeError: something <broke>" in captured.out
    assert "1 of 2 experiments failed" in captured.err
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "1 of 2 experiments failed" in page.text
    assert "RuntimeError: something <broke>" in page.text
    assert "<broke>" not in text and "<tame>" not in text  # escaped
    assert (tmp_path / "good.json").is_file() and len(page.all("src")) == 1
    assert "4 times the null" in page.text


def test_a_result_that_is_not_finite_is_a_failure(tmp_path, monkeypatch, capsys):
    def infinite(model, run):
        """Not finite."""
        return good(model, run) | {"value": float("nan")}

    planted(monkeypatch, infinite)
    assert cli.main(["report", "tiny-roberta", "--out", str(tmp_path)]) == 1
    assert "not JSON compliant" in capsys.readouterr().out


def test_numbers_are_written_for_people():
    texts = [report.words(value) for value in (0.97123, 12.0, 1e-7, 3, [1, 2.5], [], "L0H0")]
    assert texts == ["0.971", "12", "1e-07", "3", "1, 2.5", "none", "L0H0"]


def test_what_a_model_cannot_show_is_left_out_and_no_failure(tmp_path, monkeypatch, capsys):
    def unfit(model, run):
        """Needs a head."""
        raise registry.NotApplicable("no <head> here")

    planted(monkeypatch, unfit, good)
    assert cli.main(["report", "tiny-roberta", "--out", str(tmp_path)]) == 0
    assert "left out: no <head> here" in capsys.readouterr().out
    page = Page((tmp_path / "index.html").read_text("utf-8"))
    assert "Left out for this model: no <head> here" in page.text
