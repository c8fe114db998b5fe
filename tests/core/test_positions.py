"""Positions of encoder-decoders: buckets of distances (T5) and sinusoids (Marian), bit for bit.

The reference library's own numbers are in golden/positions, made by make_golden_pairs.py.
"""

from types import SimpleNamespace

import numpy as np
import parity
import pytest
import tiny
from safetensors.numpy import load_file

import minitx
from minitx.distances import bucket
from minitx.positions import sinusoids

LIBRARY = load_file(parity.GOLDEN / "positions" / "positions.safetensors")
DISTANCES = np.arange(-600, 601)
BUCKETS = sorted(name for name in LIBRARY if name.endswith("coder"))
TABLES = sorted(LIBRARY.keys() - BUCKETS)


def of(name):
    """A config that has these buckets: "N.MAX.encoder" or "N.MAX.decoder"."""
    n, largest, side = name.split(".")
    return SimpleNamespace(n_buckets=int(n), max_distance=int(largest), causal=side == "decoder")


@pytest.mark.parametrize("name", BUCKETS)
def test_buckets_are_the_librarys_for_all_distances(name):
    """Near ones have one each; a decoder has none for later keys, an encoder has as many."""
    assert len(LIBRARY[name]) == len(DISTANCES)
    assert (bucket(of(name), DISTANCES) == LIBRARY[name]).all()
    square = DISTANCES[:1200].reshape(30, 40)  # of any shape
    assert (bucket(of(name), square).ravel() == LIBRARY[name][:1200]).all()


@pytest.mark.parametrize("name", TABLES)
def test_sinusoids_are_the_librarys_bytes(name):
    n, width = map(int, name.split("."))
    table = sinusoids(n, width)
    assert table.dtype == np.float32
    assert table.tobytes() == LIBRARY[name].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("variant", ["marian-shared", "marian-odd"])
def test_marians_table_is_the_librarys_in_both_precisions(variant, dtype):
    """And is computed, also where the file brings one: half the columns are sines."""
    model = tiny.load(variant, dtype)
    expected = LIBRARY[f"12.{model.config.d_model}"].astype(dtype)
    for stack in (model, model.encoder):
        W_pos = stack.weights.W_pos
        assert W_pos.dtype == dtype and (W_pos == expected).all()
        half = (stack.config.d_model + 1) // 2
        assert not W_pos[0, :half].any() and (W_pos[0, half:] == 1).all()


def test_positions_in_place_of_the_columns():
    """T5's distances are those of the positions that are given, for one text or for each."""
    model = tiny.load("t5-relu").encoder
    tokens = tiny.ids(model, 2, 6)
    order = np.array([5, 0, 3, 1, 2, 4])
    bias = minitx.run(model, tokens, "pos_bias", positions=order)["pos_bias"]
    expected = model.weights.W_rel[bucket(model.config, order[None, :] - order[:, None])]
    assert (bias == expected.transpose(2, 0, 1)[None]).all()
    # with its position, a token may stand anywhere
    shuffled = minitx.forward(model, tokens[:, order], positions=order)
    plain = minitx.forward(model, tokens)
    np.testing.assert_allclose(shuffled, plain[:, order], rtol=0, atol=1e-12)
    each = np.stack([order, np.arange(6)])
    both = minitx.forward(model, tokens, positions=each)
    np.testing.assert_allclose(both[1], plain[1], rtol=0, atol=1e-12)
    for wrong in (np.arange(5), np.zeros((3, 6), int)):
        with pytest.raises(ValueError, match=r"positions are .*; wanted \[S\] or \[B S\] for keys"):
            minitx.forward(model, tokens, positions=wrong)
