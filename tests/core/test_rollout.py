"""Attention rollout: what it multiplies, and what it cannot see."""

import numpy as np
import pytest

import minitx
from minitx import circuits

TEXT = "The old man said that he"


def test_two_layers_by_hand():
    """Layer 0 looks one token back, layer 1 two: a quarter goes each way."""
    trace = minitx.run(minitx.load("tiny-gpt2"), TEXT, keep="pattern")
    T = trace.stack("pattern").shape[-1]
    back = [np.eye(T, k=-n) + np.diag(np.arange(T) < n) for n in (1, 2)]
    for layer in range(4):
        weights = back[layer] if layer < 2 else np.eye(T)
        trace.arrays["pattern", layer] = np.broadcast_to(weights, trace["pattern", layer].shape)
    rolled = circuits.rollout(trace)[-1, 0]
    assert rolled[-1, ::-1][:4].tolist() == [0.25, 0.25, 0.25, 0.25]
    assert rolled[0].tolist() == [1] + [0] * (T - 1)


def test_heads_that_write_nothing_count():
    """Without values nothing is moved: another first token changes nothing, and has its share."""
    model = minitx.load("tiny-gpt2")
    ids = model.tokenizer.encode(TEXT)
    other = ids.copy()
    other[0] = model.tokenizer.encode("She")[0]
    edits = {("v", layer): 0.0 for layer in range(4)}
    trace, replaced = (minitx.run(model, x, edits=edits) for x in (ids, other))
    assert abs(trace["logits"] - replaced["logits"])[0, -1].max() == 0
    assert circuits.rollout(trace)[-1, 0, -1, 0] > 0.1  # measured: 0.37
    plain, changed = (minitx.run(model, x) for x in (ids, other))
    assert abs(plain["logits"] - changed["logits"])[0, -1].max() > 0.1


def test_attention_to_another_text_and_patterns_that_were_not_kept_are_refused():
    pair = minitx.load("tiny-bart")
    trace = minitx.run(pair, "1912-05-03", source="3 May 1912")
    assert circuits.rollout(trace, "enc_pattern").shape[0] == len(trace.stack("enc_pattern"))
    with pytest.raises(ValueError, match="cross_pattern'; wanted attention inside a text: pattern"):
        circuits.rollout(trace, "cross_pattern")
    with pytest.raises(ValueError, match="trace is 'tiny-gpt2'; wanted a Trace, as minitx.run"):
        circuits.rollout("tiny-gpt2")
    with pytest.raises(KeyError, match="stack needs all"):
        circuits.rollout(minitx.run(minitx.load("tiny-gpt2"), TEXT, keep=[("pattern", 1)]))
