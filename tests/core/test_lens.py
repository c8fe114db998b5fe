"""The logit lens: `logits(model, final_norm(model, stream))` is right in every family and layer.

What it must give at a layer: the logits of the same model without the layers after it.
"""

from dataclasses import replace

import numpy as np
import parity
import pytest
import tiny

import minitx

# classifiers that read the decoder at the last end token of a source
AT_AN_END = {"bart-sequence", "t5-sequence"}


@pytest.fixture(params=[name for name in parity.VARIANTS if name not in AT_AN_END])
def model(request):
    return tiny.load(request.param)


def said(model, x, given):
    """The logits of last hidden states; these if it has no head."""
    return minitx.logits(model, x, valid=given["valid"]) if model.config.task_head else x


def test_at_any_layer_it_gives_the_logits_of_the_model_that_ends_there(model):
    tokens, given = tiny.texts(model)
    trace = minitx.run(model, tokens, **given)
    for n in range(model.config.n_layers + 1):
        ends_there = replace(model, layers=model.layers[:n])
        x = minitx.forward(ends_there, tokens, **given)
        y = said(ends_there, x, given)
        streams = [("resid_post", n - 1)] if n else []
        streams += [("resid_pre", n)] if n < model.config.n_layers else []
        assert streams
        for key in streams:
            x = minitx.final_norm(model, trace[key])
            assert np.array_equal(said(model, x, given), y), key


def test_the_stream_of_a_model_that_norms_it_on_the_way_is_as_it_was(model):
    """And in the others it is not read before it is normed: that was the silent mistake."""
    tokens, given = tiny.texts(model)
    trace = minitx.run(model, tokens, **given)
    names = [name for name in ("resid_pre", "resid_mid", "resid_post") if (name, 0) in trace]
    for name in names:
        x = trace[name, 0]
        assert (minitx.final_norm(model, x) is x) == (not model.config.pre_norm)
    if model.config.pre_norm and model.weights.ln_final_b is not None:
        x = minitx.final_norm(model, trace["resid_post", 0])
        normed = (x - model.weights.ln_final_b) / model.weights.ln_final_w
        np.testing.assert_allclose(normed.mean(-1), 0, atol=1e-12)
        assert np.abs(x - trace["resid_post", 0]).max() > 0.1


def test_the_table_says_which_streams_are_normed():
    assert "final_norm" in minitx.POINTS["resid_post"].meaning
    assert "as resid_post" in minitx.POINTS["resid_pre"].meaning
