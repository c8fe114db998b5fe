"""Features and predictions without positions, against what theory says of constructed cases."""
import numpy as np
import pytest
from analysis_models import gpt2
from scipy.special import log_softmax

import minitx
import tiny
from analysis import corpus, registry
from analysis.experiments import removal

remove = registry.get("remove-positions").run


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return minitx.load(gpt2(tmp_path_factory.mktemp("gpt2")), dtype=np.float64)


def test_a_model_whose_positions_are_zero_loses_nothing_without_them(causal):
    flat = tiny.with_weights(causal, W_pos=np.zeros_like(causal.weights.W_pos))
    found = remove(flat, documents=2)
    assert np.abs(found["cosine_by_layer"] - 1).max() < 1e-12  # measured 2e-16
    assert np.ptp(found["losses"]) == 0 and found["losses"][0] == found["loss"]


def test_losses_are_those_of_the_logits(causal):
    documents = corpus.documents(causal, "sample", 3)
    direct = []
    for document in documents:
        y = minitx.run(causal, document, keep=["logits"])["logits"][0]
        direct.append(-log_softmax(y, axis=1)[np.arange(documents.T - 1), document[1:]])
    found = remove(causal, documents=3)
    assert found["loss"] == pytest.approx(np.mean(direct), rel=1e-12)  # measured 2e-16: another order of sums
    perplexities = np.exp(np.mean(direct, axis=1))
    assert found["mean_perplexity"][0] == pytest.approx(perplexities.mean(), rel=1e-12)
    assert found["perplexity"][0] == pytest.approx(np.exp(np.mean(direct)), rel=1e-12)
    assert found["perplexity"][0] < found["mean_perplexity"][0]  # two conventions, never the same (Jensen)


def test_chunks_of_tokens_change_no_loss(causal, monkeypatch):
    document = corpus.documents(causal, "sample", 1).first()[0]
    x = minitx.forward(causal, document)[0]
    whole = removal.losses(causal, x, document)
    monkeypatch.setattr(removal, "ROWS", 5)
    assert len(whole) == len(document) - 1
    assert np.abs(removal.losses(causal, x, document) - whole).max() < 1e-12  # measured 1e-15


def test_features_end_with_what_forward_returns(causal):
    document = corpus.documents(causal, "sample", 1).first()[0]
    found, trace = removal.features(causal, document), minitx.run(causal, document, keep=["resid_pre", "ln_final"])
    assert np.array_equal(found[-1], trace["ln_final"][0]) and np.array_equal(found[1], trace["resid_pre", 1][0])
    assert len(found) == causal.config.n_layers + 1


@pytest.mark.parametrize("D", [8, 128, 768])
def test_the_bound_of_random_vectors_is_that_of_samples(D):
    x = np.random.default_rng(0).standard_normal((50_000, D), np.float32)
    cosines = x[:, 0] / np.linalg.norm(x, axis=1)  # with one fixed direction
    above = (cosines > removal.random_bound(D)).mean()
    assert abs(above - 0.001) < 0.0006  # four standard deviations of 50,000 draws
