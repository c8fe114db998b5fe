"""The bundled checkpoints are what their cards say; their heads and spectra are held in test_analysis.py."""
import hashlib
import re

import numpy as np
import pytest

import minitx
import weights
from analysis import corpus


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-gpt2", "tiny-roberta"])
def test_the_card_is_the_files_own(name):
    folder = weights.find(name)
    stated = re.search(r"sha256 \| `([0-9a-f]{64})`", (folder / "README.md").read_text(encoding="utf-8"))[1]
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() == stated
    assert (folder / "model.safetensors").stat().st_size < 4 << 20
    minitx.check(minitx.load(folder))


def test_gpt2_predicts_better_than_frequencies():
    """The card says 3.385 nats a token where the frequencies of the training text give 5.985; 10 windows here."""
    model = minitx.load(weights.find("tiny-gpt2"))
    tokens = corpus.documents(model, "sample", 10).first(10)
    y = minitx.logits(model, minitx.forward(model, tokens)).astype(np.float64)[:, :-1]
    y -= y.max(-1, keepdims=True)
    logp = np.take_along_axis(y, tokens[:, 1:, None], -1)[..., 0] - np.log(np.exp(y).sum(-1))
    assert 3.0 < -logp.mean() < 3.8
