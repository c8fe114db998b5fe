"""DeBERTa's scores: three terms, of content and place, each a point; by hand.

The reference library's numbers are compared in test_parity.py and test_gradients.py. Distances are
of float64 runs of values up to about 10: measured at most 2e-14, bound 1e-12.
"""

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file

import minitx
from minitx.distances import log_distance
from minitx.loading.checkpoint import UnreadWarning
from minitx.loading.families import from_hf

CLOSE = dict(rtol=0, atol=1e-12)
FIRST, SECOND = "deberta-masked", "deberta2-masked"
BUCKETS = load_file(tiny.GOLDEN / "buckets-deberta.safetensors")


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
    np.testing.assert_allclose(moved["c2p", 0][..., :-1], plain["c2p", 0][..., 1:], **CLOSE)


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


# --- heads


def test_the_published_head_is_read_by_its_names():
    """lm_predictions, whose matrix is the embedding whatever the config says of ties."""
    model = tiny.load("deberta-whole")
    assert model.config.task_head == "masked"
    assert (model.weights.W_U == model.weights.W_E.T).all()
    settings = tiny.config("deberta-whole", tie_word_embeddings=False)
    assert from_hf(settings).tied


def test_an_enhanced_mask_decoder_is_refused_by_name(tmp_path):
    """It has a table of positions that the layers do not read; the rest of it loads."""
    table = np.ones((12, 8), np.float32)
    change = tiny.edited(deberta__embeddings__position_embeddings__weight=table)
    folder = tiny.make(tmp_path, FIRST, change)
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
