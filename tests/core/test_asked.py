"""What a head reads, and what a decoder sees, as the reference library does by ids and config."""

import json
from pathlib import Path

import numpy as np
import pytest

import minitx
from minitx import heads

GOLDEN = Path(__file__).parents[1] / "golden"
ASKED = json.loads((GOLDEN / "asked.json").read_text())
# the library computes rotary angles, norms and masks of some types in float32
NEAR = {"rtol": 1e-5, "atol": 1e-5}  # measured: 3.0e-6 of the largest at most


@pytest.mark.parametrize("name", ASKED["heads"])
def test_a_head_reads_the_token_that_the_ids_determine(name):
    """Padding and end tokens stand inside the rows, and no mask is given."""
    model = minitx.load(GOLDEN / name, dtype=np.float64)
    ids, logits = (np.array(ASKED["heads"][name][key]) for key in ("ids", "logits"))
    options = {"source": ids} if model.encoder is not None else {}
    text = None if options else ids
    if options:
        text = np.insert(ids, 0, model.config.start_id, axis=1)[:, :-1]
    trace = minitx.run(model, text, "logits", **options)
    np.testing.assert_allclose(trace["logits"], logits, **NEAR)


def test_a_hidden_token_that_a_head_reads_has_the_position_that_the_mask_gives():
    """OPT's: the row before the first; with the first row the logits are up to 4.2 off."""
    golden = ASKED["hidden"]["opt-sequence"]
    model = minitx.load(GOLDEN / "opt-sequence", dtype=np.float64)
    valid = np.array(golden["valid"], bool)
    trace = minitx.run(model, golden["ids"], "logits", valid=valid)
    np.testing.assert_allclose(trace["logits"], golden["logits"], **NEAR)


@pytest.mark.parametrize("model_type", ASKED["both_sides"])
def test_a_decoder_that_is_not_causal_sees_both_sides(tmp_path, model_type):
    golden = ASKED["both_sides"][model_type]
    folder = GOLDEN / golden["folder"]
    raw = json.loads((folder / "config.json").read_text()) | {"is_causal": False}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    (tmp_path / "model.safetensors").symlink_to(folder / "model.safetensors")
    x = minitx.forward(minitx.load(tmp_path, dtype=np.float64), golden["ids"])
    np.testing.assert_allclose(x[0, ::4], golden["last"], **NEAR)


def test_scores_that_fall_with_the_distance_are_refused_on_both_sides(tmp_path):
    folder = GOLDEN / "bloom-three"
    raw = json.loads((folder / "config.json").read_text()) | {"is_causal": False}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    (tmp_path / "model.safetensors").symlink_to(folder / "model.safetensors")
    with pytest.raises(ValueError, match="is_causal is False; only True is supported"):
        minitx.load(tmp_path)


def test_a_token_that_a_mask_hides_is_read_if_it_is_the_last():
    """Hidden tokens inside a text are of the text, as in the library; behind it is padding."""
    model = minitx.load(GOLDEN / "olmo-sequence", dtype=np.float64)
    pad, ids = model.config.read_id, [4, 5, 6, 7]
    for rows, valid, expected in (
        ([*ids, pad], [1, 1, 1, 0, 1], 3),
        ([*ids, 9], [1, 1, 1, 0, 0], 2),
    ):
        batch = np.array([rows]), np.array([valid])
        assert heads.read_tokens(model.config, batch).argmax() == expected
