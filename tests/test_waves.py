"""Experiments on queries and keys as waves: their maths on constructed cases, then all of them on a planted model.

The planted model is tiny-roberta with two waves as its position table and one head that turns them by a known lag.
"""
from dataclasses import replace

import numpy as np
import pytest
import tiny

import minitx
import weights
from analysis import corpus, factors, inputs, registry, spectra
from analysis import waves as maths
from analysis.experiments import components, extraction, singular_values, waves

T, F, LAG = 256, 20, -3  # tokens, cycles of the planted wave, and where the key stands that the query looks for


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def pair(f, T=T, moved=0):
    """Cosine and sine of f cycles in T tokens, moved to the right: [T 2]."""
    angle = 2 * np.pi * f * (np.arange(T)[:, None] - moved) / T
    return np.hstack([np.cos(angle), np.sin(angle)])


# the peak and the band

def test_the_position_peak_is_the_largest_above_four_cycles():
    table = draw(T, 12, seed=1) / 20
    table[:, :2] += 3 * pair(3)
    table[:, 2:4] += 2 * pair(40)
    table[:, 4:6] += pair(90)
    assert maths.position_peak(table) == (40, True)


def test_without_a_peak_the_largest_frequency_is_taken_and_said_to_be_none():
    table = draw(T, 12, seed=1) / 100
    table[:, :2] += pair(3)
    assert maths.position_peak(table) == (3, False)
    assert not maths.position_peak(draw(T, 12))[1]  # noise stays below the largest of its own shuffles


def test_the_band_is_an_octave_around_the_peak():
    assert waves.band(89, 256) == (63, 126)
    assert waves.band(100, 256) == (71, 128)  # no further than half the tokens
    assert waves.band(1, 256) == (1, 1)
    assert waves.band(89, 256, low=7) == (7, 126) and waves.band(89, 256, high=90) == (63, 90)


# one head

def test_the_columns_that_carry_a_wave_in_query_and_key_are_found():
    q, k = draw(T, 6), draw(T, 6, seed=1)
    q[:, :2] += pair(F)                        # in the query alone
    k[:, 2:4] += pair(F)                       # in the key alone
    q[:, 4:], k[:, 4:] = pair(F), pair(F, moved=2)
    given = maths.carried(q, k, np.ones(6), F - 5, F + 5)
    assert set(np.argsort(-given)[:2]) == {4, 5}
    plain = maths.carried(q, k, np.ones(6), F, F)
    assert maths.carried(q, k, np.arange(6.0), F, F) == pytest.approx(np.arange(6) * plain)


def test_correlation_is_highest_at_the_planted_shift():
    q, k = pair(F), pair(F, moved=LAG)
    alike = maths.correlation(q, k, reach=5)
    assert alike.shape == (11, 2)
    assert (alike.argmax(axis=0) - 5).tolist() == [LAG, LAG]
    assert alike.max() > 0.98  # 1, but for the 3 tokens at the ends that meet nothing


def test_random_directions_reach_what_noise_has_and_not_what_is_planted():
    noise, r = draw(T, 24), 6
    U = np.linalg.qr(draw(24, r, seed=3))[0]
    line = maths.by_chance(noise, noise @ U, r, 5, 60, 10, seed=0)
    assert line.shape == (r,)
    other = maths.correlation(noise @ U, noise @ np.linalg.qr(draw(24, r, seed=4))[0], 10).max(axis=0)
    assert (other < line).sum() >= 4  # each is below in 19 of 20 cases; here all 6, chosen by nothing
    moved = np.roll(noise @ U, 2, axis=0)
    assert (maths.correlation(noise @ U, moved, 10).max(axis=0) > 1.5 * line).all()  # measured 1.8 and more


def test_columns_are_periodic_in_query_and_key_both():
    q, k = draw(T, 8), draw(T, 8, seed=1)
    q[:, :4] += pair(F)[:, [0, 1, 0, 1]]
    k[:, 2:6] += pair(F)[:, [0, 1, 0, 1]]
    n, chance = maths.periodic(q, k, 100, seed=0)
    assert n == 2
    assert chance <= 1
    assert maths.periodic(q[:, :0], k[:, :0], 10, seed=0) == (0, 0)
    slow = 5 * pair(1)[:, [0]]  # one period in all: no wave, however high
    assert maths.periodic(draw(T, 8) + slow, draw(T, 8, seed=1) + slow, 100, seed=0)[0] == 0


def test_only_the_product_of_the_weights_matters():
    x, W_Q, W_K = draw(30, 12), draw(12, 4, seed=1), draw(12, 4, seed=2)
    assert maths.replaced(x, W_Q, W_K) < 1e-14  # float64 sums in another order: measured 5e-16


# spectra of all heads

def test_largest_amplitude_is_the_plain_maximum_over_heads_and_columns():
    X, U = draw(2, 32, 6), draw(2, 3, 6, 4, seed=1)
    slow = [[max(np.abs(np.fft.rfft(X[layer] @ U[layer, h, :, j]))[f] for h in range(3) for j in range(4))
             for f in range(17)] for layer in range(2)]
    assert np.abs(maths.largest(X, U) - slow).max() < 1e-12  # measured 1e-14: another order of summation
    assert np.array_equal(maths.largest(X), maths.largest(X, np.eye(6) + np.zeros((2, 1, 6, 6))))


def test_contrast_is_the_height_over_the_median_without_the_mean():
    curve = np.array([[99.0, 1, 8, 2, 2, 1], [0, 0, 0, 0, 0, 0]])
    assert maths.contrast(curve, 2).tolist() == [4, 0]


def test_alike_is_the_correlation_of_two_spectra_without_the_mean():
    a = np.array([50.0, 1, 4, 2])
    assert maths.alike(a, 3 * a + 7) == pytest.approx(1)
    assert maths.alike(a, np.array([0, 9, 9, 9.0])) == 0
    assert maths.alike(a, np.array([0, 4, 1, 3.0])) == pytest.approx(np.corrcoef([1, 4, 2], [4, 1, 3])[0, 1])


# weights alone

def test_effective_rank_counts_equal_singular_values():
    S = np.array([[3.0, 3, 3, 0, 0], [5, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    assert maths.effective_rank(S)[:3] == pytest.approx([3, 1, 5])
    assert np.isfinite(maths.effective_rank(S)).all()


def test_share_between_a_space_and_itself():
    V = np.linalg.qr(draw(20, 20))[0]
    inside, out = V[:, :5], V[:, 5:]
    W_Q = np.array([inside @ draw(5, 4), inside @ draw(5, 4), out @ draw(15, 4), draw(20, 4)])
    W_K = np.array([inside @ draw(5, 4), out @ draw(15, 4), out @ draw(15, 4), draw(20, 4, seed=1)])
    share = maths.between(inside, W_Q, W_K)
    dense = W_Q[3] @ W_K[3].T
    truth = np.square(inside.T @ dense @ inside).sum() / np.square(dense).sum()
    assert share == pytest.approx([1, 0, 0, truth], abs=1e-12)  # measured 4e-16


# share of a component that position explains

def shares(x):
    """Share of each column of documents [N T C]."""
    return maths.position_share(x.sum(axis=0), np.square(x).sum(axis=(0, 1)), len(x))


def test_a_function_of_position_is_all_position_and_noise_is_none():
    N, C = 6, 400
    noise = draw(N, T, C)
    assert shares(np.repeat(draw(1, T, 3) + 5, N, axis=0)) == pytest.approx([1, 1, 1])
    error = np.sqrt(2 / (T * (N * (N - 1))))  # of one column; of the mean of 400 it is a twentieth
    assert abs(shares(noise).mean()) < 5 * error / 20
    assert shares(noise).std() == pytest.approx(error, rel=0.2)  # measured 0.96 of it
    assert shares(noise + draw(1, T, C, seed=1) + 100).mean() == pytest.approx(0.5, abs=0.01)  # as much of each
    assert shares(np.full((N, T, 1), 7.0)).tolist() == [0]


# a model with planted waves

@pytest.fixture(scope="module")
def bundled():
    return minitx.load(weights.find("tiny-roberta"))


@pytest.fixture(scope="module")
def planted(bundled):
    """tiny-roberta with waves of F cycles in two directions of its table; in L0H0 the like of a query is LAG away."""
    D, d = bundled.config.d_model, bundled.config.d_head
    E = np.linalg.qr(np.hstack([np.ones((D, 1)), draw(D, 2)]))[0][:, 1:]  # without a mean, as norms take it off
    table = np.zeros_like(bundled.weights.W_pos)
    table[-T:] = 12 * pair(F) @ E.T
    angle = 2 * np.pi * F * LAG / T
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])  # k[t] = q[t - LAG]
    w = bundled.layers[0]
    W_Q, W_K = w.W_Q.copy(), w.W_K.copy()
    W_Q[:, :d], W_K[:, :d] = 0, 0
    W_Q[:, :2], W_K[:, :2] = 3 * E * [2, 1], 3 * E @ turn
    flat = {"ln_embed_w": np.ones(D, np.float32), "ln_embed_b": np.zeros(D, np.float32)}
    return tiny.with_weights(bundled, {0: {"W_Q": W_Q, "W_K": W_K}}, W_pos=table, **flat)


@pytest.mark.parametrize("source", ["text", "positions"])
@pytest.mark.parametrize("bias", [0, 1])
def test_the_planted_head_is_a_wave_shifted_by_the_planted_lag(planted, source, bias):
    r = waves.queries_keys(planted, head="L0H0", input=source, bias=bias)
    assert (r["frequency"], *r["band"]) == (F, 14, 28)
    if not bias:
        assert r["columns"].tolist() == [[0, 1]] and r["papers_columns"].tolist() == [[1, 2]]
        assert r["lag"].tolist() == [[LAG, LAG]]
        assert (r["correlation"] > 0.9).all()
        assert r["n_periodic"].tolist() == [2] and r["n_periodic_null"] <= 1
    assert r["replaced"].max() < 1e-13
    assert ("xcorr_text" in r) == (source == "text")


def test_without_positions_the_planted_wave_is_gone(planted):
    r = waves.queries_keys(planted, head="L0H0", columns="0,1")
    assert (abs(r["correlation_text"]) < 0.3).all() and r["n_periodic_text"] <= 1


@pytest.mark.parametrize("bias", [0, 1])
def test_queries_and_keys_times_the_singular_values_are_the_models_scores(planted, bias):
    r = waves.queries_keys(planted, head="L0H0", columns="0,1,2,3", bias=bias)
    trace = minitx.run(planted, corpus.documents(planted).first()[0], keep=["q", "k"])
    w, d = planted.layers[0], planted.config.d_head
    q, k = trace["q", 0][0, 0] - (1 - bias) * w.b_Q[:d], trace["k", 0][0, 0] - (1 - bias) * w.b_K[:d]
    scores = q.astype(float) @ k.T
    ours = (r["q"][0] * r["S"][0, :4, None]).T @ r["k"][0]  # of rank 2, with biases of 4
    assert abs(scores - ours).max() < 1e-5 * abs(scores).max()  # float32 of the model: measured 4e-7


def test_filtered_columns_are_the_columns_in_the_band(planted):
    r = waves.queries_keys(planted, head="L0H1", low=5, high=9)
    assert np.array_equal(r["q_band"][0], spectra.bandpass(r["q"][0].T, 5, 9).T)
    assert r["band"].tolist() == [5, 9]


def test_the_bundles_position_heads_are_waves_above_chance(bundled):
    r = waves.queries_keys(bundled)
    assert (r["correlation"][:2] > 2 * r["correlation_null"][:2]).all()  # measured 0.95 and more against 0.39
    assert (r["lag"][:2] == [[-1], [1]]).all()
    assert (r["n_periodic"][:2] >= 4).all() and (r["n_periodic_null"] <= 1).all() and not r["n_periodic_text"].any()


def test_heads_extract_the_planted_wave(planted):
    r = extraction.extraction(planted, documents=2)
    assert r["peak"] == F and "highest peak" in str(r["kind"])
    assert r["contrast_q"] > 1.5 * r["contrast_q_null"] and r["contrast_k"] > 1.5 * r["contrast_k_null"]
    assert r["contrast_x_null"] < 1.5 and r["alike"].min() > 0.9 > r["alike_null"].max() + 0.5
    assert extraction.extraction(planted, documents=1, frequency=F + 1)["contrast_q"] < r["contrast_q"] / 2


def test_the_bundle_extracts_positions_and_forgets_them(bundled):
    r = extraction.extraction(bundled, documents=4)
    assert r["peak"] == 89
    assert min(r["contrast_q"], r["contrast_k"]) > 1.5 * r["contrast_q_null"]  # measured 2.1 against 1.26
    for name, row in zip("xqk", (0, 1, 2)):
        assert [r[f"last_{name}{key}"] for key in ("", "_null", "_text")] == [
            r["by_layer"][row, -1], r["by_layer"][row, 0], r["by_layer_null"][row, -1]]
    assert max(r["last_q"], r["last_k"]) < 1.15 < 1.8 < min(r["last_q_null"], r["last_k_null"])
    assert max(abs(r[f"last_{name}"] - r[f"last_{name}_text"]) for name in "qk") < 0.15  # measured 0.10
    text = extraction.says(r)
    assert "at 89 cycles, a period of 2.88 tokens" in text and "in Q it falls from" in text
    assert "Where 1.25 times the null counts, the peak stands out" in text


def test_the_planted_head_joins_the_space_of_positions(planted):
    r = singular_values.singular_values(planted, components=2)
    assert r["shares"][0, 0] == pytest.approx(1, abs=1e-4)  # the norm bends the wave a little: measured 1e-12
    assert r["share_head"] == "L0H0" and r["ranks"][0, 0] < 2.01 and r["share"] > r["share_null"]
    assert r["held"] > 0.999
    assert (r["shares"][1:] < r["share_null"]).all()


def test_random_weights_are_what_the_null_says(bundled):
    w, D = bundled.layers[1], bundled.config.d_model
    noise = {name: draw(D, D, seed=i).astype(np.float32) for i, name in enumerate(("W_Q", "W_K"))}
    r = singular_values.singular_values(tiny.with_weights(bundled, {1: noise}))
    assert np.median(r["ranks"][1]) == pytest.approx(r["rank_null"], rel=0.05)  # measured 0.01
    assert (r["shares"][1] < 2 * r["share_last_null"]).all() and w.W_Q is not noise["W_Q"]


def test_components_find_the_planted_positions_and_not_in_noise(planted):
    r = components.components(planted, documents=4, components=4)
    assert r["share"] > 0.9 and r["n_half"] == 2 and r["share_null"] < 0.1
    assert r["share_q"] > 0.9 and r["share_q_null"] < 0.3
    assert r["series"].shape == (4, T - 2)


def test_principal_directions_from_sums_are_those_of_the_stacked_documents(bundled):
    read = corpus.documents(bundled, "sample", 3, 40)
    U = components.principal(bundled, read, 5, 0)
    X = np.array([inputs.of_text(bundled, document)[:, 1:-1] for document in read]).swapaxes(0, 1)  # [L N T D]
    for layer, x in enumerate(X):
        directions = factors.pca(x.reshape(-1, x.shape[-1]), 5)[1]
        assert abs(abs((U[layer] * directions.T).sum(axis=0)) - 1).max() < 1e-6  # float32 products: measured 1e-9


def test_independent_components_are_measured_as_directions(bundled, monkeypatch):
    def ica(x, n, seed):  # any n linear series will do
        return 3 * x @ draw(x.shape[1], n)
    monkeypatch.setattr(factors, "ica", ica)
    r = components.components(bundled, documents=6, tokens=30, components=3, method="ica")
    assert r["method"] == "ica" and r["shares"].shape == (4, 3)
    U = components.independent(bundled, corpus.documents(bundled, "sample", 6, 60), 3, 0)
    assert np.abs(U - 3 * draw(128, 3)).max() < 1e-6  # float32 input, least squares: measured 1e-8


# partial checkpoints, causal models, options

def partial(model):
    """The model as if its words and its second layer were missing."""
    lost = tiny.with_weights(model, {1: dict.fromkeys(("W_Q", "W_K", "b_Q", "b_K"))}, W_E=None)
    return replace(lost, tokenizer=None, missing=("W_E", "W_Q"))


def test_a_partial_checkpoint_is_looked_at_by_positions_alone(planted):
    lost = partial(planted)
    r = waves.queries_keys(lost, head="L0H0")
    assert r["input"] == "positions" and r["lag"].tolist() == [[LAG, LAG]] and "xcorr_text" not in r
    assert "of positions alone" in waves.says(r)
    assert {str(name)[:2] for name in waves.queries_keys(lost)["heads"]} <= {"L0", "L2", "L3"}
    assert singular_values.singular_values(lost)["layers"].tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="L1H0: no query and key weights in this checkpoint"):
        waves.queries_keys(lost, head="L1H0")
    with pytest.raises(ValueError, match="--input is text, but 2 tensors of this checkpoint are missing; wanted posi"):
        waves.queries_keys(lost, input="text")


def test_what_a_causal_head_cannot_see_is_said(planted):
    r = waves.queries_keys(planted, head="L0H0", columns="0")
    assert "cannot look" not in waves.says(r)
    assert "A causal head cannot look to the right." in waves.says(r | {"causal": True, "lag": -r["lag"]})


def test_two_tokens_have_no_components():
    with pytest.raises(ValueError, match="--tokens is 2; wanted 4 or more"):
        registry.get("components").run(minitx.load(weights.find("tiny-gpt2")), tokens=2)


def test_more_heads_than_a_figure_of_attention_holds(bundled):
    with pytest.raises(ValueError, match="--head names 7 heads; a figure holds 6"):
        registry.get("attention").run(bundled, head="L0H0,L0H1,L0H2,L0H3,L1H0,L1H1,L1H2")


@pytest.mark.parametrize("name, options, message", [
    ("queries-keys", {"head": "L9H0"}, "'L9H0' is no head of this model: wanted L0H0 to L3H3"),
    ("queries-keys", {"head": "L0H0,L0H1,L0H2,L0H3,L1H0,L1H1,L1H2"}, "--head names 7 heads; a figure holds 6"),
    ("queries-keys", {"columns": "0,32"}, "--columns '0,32': wanted up to 6 of the columns 0 to 31, joined by commas"),
    ("queries-keys", {"columns": "-1"}, "--columns '-1': wanted"),
    ("queries-keys", {"columns": ""}, "--columns '': wanted"),
    ("queries-keys", {"columns": "0,1,2,3,4,5,6"}, "wanted up to 6 of the columns"),
    ("queries-keys", {"low": 9, "high": 5}, "--low 9 --high 5: wanted a band within 1 to 128 cycles, low before high"),
    ("queries-keys", {"high": 129}, "--high 129: wanted a band within 1 to 128"),
    ("queries-keys", {"low": -2}, "--low -2"),
    ("queries-keys", {"bias": 2}, "--bias is 2; wanted 0 to 1"),
    ("queries-keys", {"reach": 200}, "--reach is 200; wanted 1 to 128"),
    ("queries-keys", {"show": 300}, "--show is 300; wanted 8 to 256"),
    ("queries-keys", {"input": "words"}, "--input is 'words'; wanted auto, text or positions"),
    ("queries-keys", {"input": "positions", "tokens": 300}, "--tokens is 300; wanted 16 to 256"),
    ("extraction", {"frequency": 129}, "--frequency is 129; wanted 1 to 128"),
    ("extraction", {"documents": -1}, "--documents is -1; wanted 1 or more"),
    ("singular-values", {"components": 0}, "--components is 0; wanted 1 to 127"),
    ("components", {"components": 65}, "--components is 65; wanted 1 to 64"),
    ("components", {"documents": 1}, "--documents is 1; wanted 2 or more"),
    ("components", {"method": "nmf"}, "--method 'nmf': wanted pca or ica")])
def test_bad_options_are_noticed(bundled, name, options, message):
    with pytest.raises(ValueError, match=message):
        registry.get(name).run(bundled, **options)
