"""Published values beside a run's: numbers judged for their own checkpoint only, claims for any."""

import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest

from minitx.analysis import __main__ as cli
from minitx.analysis.pages import published
from minitx.analysis.runner import registry
from minitx.analysis.runner.results import Failure, Outcome

CLAIMS = {claim.what: claim for claim in reversed(published.CLAIMS)}  # the first of each name


SIZES = {
    "roberta-base": ("roberta", 50265),
    "bert-base-uncased": ("bert", 30522),
    "gpt2": ("gpt2", 50257),
}


def sized(like, **changes):
    """What `published` looks at of a model: the sizes of a checkpoint, and its position table."""
    kind, n_vocab = SIZES[like]
    config = dict(model_type=kind, n_layers=12, d_model=768, n_vocab=n_vocab) | changes
    return SimpleNamespace(
        config=SimpleNamespace(**config), weights=SimpleNamespace(W_pos=np.zeros((4, 3)))
    )


def judged(what, name, model=None, text="sample", **arrays):
    """Verdict, number and reason for one claim, where an experiment gave these arrays."""
    claim = CLAIMS[what]
    result = {key: np.asarray(value) for key, value in arrays.items()}
    outcome = Outcome({}, result, "", {"options": {"text": text}}, "", None)
    row = published.judged(claim, name, model or sized("roberta-base"), {claim.experiment: outcome})
    return row["verdict"], row["ours"], row["reason"]


@pytest.mark.parametrize("share, verdict", [(0.50512, "pass"), (0.5053, "fail"), (0.93, "fail")])
def test_a_number_is_compared_for_its_own_checkpoint(share, verdict):
    for name in ("roberta-base", "FacebookAI/roberta-base", "some/folder/roberta-base"):
        judgement = judged("variance held by 4 components", name, explained_4=share)
        assert judgement == (verdict, share, "wanted: within 0.0001")


@pytest.mark.parametrize(
    "name, model",
    [
        ("roberta-large", sized("roberta-base")),
        ("roberta-base", sized("roberta-base", n_layers=4)),
        ("gpt2", sized("gpt2")),
        ("my/roberta-base", sized("bert-base-uncased")),
    ],
)
def test_a_number_of_another_checkpoint_is_no_measure(name, model):
    """Neither the name nor the sizes are enough."""
    judgement = judged("variance held by 4 components", name, model, explained_4=0.9)
    assert judgement == ("no published value", 0.9, "published for roberta-base only")


def test_gpt2_is_known_by_its_position_table(monkeypatch):
    model = sized("gpt2")
    assert not published.is_of("gpt2", model, "gpt2")
    digest = hashlib.sha256(np.zeros((4, 3), np.float32)).hexdigest()
    monkeypatch.setitem(published.CHECKPOINTS, "gpt2", (published.CHECKPOINTS["gpt2"][0], digest))
    assert published.is_of("any/folder", model, "gpt2")


@pytest.mark.parametrize(
    "text, verdict",
    [("sample", "not comparable"), ("data/imdb/test", "pass"), ("IMDB.csv", "pass")],
)
def test_a_number_is_compared_only_on_its_own_text(text, verdict):
    claim = "cosine with and without positions"
    model = sized("bert-base-uncased")
    judgement = judged(claim, "bert-base-uncased", model, text, cosine=0.77)
    assert judgement[0] == verdict


@pytest.mark.parametrize("null, verdict", [(1.0, "pass"), (3.0, "fail")])
def test_a_claim_is_put_to_any_model(null, verdict):
    claim = "highest peak of the position embeddings, slow drift left out"
    judgement = judged(claim, "my-model", peak=2.0, peak_null=null)
    assert judgement == (verdict, 2.0, "wanted: above its null")


def test_a_head_that_the_model_lacks_is_not_measured():
    claim = "offset that head(8,9) attends to"
    assert judged(claim, "roberta-base", best_offset=np.zeros((2, 2)))[:2] == ("not measured", None)
    assert judged(claim, "roberta-base", best_offset=np.full((12, 12), -1))[0] == "pass"
    assert judged(claim, "tiny-bert", best_offset=np.zeros((2, 2)))[0] == "no published value"


def test_an_experiment_that_was_left_out_gives_its_reason():
    claim = published.CLAIMS[0]
    model = sized("gpt2")
    failure = Failure("needs the position table", True)
    row = published.judged(claim, "gpt2", model, {claim.experiment: failure})
    assert (row["verdict"], row["reason"]) == ("not measured", "needs the position table")
    assert published.judged(claim, "gpt2", model, {})["reason"] == "not run"


def test_every_claim_is_of_an_experiment_and_a_known_checkpoint():
    for claim in published.CLAIMS:
        assert claim.experiment in registry.EXPERIMENTS
        assert not claim.of or claim.of in published.CHECKPOINTS
        assert claim.rule and claim.source


def test_the_command_writes_the_table_and_finds_every_number(tmp_path, capsys):
    options = ["--documents", "6", "--tokens", "128", "--out", str(tmp_path)]
    assert cli.main(["published", "tiny-roberta", *options]) == 0
    rows = json.loads((tmp_path / "published.json").read_text(encoding="utf-8"))
    assert [row["what"] for row in rows] == [claim.what for claim in published.CLAIMS]
    for row in rows:
        elsewhere = any(word in row["what"] for word in ("head(", "perplexity", "that of BERT"))
        assert row["ours"] is not None or elsewhere, row
        assert row["verdict"] in ("pass", "fail") or row["of"] != "any model", row
    table = (tmp_path / "published.md").read_text(encoding="utf-8")
    assert table.count("\n| ") == len(rows) + 2 and rows[0]["what"] in capsys.readouterr().out
