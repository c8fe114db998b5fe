"""What a head reads, and what a decoder sees, as the reference library does by ids and config."""

import json

import numpy as np
import pytest
import tiny

import minitx
from minitx import heads

ASKED = json.loads((tiny.GOLDEN / "asked.json").read_text())
# the library computes rotary angles, norms and masks of some types in float32
NEAR = {"rtol": 1e-5, "atol": 1e-5}  # measured: 3.0e-6 of the largest at most


@pytest.mark.parametrize("name", ASKED["heads"])
def test_a_head_reads_the_token_that_the_ids_determine(name):
    """Padding and end tokens stand inside the rows, and no mask is given."""
    model = tiny.load(name)
    ids, logits = (np.array(ASKED["heads"][name][key]) for key in ("ids", "logits"))
    text, options = ids, {}
    if model.encoder is not None:
        text, options = np.insert(ids, 0, model.config.start_id, axis=1)[:, :-1], {"source": ids}
    trace = minitx.run(model, text, "logits", **options)
    np.testing.assert_allclose(trace["logits"], logits, **NEAR)


def test_a_hidden_token_that_a_head_reads_has_the_position_that_the_mask_gives():
    """OPT's: the row before the first; with the first row the logits are up to 4.2 off."""
    golden = ASKED["hidden"]["opt-sequence"]
    trace = minitx.run(tiny.load("opt-sequence"), golden["ids"], "logits", valid=golden["valid"])
    np.testing.assert_allclose(trace["logits"], golden["logits"], **NEAR)


def with_both_sides(folder, variant):
    """A golden model whose config.json says that it is not causal."""
    (folder / "config.json").write_text(json.dumps(tiny.config(variant, is_causal=False)))
    (folder / "model.safetensors").symlink_to(tiny.GOLDEN / variant / "model.safetensors")
    return folder


@pytest.mark.parametrize("model_type", ASKED["both_sides"])
def test_a_decoder_that_is_not_causal_sees_both_sides(tmp_path, model_type):
    golden = ASKED["both_sides"][model_type]
    folder = with_both_sides(tmp_path, golden["folder"])
    x = minitx.forward(minitx.load(folder, dtype=np.float64), golden["ids"])
    np.testing.assert_allclose(x[0, ::4], golden["last"], **NEAR)


def test_scores_that_fall_with_the_distance_are_refused_on_both_sides(tmp_path):
    with_both_sides(tmp_path, "bloom-three")
    with pytest.raises(ValueError, match="is_causal is False; only True is supported"):
        minitx.load(tmp_path)


def test_a_token_that_a_mask_hides_is_read_if_it_is_the_last():
    """Hidden tokens inside a text are of the text, as in the library; behind it is padding."""
    model = tiny.load("olmo-sequence")
    pad, ids = model.config.read_id, [4, 5, 6, 7]
    for rows, valid, expected in (
        ([*ids, pad], [1, 1, 1, 0, 1], 3),
        ([*ids, 9], [1, 1, 1, 0, 0], 2),
    ):
        batch = np.array([rows]), np.array([valid])
        assert heads.read_tokens(model.config, batch).argmax() == expected
