"""`minitx scan`: one prompt from every side; the numbers are those that other ways give."""

import shlex

import numpy as np
import pytest

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis.contract import NotApplicable
from minitx.analysis.measures import scanning

MODEL = "tiny-stories"
TEXT = "When Mary and John went to the park, John gave the ball to"


def test_the_guess_and_the_last_layer_are_those_of_a_pass(model):
    scanned = scanning.scan(model, TEXT)
    y = minitx.run(model, TEXT, "logits")["logits"][0, -1].astype(np.float64)
    p = np.exp(y - np.logaddexp.reduce(y))
    assert scanned.wanted.what == y.argmax()
    assert abs(scanned.reached[-1] - p.max()) < 1e-6
    assert abs(scanned.guesses.probabilities[0] - np.sort(p)[:-6:-1]).max() < 1e-6


def test_what_a_head_looks_at_is_named():
    tokens = np.array([5, 7, 9, 5, 7])
    kinds = scanning.kinds(tokens, 4)
    places = {kind: np.flatnonzero(is_kind).tolist() for kind, is_kind in kinds.items()}
    assert places == {
        "the token before": [3],
        "the token behind": [],
        "the first token": [0],
        "itself": [4],
        "the same token elsewhere": [1],
        "what followed the same token": [2],
    }


def test_an_induction_head_is_found_by_name():
    model = minitx.load("tiny-induction")
    ids = [*range(40, 60), *range(40, 50)]
    text = model.tokenizer.decode(ids)
    looks = scanning.scan(model, text).looks
    followed = [x for x in looks if x.kind == "what followed the same token"]
    assert followed and followed[0].share > 0.5 > followed[0].chance


def test_the_changed_text_has_another_guess(model):
    scanned = scanning.scan(model, TEXT)
    tokens = scanned.changed.tokens
    y = minitx.run(model, tokens, "logits")["logits"][0, -1]
    assert y.argmax() == scanned.changed.guess != scanned.wanted.what
    assert (tokens != scanned.wanted.tokens).sum() == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tiny-stories", TEXT),
        ("tiny-gpt2", "The old man came to"),
        ("tiny-bert", "The old [MASK] came home."),
    ],
)
def test_the_commands_that_it_gives_run(name, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["scan", name, text]) == 0
    said = capsys.readouterr().out
    assert (tmp_path / f"out/{name}-scan/scan.html").read_text().count("<img") == 2
    assert cli.main(["scan", name, text]) == 0
    pages = sorted(path.name for path in (tmp_path / f"out/{name}-scan").iterdir())
    assert pages == ["scan-2.html", "scan.html"] and "scan-2.html" in capsys.readouterr().out
    lines = [shlex.split(line)[1:] for line in said.splitlines() if line.startswith("  minitx")]
    assert [line[0] for line in lines] == ["patch", "attribute", "serve"]
    for line in lines[:2]:
        assert cli.main(line) == 0


def test_what_is_no_word_of_one_text_is_refused():
    with pytest.raises(NotApplicable, match="this one is an encoder-decoder .minitx decode"):
        scanning.scan(minitx.load("tiny-bart"), "3 May 1912")
    with pytest.raises(NotApplicable, match="this one reads pictures"):
        scanning.scan(minitx.load("tiny-vit"), "a")
    with pytest.raises(ValueError, match=r"fills in \[MASK\], and the text has none"):
        scanning.scan(minitx.load("tiny-bert"), "The old man.")
