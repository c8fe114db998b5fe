"""Steps of greedy decoding: whose row asks, where it looks, what it says."""

import numpy as np
import pytest
import talking
import tiny
from scipy.special import softmax

import minitx
from minitx.analysis.measures import decoding

TEXT = "The cat sat on the mat."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return minitx.load(talking.folder(tmp_path_factory.mktemp("talking")), dtype=np.float64)


def test_a_step_is_what_a_pass_over_the_tokens_so_far_gives(model):
    """Of each step's last token: its attention in the source, its best tokens, their logits."""
    decoded = decoding.steps(model, TEXT, 8)
    source = model.tokenizer.encode(TEXT)
    ids = minitx.generate(model, source=source, n=8)
    assert decoded.source.tolist() == source.tolist()
    assert [decoded.asking[0], *decoded.said] == ids.tolist()
    assert decoded.asking[1:].tolist() == decoded.said[:-1].tolist()
    assert len(set(decoded.said.tolist())) > 1
    for i in range(len(decoded.said)):
        trace = minitx.run(model, ids[: i + 1], ["cross_pattern", "logits"], source=source)
        attention = trace["cross_pattern", -1][0, :, -1].mean(axis=0)
        np.testing.assert_allclose(decoded.attention[i], attention, rtol=0, atol=1e-12)
        y = trace["logits"][0, -1]
        best = np.argsort(-y)[:3]
        assert decoded.best[i].tolist() == best.tolist()
        np.testing.assert_allclose(decoded.logits[i], y[best], rtol=0, atol=1e-12)
        p = softmax(y)
        np.testing.assert_allclose(decoded.probabilities[i], p[best], rtol=0, atol=1e-12)
        said = p[decoded.said[i]]
        np.testing.assert_allclose(decoded.said_probabilities[i], said, rtol=0, atol=1e-12)
    pieces = model.tokenizer.pieces
    assert decoded.source_pieces.tolist() == pieces(source)
    assert decoded.said_pieces.tolist() == pieces(decoded.said)
    assert decoded.best_pieces.shape == decoded.best.shape == (len(decoded.said), 3)


def test_a_layer_and_a_head_can_be_picked(model):
    source = model.tokenizer.encode(TEXT)
    ids = minitx.generate(model, source=source, n=6)
    trace = minitx.run(model, ids[:-1], ["cross_pattern"], source=source)
    for layer, head in ((0, 2), (1, 0), (-1, -1)):
        decoded = decoding.steps(model, source, 6, layer=layer, head=head)
        pattern = trace["cross_pattern", layer][0, head]
        np.testing.assert_allclose(decoded.attention, pattern, rtol=0, atol=1e-12)
    assert (decoding.steps(model, source, 6, layer=0).attention != decoded.attention).any()


def test_steps_end_with_the_text():
    """A token that is forced is said, though its logit is not among the best."""
    golden = tiny.load("generated/bart")
    decoded = decoding.steps(golden, [11, 12, 13], 5)
    assert decoded.said[0] == 5 and 5 not in decoded.best[0]
    assert decoded.said[-1] == 2
    assert decoded.source_pieces.tolist() == ["<11>", "<12>", "<13>"]


DATES = {
    "the 3rd of May, 1912": "1912-05-03",
    "12/25/1987": "1987-12-25",
    "May 3, 1912": "1912-05-03",
    "7 Sept 2004": "2004-09-07",
    "1999.1.31": "1999-01-31",
}


def test_on_dates_the_token_before_looks_at_the_one_that_is_said():
    """Pooled over five dates; looking for its own like, a token does no better than chance."""
    model = minitx.load("tiny-bart")
    rows = {"said": [], "asking": []}
    for text, iso in DATES.items():
        decoded = decoding.steps(model, text)
        assert model.tokenizer.decode(decoded.said) == iso
        beams = minitx.generate(model, source=text, num_beams=4)
        assert model.tokenizer.decode(beams) == iso
        for name, reading in decoding.naive(decoded).items():
            rows[name].append(reading)
    pooled = {}
    for name, readings in rows.items():
        n, share, null = np.array(readings).T
        pooled[name] = (n * share).sum() / n.sum(), (n * null).sum() / n.sum()
    share, null = pooled["said"]
    assert share > 0.6 > 3 * null  # measured 0.74, by chance 0.12
    share, null = pooled["asking"]
    assert share < null + 0.05  # measured 0.10, by chance 0.12


def made_up(source, asking, said, strongest):
    """Steps whose strongest source pieces are known."""
    attention = np.eye(len(source))[strongest]
    empty = np.zeros((len(said), 0))
    ids = np.zeros(len(said), int)
    source, asking, said = map(np.array, (source, asking, said))
    zeros = np.zeros(len(source), int)
    return decoding.Steps(
        zeros, source, ids, asking, ids, said, ids, attention, empty, empty, empty, empty
    )


def test_two_readings_of_a_step_are_counted_with_what_chance_gives():
    """Only steps whose piece stands in the source count; a blank before a piece does not."""
    source = ["I", " have", " a", " pen", "pen"]
    decoded = made_up(source, ["<s>", "a", "pen", "have"], ["pen", "have", "x", "I"], [3, 4, 0, 1])
    readings = decoding.naive(decoded)
    assert readings["said"] == (3, 1 / 3, pytest.approx((2 + 1 + 1) / 5 / 3))
    assert readings["asking"] == (3, 1 / 3, pytest.approx((1 + 2 + 1) / 5 / 3))
    nothing = decoding.naive(made_up(["a", "b"], ["c"], ["d"], [0]))
    assert nothing == {"said": (0, None, None), "asking": (0, None, None)}


@pytest.mark.parametrize(
    "variant,options,message",
    [
        (
            "gpt2-causal",
            {},
            r"gpt2 has no cross-attention; minitx.generate\(model, prompt\) continues",
        ),
        ("bert-masked", {}, "bert has no cross-attention; wanted an encoder-decoder"),
        ("generated/bart", {"layer": 2}, "layer is 2; wanted 0 to 1, or -1 for the last"),
        ("generated/bart", {"head": -4}, "head is -4; wanted 0 to 2"),
        ("generated/bart", {"n": 0}, "n is 0; wanted at least one step"),
    ],
)
def test_what_steps_refuse(variant, options, message):
    with pytest.raises(ValueError, match=message):
        decoding.steps(tiny.load(variant), [4, 5], **options)
