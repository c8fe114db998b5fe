"""The bundled checkpoints are what their cards say.

Their heads and spectra are held in tests/experiments.
"""

import hashlib
import re

import numpy as np
import pytest
from scipy.special import log_softmax

import minitx
from minitx import weights
from minitx.analysis.experiments import cca, dial
from minitx.analysis.texts import corpus


@pytest.mark.parametrize("name", weights.bundled())
def test_the_card_is_the_files_own(name):
    folder = weights.find(name)
    card = (folder / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"sha256 \| `([0-9a-f]{64})`", card)[1]
    file = folder / "model.safetensors"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == stated
    assert file.stat().st_size < 4 << 20
    minitx.check(minitx.load(folder))


def test_gpt2_predicts_better_than_frequencies():
    """The card says 3.385 nats per token, and 5.985 by word frequencies; 10 windows here."""
    model = minitx.load(weights.find("tiny-gpt2"))
    tokens = corpus.documents(model, "sample", 10).first(10)
    y = minitx.logits(model, minitx.forward(model, tokens)).astype(np.float64)[:, :-1]
    logp = np.take_along_axis(log_softmax(y, axis=-1), tokens[:, 1:, None], -1)
    assert 3.0 < -logp.mean() < 3.8


def test_deeper_layers_of_deep_roberta_keep_positions_and_read_them():
    """The card: their heads follow moved positions, and canonical correlations fade slowly."""
    model = minitx.load("deep-roberta")
    turned = dial.dial(model, documents=8, losses=0)
    assert turned["layer_n_cells"][1] >= 24
    misses = turned["layer_n_cells"] - turned["layer_n_exact"]
    assert (misses[:2] <= [1, 0]).all()  # of 56 and 48
    kept = cca.cca(model, documents=24, shuffles=5)["mean_first"]
    assert kept.min() > 0.9  # measured 0.94
