"""How a token's place enters, mechanism by mechanism: rotary positions, ALiBi, windows, none.

What the reference library computes is compared in test_parity.py; here is what must hold of any
model. Distances are of float64 runs of values up to about 10: measured at most 3e-14, bound 1e-12.
"""

from dataclasses import replace

import numpy as np
import parity
import pytest
import tiny
from cached import cuts, in_pieces
from safetensors.numpy import load_file

import minitx
from minitx import distances, positions, rotary
from minitx.loading.families import from_hf

CLOSE = dict(rtol=0, atol=1e-12)
ROTARY = [
    *("llama-grouped", "llama-tied", "llama-wide", "qwen2-biases", "qwen3-norms"),
    *("gpt_neox-parallel", "gpt_neox-sequential"),
]
LONGER = ["llama-dynamic", "qwen2-longrope", "phi3-longrope"]  # turned otherwise in longer texts
WINDOWS = ["mistral-window", "qwen2-window"]
ALIBI = ["bloom-three", "bloom-residual", "bloom-twelve"]
SAID = [name for name in parity.DECODERS if not name.endswith(("sequence", "question", "token"))]
CAUSAL = [*ROTARY, *WINDOWS, *ALIBI, "gpt_neox-nowhere", *(x for x in SAID if x not in LONGER)]
AS_THEY_ARE = "opt", "gpt_neo-", "smollm3-listed", "smollm3-nowhere"  # queries of the first layer
TURNED = [name for name in SAID if not name.startswith(AS_THEY_ARE)]
SEES_ALL = ["modernbert-masked", "modernbert-bare"]


def last(trace):
    """The last stream of a run."""
    return trace["resid_post", -1]


# --- any model


@pytest.mark.parametrize("variant", CAUSAL)
def test_pieces_over_a_cache_are_one_pass(variant):
    """Also of texts that are padded on the left."""
    model = tiny.load(variant)
    tokens, valid, _ = tiny.padded([tiny.ids(model, n, seed=n) for n in (9, 5)], "left")
    whole = minitx.forward(model, tokens, valid=valid)
    parts = in_pieces(model, cuts(0, 4, 5, 9), tokens, lambda piece: {"valid": valid[:, piece]})
    np.testing.assert_allclose(parts[valid], whole[valid], **CLOSE)


@pytest.mark.parametrize("variant", [*CAUSAL, *LONGER])
def test_the_likeliest_continuation_is_the_librarys(variant):
    ids = load_file(parity.GOLDEN / variant / "unpatched.safetensors")["generated"]
    model = tiny.load(variant, np.float32)
    prompt = parity.texts(variant)[1]["tokens"]
    n = len(ids) - len(prompt)
    assert n == 8 and (minitx.generate(model, prompt, n) == ids).all()
    padded, valid, _ = tiny.padded([prompt, prompt[-3:]], "left")
    assert (minitx.generate(model, padded, n, valid=valid)[0] == ids).all()


# --- rotary positions


def test_frequencies_by_hand():
    omega = positions.frequencies(10000.0, 6)
    np.testing.assert_allclose(omega, [1, 10000 ** (-1 / 3), 10000 ** (-2 / 3)], rtol=1e-15)
    assert len(positions.frequencies(100.0, 3)) == 2  # of an odd width one more


def test_what_is_turned_keeps_its_length_and_scores_depend_on_the_distance():
    q, k = np.random.default_rng(0).normal(size=(2, 8))
    omega = positions.frequencies(50.0, 6)  # the last two features stay
    numbers = np.arange(12)
    angle = positions.angles(omega, numbers[None], np.float64)
    assert (angle[0, 3] == 3 * omega).all()
    rows = np.tile(q, (12, 1)), np.tile(k, (12, 1))
    turned_q, turned_k = (positions.turned(x[None, None], angle)[0, 0] for x in rows)
    np.testing.assert_allclose(np.linalg.norm(turned_q, axis=1), np.linalg.norm(q), **CLOSE)
    assert (turned_q[:, 6:] == q[6:]).all() and (turned_q[0] == q).all()
    scores = turned_q @ turned_k.T
    for lag in range(-11, 12):
        assert np.ptp(np.diagonal(scores, lag)) < 1e-12
    # sum over pairs of |c| cos(omega lag + phi), with c = q conj(k), each pair a complex number
    c = (q[:3] + 1j * q[3:6]) * (k[:3] - 1j * k[3:6])
    kernel = (c * np.exp(1j * omega * numbers[:, None])).real.sum(axis=1)
    np.testing.assert_allclose(scores[:, 0], kernel + q[6:] @ k[6:], **CLOSE)


@pytest.mark.parametrize("variant", [*ROTARY, "mistral-window", *SEES_ALL, *TURNED])
def test_only_distances_count(variant):
    """A text that stands later is read the same; with its place, a token may stand anywhere."""
    model = tiny.load(variant)
    tokens = tiny.ids(model, 2, 7)
    plain = minitx.run(model, tokens)
    later = minitx.run(model, tokens, positions=np.arange(7) + 40)
    np.testing.assert_allclose(last(later), last(plain), **CLOSE)
    assert abs(later["q", 0] - plain["q", 0]).max() > 0.1
    assert (later["q_in", 0] == plain["q_in", 0]).all()
    stretched = minitx.run(model, tokens, positions=3 * np.arange(7))
    assert abs(last(stretched) - last(plain)).max() > 0.1
    each = np.stack([np.arange(7), 3 * np.arange(7)])
    both = last(minitx.run(model, tokens, positions=each))
    np.testing.assert_allclose(both[0], last(plain)[0], **CLOSE)
    np.testing.assert_allclose(both[1], last(stretched)[1], **CLOSE)


def test_turned_off_a_layer_reads_words_alone():
    """With angles at zero, the last token's attention does not know the order of those before."""
    model = tiny.load("llama-grouped")
    tokens = tiny.ids(model, 7)
    order = np.array([3, 0, 5, 1, 4, 2, 6])
    off = {"pos_angle": np.zeros_like}
    plain, moved = (minitx.run(model, x, [("z", 0)], off) for x in (tokens, tokens[order]))
    np.testing.assert_allclose(moved["z", 0][:, :, -1], plain["z", 0][:, :, -1], **CLOSE)
    plain, moved = (minitx.run(model, x, [("z", 0)]) for x in (tokens, tokens[order]))
    assert abs(moved["z", 0][:, :, -1] - plain["z", 0][:, :, -1]).max() > 0.01
    one_layer = minitx.run(model, tokens, edits={("pos_angle", 1): np.zeros_like})
    assert (one_layer["q", 1] == one_layer["q_in", 1]).all()
    assert (one_layer["q", 0] != one_layer["q_in", 0]).any()


def test_no_text_is_too_long_for_rotary_positions():
    """n_ctx is the length of the training; no table ends there."""
    model = tiny.load("llama-grouped")
    tokens = tiny.ids(model, model.config.n_ctx + 9)
    assert np.isfinite(minitx.forward(model, tokens)).all()
    for wrong in (np.arange(5), np.full(7, -1), np.full(7, 0.5)):
        with pytest.raises(ValueError, match="positions"):
            minitx.forward(model, tokens[:7], positions=wrong)


def test_scaled_frequencies_by_hand():
    """linear: all slower; llama3: by how often they turn; yarn: by the number of the pair."""
    plain = positions.frequencies(100.0, 8)
    linear = rotary.rotary({"rope_theta": 100.0, "rope_type": "linear", "factor": 3}, 8, 32)
    np.testing.assert_allclose(linear.frequencies, plain / 3, rtol=1e-15)
    low, high, length = 1.0, 4.0, 64
    given = {"rope_theta": 100.0, "rope_type": "llama3", "factor": 4.0}
    given |= {"low_freq_factor": low, "high_freq_factor": high}
    given |= {"original_max_position_embeddings": length}
    llama3 = rotary.rotary(given, 8, 32).frequencies
    turns = length * plain / (2 * np.pi)  # 10.2, 3.2, 1.02, 0.32
    assert llama3[0] == plain[0] and llama3[3] == pytest.approx(plain[3] / 4, rel=1e-14)
    kept = (turns[1] - low) / (high - low)
    assert llama3[1] == pytest.approx(plain[1] * (kept + (1 - kept) / 4), rel=1e-14)
    given = {"rope_theta": 100.0, "type": "yarn", "factor": 4.0}
    yarn = rotary.rotary(given | {"original_max_position_embeddings": 40}, 8, 32)
    assert yarn.scale == pytest.approx(0.1 * np.log(4) + 1, rel=1e-15)
    assert yarn.frequencies[0] == plain[0] and yarn.frequencies[3] < plain[3]
    given |= {"mscale": 1.0, "mscale_all_dim": 0.5}
    ratio = (0.1 * np.log(4) + 1) / (0.05 * np.log(4) + 1)
    assert rotary.rotary(given, 8, 32).scale == pytest.approx(ratio, rel=1e-15)
    assert rotary.rotary(given | {"attention_factor": 1.5}, 8, 32).scale == 1.5


LONG = dict(rope_type="longrope", short_factor=[1.0] * 3, long_factor=[2.0] * 3)


@pytest.mark.parametrize("length", [1, 8, 9, 20])
def test_frequencies_by_the_length_of_the_text_by_hand(length):
    """dynamic: a base that grows beyond the training's length; longrope: one factor or another."""
    plain = positions.frequencies(100.0, 6)
    given = {"rope_theta": 100.0, "rope_type": "dynamic", "factor": 3.0}
    turn = rotary.rotary(given, 6, 8).for_length(length)
    grown = max(1, 3 * length / 8 - 2)
    by_base = positions.frequencies(100.0 * grown ** (6 / 4), 6)
    np.testing.assert_allclose(turn.frequencies, by_base, rtol=1e-14)
    given = LONG | {"rope_theta": 100.0, "original_max_position_embeddings": 8}
    turn = rotary.rotary(given, 6, 32).for_length(length)
    np.testing.assert_allclose(turn.frequencies, plain / (1 if length <= 8 else 2), rtol=1e-15)
    assert turn.scale == pytest.approx((1 + np.log(4) / np.log(8)) ** 0.5, rel=1e-15)
    assert rotary.rotary(given | {"factor": 0.5}, 6, 32).scale == 1.0
    with pytest.raises(ValueError, match="2 features of a head are rotated; rope_type 'dynamic' n"):
        rotary.rotary({"rope_theta": 100.0, "rope_type": "dynamic", "factor": 3.0}, 2, 8)


@pytest.mark.parametrize("variant,length", [("llama-dynamic", 8), ("qwen2-longrope", 12)])
def test_the_longest_text_of_a_batch_decides_for_all(variant, length):
    """As in the library; padding does not count."""
    model = tiny.load(variant)
    short, long = (tiny.ids(model, n, seed=n) for n in (length, length + 3))
    alone = minitx.forward(model, short)[0]
    rows = {}
    for side in ("left", "right"):
        tokens, valid, _ = tiny.padded([short, long], side)
        rows[side] = minitx.forward(model, tokens, valid=valid)[0][valid[0]]
        padded = minitx.forward(model, tokens[:1], valid=valid[:1])[0][valid[0]]
        np.testing.assert_allclose(padded, alone, **CLOSE)
        assert abs(rows[side] - alone).max() > 0.01
    fixed = tuple(turn.for_length(length + 3) for turn in model.config.rotary)
    long_alone = replace(model, config=replace(model.config, rotary=fixed))
    for both in rows.values():
        np.testing.assert_allclose(both, minitx.forward(long_alone, short)[0], **CLOSE)


@pytest.mark.parametrize("variant", LONGER)
def test_a_cache_that_is_outgrown_is_computed_anew(variant):
    """Token by token, with rows that change places as beams do, a pass is that of all tokens."""
    model, cache = tiny.load(variant), minitx.Cache()
    tokens = tiny.ids(model, 2, 16)
    for n in range(1, 17):
        cache.take([1, 0])
        tokens = tokens[::-1]
        step = minitx.forward(model, tokens[:, n - 1 : n], cache=cache)
        assert len(cache) == n and step.shape[1] == 1
        whole = minitx.forward(model, tokens[:, :n])[:, -1:]
        np.testing.assert_allclose(step, whole, **CLOSE)


@pytest.mark.parametrize("given", [dict(positions=[20]), dict(mask=lambda q, k: q >= k)])
def test_positions_and_a_mask_of_the_cached_tokens_are_not_known(given):
    model, cache = tiny.load("llama-dynamic"), minitx.Cache()
    minitx.forward(model, tiny.ids(model, 8), cache=cache)
    with pytest.raises(ValueError, match="positions and mask need a pass of all tokens without"):
        minitx.forward(model, [3], cache=cache, **given)
    assert len(cache) == 8


@pytest.mark.parametrize(
    "changes,message",
    [
        (dict(rope_type="dynamic"), "lack 'factor', which 'dynamic' needs"),
        (dict(rope_type="longrope"), "lack 'short_factor', which 'longrope' needs"),
        (
            LONG | dict(short_factor=[1.0]),
            "short_factor has 1 numbers; wanted 3, one for each pair",
        ),
        (LONG | dict(long_factor=[1, 0, 1]), r"long_factor is \[1, 0, 1\]; wanted a list of numbe"),
        (LONG | dict(long_factor=2.0), "long_factor is 2.0; wanted a list of numbers above 0"),
        (dict(rope_type=["linear"]), "a value is of the wrong kind"),
        (dict(type="su"), "rope_type is 'su'"),
        (dict(rope_type="linear"), "lack 'factor', which 'linear' needs"),
        (dict(rope_type="llama3", factor=2.0), "lack 'low_freq_factor'"),
        (dict(mrope_section=[1, 1, 1]), "have 'mrope_section', which 'default' does not support"),
        (dict(rope_type="linear", factor=2, beta_fast=3), "have 'beta_fast', which 'linear'"),
        (dict(rope_type="linear", factor="2"), "factor is '2'; wanted a number above 0"),
        (dict(rope_theta=0), "rope_theta is 0; wanted a number above 0"),
        (dict(partial_rotary_factor=0.5), "partial_rotary_factor is 0.5; only 1.0 is supported"),
    ],
)
def test_rotary_parameters_that_are_not_computed_are_refused_by_name(changes, message):
    given = {"rope_theta": 100.0} | changes
    for key in ("rope_parameters", "rope_scaling"):
        with pytest.raises(ValueError, match=message):
            from_hf(tiny.config("llama-grouped", **{key: given}))


def test_what_a_llama_config_says_of_places():
    cfg = from_hf(tiny.config("llama-grouped"))
    assert cfg.mechanisms == ("rotary",) and (cfg.n_kv, cfg.d_head, cfg.n_pos) == (2, 6, 0)
    old = tiny.config("llama-grouped", drop=["rope_parameters"])
    assert from_hf(old | {"rope_theta": 100.0}) == cfg
    assert from_hf(old).rotary[0].frequencies[1] == pytest.approx(10000 ** (-1 / 3))
    assert from_hf(old | {"num_key_value_heads": None}).n_kv == 4
    assert not from_hf(tiny.config("llama-tied", drop=["tie_word_embeddings"])).tied
    with pytest.raises(ValueError, match="4 heads cannot share 3 heads of keys and values"):
        from_hf(old | {"num_key_value_heads": 3})
    with pytest.raises(ValueError, match="original_max_position_embeddings is 8; only None"):
        from_hf(old | {"original_max_position_embeddings": 8})
    assert from_hf(tiny.config("gpt2-causal")).mechanisms == ("learned",)
    assert from_hf(tiny.config("mpnet-masked")).mechanisms == ("learned", "buckets")
    assert from_hf(tiny.config("marian-shared")).mechanisms == ("sinusoidal",)


# --- windows


FARTHEST = {  # variant -> by layer the largest distance of a key before; of a later one at most
    "mistral-window": ([4, 4, 4], 0),
    "qwen2-window": ([9, 3, 3], 0),
    "modernbert-masked": ([9, 3, 3, 9], 9),
    "modernbert-bare": ([9, 1, 1, 9], 9),
}


def farthest(pattern):
    """The largest distance of a key that gets any attention, before and after its query."""
    t, s = np.nonzero(pattern.max(axis=(0, 1)))
    return (t - s).max(), (s - t).max()


def test_a_window_hides_far_keys_in_the_layers_that_have_it():
    """Mistral's counts the query's own place, ModernBERT's half is to each side; padding too."""
    for variant, (before, later) in FARTHEST.items():
        model = tiny.load(variant)
        tokens, valid, _ = tiny.padded([tiny.ids(model, n, seed=n) for n in (10, 10)], "left")
        trace = minitx.run(model, tokens, valid=valid)
        for i, distance in enumerate(before):
            seen = farthest(trace["pattern", i])
            assert seen == (distance, min(distance, later)), (variant, i)
    batch = tiny.padded([tiny.ids(model, n, seed=n) for n in (10, 4)], "left")
    trace = minitx.run(model, batch[0], valid=batch[1])
    alone = minitx.run(model, tiny.ids(model, 4, seed=4))
    np.testing.assert_allclose(last(trace)[1, 6:], last(alone)[0], **CLOSE)


def test_two_kinds_of_layers_turn_with_frequencies_of_their_own():
    """ModernBERT's layers that see all have the larger base; none reads a norm in layer 0."""
    model = tiny.load("modernbert-masked")
    cfg = model.config
    assert cfg.windows == (None, 3, 3, None) and cfg.mechanisms == ("rotary",)
    base = [turn.frequencies[1] ** -4 for turn in cfg.rotary]
    np.testing.assert_allclose(base, [500, 50, 50, 500], rtol=1e-12)
    trace = minitx.run(model, tiny.ids(model, 7))
    assert (trace["ln1", 0] == trace["resid_pre", 0]).all() and ("ln1_scale", 0) not in trace
    assert ("ln1_scale", 1) in trace and model.layers[0].ln1_w is None
    assert (trace["pos_angle", 0] != trace["pos_angle", 1])[:, 1:, 1:].all()


def test_a_head_for_a_text_reads_the_mean_of_its_tokens_or_the_first(tmp_path):
    mean = tiny.load("modernbert-sequence")
    tokens, valid, _ = tiny.padded([tiny.ids(mean, n, seed=n) for n in (9, 5)], "right")
    y = minitx.logits(mean, minitx.forward(mean, tokens, valid=valid), valid=valid)
    alone = minitx.forward(mean, tokens[1:, :5])
    np.testing.assert_allclose(y[1], minitx.logits(mean, alone)[0], **CLOSE)
    tiny.make(tmp_path, "modernbert-sequence", classifier_pooling="cls")
    first = minitx.load(tmp_path, dtype=np.float64)
    assert abs(minitx.logits(first, alone) - minitx.logits(mean, alone)).max() > 0.01
    repeated = minitx.logits(first, np.repeat(alone[:, :1], 3, axis=1))
    np.testing.assert_allclose(repeated, minitx.logits(first, alone), **CLOSE)
    with pytest.raises(ValueError, match="classifier_pooling is 'max'; wanted cls or mean"):
        from_hf(tiny.config("modernbert-sequence", classifier_pooling="max"))


# --- ALiBi


def test_slopes_by_hand():
    """A power of two: 2^(-8i/H). Else the first of those of the power below, and between them."""
    assert distances.slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert distances.slopes(3).tolist() == [2.0**-4, 2.0**-8, 2.0**-2]
    twelve = distances.slopes(12)
    assert (twelve[:8] == distances.slopes(8)).all()
    np.testing.assert_allclose(twelve[8:], distances.slopes(16)[:8:2], rtol=1e-15)


@pytest.mark.parametrize("variant", ALIBI)
def test_scores_fall_with_the_distance(variant):
    model = tiny.load(variant)
    cfg = model.config
    assert cfg.mechanisms == ("alibi",) and model.weights.W_pos is None
    tokens, number = tiny.ids(model, 2, 7), np.arange(7)
    trace = minitx.run(model, tokens)
    bias = -distances.slopes(cfg.n_heads)[:, None, None] * abs(number - number[:, None])
    assert (trace["pos_bias"] == bias[None]).all()
    raw = trace["q", 0] @ trace["k", 0].swapaxes(-1, -2) * cfg.d_head**-0.5
    seen = np.isfinite(trace["scores", 0])
    np.testing.assert_allclose(trace["scores", 0][seen], (raw + bias)[seen], **CLOSE)
    moved = minitx.run(model, tokens, positions=number + 5)
    np.testing.assert_allclose(last(moved), last(trace), **CLOSE)
    far = minitx.run(model, tokens, "pos_bias", positions=np.stack([number, 3 * number]))
    assert (far["pos_bias"][0] == bias).all() and (far["pos_bias"][1] == 3 * bias).all()
    for wrong in (np.arange(5), np.full(7, -1)):
        with pytest.raises(ValueError, match="positions"):
            minitx.forward(model, tokens, positions=wrong)


# --- none


def test_without_positions_only_the_mask_tells_places():
    """A causal model of one layer reads a set of tokens; two layers read their order."""
    model = tiny.load("gpt_neox-nowhere")
    assert model.config.mechanisms == () and not model.config.rotary
    tokens = tiny.ids(model, 7)
    order = np.array([3, 0, 5, 1, 4, 2, 6])
    plain, moved = (minitx.run(model, x) for x in (tokens, tokens[order]))
    np.testing.assert_allclose(last_of(moved, 0), last_of(plain, 0), **CLOSE)
    assert abs(last_of(moved, 1) - last_of(plain, 1)).max() > 0.01
    everywhere = minitx.run(model, tokens, mask=np.ones((7, 7), bool), positions=order)
    np.testing.assert_allclose(last(everywhere), last(plain), **CLOSE)


def last_of(trace, layer):
    """The stream of the last token after a layer."""
    return trace["resid_post", layer][0, -1]


# --- how attention and MLP stand to each other


def test_attention_and_mlp_read_the_same_stream_or_one_after_the_other():
    for variant, is_parallel in (("gpt_neox-parallel", True), ("gpt_neox-sequential", False)):
        model = tiny.load(variant)
        t = minitx.run(model, tiny.ids(model, 7))
        total = t["resid_pre", 0] + t["attn_out", 0] + t["mlp_out", 0]
        np.testing.assert_allclose(t["resid_post", 0], total, **CLOSE)
        assert (("resid_mid", 0) in t) != is_parallel
        edits = {("attn_out", 0): np.zeros_like}
        without = minitx.run(model, tiny.ids(model, 7), [("mlp_out", 0)], edits)
        assert (without["mlp_out", 0] == t["mlp_out", 0]).all() == is_parallel


def test_the_stream_may_be_the_normed_one():
    model = tiny.load("bloom-residual")
    t = minitx.run(model, tiny.ids(model, 7))
    np.testing.assert_allclose(t["resid_mid", 0], t["ln1", 0] + t["attn_out", 0], **CLOSE)
    np.testing.assert_allclose(t["resid_post", 0], t["ln2", 0] + t["mlp_out", 0], **CLOSE)
