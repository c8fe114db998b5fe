"""Classes are called what config.json calls them, wherever they are shown; labels are only text."""

import json
import re

import classifiers
import hostile
import numpy as np
import pytest
import tiny
from scipy.special import softmax

import minitx
from minitx import analysis, circuits
from minitx.analysis import commands
from minitx.analysis.live.as_python import Given, code
from minitx.analysis.live.changes import Changes
from minitx.analysis.pages import explore
from minitx.loading import labels

NAMES = "negative", "neutral", "positive"
TEXT = "The man said that he was old"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{head: folder} of three heads with labels."""
    folder = tmp_path_factory.mktemp("classifiers")
    return {head: classifiers.write(folder / head, head, NAMES) for head in classifiers.LAYERS}


@pytest.fixture(scope="module")
def models(folders):
    return {head: minitx.load(folder) for head, folder in folders.items()}


def test_a_head_has_the_labels_of_its_file_or_its_own(models):
    assert models["sequence"].config.labels == models["token"].config.labels == NAMES
    assert models["question"].config.labels == ("start", "end")  # three labels do not fit
    assert "classes (3): negative, neutral, positive" in repr(models["token"])
    assert minitx.load(tiny.GOLDEN / "bert-sequence").config.labels == ()  # LABEL_0, LABEL_1
    assert minitx.load("tiny-vit").config.labels == ("left", "right", "above", "below")
    assert minitx.load("tiny-roberta").config.labels == ()


@pytest.mark.parametrize(
    "given",
    [None, ["a", "b"], {}, {"0": "a", "2": "b"}, {"0": "a", "1": 2}, {"0": "LABEL_0"}, "ab"],
)
def test_what_does_not_name_every_class_names_none(given):
    assert labels.labels_of({"id2label": given}) == ()


def test_labels_of_another_number_of_classes_are_left_out(tmp_path):
    folder = classifiers.write(tmp_path / "model", "token", NAMES)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    del config["id2label"]["2"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert minitx.load(folder).config.labels == ()


def test_labels_are_one_printable_line_and_not_long():
    given = {"0": hostile.MARKUP * 9, "1": hostile.CONTROL, "2": " ", "3": "\n\x1b[31m"}
    shown = labels.labels_of({"id2label": given})
    assert all(label.isprintable() and len(label) < 120 for label in shown)
    assert shown[0].startswith(hostile.MARKUP[:60]) and shown[2] == "class 2"
    assert labels.labels_of({"id2label": {str(i): "a" for i in range(labels.MOST + 1)}}) == ()


@pytest.mark.parametrize("head", classifiers.LAYERS)
def test_a_page_names_classes(head, models):
    model = models[head]
    [run] = explore.runs([(model, "own", TEXT)])
    outputs, ids = run["outputs"], model.tokenizer.encode(TEXT)
    y = minitx.run(model, ids, "logits")["logits"][0].astype(np.float64)
    if head == "sequence":
        assert outputs["names"] == [*NAMES]
        assert outputs["classes"] == pytest.approx(softmax(y), abs=1e-4)
        return
    axis = 0 if head == "question" else 1  # each end is at one of the tokens
    p = softmax(y, axis=axis)
    guesses = np.array(outputs["guesses"]["pieces"]).reshape(len(ids), -1)
    best = [outputs["pieces"][row[0]] for row in guesses]
    assert best == [model.config.labels[i] for i in p.argmax(axis=1)]
    assert set(outputs["own"]) == {None}


def test_hostile_labels_stay_text_on_a_page(tmp_path):
    names = hostile.MARKUP, hostile.CONTROL, "x"
    model = minitx.load(classifiers.write(tmp_path / "model", "sequence", names))
    explore.write(model, "own", TEXT, tmp_path / "page.html", attribution=True)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    [run] = explore.runs([(model, "own", TEXT)])
    assert run["outputs"]["names"][0].startswith("</script>")
    assert "<script>hit()" not in page and "\x1b" not in page and "\u202e" not in page


def test_the_python_of_a_page_names_classes(models):
    given = Given(models["sequence"], "own", TEXT, place=0)
    assert "names = [model.config.labels[i] for i in best]" in code(Changes(), given)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("sequence", r"\n +-?\d+\.\d{4}  (negative|neutral|positive)\n"),
        ("token", r"\n +-?\d+\.\d{4}     2  man: (negative|neutral|positive)\n"),
        ("question", r"\n +-?\d+\.\d{4} +\d .*: start\n +-?\d+\.\d{4} +\d .*: end\n"),
    ],
)
def test_trace_lists_the_logits_of_classes(head, said, folders, capsys):
    assert commands.run_command(["trace", str(folders[head]), TEXT]) == 0
    assert re.search(said, capsys.readouterr().out)


@pytest.mark.parametrize("head", classifiers.LAYERS)
def test_attribute_takes_what_logit_attribution_takes(head, models):
    model = models[head]
    name = model.config.labels[-1]
    r = analysis.run("attribute", model, prompt=TEXT, target=name, position=0).arrays
    table = circuits.logit_attribution(model, TEXT, name, place=0)
    assert r["target"] == name and r["logit"] == pytest.approx(table.logit, abs=1e-5)
    assert r["parts"].sum() == pytest.approx(table.logits.sum(), abs=1e-4)
    likeliest = analysis.run("attribute", model, prompt=TEXT).arrays
    y = minitx.run(model, TEXT, "logits")["logits"]
    assert likeliest["logit"] == pytest.approx(y.max(), abs=1e-4)
    assert likeliest["target"] == model.config.labels[y.reshape(-1, y.shape[-1]).max(0).argmax()]
    assert analysis.run("attribute", model).arrays["target"] in model.config.labels


def test_a_class_without_a_label_has_its_number():
    plain = minitx.load(tiny.GOLDEN / "bert-token")
    assert labels.predicted(plain, [0, 2]) == ["class 0", "class 2"]
    table = circuits.logit_attribution(plain, [5, 6, 7], "class 2", place=1)
    assert table.logit == pytest.approx(
        minitx.run(plain, [5, 6, 7], "logits")["logits"][0, 1, 2], abs=1e-5
    )


def test_what_is_no_class_is_refused(models, tmp_path):
    with pytest.raises(ValueError, match="0 classes are called 'x'; wanted one of negative, neu"):
        circuits.logit_attribution(models["sequence"], TEXT, "x")
    with pytest.raises(ValueError, match="the head 'token' has logits at every token; wanted plac"):
        circuits.logit_attribution(models["token"], TEXT, "neutral")
    with pytest.raises(ValueError, match="attribute"):
        analysis.run("attribute", "tiny-vit")
    with pytest.raises(ValueError, match="position is 99; the logits are at 0 to 8"):
        analysis.run("attribute", models["token"], prompt=TEXT, position=99)
    with pytest.raises(ValueError, match="chance draws other classes, and there is none beside"):
        analysis.run("attribute", models["token"], prompt=TEXT, target=NAMES[0], other=NAMES[1])
    twice = minitx.load(classifiers.write(tmp_path / "model", "token", ("a", "b", "a")))
    with pytest.raises(ValueError, match="2 classes are called 'a'"):
        circuits.logit_attribution(twice, TEXT, "a", place=1)
