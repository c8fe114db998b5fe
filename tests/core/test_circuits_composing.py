"""Composition of heads: the [D D] matrices of the paper, a known answer, a model that repeats."""

import numpy as np
import pytest
import tiny
from scipy.stats import ortho_group

import minitx
from minitx import circuits, head_weights

FAMILIES = ["gpt2-causal", "bert-masked", "llama-grouped", "qwen3-norms", "gemma2-all", "t5-gated"]
FAMILIES += [
    "gpt_neox-parallel",
    "bloom-three",
    "modernbert-masked",
    "olmo2-biases",
    "albert-inner",
]


def whole(model):
    """(OV, QK) [H D D] of each layer, with the gains of norms and, of a LayerNorm, its mean."""
    cfg, D = model.config, model.config.d_model
    for w in model.layers:
        q, k, v = (head_weights.matrices(w, cfg, letter) for letter in "QKV")
        inside = np.eye(D)
        if cfg.pre_norm and w.ln1_w is not None:
            centred = np.eye(D) if cfg.rms_norm else np.eye(D) - 1 / D
            inside = centred @ np.diag(w.ln1_w)
        outside = np.eye(D) if w.attn_out_w is None else np.diag(w.attn_out_w)
        write = w.W_O.reshape(cfg.n_heads, -1, D) @ outside
        yield inside @ v @ write, inside @ q @ (inside @ k).swapaxes(1, 2)


@pytest.mark.parametrize("variant", FAMILIES)
def test_it_is_that_of_whole_matrices(variant):
    """All pairs against products of [D D]; measured at most 1.7e-16, bound 1e-12."""
    model = tiny.load(variant)
    results = circuits.composition(model, n_draws=1)
    layers, norm = [*whole(model)], np.linalg.norm
    for i, h, j, g in np.ndindex(results["q"].shape):
        values = [results[way][i, h, j, g] for way in "qkv"]
        if j <= i:
            assert np.isnan(values).all()
            continue
        (wrote, _), (ov, qk) = layers[i], layers[j]
        readers = [qk[g], qk[g].T, ov[g]]
        expected = [norm(wrote[h] @ x) / norm(wrote[h]) / norm(x) for x in readers]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_the_null_is_an_output_turned_by_random_orthogonal_matrices():
    """Drawn again as [D D] turns: the same quantile, up to twice its error in 500 draws."""
    model = tiny.load("gpt2-causal")
    null = circuits.composition(model, "k", n_draws=500)["k"].null
    (wrote, _), (_, qk) = whole(model)
    turns = ortho_group(model.config.d_model, seed=5)
    norm, largest = np.linalg.norm, []
    for _ in range(500):
        drawn = [x @ turns.rvs() for x in wrote]
        values = [norm(x @ y.T) / norm(x) / norm(y) for x in drawn for y in qk]
        largest.append(max(values))
    assert abs(null - np.quantile(largest, 0.95)) < 6 * np.std(largest) * 500**-0.5


def test_a_head_that_reads_one_other_is_known():
    """Head 1 of layer 1 has keys of exactly the directions that head 0 of layer 0 writes to."""
    model = tiny.load("gpt2-causal")
    D, d, H = model.config.d_model, model.config.d_head, model.config.n_heads
    r = (D - 1) // 3  # directions of each of three frames, the other rows are 0
    basis = ortho_group(D - 1, seed=1).rvs()
    basis = basis @ np.linalg.svd(np.ones((1, D)))[2][1:]  # no LayerNorm's mean in them
    rows = np.zeros((3, d, D))
    rows[:, :r] = basis[: 3 * r].reshape(3, r, D)
    write = [rows[0], *[np.zeros((d, D))] * (H - 1)]
    first = {"W_V": np.hstack([rows[1].T] * H), "W_O": np.vstack(write), "ln1_w": np.ones(D)}
    keys = [rows[2].T, rows[0].T, *[rows[2].T] * (H - 2)]
    second = {"W_K": np.hstack(keys), "W_Q": np.hstack([rows[1].T] * H), "ln1_w": np.ones(D)}
    result = circuits.composition(tiny.with_weights(model, {0: first, 1: second}))
    k = np.asarray(result["k"][0, :, 1])
    expected = np.zeros((H, H))
    expected[0, 1] = r**-0.5  # |R| / |R|^2 of orthonormal R of rank r
    np.testing.assert_allclose(k, expected, atol=1e-12)
    assert k[0, 1] > result["k"].null and result["q"][0, 0, 1, 1] < 1e-12


def test_induction_reads_previous_tokens_through_keys():
    """The three heads that look at the previous token are those that keys read, beyond chance."""
    model = minitx.load("tiny-induction")
    previous = circuits.detect_heads(model, "previous")["previous"][0] > 0.25
    pairs = circuits.composition(model)
    k, null = np.asarray(pairs["k"][0, :, 1]), pairs["k"].null
    assert previous.sum() == 3
    assert (k[previous] > 1.4 * null).all()
    assert np.median(k[~previous]) < null
    assert (np.asarray(pairs["q"][0, :, 1])[previous] < pairs["q"].null).all()


def test_random_weights_compose_as_chance():
    model = tiny.load("gpt2-causal")
    rng = np.random.default_rng(0)
    layers = {}
    for w in model.layers:
        names = "W_Q", "W_K", "W_V", "W_O"
        layers[w.index] = {name: rng.standard_normal(getattr(w, name).shape) for name in names}
    results = circuits.composition(tiny.with_weights(model, layers), n_draws=50)
    for way in "qkv":
        assert np.nanmax(results[way]) < 1.25 * results[way].null


def test_what_it_cannot_is_said():
    model = tiny.load("gpt2-causal")
    with pytest.raises(ValueError, match="through is 'z'; expected one of 'q', 'k', 'v'"):
        circuits.composition(model, "z")
    with pytest.raises(ValueError, match="n_draws is 0; expected 1 or more"):
        circuits.composition(model, n_draws=0)
    with pytest.raises(ValueError, match="composition needs the weights in memory"):
        circuits.composition(minitx.load("tiny-gpt2", keep_dtype=True))
    single = circuits.composition(model, "v", seed=3)
    assert [*single] == ["v"]
    assert np.array_equal(single["v"], circuits.composition(model)["v"], equal_nan=True)
