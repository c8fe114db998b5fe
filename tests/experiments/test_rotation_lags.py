"""Rotation, lags and models: a shift built into a model comes back; what is missing is said."""

import json

import numpy as np
import pytest
from analysis_models import gpt2
from distance import max_error
from safetensors.numpy import load_file, save_file
from tiny import with_weights

import minitx
from minitx import weights
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.maths import lags, nulls, profiles, rotation
from minitx.analysis.measures import heads, inputs
from minitx.analysis.runner import draw, registry
from minitx.analysis.texts import corpus, formats

# tokens: where the keys stand that fit the queries of the four heads of the planted layer
OFFSETS = (-2, 1, 3, -1)
QUICK = {
    "rotation": {"gauge": 1},
    "lags": {"documents": 2},
    "models": {"others": "tiny-bert", "shuffles": 20},
}


def run(name, model, **options):
    result = registry.get(name).run(model, **options)
    return {key: np.asarray(value) for key, value in result.items()}


def planted(model, order=None):
    """tiny-roberta with waves for positions, no words, and four heads with k[t] = q[t - offset]."""
    T = model.config.n_ctx
    D = model.config.d_model
    d = model.config.d_head
    frequencies = np.arange(2, d + 2, 2)  # d / 2 waves, all below half a turn for 3 tokens
    noise = np.random.default_rng(0).standard_normal((D, d))
    Q, _ = np.linalg.qr(np.column_stack([np.ones(D), noise]))
    E = Q[:, 1:]  # the norm takes off no mean
    t = np.arange(T)[:, None]
    phase = 2 * np.pi * t * frequencies / T
    # rows of one length: the norm only scales
    waves = np.hstack([np.cos(phase), np.sin(phase)])
    table = waves @ E.T
    if order is not None:
        table = table[order]
    unused = np.zeros((model.config.offset, D))
    W_pos = np.vstack([unused, table]).astype(np.float32)
    W_Q = np.hstack([E] * len(OFFSETS)).astype(np.float32)
    angles = [2 * np.pi * frequencies * offset / T for offset in OFFSETS]
    W_K = np.hstack([E @ turn(a) for a in angles]).astype(np.float32)
    zero = np.zeros(D, np.float32)
    layer = {"W_Q": W_Q, "W_K": W_K, "b_Q": zero, "b_K": zero}
    silent = {name: np.zeros_like(getattr(model.weights, name)) for name in ("W_E", "W_type")}
    norm = {"ln_embed_w": np.ones(D, np.float32), "ln_embed_b": zero}
    return with_weights(model, {0: layer}, W_pos=W_pos, **silent, **norm)


def turn(angles):
    """The rotation of all waves, cosines first, each by its angle."""
    cos = np.diag(np.cos(angles))
    sin = np.diag(np.sin(angles))
    return np.block([[cos, -sin], [sin, cos]])


@pytest.fixture(scope="module")
def bundled():
    return minitx.load(weights.find("tiny-roberta"))


@pytest.fixture(scope="module")
def shifted(bundled):
    return planted(bundled)


@pytest.fixture(scope="module")
def partial(tmp_path_factory):
    """The positions and the attention of layer 1 of a causal checkpoint, without a tokenizer."""
    folder = gpt2(tmp_path_factory.mktemp("partial"))
    kept = ("wpe.", "h.1.ln_1.", "h.1.attn.c_attn.")
    tensors = load_file(folder / "model.safetensors")
    tensors = {name: x for name, x in tensors.items() if name.startswith(kept)}
    save_file(tensors, folder / "model.safetensors")
    (folder / "tokenizer.json").unlink()
    return minitx.load(folder, partial=True)


ALL = "L0H0,L0H1,L0H2,L0H3"


# a shift built in


@pytest.mark.parametrize("completion", ["procrustes", "lapack", "thin"])
def test_a_shift_built_in_is_the_offset_of_the_rotation_whatever_the_completion(
    shifted, completion
):
    r = run("rotation", shifted, head=ALL, completion=completion, input="positions", gauge=1)
    for name in ("offset", "attention_offset", "offset_lapack"):
        assert tuple(r[name]) == OFFSETS
    assert max_error(r["median_offset"], OFFSETS) < 1e-6  # float32 weights: measured 3e-9
    # measured 1 - 5e-14
    assert r["share"].min() > 1 - 1e-9
    assert r["near"].min() > 1 - 1e-9
    # measured 0.22; 0.78 and 0.22
    assert r["share_null"].max() < 0.25
    assert (r["excess"] > r["excess_null"]).all()
    # all but 32 of 128: the smallest rotation leaves the rest alone
    assert max_error(r["zero"], 0.75) < 1e-9
    # measured 0.09
    assert r["fit"].min() > 1 - 1e-9
    assert r["fit_null"].max() < 0.1
    assert r["offset_of_heads"][0].tolist() == list(OFFSETS)
    assert r["agree"] >= 4 / 16


def test_with_the_positions_in_random_order_no_offset_stands_out(bundled):
    order = np.random.default_rng(1).permutation(bundled.config.n_ctx)
    mixed = planted(bundled, order)
    r = run("rotation", mixed, head=ALL, input="positions", gauge=1)
    assert (r["excess"] < r["excess_null"]).all()  # measured 0.001 to 0.009 against 0.009 to 0.011
    r = run("lags", mixed, head=ALL, documents=1)
    assert not r["lag"].any()  # each token fits itself best


def test_maps_are_dark_where_frequency_and_angle_are_the_shift(shifted):
    r = run("rotation", shifted, head=ALL, input="positions", gauge=1)
    T = int(r["T"])
    half = np.pi / len(r["angle"])
    for name in ("queries", "keys"):
        for energy, offset in zip(r[name], OFFSETS):
            f, i = np.nonzero(energy > 1e-6 * energy.max())
            away = np.abs(r["angle"][i] + 2 * np.pi * f * offset / T)
            assert away.max() < half * 1.001  # in the bin of its angle
            assert set(f) == set(range(2, 34, 2))


def test_in_a_complete_basis_queries_and_keys_have_one_map(bundled):
    """K p is Q p times a number of modulus 1: the published second column repeats the first."""
    document = corpus.documents(bundled).first()[0]
    X = inputs.of_text(bundled, document)[1].astype(float)
    W_Q, W_K = inputs.query_key(bundled, 1, 0)
    U_Q, U_K = rotation.complete(W_Q, W_K, "lapack")
    _, P, _ = rotation.angles(U_Q, U_K)
    q = rotation.phase_map(X, U_Q, P)
    k = rotation.phase_map(X, U_K, P)
    assert max_error(q, k) < 1e-9 * q.max()


def test_a_shift_built_in_is_the_lag_of_the_scores_and_where_attention_goes(shifted):
    r = run("lags", shifted, head=ALL, documents=2)
    assert tuple(r["lag"]) == tuple(r["offset"]) == OFFSETS
    assert r["lag_of_heads"][0].tolist() == list(OFFSETS)
    assert r["offset_of_heads"][0].tolist() == list(OFFSETS)
    # measured 2.5: 16 waves are no spike yet
    assert r["directed"][0].all()
    assert r["sharpness"].min() > 2
    xcorr = r["xcorr"].mean(axis=2)
    peaks = r["lags"][xcorr.argmax(axis=1)]
    assert (peaks == OFFSETS).all()
    assert r["n_beyond"] == 0


# what the trained bundle shows


def test_the_bundles_scores_peak_where_its_attention_goes(bundled):
    r = run("lags", bundled, documents=4)
    assert r["n_directed"] >= 5
    assert r["agree_directed"] > r["agree_directed_null"]  # measured 1 against 0.71
    assert r["agree"] > r["agree_null"]  # measured 0.88 against 0.50


@pytest.mark.parametrize("name", ["tiny-roberta", "tiny-bert"])
def test_positions_make_the_peaks_of_the_first_layer_alone(name):
    """Agreement is nearly a tautology: deeper heads agree too, and not by positions."""
    r = run("lags", minitx.load(weights.find(name)), documents=6)
    share, directed = r["position_share_of_heads"], r["directed"]
    assert directed[0].all()
    assert directed[1:].sum() >= 2
    assert abs(share[0] - 1).max() < 0.02  # measured 0.004
    assert abs(share[1:][directed[1:]]).max() < 0.05  # measured 0.02
    assert r["n_positions"] == 4 == r["n_positions_by_layer"][0]
    assert r["n_positions_null"] == 0
    assert r["agree_positions"] < r["agree_directed"] == 1
    assert registry.get("lags").answer(r).verdict == "partly"
    by_chance = r | {"agree_directed": r["agree_directed_null"]}
    assert registry.get("lags").answer(by_chance).verdict == "no"


def test_positions_make_every_peak_where_there_are_only_positions(shifted):
    r = run("lags", shifted, documents=2)
    assert r["position_share_of_heads"][0] == pytest.approx(1, abs=1e-4)
    assert r["position_lag"][0].tolist() == list(OFFSETS)


def test_what_all_documents_share_is_no_text_and_one_document_has_no_other(bundled):
    """With the mean of one half on both sides the text of a document would count as its place."""
    r = run("lags", bundled, documents=1)
    assert "n_positions" not in r
    assert "takes two documents" in registry.get("lags").says(r)
    with draw.style():
        assert draw.svg(registry.get("lags").draw(r)).endswith("</svg>\n")
    documents = corpus.documents(bundled, "sample", 3)
    X = [inputs.of_text(bundled, document).astype(float) for document in documents]
    even, odd = (X[0] + X[2]) / 2, X[1]
    w = bundled.layers[2]
    direct = 0
    for a, b in ((even, odd), (odd, even)):
        q, k = (a[2] @ w.W_Q)[:, :32], (b[2] @ w.W_K)[:, :32]
        direct = direct + np.array([np.diagonal(q @ k.T, t).mean() for t in range(-30, 31)]) / 2
    r = run("lags", bundled, head="L2H0", documents=3)
    assert max_error(r["score_positions"][0], direct) < 1e-6 * np.abs(direct).max()


def test_the_sum_of_scores_is_drawn_as_published_and_their_mean_beside_it(bundled):
    r = run("lags", bundled, head="L0H1", documents=2)
    pairs = r["T"] - abs(r["lags"])
    assert max_error(r["score_sum"], r["score"] * pairs) < 1e-9 * np.abs(r["score_sum"]).max()
    assert np.abs(r["score_sum"]).max() > 100 * np.abs(r["score"]).max()


def test_heads_without_a_direction_answer_no(bundled):
    """Zero queries: all scores are 0, attention is uniform."""
    layers = {w.index: {"W_Q": 0 * w.W_Q, "b_Q": 0 * w.b_Q} for w in bundled.layers}
    flat = with_weights(bundled, layers)
    for name in ("lags", "profiles"):
        r = run(name, flat, documents=2, **({"clusters": 1} if name == "profiles" else {}))
        assert r["n_directed"] == 0
        assert registry.get(name).answer(r).verdict == "no"


def test_only_the_smallest_rotation_does_not_move_with_the_basis(bundled):
    r = run("rotation", bundled, head="L0H0", gauge=2)
    assert r["gauge"][0] > 1 - 1e-9
    assert r["gauge_lapack"][0] < 0.4  # measured 0.12
    assert abs(r["gauge_lapack"] - r["gauge_lapack_null"])[0] < 0.1  # measured 0.02
    assert r["trials"].shape == (1, 3, 2)
    says = registry.get("rotation").says
    assert "one arbitrary choice of many" in says(r)
    # a choice that changes nothing is not arbitrary
    same = r | {"trials": np.full_like(r["trials"], 0.98)}
    assert "arbitrary" not in says(same)


def test_thin_bases_only_contract_and_say_by_how_much(bundled):
    r = run("rotation", bundled, head="L0H0", completion="thin", gauge=1)
    # measured 0.55, 0.34
    assert r["modulus"][0] < 0.95
    assert 0 < r["modulus_null"][0] < 0.5
    assert r["modulus_by_angle"].max() <= 1 + 1e-9
    assert r["modulus_by_angle"].max() > r["modulus"][0]
    assert f"eigenvalues of {r['modulus'][0]:.2f}" in registry.get("rotation").says(r)
    complete = run("rotation", bundled, head="L0H0", gauge=1)
    assert complete["modulus"] == pytest.approx(1)


def test_what_chance_cannot_be_told_apart_from_is_left_out(bundled, partial):
    says = registry.get("lags").says
    none = run("lags", partial)
    assert none["n_directed"] == 0
    assert "agree_directed" not in none
    assert "same_direction_directed" not in none
    assert "n_positions" not in none
    assert says(none).startswith("0 of 3 heads have a direction. Of all heads")
    assert "every peak is position × position" in says(none)
    # all look one to the left
    left = run("lags", minitx.load(weights.find("tiny-gpt2")), documents=4)
    assert left["n_directed"] > 1
    assert "same_direction_directed" not in left
    assert "on the side with most attention by more than chance cannot be told" in says(left)
    assert registry.get("lags").answer(left).measure.startswith("heads whose scores peak")
    assert "agree_directed" in run("lags", bundled, documents=2)


# lags


def test_lags_drawn_are_as_many_as_the_tokens_allow(bundled):
    short = run("lags", bundled, documents=1, tokens=16)
    assert short["lags"].tolist() == list(range(-15, 16))
    long = run("lags", bundled, documents=1)
    assert long["lags"].max() == 30


@pytest.mark.parametrize("bias", [0, 1])
def test_mean_scores_are_those_of_the_recorded_queries_and_keys(bundled, bias):
    document = corpus.documents(bundled, "sample", 1).first()[0]
    trace = minitx.run(bundled, document, keep=["q", "k"])
    r = run("lags", bundled, head="L2H1", documents=1, bias=bias)
    w = bundled.layers[2]
    q = trace["q", 2][0, 1]
    k = trace["k", 2][0, 1]
    if not bias:
        q = q - w.b_Q[32:64]
        k = k - w.b_K[32:64]
    scores = q.astype(float) @ k.T
    direct = [np.diagonal(scores, t).mean() for t in r["lags"]]
    # float32 sums: measured 4e-8
    assert max_error(r["score"][0], direct) < 1e-6 * np.abs(direct).max()


def test_scores_of_all_heads_are_those_of_the_heads_drawn(bundled):
    """Through W_Q and W_K for all, through the factors for a few: the same peaks."""
    names = ",".join(heads.name(layer, head) for layer, head in np.ndindex(4, 4))
    r = run("lags", bundled, head=names, documents=2)
    peaks = lags.peak(r["score"][:, 20:41])[0]
    assert (peaks == r["lag_of_heads"].ravel()).all()
    assert (peaks == r["lag"]).all()


def test_attention_by_offset_is_that_of_the_profiles(bundled):
    documents = corpus.documents(bundled, "sample", 2)
    r = run("lags", bundled, head="L0H1", documents=2)
    trace = minitx.run(bundled, documents.first(2), keep=[("pattern", 0)])
    patterns = trace["pattern", 0][:, 1]
    profile = profiles.profile(patterns, 30).mean(axis=0)
    direct = profiles.mean_attention(profile, documents.T)
    assert max_error(r["attention"][0], direct) < 1e-7  # summed in other pieces: measured 8e-10


# chance


def test_matches_are_counted_and_permuted():
    a = np.array([1, 2, 3, 4])
    share, (mean, high) = nulls.matches(a, np.array([1, 2, 3, 9]), 0)
    # each of 3 fits with 1/4
    assert share == 0.75
    assert high == 0.75  # all 3 in one of 24 orders
    assert mean == pytest.approx(3 / 16, abs=0.02)
    _, null = nulls.matches(a, np.ones(4, int), 0)
    assert null.tolist() == [0.25, 0.25]
    share, null = nulls.matches(a[:0], a[:0], 0)
    assert share == 0
    assert null.tolist() == [0, 0]


# models


def test_models_are_compared_in_units_of_their_shuffles(bundled):
    r = run("models", bundled, others="tiny-bert, tiny-gpt2", shuffles=20)
    alone = run("positions", bundled, shuffles=20)
    assert r["models"].tolist() == ["tiny-roberta", "tiny-bert", "tiny-gpt2"]
    times = alone["amplitude"] / alone["amplitude_null"]
    assert r["times"][0] == pytest.approx(times, rel=1e-12)
    assert r["frequency_of_largest"][0] == alone["frequency_of_largest"]
    digest = formats.sha256(weights.find("tiny-gpt2") / "model.safetensors")
    assert r["weights"][2] == digest
    # measured 2.4 and 1.01
    assert r["times"].min() > 1.5
    assert r["times_null"].max() < 1.2
    # the causal one drifts
    assert (r["slow"] > r["slow_null"]).all()
    assert r["slow"].argmax() == 2
    assert r["fastest"][0] == alone["above_all"].max() / alone["T"]
    assert r["fastest"] * r["fastest_period"] == pytest.approx(1)
    assert np.array_equal(r["fastest_null"] > 0, r["times_null"] > 1)


def test_models_that_come_with_the_project_are_compared_with_any_other(bundled, partial):
    r = run("models", bundled, shuffles=2)
    assert set(r["models"]) == set(weights.bundled())
    r = run("models", partial, shuffles=2)
    assert r["models"][1:].tolist() == weights.bundled()
    assert r["T"][0] == 32
    alone = run("models", partial, others="", shuffles=2)
    assert len(alone["models"]) == 1


def test_slow_waves_are_those_above_16_tokens(bundled):
    offset = bundled.config.offset
    rng = np.random.default_rng(0)
    t = np.arange(bundled.config.n_ctx + offset)[:, None] - offset
    for period, slow in ((64, 1), (8, 0)):
        phases = rng.random(bundled.config.d_model)
        table = np.cos(2 * np.pi * (t / period + phases))
        model = with_weights(bundled, W_pos=table)
        r = run("models", model, others="", shuffles=2)
        assert r["slow"][0] == pytest.approx(slow, abs=1e-9)
        assert r["period_of_largest"][0] == r["fastest_period"][0] == period
        assert ("tokens and more: low frequencies only;" in registry.get("models").says(r)) == slow


# partial checkpoints


def test_heads_of_positions_alone_are_those_of_a_run_without_words(bundled):
    document = corpus.documents(bundled, "sample", 1).first()[0]
    no_words = {"embed": np.zeros_like}
    silent = minitx.run(bundled, document, keep=[("pattern", 0)], edits=no_words)
    expected = profiles.profile(silent["pattern", 0][0])
    attention = heads.from_positions(bundled, 0)
    # float32 sums: measured 6e-9
    assert max_error(attention, expected) < 1e-6 * attention.max()
    assert heads.select("auto", bundled)[0][0] == 0


def test_positions_alone_stay_behind_the_causal_mask(partial):
    attention = heads.from_positions(partial, 1)
    offsets = profiles.offsets()
    assert not attention[:, offsets > 0].any()
    assert (attention[:, offsets == 0] > 0).all()


@pytest.mark.parametrize("name", QUICK)
def test_a_partial_checkpoint_is_enough(partial, name):
    experiment = registry.get(name)
    experiment.check(partial)
    r = run(name, partial, **QUICK[name])
    assert all(x.dtype.kind == "U" or np.isfinite(x).all() for x in r.values())
    if name != "models":
        assert all(head.startswith("L1") for head in r["heads"])
        assert "alone, without words" in experiment.says(r)
    with draw.style():
        assert draw.svg(experiment.draw(r)).endswith("</svg>\n")
    json.dumps(registry.headline(experiment, r), allow_nan=False)


def test_a_head_without_weights_is_refused_with_those_that_have_some(partial):
    message = "L0H2: no query and key weights in this checkpoint; those of layers 1 are"
    with pytest.raises(ValueError, match=message):
        run("rotation", partial, head="L1H0,L0H2")
    assert heads.select("L1H2", partial) == [(1, 2)]
    assert all(layer == 1 for layer, _ in heads.select("auto", partial))


# options


@pytest.mark.parametrize(
    "name, options, message",
    [
        (
            "rotation",
            {"completion": "full"},
            "--completion is 'full'; wanted procrustes or lapack or thin",
        ),
        ("rotation", {"input": "words"}, "--input is 'words'; wanted text or positions"),
        ("rotation", {"gauge": 0}, "--gauge is 0; wanted 1 to 50"),
        ("rotation", {"tokens": 8}, "--tokens is 8; wanted 11 to 256"),
        ("rotation", {"head": "L0H9"}, "'L0H9' is no head of this model: wanted L0H0 to L3H3"),
        ("rotation", {"head": ","}, "--head names no head: wanted L0H0,L1H2 or auto"),
        ("lags", {"reach": 9}, "--reach is 9; wanted 10 to 255"),
        ("lags", {"bias": 2}, "--bias is 2; wanted 0 to 1"),
        ("lags", {"tokens": 10}, "--tokens is 10; wanted 11 to 256"),
        ("models", {"shuffles": 0}, "--shuffles is 0; wanted 1 or more"),
        ("models", {"others": "tiny-bart"}, "'tiny-bart' is no bundled model"),
    ],
)
def test_bad_options_are_noticed(bundled, name, options, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run(name, bundled, **options)


def test_another_model_without_positions_is_named(bundled, tmp_path):
    folder = gpt2(tmp_path / "no-positions")
    tensors = load_file(folder / "model.safetensors")
    tensors = {name: x for name, x in tensors.items() if not name.startswith("wpe.")}
    save_file(tensors, folder / "model.safetensors")
    message = "--others .*no-positions: no position table in this checkpoint"
    with pytest.raises(ValueError, match=message):
        run("models", bundled, others=str(folder))


@pytest.mark.parametrize("name", QUICK)
def test_the_same_seed_gives_the_same_numbers(bundled, name):
    first = run(name, bundled, **QUICK[name])
    again = run(name, bundled, **QUICK[name])
    for key in first:
        assert np.array_equal(first[key], again[key]), key
