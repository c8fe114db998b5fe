"""A GPT that sorts letters, against the intermediate values that its author published.

golden/sort-gpt holds Brendan Bycroft's trained model (github.com/bbycroft/llm-viz, MIT, LICENSE
beside it) under the usual names, and internals.safetensors: his values for a batch of three
sequences, in float32. The bound is 1e-6 of a point's largest value, a few roundings of float32; the
measured distances are in the table. Of a float64 run they are the published values' own rounding,
and hence the same on every machine.
"""

import numpy as np
import pytest
from parity import GOLDEN
from safetensors.numpy import load_file
from scipy.special import softmax

import minitx

# his name: our point (or how it comes out of several), max |difference| of a float64 run
PUBLISHED = {
    "tok_emb": ("embed", 0),
    "pos_emb": ("pos_embed", 0),
    "x": (("resid_pre", 0), 7.5e-9),
    "ln1": (("ln1", 0), 4.0e-7),
    "qkv": (lambda t: np.concatenate([joined(t[name, 0]) for name in "qkv"], -1), 3.4e-7),
    "q": (("q", 0), 2.8e-7),
    "k": (("k", 0), 3.4e-7),
    "v": (("v", 0), 1.6e-7),
    "att": (("scores", 0), 1.0e-6),
    "attSm": (("pattern", 0), 1.5e-7),
    "y": (lambda t: joined(t["z", 0]), 1.3e-7),
    "yProj": (("attn_out", 0), 2.8e-8),
    "attnResid": (("resid_mid", 0), 2.9e-8),
    "ln2": (("ln2", 0), 6.4e-7),
    "fc": (("pre", 0), 5.8e-7),
    "gelu": (("post", 0), 5.9e-7),
    "mlp": (("mlp_out", 0), 4.2e-7),
    "mlpResid": (("resid_post", 0), 4.4e-7),
    "block0": (("resid_post", 0), 4.4e-7),
    "block1": (("resid_post", 1), 3.9e-7),
    "block2": (("resid_post", 2), 1.16e-6),
    "ln_f": ("ln_final", 1.26e-6),
    "lm_head": ("logits", 1.89e-6),
    "probs": (lambda t: softmax(t["logits"], axis=-1), 4.7e-7),
}


def joined(x):  # [B H T d] -> [B T D]
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


@pytest.fixture(scope="module")
def published():
    return load_file(GOLDEN / "sort-gpt" / "internals.safetensors")


@pytest.fixture(scope="module", params=[np.float64, np.float32], ids=["float64", "float32"])
def trace(request, published):
    model = minitx.load(GOLDEN / "sort-gpt", dtype=request.param)
    return minitx.run(model, published["idx"].astype(int))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_intermediate(trace, published, name):
    point, measured = PUBLISHED[name]
    theirs = published[name]
    ours = point(trace) if callable(point) else trace[point]
    shown = np.isfinite(theirs)
    assert (np.isneginf(ours) == ~shown).all()  # his hidden scores are -inf too
    far = abs(np.where(shown, ours, 0) - np.where(shown, theirs, 0)).max()
    assert far <= 1e-6 * abs(theirs[shown]).max()
    if ours.dtype == np.float64:
        assert far == pytest.approx(measured, rel=0.03)


def test_every_published_value_is_compared(published):
    assert set(published) == {"idx", *PUBLISHED}


def test_the_model_sorts(trace):
    """From the sixth letter on it predicts the six letters in order: it was trained to."""
    assert (trace["logits"][:, 5:].argmax(-1) == np.sort(trace.tokens[:, :6])).all()
