"""Each kernel against its plain float64 twin; the in-place ones write in place wherever used.

Float32 bounds are measured ones rounded up; each is far below what a wrong formula would give (tanh
in place of erf: 5e-4; sample in place of population variance: 1e-2 at width 48).
"""

import math

import numpy as np
import pytest
import tiny
from scipy import special

import minitx
from minitx import kernels
from minitx.activations import ACTIVATIONS
from minitx.kernels import (
    TILE,
    linear,
    matmul_heads,
    mean_and_inverse_std,
    normalise,
    softmax_,
)
from minitx.machine import threads

GRID = np.concatenate(
    [np.linspace(-12, 12, 300_001), np.linspace(-1e-3, 1e-3, 1001), [1e-30, 0.0, -40, 40]]
)


TWINS = {
    "gelu": lambda x: x * 0.5 * (1 + special.erf(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * special.expit(x),
    "quick_gelu": lambda x: x * special.expit(1.702 * x),
    "relu": lambda x: np.where(x > 0, x, 0),
    "tanh": np.tanh,
}
SAME = {
    "gelu_python": "gelu",
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_fast": "gelu_new",
    "swish": "silu",
}
# float32, measured: gelu 5.6e-7, gelu_new 7.0e-7 (tanh's argument is rounded), silu 4.7e-7,
# quick_gelu 4.8e-7
BOUND = dict.fromkeys(TWINS, 1.5e-6) | {"gelu": 6e-7, "relu": 1e-7, "tanh": 1e-7}


@pytest.mark.parametrize("name", TWINS)
def test_activations_equal_their_twins(name):
    act = ACTIVATIONS[name]
    x32 = GRID.astype(np.float32)
    # float64: a few roundings of values up to 12
    assert abs(act(GRID.copy()) - TWINS[name](GRID)).max() < 4e-15
    assert abs(act(x32.copy()) - TWINS[name](x32.astype(np.float64))).max() < BOUND[name]


def test_activation_names_share_their_twins():
    assert ACTIVATIONS.keys() == TWINS.keys() | SAME.keys()
    x = GRID[::97].astype(np.float32)
    for name, twin in SAME.items():
        assert (ACTIVATIONS[name](x.copy()) == ACTIVATIONS[twin](x.copy())).all()


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "silu", "quick_gelu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tails_and_nan(name, dtype):
    """Far out the gate is 0 or 1 to the last bit, and no rounding error grows; NaN stays NaN."""
    x = np.array([-1e9, -1e3, -100, 100, 1e3, 1e9, np.nan], dtype)
    with np.errstate(over="raise", invalid="raise"):
        y = ACTIVATIONS[name](x.copy())
    assert y[:3].tolist() == [0, 0, 0]
    assert (y[3:6] == x[3:6]).all() and np.isnan(y[6])


def softmax(x):
    """Plain twin: in float64, a row without a visible key being zeros."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(special.softmax(x.astype(np.float64), axis=-1))


@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (2, 3, 5, 7), (3, 2, 1, 9), (4,), (2, 4099), (2 * TILE // 64 + 5, 64)]
)
# measured 1.2e-7, 2.3e-16; with kernels without AVX (Prescott), which add 4,099 numbers up in four
# sums of float32, 1.4e-6
@pytest.mark.parametrize("dtype,bound", [(np.float32, 2e-6), (np.float64, 1e-15)])
def test_softmax_equals_its_twin(shape, dtype, bound):
    rng = np.random.default_rng(1)
    x = (rng.normal(size=shape) * 8).astype(dtype)
    x[rng.random(shape) < 0.2] = -np.inf
    x.reshape(-1, shape[-1])[0] = -np.inf  # a query that sees no key
    y = x.copy()
    assert softmax_(y) is y
    assert abs(y - softmax(x)).max() < bound
    assert not y.reshape(-1, shape[-1])[0].any()


def test_softmax_takes_more_keys_than_a_tile_has():
    x = np.random.default_rng(6).normal(size=(2, TILE + 1))
    np.testing.assert_allclose(softmax_(x.copy()), softmax(x), rtol=1e-12)  # measured 2e-15


def test_softmax_takes_scores_of_any_size():
    largest = [[3e38, 3e38, -3e38], [-3e38, -3e38, -np.inf]]
    x = np.array([*largest, [1e4, 1e4 - 1, -1e4], [np.nan, 0, 0]], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        y = softmax_(x.copy())
    np.testing.assert_allclose(y[:3], softmax(x[:3]), atol=1e-6)
    assert np.isnan(y[3]).all()


@pytest.mark.parametrize("n_keys", range(1, 9))
def test_one_score_beyond_the_range_of_exp_brings_no_warning(n_keys):
    """Of rows of three, OpenBLAS's kernel for AVX-512 multiplies the next row's first by 0."""
    for place in range(3 * n_keys):
        x = np.zeros((3, n_keys), np.float32)
        x.flat[place] = 100.0  # e^100 is infinite in float32
        np.testing.assert_allclose(softmax_(x.copy()), softmax(x), atol=1e-6)


@pytest.mark.parametrize("shift", [-1e4, -100, -60, -45, -30, 0, 30, 60, 69, 80, 100, 1e4])
@pytest.mark.parametrize("causal", [False, True])
def test_softmax_without_the_largest_taken_off_is_as_exact(shift, causal):
    """Scores are shifted only if sums of their exp come near float32's ends; no step in between."""
    x = (np.random.default_rng(4).normal(size=(3, 40, 40)) * 3 + shift).astype(np.float32)
    x[:, np.triu(np.ones((40, 40), bool), 1) & causal] = -np.inf
    x[1] -= 30  # texts of one batch need not be alike
    # measured 2e-6: exp(60)'s
    np.testing.assert_allclose(softmax_(x.copy()), softmax(x), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize(
    "B,H,T,S", [(1, 1, 1, 1), (1, 3, 5, 5), (2, 3, 4, 7), (5, 2, 1, 6), (1, 3, 512, 512)]
)
def test_product_is_a_matrix_product_for_every_text_and_head(B, H, T, S):
    rng = np.random.default_rng(5)
    a = rng.normal(size=(B, H, T, 8))
    b = rng.normal(size=(B, H, S, 8)).swapaxes(-1, -2)
    copies = a.copy(), b.copy()
    expected = np.einsum("bhtd,bhds->bhts", a, b)
    np.testing.assert_allclose(matmul_heads(a, b), expected, atol=1e-13)
    assert (a == copies[0]).all() and (b == copies[1]).all()


# measured 6e-7, 1e-15
@pytest.mark.parametrize("dtype,bound", [(np.float32, 2e-6), (np.float64, 1e-14)])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_layer_norm_uses_the_population_variance(dtype, bound, offset):
    rng = np.random.default_rng(2)
    rows = (rng.normal(size=(3, 5, 48)) * 2 + offset).astype(dtype)
    w, b = rng.normal(size=(2, 48)).astype(dtype)
    for x in (rows, np.asfortranarray(rows)):
        mean, scale = mean_and_inverse_std(x, 1e-5)
        assert mean.dtype == scale.dtype == dtype and mean.shape == (3, 5)
        exact = x.astype(np.float64)
        centred = exact - exact.mean(-1, keepdims=True)
        room = bound * max(1, offset)  # the mean itself is rounded at the size of the offset
        np.testing.assert_allclose(mean, exact.mean(-1), atol=room)
        np.testing.assert_allclose(scale, 1 / np.sqrt(exact.var(-1, ddof=0) + 1e-5), rtol=room)
        expected = centred / np.sqrt(exact.var(-1, keepdims=True) + 1e-5) * w + b
        np.testing.assert_allclose(normalise(x, mean, scale, w, b), expected, atol=4 * room)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (7, 5), (2, 3, 5), (1, 1, 5), (4, 1, 5)])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_x_times_w_plus_b(shape, order, bias):
    rng = np.random.default_rng(3)
    W = np.asarray(rng.normal(size=(5, 3)), order=order)
    b = rng.normal(size=3) if bias else None
    dense = rng.normal(size=shape)
    expected = np.einsum("...d,dm->...m", dense, W)
    if bias:
        expected += b
    for x in (dense, np.asfortranarray(dense), np.repeat(dense, 2, -1)[..., ::2]):
        before = x.copy()
        y = linear(x, W, b)
        assert y.shape == (*shape[:-1], 3) and (x == before).all()
        np.testing.assert_allclose(y, expected, atol=1e-14)
        singles = (None if a is None else a.astype(np.float32) for a in (x, W, b))
        y = linear(*singles)
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)  # measured 4e-7


@pytest.mark.parametrize(
    "rows,order,n_chunks", [(1, "F", 1), (4, "F", 3), (4, "C", 1), (9, "F", 1)]
)
def test_a_product_of_few_rows_is_cut_into_small_ones(rows, order, n_chunks, monkeypatch):
    rng = np.random.default_rng(4)
    W = np.asarray(rng.normal(size=(300, 2000)), order=order)
    x, sizes = rng.normal(size=(rows, 300)), []

    def spread(work, n, step):
        for start in range(0, n, step):
            sizes.append(min(step, n - start))
            work(start, start + sizes[-1])

    monkeypatch.setattr(kernels, "spread", spread)
    np.testing.assert_allclose(linear(x, W), x @ W, atol=1e-12)  # measured 9e-14
    assert len(sizes) == n_chunks and sum(sizes) == 2000
    if n_chunks > 1:
        assert max(sizes) * x.size <= threads.SMALL


@pytest.mark.parametrize("variant", tiny.ONE_EACH)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 1), (3, 7)])
def test_the_forward_pass_is_written_in_place(variant, dtype, shape):
    """`pattern` lies where `scores` lay, `post` where `pre` lay; with padding and a cache too."""
    model = tiny.load(variant, dtype)
    tokens = tiny.ids(model, *shape)
    valid = np.arange(shape[1])[::-1] < [[shape[1] - i // 2] for i in range(shape[0])]
    assert_in_place(model, tokens)
    assert_in_place(model, tokens, valid=valid)
    if model.config.causal:
        assert_in_place(model, tokens, cache=minitx.Cache())


def assert_in_place(model, tokens, **inputs):
    """Each activation lies in the memory of what it was computed from."""
    points = {}

    def keep(name, x, layer=None):
        points[name, layer] = x
        return x

    minitx.forward(model, tokens, **inputs, hook=keep)
    for before, after in (("scores", "pattern"), ("pre", "post")):
        for i in range(model.config.n_layers):
            a, b = points[before, i], points[after, i]
            assert a.__array_interface__["data"] == b.__array_interface__["data"]
            assert a.strides == b.strides


def test_arrays_with_gaps_are_refused_not_lost():
    x = np.ones((4, 6), np.float32)
    for name in ("gelu_new", "silu", "gelu"):
        with pytest.raises(ValueError, match="needs an array without gaps; strides are"):
            ACTIVATIONS[name](x[:, ::2])
    with pytest.raises(ValueError, match="copy"):
        softmax_(np.ones((2, 3, 4)).swapaxes(0, 1))
    for name in TWINS.keys() - {"relu", "tanh"}:  # any dense order of the axes will do
        y = np.ones((2, 3, 4), np.float32).transpose(2, 0, 1)
        assert ACTIVATIONS[name](y) is y and (y != 1).all()


def test_a_norm_gives_features_side_by_side_whatever_its_input_has():
    """Products after it then have the same bits with and without an edit before it."""
    x = np.random.default_rng(0).standard_normal((2, 5, 8))
    mean, scale = kernels.mean_and_inverse_std(x, 1e-5)
    w, b = np.ones(8), np.zeros(8)
    own, other = kernels.feature_major(x), np.ascontiguousarray(x)
    given, wanted = (kernels.normalise(y, mean, scale, w, b) for y in (other, own))
    assert given.strides == wanted.strides == own.strides != other.strides
    assert np.array_equal(given, wanted)
