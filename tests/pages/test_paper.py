"""`minitx paper`: the nine figures of the paper, its values beside a model's, on one page."""

import json
from pathlib import Path

import pytest
from planted import Page
from undrawn import without_figures

from minitx.analysis import __main__ as cli
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.pages import paper, published
from minitx.analysis.running import many
from minitx.analysis.running.single import Failure

GOLDEN = Path(__file__).parents[1] / "golden"
FEW = ["--documents", "2", "--tokens", "64"]


def write_paper(folder, model, *flags):
    """The record of a page, and its HTML, with empty pictures, all from this process."""
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        patch.setattr(many, "n_processes", lambda options: 1)
        status = cli.main(["paper", model, "--out", str(folder), *flags])
    record = json.loads((folder / "paper.json").read_text(encoding="utf-8"))
    return status, record, (folder / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_paper(tmp_path_factory.mktemp("paper"), "tiny-roberta", *FEW)


def test_nine_figures_each_with_its_experiment_and_picture(tiny):
    status, record, html = tiny
    assert status == 0 and [*record["figures"]] == [*map(str, range(1, 10))]
    assert {*record["figures"].values()} == {*record["experiments"]}
    for name, entry in record["experiments"].items():
        assert f'id="{name}"' in html and entry["files"], name
    assert html.count("<h2>Figure") == 8 and "<h2>Figures 3 and 9: " in html


def test_a_published_number_stands_beside_the_measured_one(tiny):
    _, record, html = tiny
    row = next(x for x in record["claims"] if x["published"] == 0.5051)
    measured = record["experiments"]["positions"]["numbers"]["explained_4"]
    assert row["ours"] == measured["value"] and row["verdict"] == "other checkpoint"
    assert row["reason"] == "published for roberta-base only"
    texts = " ".join(text for text, *_ in Page(html).texts)
    assert "0.5051" in texts and f"{measured['value']:.4g}" in texts
    assert "The paper: roberta-base, 100 documents of 512 tokens of WikiText-2" in texts
    assert "Here: tiny-roberta, sample.txt, documents 2, tokens 64" in texts


def test_every_figure_of_the_paper_with_a_published_value_is_there():
    of_figures = {x.experiment for x in published.CLAIMS if x.source.startswith("figure")}
    assert of_figures == {x.experiment for x in paper.FIGURES.values()} - {"attention"}
    assert all(registry.get(x.experiment).figure for x in paper.FIGURES.values())


def test_a_model_without_a_position_table_is_told_so(tmp_path):
    status, record, html = write_paper(tmp_path, str(GOLDEN / "llama-grouped"))
    assert status == 0
    entry = record["experiments"]["positions"]
    assert entry["verdict"] == "left out" and "needs the position table" in entry["reason"]
    assert "Left out for this model: needs the position table" in html


def test_pictures_are_read_where_an_experiment_reads_them(tmp_path):
    status, record, _ = write_paper(tmp_path, "tiny-vit", "--documents", "4")
    assert status == 0
    reasons = {name: entry["reason"] for name, entry in record["experiments"].items()}
    assert reasons["positions"] == "" and "reads texts" in reasons["lags"]


def test_what_is_said_of_a_figure_that_could_not_be_drawn():
    figures = [paper.FIGURES[3]]
    assert paper.differs(figures, "x", Failure("no", True)) == (
        "The paper: roberta-base, its position table."
    )
