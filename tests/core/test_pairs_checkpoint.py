"""Loading encoder-decoders: configs, names in every spelling, what is shared, what is refused."""

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file

import minitx
from minitx.config_parts import Generation
from minitx.loading.checkpoint import UnreadWarning
from minitx.loading.families import from_hf
from minitx.loading.finite import named_arrays

# --- config.json


def test_old_configs_that_say_how_a_stack_is_built_are_read():
    old = dict(normalize_before=False, add_final_layer_norm=False, normalize_embedding=True)
    settings = tiny.config("bart-causal")
    assert from_hf(settings | old | dict(static_position_embeddings=False)) == from_hf(settings)
    old = dict(normalize_before=False, normalize_embedding=False, static_position_embeddings=True)
    settings = tiny.config("marian-shared")
    assert from_hf(settings | old) == from_hf(settings)


def test_what_the_families_differ_in():
    """BART's table has two rows more, whatever the pad id; Marian may have two vocabularies."""
    for pad in (0, 1, 57):
        config = from_hf(tiny.config("bart-causal", pad_token_id=pad))
        assert (config.offset, config.n_pos, config.n_ctx, config.pad_id) == (2, 14, 12, pad)
        assert config.no_position_id is None
    marian = from_hf(tiny.config("marian-separate"))
    assert (marian.offset, marian.n_pos, marian.sinusoids) == (0, 12, True)
    assert (marian.n_vocab, marian.encoder.n_vocab) == (53, 61)
    assert from_hf(tiny.config("marian-shared")).embed_scale == 18**0.5
    assert from_hf(tiny.config("marian-odd")).encoder.embed_scale == 1
    t5 = from_hf(tiny.config("t5-relu"))
    assert (t5.n_pos, t5.pre_norm, t5.rms_norm, t5.gated) == (0, True, True, False)
    assert (t5.d_head, t5.attn_scale(1), t5.encoder.attn_scale(0)) == (5, 1, 1)


@pytest.mark.parametrize(
    "changes,drop,scaled",
    [
        ({}, [], True),
        (dict(scale_decoder_outputs=False), [], False),
        (dict(scale_decoder_outputs=True, tie_word_embeddings=False), [], True),
        (dict(tie_word_embeddings=False), ["scale_decoder_outputs"], False),
        (dict(tie_word_embeddings=True), ["scale_decoder_outputs"], True),
        ({}, ["scale_decoder_outputs", "tie_word_embeddings"], True),
    ],
)
def test_t5_makes_the_stream_smaller_before_a_tied_output_embedding(changes, drop, scaled):
    """Old files say so by tie_word_embeddings, new ones by scale_decoder_outputs, which wins."""
    config = from_hf(tiny.config("t5-relu", drop, **changes))
    assert config.unembed_scale == pytest.approx(18**-0.5 if scaled else 1)
    assert config.encoder.unembed_scale == 1


@pytest.mark.parametrize(
    "name,act,gated",
    [
        ("relu", "relu", False),
        ("gated-gelu", "gelu_new", True),
        ("gated-silu", "silu", True),
        ("gelu", "gelu", False),
    ],
)
def test_the_mlp_of_t5(name, act, gated):
    absent = ["dense_act_fn", "is_gated_act"]
    config = from_hf(tiny.config("t5-relu", absent, feed_forward_proj=name))
    for stack in (config, config.encoder):
        assert (stack.act, stack.gated) == (act, gated)


def test_numbers_of_layers_of_t5():
    config = from_hf(tiny.config("t5-relu", num_layers=3, num_decoder_layers=1))
    assert (config.n_layers, config.encoder.n_layers) == (1, 3)
    null = tiny.config("t5-relu", num_layers=4, num_decoder_layers=None)
    absent = tiny.config("t5-relu", ["num_decoder_layers"], num_layers=4)
    assert from_hf(null).n_layers == from_hf(absent).n_layers == 4


def test_what_generation_begins_and_ends_with_is_read_from_the_config():
    config = from_hf(tiny.config("bart-causal"))
    own = Generation(1.0, 3, ((5,),), forced_bos_token_id=7, forced_eos_token_id=2)
    assert (config.start_id, config.end_id, config.generation) == (2, 2, own)
    assert config.encoder.start_id is None and config.encoder.generation == Generation()


# --- tensors


def test_a_word_embedding_that_is_shared_is_one_array():
    """In memory too; where the stacks have their own, each is its own."""
    shared = tiny.load("bart-causal")
    assert np.shares_memory(shared.weights.W_E, shared.encoder.weights.W_E)
    assert np.shares_memory(shared.weights.W_E, shared.weights.W_U)
    separate = tiny.load("marian-separate")
    assert separate.weights.W_E.shape == (53, 18) and separate.weights.W_U.shape == (18, 53)
    assert separate.encoder.weights.W_E.shape == (61, 18)
    assert np.shares_memory(separate.weights.W_E, separate.weights.W_U)
    untied = tiny.load("bart-untied")
    assert abs(untied.weights.W_E - untied.encoder.weights.W_E).max() > 1
    assert abs(untied.weights.W_E.T - untied.weights.W_U).max() > 1


COPIES = {
    "bart-causal": ["model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"],
    "marian-shared": ["model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"],
    "t5-relu": ["encoder.embed_tokens", "decoder.embed_tokens", "lm_head"],
}


@pytest.mark.parametrize("variant", COPIES)
def test_copies_of_the_shared_embedding_may_be_there_or_not(tmp_path, variant):
    """One of them, all, or all without the shared one: the same model."""
    expected = tiny.load(variant)
    shared = "shared.weight" if variant == "t5-relu" else "model.shared.weight"
    copies = [f"{name}.weight" for name in COPIES[variant]]
    for i, names in enumerate([copies[:1], copies[1:2], copies[2:], copies]):

        def written(tensors, names=names):
            return tensors | dict.fromkeys(names, tensors[shared])

        model = minitx.load(tiny.make(tmp_path / str(i), variant, written), dtype=np.float64)
        assert tiny.same(model, expected)

    def without_shared(tensors):
        new = tensors | dict.fromkeys(copies[:2], tensors[shared])
        return {name: x for name, x in new.items() if name != shared}

    model = minitx.load(tiny.make(tmp_path / "own", variant, without_shared), dtype=np.float64)
    assert tiny.same(model, expected)


@pytest.mark.parametrize("variant", ["marian-shared", "t5-relu"])
def test_extras_of_old_files_are_not_weights(variant):
    """Marian's computed positions, and a bias of T5's cross-attention that nothing uses."""
    stored = load_file(tiny.GOLDEN / variant / "model.safetensors")
    extra = "embed_positions" if variant == "marian-shared" else "EncDecAttention.relative"
    assert any(extra in name for name in stored)
    assert not tiny.load(variant).unused


def test_a_bias_of_the_logits_is_read_where_there_is_one():
    with_bias, without = tiny.load("bart-causal"), tiny.load("bart-scaled")
    assert with_bias.weights.b_U.shape == (61,) and with_bias.weights.b_U.any()
    assert without.weights.b_U is None
    x = np.random.default_rng(0).normal(size=(1, 2, 18))
    plain = x @ with_bias.weights.W_U
    np.testing.assert_allclose(
        minitx.logits(with_bias, x) - plain, with_bias.weights.b_U + 0 * plain
    )


def test_a_gate_in_the_config_and_in_the_file_go_together(tmp_path):
    said = dict.fromkeys(("dense_act_fn", "is_gated_act"))  # of feed_forward_proj, once more
    with pytest.raises(ValueError, match="no tensor for W_gate: .*DenseReluDense.wi_0.weight"):
        minitx.load(tiny.make(tmp_path / "a", "t5-relu", feed_forward_proj="gated-gelu", **said))
    message = "tensors inside the layers that this architecture has no use for: .*wi_0.weight"
    with pytest.raises(ValueError, match=message):
        minitx.load(tiny.make(tmp_path / "b", "t5-gated", feed_forward_proj="relu", **said))


def test_an_mbart_by_its_tensors_is_refused(tmp_path):
    """A final norm of a stack is not in BART; nothing that could be a weight is passed over."""
    norms = {f"model.encoder.layers.0.{name}_layer_norm.weight": np.ones(18) for name in ("a", "b")}
    with pytest.raises(ValueError, match="tensors inside the layers that this architecture has no"):
        minitx.load(tiny.make(tmp_path / "a", "bart-causal", lambda tensors: tensors | norms))
    final = {"model.encoder.layer_norm.weight": np.ones(18)}
    folder = tiny.make(tmp_path / "b", "bart-causal", lambda tensors: tensors | final)
    with pytest.warns(UnreadWarning, match="not read: encoder.layer_norm.weight"):
        model = minitx.load(folder)
    assert model.unused == ("encoder.layer_norm.weight",)


# --- an encoder alone


def encoder_tensors(tensors):
    """Those of a file that an encoder has, and the shared word embedding."""
    kept = "encoder.", "shared."
    return {n: x for n, x in tensors.items() if n.removeprefix("model.").startswith(kept)}


def by_itself(tensors):
    """The same as BART's encoder is saved by itself, without a word before its names."""
    own = encoder_tensors(tensors)
    shared = own.pop("model.shared.weight")
    own = {name.removeprefix("model.encoder."): x for name, x in own.items()}
    return own | {"embed_tokens.weight": shared}


@pytest.mark.parametrize(
    "variant,change",
    [
        ("bart-causal", encoder_tensors),
        ("bart-causal", by_itself),
        ("marian-shared", encoder_tensors),
        ("t5-relu", encoder_tensors),
        ("t5-gated", encoder_tensors),
    ],
)
def test_a_file_with_an_encoder_alone_is_that_encoder(tmp_path, variant, change):
    alone = minitx.load(tiny.make(tmp_path, variant, change), dtype=np.float64)
    model = tiny.load(variant)
    assert alone.encoder is None and alone.config == model.encoder.config
    assert tiny.same(alone, model.encoder)
    source, given = tiny.ids(alone, 2, 5), {"valid": [[1, 1, 1, 1, 0], [1] * 5]}
    x = minitx.forward(alone, source, **given)
    assert np.array_equal(x, minitx.forward(model.encoder, source, **given))
    with pytest.raises(ValueError, match="has a single stack"):
        minitx.run(alone, source, source=source)


# --- the whole model


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("variant", tiny.PAIRS)
def test_all_weights_have_the_precision_and_are_read_only(variant, dtype):
    model = tiny.load(variant, dtype)
    arrays = named_arrays(model)
    assert {x.dtype for x in arrays.values()} == {np.dtype(dtype)}
    for name in ("layers[1].cross.W_K", "encoder.layers[0].W_Q", "encoder.weights.W_E", "W_U"):
        assert name.replace("weights.", "") in arrays
    for name, x in arrays.items():  # Marian's computed positions too
        assert not x.flags.writeable, name


SPOILED = {
    "bart": (
        "model.encoder.layers.0.self_attn.q_proj.weight",
        "model.decoder.layers.1.encoder_attn.k_proj.weight",
    ),
    "t5": (
        "encoder.block.0.layer.0.SelfAttention.q.weight",
        "decoder.block.1.layer.1.EncDecAttention.k.weight",
    ),
}


@pytest.mark.parametrize("variant", ["bart-causal", "t5-relu", "t5-gated"])
def test_check_names_every_weight_that_is_not_a_number(tmp_path, variant):
    names = SPOILED[variant.split("-")[0]]

    def spoiled(tensors):
        for name in names:
            tensors[name] = tensors[name].copy()
            tensors[name][0, 0] = np.nan

    assert minitx.check(tiny.load(variant)) is None
    model = minitx.load(tiny.make(tmp_path, variant, spoiled))
    message = r"NaN or infinity in: layers\[1\].cross.W_K, encoder.layers\[0\].W_Q$"
    with pytest.raises(ValueError, match=message):
        minitx.check(model)
    with pytest.raises(ValueError, match=r"NaN or infinity in: layers\[0\].W_Q$"):
        minitx.check(model.encoder)


def test_a_model_and_its_encoder_show_themselves():
    model = tiny.load("bart-scaled")
    arrays = named_arrays(model)
    kinds = {(x.ctypes.data, x.size): x for x in arrays.values()}
    shown = repr(model)
    assert "Model BartForConditionalGeneration (bart, causal head)\n  3 layers of 6 heads" in shown
    assert f"{sum(x.size for x in kinds.values()):,} numbers in {len(arrays)} arrays" in shown
    assert "among them those of its encoder, model.encoder: 1 layers of 2 heads" in shown
    assert "(bart, no task head)\n  1 layers of 2 heads" in repr(model.encoder)
    assert "among them" not in repr(model.encoder)
    html = model._repr_html_()
    assert "<td>layers[i].cross.W_K</td><td>[18 18]</td><td>3</td>" in html
    assert "cross" not in model.encoder._repr_html_() and "encoder" not in html
    assert html.count("<tr>") <= 40
    cross = repr(model.layers[2].cross)
    assert cross.startswith("Weights of layer 2, cross-attention: 10 arrays")
    assert repr(model.layers[2]).startswith("Weights of layer 2: 16 arrays")
    config = repr(model.config)
    assert "encoder=(model_type='bart', n_layers=1, n_heads=2" in " ".join(config.split())
    assert max(map(len, config.splitlines())) <= 100 and len(config.splitlines()) <= 10
    trace = minitx.run(model, [4, 5], ["cross_pattern", "enc_z"], source=[6, 7, 8])
    assert "[1 6 2 3]  cross_pattern" in repr(trace)
    assert "where each token looks in the source" in trace._repr_html_()


@pytest.mark.parametrize("variant", tiny.PAIRS)
def test_a_partial_checkpoint_shows_what_it_has_and_runs_nothing(tmp_path, variant):
    """Without a layer's cross-attention and an encoder's MLP."""
    removed = (
        "encoder_attn.k_proj",
        "EncDecAttention.k",
        "encoder.layers.0.fc1",
        ".0.layer.1.Dense",
    )

    def without(tensors):
        return {n: x for n, x in tensors.items() if not any(part in n for part in removed)}

    whole = minitx.load(tiny.GOLDEN / variant)
    assert tiny.same(whole, minitx.load(tiny.GOLDEN / variant, partial=True))
    part = minitx.load(tiny.make(tmp_path, variant, without), partial=True)
    assert part.layers[0].cross.W_K is None and part.encoder.layers[0].W_in is None
    assert np.array_equal(part.layers[1].cross.W_Q, whole.layers[1].cross.W_Q)
    for attempt in (
        lambda: minitx.forward(part, [1, 2], source=[3]),
        lambda: minitx.run(part, [1, 2], keep=["enc_q"], source=[3]),
        lambda: minitx.forward(part.encoder, [3]),
    ):
        with pytest.raises(ValueError, match="partial checkpoint cannot run; missing: "):
            attempt()
