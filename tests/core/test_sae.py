"""Sparse autoencoders: SAELens's formulas written out, planted dictionaries, refusals."""

import json

import numpy as np
import pytest
import tiny
from safetensors.numpy import save_file

import minitx
from minitx.analysis.measures import document_features
from minitx.weights import stories

D, F, K = 12, 30, 3
KINDS = {"standard": ("b_enc",), "topk": ("b_enc",), "jumprelu": ("b_enc", "threshold")}
KINDS |= {"gated": ("b_gate", "r_mag", "b_mag")}


def folder_of(folder, architecture="standard", change=None, d_in=D, **cfg):
    """A folder with random arrays, after change(dict), and its settings."""
    rng = np.random.default_rng(0)
    shapes = {"W_enc": (d_in, F), "W_dec": (F, d_in), "b_dec": d_in}
    shapes |= dict.fromkeys(KINDS.get(architecture, ("b_enc",)), F)
    arrays = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    if change:
        change(arrays)
    folder.mkdir(exist_ok=True)
    save_file(arrays, folder / "sae_weights.safetensors")
    settings = {"architecture": architecture, "d_in": d_in, "d_sae": F}
    if architecture == "topk":
        settings["k"] = K
    (folder / "cfg.json").write_text(json.dumps(settings | cfg))
    return folder, arrays


def features(x, w, architecture):
    """f of each row."""
    h = (x - w["b_dec"]) @ w["W_enc"]
    if architecture == "gated":
        is_open = h + w["b_gate"] > 0
        return is_open * np.maximum(h * np.exp(w["r_mag"]) + w["b_mag"], 0)
    h = h + w["b_enc"]
    f = np.maximum(h, 0) * (h > w.get("threshold", -np.inf))
    if architecture == "topk":
        f[f < np.sort(f, axis=1)[:, [-K]]] = 0
    return f


@pytest.mark.parametrize("architecture", KINDS)
def test_features_are_those_of_the_formulas(architecture, tmp_path):
    folder, w = folder_of(tmp_path / "sae", architecture)
    sae = minitx.load_sae(folder, dtype="float64")
    x = np.random.default_rng(1).standard_normal((7, D))
    f = features(x, w, architecture)
    assert 0 < (f > 0).sum() < f.size
    assert np.abs(sae.encode(x) - f).max() < 1e-13
    y = sae.decode(f)
    assert np.abs(y - (f @ w["W_dec"] + w["b_dec"])).max() < 1e-13
    assert np.abs(sae.encode(x.reshape(7, 1, D))[:, 0] - f).max() < 1e-13
    assert sae.architecture == architecture and f"({architecture}): 30 features" in repr(sae)


def test_settings_that_change_the_numbers(tmp_path):
    x = np.random.default_rng(1).standard_normal((7, D)) + 3
    folder, w = folder_of(tmp_path / "plain")
    plain = minitx.load_sae(folder, "float64")

    def loaded(**cfg):
        return minitx.load_sae(folder_of(tmp_path / "sae", **cfg)[0], "float64")

    bare = loaded(apply_b_dec_to_input=False)
    assert np.abs(bare.encode(x) - plain.encode(x + w["b_dec"])).max() < 1e-13
    mean, std = x.mean(axis=1, keepdims=True), x.std(axis=1, keepdims=True, ddof=1)
    normed = loaded(normalize_activations="layer_norm")
    f = plain.encode((x - mean) / (std + 1e-5))
    assert np.abs(normed.encode(x) - f).max() < 1e-12
    assert np.abs(normed.decode(f, x) - (plain.decode(f) * std + mean)).max() < 1e-12
    with pytest.raises(ValueError, match=r"normalized \(layer_norm\): expected decode\(f, x\)"):
        normed.decode(f)
    length = np.linalg.norm(x, axis=1, keepdims=True) / np.sqrt(D)
    rescaled = loaded(normalize_activations="constant_norm_rescale")
    assert np.abs(rescaled.encode(x) - plain.encode(x / length)).max() < 1e-13
    f = rescaled.encode(x)
    assert np.abs(rescaled.reconstruct(x) - plain.decode(f) * length).max() < 1e-12
    centred = loaded(model_from_pretrained_kwargs={"center_writing_weights": True})
    assert np.abs(centred.encode(x) - plain.encode(x - mean)).max() < 1e-13


def test_decoder_norms_rescale_what_is_among_the_largest(tmp_path):
    def uneven(arrays):
        arrays["W_dec"] *= np.linspace(0.1, 3, F)[:, None]

    folder, w = folder_of(tmp_path / "sae", "topk", uneven, rescale_acts_by_decoder_norm=True)
    sae = minitx.load_sae(folder, "float64")
    x = np.random.default_rng(1).standard_normal((7, D))
    norms = np.linalg.norm(w["W_dec"], axis=1)
    h = np.maximum(((x - w["b_dec"]) @ w["W_enc"] + w["b_enc"]) * norms, 0)
    h[h < np.sort(h, axis=1)[:, [-K]]] = 0
    assert np.abs(sae.encode(x) - h).max() < 1e-12
    y = h @ (w["W_dec"] / norms[:, None]) + w["b_dec"]
    assert np.abs(sae.reconstruct(x) - y).max() < 1e-12


def test_a_planted_dictionary_reconstructs_and_random_vectors_do_not(tmp_path):
    """Rows are sums of few of D orthogonal directions and their negatives: nothing is left over."""
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]

    def planted(arrays):
        directions = np.concatenate([Q, -Q, np.zeros((F - 2 * D, D))])
        arrays["W_dec"][:], arrays["W_enc"][:] = directions, directions.T
        arrays["b_enc"][:] = arrays["b_dec"][:] = 0

    sae = minitx.load_sae(folder_of(tmp_path / "sae", change=planted)[0], "float64")
    f = np.zeros((500, F))
    for row in f:
        own = rng.choice(D, 3, replace=False) + D * rng.integers(0, 2, 3)
        row[own] = rng.uniform(1, 2, 3)
    x = f @ sae.arrays["W_dec"]
    assert np.abs(sae.encode(x) * (f > 0) - f).max() < 1e-13
    measured = sae.measure(x * (1 + 1e-3))
    assert measured.explained > 1 - 1e-12 and measured.null < 0.8

    def above_half(arrays):
        planted(arrays)
        arrays["threshold"][:] = 0.5

    jump = folder_of(tmp_path / "jump", "jumprelu", above_half)
    measured = minitx.load_sae(jump[0], "float64").measure(x)
    assert measured.l0 == 3 and measured.dead == (F - 2 * D) / F
    assert measured.explained > 1 - 1e-12 and measured.null < 0.8
    noise = rng.standard_normal((500, D))
    random = minitx.load_sae(folder_of(tmp_path / "random", "topk")[0], "float64").measure(noise)
    assert random.explained < random.null  # a dictionary that nobody trained


@pytest.mark.parametrize("variant", ["gpt2-causal", "llama-grouped", "bert-masked"])
def test_edits_change_what_a_feature_writes_and_nothing_else(variant, tmp_path):
    model = tiny.load(variant)
    cfg = model.config
    for hook, point, width in (
        ("blocks.1.hook_resid_post", "resid_post", cfg.d_model),
        ("blocks.1.attn.hook_z", "z", cfg.n_heads * cfg.d_head),
    ):
        how = {"d_in": width, "hook_name": hook, "reshape_activations": "hook_z"}
        folder, w = folder_of(tmp_path / point, **how)
        sae = minitx.load_sae(folder, "float64")
        ids = tiny.ids(model, 2, 5)
        key = point, 1
        assert sae.point == key
        x = minitx.run(model, ids, key)[key]
        flat = by_token(x)
        f = sae.encode(flat)
        i = int(f.max(axis=(0, 1)).argmax())
        edited = minitx.run(model, ids, key, sae.edits({i: 0.0}))[key]
        expected = flat - f[..., [i]] * w["W_dec"][i]
        assert np.abs(by_token(edited) - expected).max() < 1e-12 and (f[..., i] > 0).any()
        same = minitx.run(model, ids, key, sae.edits({i: 1.0, 0: 1}))[key]
        assert np.array_equal(same, x)


def by_token(x):
    """[B T D] of such a point, or of one by heads."""
    return x if x.ndim == 3 else x.swapaxes(1, 2).reshape(2, 5, -1)


def test_examples_of_a_feature(tmp_path):
    model = tiny.load("gpt2-causal")
    sae = minitx.load_sae(folder_of(tmp_path / "sae", d_in=model.config.d_model)[0], "float64")
    rows = tiny.ids(model, 4, 5)
    key = "resid_post", 0
    examples = minitx.top_examples(model, rows, key, lambda x: sae.encode(x)[:, 3], n=2)
    x = minitx.run(model, rows, key)[key]
    largest = np.sort(sae.encode(x)[..., 3].max(axis=1))[::-1][:2]
    assert np.abs(examples.values - largest).max() < 1e-12


def test_files_from_before_version_6_and_after(tmp_path):
    """hook_point and activation_fn_kwargs; metadata; scaling factors that are all 1."""
    old = {"hook_point": "blocks.3.hook_resid_pre", "activation_fn_str": "topk"}
    folder, _ = folder_of(tmp_path / "a", "topk", activation_fn_kwargs={"k": 5}, **old)
    settings = json.loads((folder / "cfg.json").read_text())
    del settings["k"]
    (folder / "cfg.json").write_text(json.dumps(settings))
    sae = minitx.load_sae(folder)
    assert sae.point == ("resid_pre", 3) and sae.settings.k == 5

    def ones(arrays):
        arrays["scaling_factor"] = np.ones(F)

    new = {"metadata": {"hook_name": "blocks.2.hook_mlp_out", "sae_lens_version": "6.1.0"}}
    sae = minitx.load_sae(folder_of(tmp_path / "b", change=ones, **new)[0])
    assert sae.point == ("mlp_out", 2) and sae.arrays["W_enc"].dtype == np.float32
    with pytest.raises(ValueError, match="names no hook"):
        minitx.load_sae(folder_of(tmp_path / "c")[0]).edits({0: 1})


REFUSED = [
    ({"architecture": "matryoshka_batchtopk"}, "architecture is 'matryoshka_batchtopk'"),
    ({"surprise": 1}, "keys that are not read here: surprise"),
    ({"finetuning_scaling_factor": True}, "finetuning_scaling_factor is True"),
    ({"hook_head_index": 3}, "hook_head_index is 3"),
    ({"normalize_activations": "expected_average_only_in"}, "normalize_activations is 'expected"),
    ({"normalize_activations": True}, "normalize_activations is True"),
    ({"activation_fn": "tanh-relu"}, "activation_fn is 'tanh-relu' in architecture 'standard'"),
    ({"rescale_acts_by_decoder_norm": True}, "is computed in topk alone"),
    ({"model_from_pretrained_kwargs": {"fold_ln": True}}, "changes the model by fold_ln"),
    ({"model_from_pretrained_kwargs": ["fold_ln"]}, "kwargs is .* expected dict | None"),
    ({"architecture": ["standard"]}, r"architecture is \['standard'\]; expected str | None"),
    ({"activation_fn_kwargs": "k"}, "activation_fn_kwargs is 'k'; expected dict | None"),
    ({"apply_b_dec_to_input": "false"}, "apply_b_dec_to_input is 'false'; expected bool | None"),
    ({"hook_name": 3}, "hook_name is 3; expected str | None"),
    ({"d_in": 5}, r"W_enc is \[5, 30\]|W_dec is|W_enc is"),
    ({"d_sae": 7}, r"W_enc is \[12, 30\]; expected \[12, 7\]"),
]


@pytest.mark.parametrize("cfg, match", REFUSED)
def test_what_would_be_computed_otherwise_is_refused(cfg, match, tmp_path):
    folder, _ = folder_of(tmp_path / "sae")
    settings = json.loads((folder / "cfg.json").read_text())
    (folder / "cfg.json").write_text(json.dumps(settings | cfg))
    with pytest.raises(ValueError, match=match):
        minitx.load_sae(folder)


def test_tensors_and_files_that_are_missing_or_too_many(tmp_path):
    with pytest.raises(ValueError, match="tensors missing: b_enc; not read: none"):
        minitx.load_sae(folder_of(tmp_path / "a", change=lambda w: w.pop("b_enc"))[0])
    with pytest.raises(ValueError, match="tensors missing: none; not read: W_skip"):
        minitx.load_sae(folder_of(tmp_path / "b", change=lambda w: w.update(W_skip=np.ones(3)))[0])
    with pytest.raises(ValueError, match="k is 99; expected a number from 1 to d_sae"):
        minitx.load_sae(folder_of(tmp_path / "c", "topk", k=99)[0])
    with pytest.raises(ValueError, match="b_enc has NaN or infinite numbers"):
        folder, _ = folder_of(tmp_path / "e", change=lambda w: w.update(b_enc=np.full(F, np.nan)))
        minitx.load_sae(folder)
    (tmp_path / "c" / "sae_weights.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"no sae_weights.safetensors in .*there: cfg.json"):
        minitx.load_sae(tmp_path / "c")
    with pytest.raises(FileNotFoundError, match=r"no cfg.json in "):
        minitx.load_sae(tmp_path / "nothing")
    sae = minitx.load_sae(folder_of(tmp_path / "d", hook_name="blocks.0.hook_resid_post")[0])
    with pytest.raises(ValueError, match=r"x is \[3\]; expected \[... 12\]"):
        sae.encode(np.zeros(3))
    with pytest.raises(ValueError, match="feature 30 is none of 0 to 29"):
        sae.edits({30: 0})


def planted_in(model, folder, share=1.0):
    """An autoencoder of the stream of random ids, whose features are the model's own rows.

    Of k = 1 and as many features as tokens, each row comes back; share: of the rows that are kept.
    """
    ids = tiny.ids(model, 4, 6)
    x = minitx.run(model, ids, ("resid_post", 0))["resid_post", 0].reshape(-1, model.config.d_model)
    mean = x.mean(axis=0)
    W = x[: round(share * len(x))] - mean
    W = np.ascontiguousarray(W / np.linalg.norm(W, axis=1, keepdims=True))
    arrays = {"W_enc": W.T.copy(), "W_dec": W, "b_enc": np.zeros(len(W)), "b_dec": mean}
    folder.mkdir()
    save_file(arrays, folder / "sae_weights.safetensors")
    cfg = {"architecture": "topk", "k": 1, "d_in": len(mean), "d_sae": len(W)}
    cfg["hook_name"] = "blocks.0.hook_resid_post"
    (folder / "cfg.json").write_text(json.dumps(cfg))
    return minitx.load_sae(folder, "float64"), ids


@pytest.mark.parametrize("variant", ["gpt2-causal", "llama-grouped"])
def test_a_dictionary_of_the_own_rows_loses_nothing(variant, tmp_path):
    model = tiny.load(variant)
    sae, ids = planted_in(model, tmp_path / "whole")
    whole = sae.recovered(model, ids)
    assert abs(whole.reconstructed - whole.loss) < 1e-12 and whole.n_tokens == 4 * 5
    y = minitx.run(model, ids, "logits")["logits"].astype(np.float64)[:, :-1]
    own = np.take_along_axis(y, ids[:, 1:, None], -1)[..., 0] - np.logaddexp.reduce(y, axis=-1)
    assert abs(whole.loss + own.mean()) < 1e-12
    zero = minitx.run(model, ids, "logits", {("resid_post", 0): 0.0})["logits"][:, :-1]
    own = np.take_along_axis(zero, ids[:, 1:, None], -1)[..., 0] - np.logaddexp.reduce(zero, -1)
    assert abs(whole.zero + own.mean()) < 1e-12
    features = sae.features(model, ids[1])
    assert [features.largest(i)[0][0] for i in range(6)] == [*range(6, 12)]
    assert features.explained > 1 - 1e-12 and features.null < 0.7


def test_what_a_trained_one_recovers_and_on_random_weights_does_not(tmp_path):
    """Of tiny-stories: measured 0.98 beside 0.65; the same dictionary in a model of noise."""
    model = minitx.load("tiny-stories")
    sae = minitx.load_sae("tiny-stories-sae")
    texts = [stories.story(3, seed) for seed in range(12)]
    recovered = sae.recovered(model, texts)
    assert recovered.null < 0.8 and 0.95 < recovered.share < 1
    assert recovered.loss < recovered.reconstructed < recovered.zero
    noise = document_features.untrained(model, np.random.default_rng(0))
    at_random = sae.recovered(noise, texts)
    assert not at_random.share > at_random.null  # nan where the mean loses nothing
    features = sae.features(model, "Tom was <sad>.")
    features.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<td>tom</td>" in page and page.count('class="f"') >= 8 * 2
    assert "&lt;" in page and "by random vectors" in page
    (number, value), *_ = features.largest(0)
    assert f"{number}: {value:.3g}" in page and f"{number}: {value:.3g}" in repr(features)


def test_a_model_of_other_layers_or_without_a_next_token_is_refused(tmp_path):
    sae = minitx.load_sae("tiny-stories-sae")
    with pytest.raises(ValueError, match=r"this model has no point \('resid_pre', 2\)"):
        sae.features(tiny.load("gpt2-causal"), [0, 1])
    with pytest.raises(ValueError, match="does not predict the next token"):
        masked = tiny.load("bert-masked")
        hook = {"d_in": masked.config.d_model, "hook_name": "blocks.0.hook_resid_post"}
        sae = minitx.load_sae(folder_of(tmp_path / "sae", **hook)[0])
        sae.recovered(masked, tiny.ids(masked, 2, 4))
