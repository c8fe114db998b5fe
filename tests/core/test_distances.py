"""DeBERTa's scores: three terms, of content and place, each a point; by hand.

The reference library's numbers are compared in test_parity.py and test_gradients.py. Distances are
of float64 runs of values up to about 10: measured at most 2e-14, bound 1e-12.
"""

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file

import minitx
from minitx import circuits
from minitx.checkpoint import UnreadWarning
from minitx.distances import log_distance
from minitx.families import from_hf

CLOSE = dict(rtol=0, atol=1e-12)
FIRST, SECOND = "deberta-masked", "deberta2-masked"
BUCKETS = load_file(tiny.GOLDEN / "buckets-deberta.safetensors")


def stored(variant):
    """The tensors of a golden file by name, without the model's prefix."""
    tensors = load_file(tiny.GOLDEN / variant / "model.safetensors")
    return {name.removeprefix("deberta."): x.astype(np.float64) for name, x in tensors.items()}


# --- what the terms are


@pytest.mark.parametrize("variant,n_terms", [(FIRST, 3), ("deberta-keys", 2), (SECOND, 3)])
def test_scores_are_the_sum_of_their_terms(variant, n_terms):
    """Each over sqrt(d) and the root of their number."""
    model = tiny.load(variant)
    t = minitx.run(model, tiny.ids(model, 9))
    names = ["c2c", *model.config.pos_terms]
    assert len(names) == n_terms and model.config.mechanisms == ("disentangled",)
    for layer in range(model.config.n_layers):
        total = sum(t[name, layer] for name in names)
        np.testing.assert_allclose(t["scores", layer], total, **CLOSE)
    scale = (n_terms * model.config.d_head) ** -0.5
    c2c = t["q", 1] @ t["k", 1].swapaxes(-1, -2) * scale
    np.testing.assert_allclose(t["c2c", 1], c2c, **CLOSE)


def test_terms_by_hand():
    """A query with the key of its distance; the distance's query with a key; clipped at 6."""
    model, W = tiny.load(FIRST), stored(FIRST)
    t = minitx.run(model, tiny.ids(model, 9))
    of_self = "encoder.layer.0.attention.self."
    k_pos = W["encoder.rel_embeddings.weight"] @ W[of_self + "pos_proj.weight"].T
    q_pos = W["encoder.rel_embeddings.weight"] @ W[of_self + "pos_q_proj.weight"].T
    q_pos = q_pos + W[of_self + "pos_q_proj.bias"]
    d, scale = model.config.d_head, (3 * model.config.d_head) ** -0.5
    for head in range(model.config.n_heads):
        own = slice(head * d, (head + 1) * d)
        for i, j in [(0, 0), (3, 4), (8, 0), (0, 8), (6, 1)]:
            row = 6 + min(max(i - j, -6), 5)
            c2p = t["q", 0][0, head, i] @ k_pos[row, own] * scale
            p2c = t["k", 0][0, head, j] @ q_pos[row, own] * scale
            assert t["pos_row"][0, i, j] == row
            np.testing.assert_allclose(t["c2p", 0][0, head, i, j], c2p, **CLOSE)
            np.testing.assert_allclose(t["p2c", 0][0, head, i, j], p2c, **CLOSE)


def test_the_first_version_fuses_queries_keys_and_values_by_head():
    """Its keys have no bias."""
    w, d = tiny.load(FIRST).layers[1], 4
    fused = stored(FIRST)["encoder.layer.1.attention.self.in_proj.weight"].T.reshape(8, 2, 3, d)
    for i, name in enumerate(("W_Q", "W_K", "W_V")):
        assert (getattr(w, name).reshape(8, 2, d) == fused[:, :, i]).all(), name
    assert w.b_K is None and w.b_K_pos is None and w.b_Q_pos.any()


def test_the_second_may_read_distances_by_the_matrices_for_words():
    model = tiny.load(SECOND)
    w, weights = model.layers[0], model.weights
    assert w.W_K_pos is None and not model.config.own_distances
    table, eps = weights.W_dist, model.config.eps
    centred = table - table.mean(1, keepdims=True)
    normed = centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + eps)
    normed = normed * weights.ln_dist_w + weights.ln_dist_b
    t = minitx.run(model, tiny.ids(model, 5))
    np.testing.assert_allclose(t["dist_embed"][0], normed, **CLOSE)
    for point, W, b in (("k_pos", w.W_K, w.b_K), ("q_pos", w.W_Q, w.b_Q)):
        by_heads = (normed @ W + b).reshape(len(table), 2, 4).swapaxes(0, 1)
        np.testing.assert_allclose(t[point, 0][0], by_heads, **CLOSE)


@pytest.mark.parametrize("setting", BUCKETS)
def test_far_distances_share_rows_as_in_the_library(setting):
    """Of all distances up to twice the farthest, for the settings of published checkpoints too."""
    half, largest = map(int, setting.split("."))
    n = 2 * largest
    distance = np.arange(-n, n + 1)
    ours = log_distance(distance, half, largest)
    assert (ours == BUCKETS[setting]).all()
    near = abs(distance) <= half // 2
    assert (ours[near] == distance[near]).all()


def test_a_model_without_distances_is_scaled_all_the_same():
    """As in the library: the terms that a config names are counted, whether computed or not."""
    model = tiny.load("deberta2-unscaled")
    assert not model.config.n_distances and model.config.mechanisms == ("learned",)
    t = minitx.run(model, tiny.ids(model, 6))
    expected = t["q", 0] @ t["k", 0].swapaxes(-1, -2) * (3 * 4) ** -0.5
    np.testing.assert_allclose(t["scores", 0], expected, **CLOSE)
    with pytest.raises(ValueError, match="no point 'c2p' .*needs a term of content with position"):
        minitx.run(model, tiny.ids(model, 6), "c2p")


# --- each is a point


@pytest.mark.parametrize("variant", [FIRST, SECOND])
def test_a_term_can_be_replaced(variant):
    """Without both places, no order of the words; a row moved is a key moved."""
    model = tiny.load(variant)
    ids = tiny.ids(model, 8)
    none = {"c2p": np.zeros_like, "p2c": np.zeros_like}
    order = np.random.default_rng(0).permutation(8)
    straight = minitx.run(model, ids, "logits", none)["logits"][0]
    shuffled = minitx.run(model, ids[order], "logits", none)["logits"][0]
    np.testing.assert_allclose(shuffled, straight[order], **CLOSE)
    with_places = minitx.run(model, ids[order], "logits")["logits"][0]
    assert abs(with_places - minitx.run(model, ids, "logits")["logits"][0][order]).max() > 0.1


def test_keys_that_are_moved_by_a_row_are_looked_up_one_to_the_side():
    model = tiny.load(FIRST)
    ids = tiny.ids(model, 5)
    plain = minitx.run(model, ids, ["pos_row", "c2p"])
    moved = minitx.run(model, ids, ["pos_row", "c2p"], {"pos_row": lambda row: row - 1})
    assert (moved["pos_row"] == plain["pos_row"] - 1).all()
    inside = moved["c2p", 0][..., :-1], plain["c2p", 0][..., 1:]
    np.testing.assert_allclose(*inside, **CLOSE)


def test_positions_are_those_of_distances_where_there_is_no_table():
    model = tiny.load(SECOND)
    ids = tiny.ids(model, 6)
    plain = minitx.run(model, ids)
    later = minitx.run(model, ids, positions=np.arange(6) + 40)
    assert (later["pos_row"] == plain["pos_row"]).all()
    backward = minitx.run(model, ids, positions=np.arange(6)[::-1])
    assert (backward["pos_row"][0] == plain["pos_row"][0].T).all()
    placed = tiny.load("deberta2-placed")
    t = minitx.run(placed, ids, positions=np.arange(6)[::-1])
    assert (t["pos_row"] == minitx.run(placed, ids)["pos_row"]).all()
    assert t["pos_embed"].any()
    assert (t["type_embed"] == placed.weights.W_type[0]).all()  # that of a token whose type is 0


def test_gradients_with_positions_of_each_text():
    """The mean of what each text alone gives."""
    model = tiny.load(SECOND)
    ids = tiny.ids(model, 2, 6)
    targets = tiny.ids(model, 2, 6, seed=1)
    positions = np.array([[0, 2, 3, 7, 8, 9], [5, 3, 1, 0, 2, 9]])
    wrt = ["W_dist", ("W_Q", 0), ("W_K", 1), "ln_dist_w", "embed"]
    both = minitx.gradients(model, ids, targets, wrt, positions=positions)
    alone = [
        minitx.gradients(model, ids[i : i + 1], targets[i], wrt, positions=positions[i])
        for i in range(2)
    ]
    for key in both:
        each = [grads[key] / 2 for grads in alone]
        expected = np.concatenate(each) if key == "embed" else sum(each)
        np.testing.assert_allclose(both[key], expected, rtol=0, atol=1e-12)


def test_what_a_trace_will_hold():
    for variant in (FIRST, SECOND):
        model = tiny.load(variant)
        ids = tiny.ids(model, 2, 5)
        assert minitx.cost(model, ids) == minitx.run(model, ids).nbytes


def test_direct_effects_sum_to_the_logit():
    """Values go their way as in BERT; only what is looked at has further terms."""
    model = tiny.load("deberta2-token")
    table = circuits.logit_attribution(model, tiny.ids(model, 6), 1, 2, place=3)
    assert np.isclose(table.logits.sum(), table.logit, rtol=1e-10)


# --- heads


def test_the_published_head_is_read_by_its_names():
    """lm_predictions, whose matrix is the embedding whatever the config says of ties."""
    model = tiny.load("deberta-whole")
    assert model.config.task_head == "masked"
    assert (model.weights.W_U == model.weights.W_E.T).all()
    settings = tiny.config("deberta-whole", tie_word_embeddings=False)
    assert from_hf(settings).tied


def with_decoder(tensors):
    """A table of positions that the layers do not read, as published checkpoints have it."""
    name = "deberta.embeddings.position_embeddings.weight"
    return tensors | {name: np.ones((12, 8), np.float32)}


def test_an_enhanced_mask_decoder_is_refused_by_name(tmp_path):
    """The rest of such a checkpoint loads."""
    folder = tiny.make(tmp_path, FIRST, with_decoder)
    with pytest.warns(UnreadWarning, match="not read: cls.pred.*head that gives logits: its enhan"):
        model = minitx.load(folder)
    assert model.config.task_head is None
    assert "embeddings.position_embeddings.weight" in model.unused
    x = minitx.forward(model, tiny.ids(model, 5))
    with pytest.raises(ValueError, match="no head that gives logits: its enhanced mask decoder"):
        minitx.logits(model, x)
    with pytest.raises(ValueError, match="the head 'masked' of this checkpoint is not read: its"):
        minitx.load(folder, head="masked")
    assert (x == minitx.forward(minitx.load(tiny.GOLDEN / FIRST), tiny.ids(model, 5))).all()
    placed = tiny.load("deberta-placed")  # its layers read their table
    assert placed.config.task_head == "masked"
