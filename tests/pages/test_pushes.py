"""What a page says a guess comes from, without a browser: its numbers, its null, refusals."""

import json

import numpy as np
import pytest
from elements import Elements

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis.contract.registry import NotApplicable
from minitx.analysis.measures import attributions, document_features, losses
from minitx.analysis.pages import explore, packing, pushes

MODEL = "tiny-roberta"
SENTENCE = "The old man <mask> down the road."


@pytest.fixture(scope="module")
def content(model):
    return pushes.of_text(model, explore.readable(model, SENTENCE))


def test_the_guess_is_that_of_the_hidden_token(model, content):
    tokens = explore.readable(model, SENTENCE)
    place = int(np.flatnonzero(tokens == losses.mask_token(model.tokenizer))[0])
    best = minitx.run(model, tokens, ["logits"])["logits"][0, place].argmax()
    assert content["place"] == place and not content["hidden"]
    assert content["what"] == model.tokenizer.pieces([best])[0].replace(" ", "␣")


def test_a_text_that_hides_nothing_is_asked_in_its_middle(model):
    tokens = explore.readable(model, "The old man looked down the road.")
    other = pushes.of_text(model, tokens)
    assert other["hidden"] and other["place"] == len(tokens) // 2


def test_the_numbers_are_those_of_the_measure(model, content):
    """Of the model, and of random weights asked for the same word; packed in 12 bits."""
    wanted = attributions.asked(model, explore.readable(model, SENTENCE))
    noise = document_features.untrained(model, np.random.default_rng(pushes.SEED))
    for n, each in enumerate((model, noise)):
        parts = attributions.of_heads(each, wanted)
        for m, way in enumerate(pushes.WAYS):
            kept = packing.unpack(content["heads"])[n, m]
            error = abs(kept - getattr(parts, way)).max()
            assert error <= 1.01 * content["heads"]["error"]  # of rounding to 12 bits
    own, random = packing.unpack(content["tokens"])
    assert own.shape == (3, len(wanted.tokens))
    _, mine, chance = np.corrcoef([own[2], own[0], random[0]])[0]  # with ablation
    assert mine > chance + 0.3


def test_without_an_mlp_is_a_pass_in_which_it_writes_zeros(model, content):
    tokens = explore.readable(model, SENTENCE)
    wanted = attributions.asked(model, tokens)

    def loss(edits):
        y = minitx.run(model, tokens, ["logits"], edits)["logits"][0, wanted.place]
        return np.logaddexp.reduce(y.astype(np.float64)) - y[wanted.what]

    lost = [loss({("mlp_out", layer): np.zeros_like}) - loss({}) for layer in range(4)]
    assert np.allclose(content["mlps"][0], lost, atol=1e-3) and max(lost) > 0.5
    assert np.shape(content["mlps"]) == (2, 4)


def test_the_parts_add_up_as_far_as_the_gap_says(model, content):
    wanted = attributions.asked(model, explore.readable(model, SENTENCE))
    absent = np.broadcast_to(model.weights.W_E.mean(0), (2, len(wanted.tokens), 128)).copy()
    absent[1] = model.weights.W_E[wanted.tokens]
    before, after = attributions.values(model, wanted, {"embed": absent})
    parts = packing.unpack(content["tokens"])[0, 0]
    assert 0 < content["gap"][0] < attributions.COMPLETE
    rounding = content["tokens"]["error"] * len(parts)
    allowed = content["gap"][0] * abs(parts).max() + rounding
    assert abs(parts.sum() - (after - before)) <= allowed + 1e-4


def test_a_page_has_it_only_where_it_was_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sizes = []
    for flags in ([], ["--attribution"]):
        assert cli.main(["explore", "tiny-roberta", SENTENCE, *flags]) == 0
        text = (tmp_path / "out/tiny-roberta-explore/explore.html").read_text(encoding="utf-8")
        assert ("pushes" in Elements(text).data["runs"][0]["outputs"]) == bool(flags)
        sizes.append(len(text.encode()))
    capsys.readouterr()
    assert sizes[1] - sizes[0] < 3000  # 1,300 bytes: 12 bits a number


def test_models_without_such_guesses_are_refused(tmp_path):
    other = minitx.load("tiny-bart")
    with pytest.raises(NotApplicable, match="needs one stack.*is an encoder-decoder"):
        explore.write(other, "tiny-bart", "3 May 1912", tmp_path / "page.html", attribution=True)
    assert not list(tmp_path.iterdir())


def test_the_live_page_has_it_of_runs_as_they_are(model):
    live = pytest.importorskip("minitx.analysis.live.runs", reason="comes with the extra `live`")
    requests = pytest.importorskip("minitx.analysis.live.requests")
    for attribution in (False, True):
        runs = live.Runs({"tiny-roberta": model}, attribution=attribution)
        request = requests.RunRequest("tiny-roberta", SENTENCE)
        [run] = json.loads(runs.answer(request))["runs"]
        assert ("pushes" in run["outputs"]) == attribution
    with pytest.raises(NotApplicable, match="is an encoder-decoder"):
        live.Runs({"tiny-bart": minitx.load("tiny-bart")}, attribution=True)
