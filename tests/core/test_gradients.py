"""Gradients against automatic derivatives in float64, and exact zeros."""

import sys

import numpy as np
import parity
import pytest
import tiny
from safetensors.numpy import load_file

import minitx
from minitx.activations import ACTIVATIONS, gelu_
from minitx.learning.derivatives import SLOPES, activation, table
from minitx.learning.parameters import owners, parameters, writable

GOLDEN = sorted((parity.GOLDEN / "gradients").glob("*.safetensors"))
LIMIT = 1e-10  # of the largest entry; measured: 2e-14


def as_key(text):
    """W_Q.0 -> ("W_Q", 0), as the golden files name arrays and points."""
    name, _, layer = text.removeprefix("point.").partition(".")
    return (name, int(layer)) if layer else name


def recorded(path):
    """The model of a golden file, what it is given, and {key: gradient}, and the loss."""
    arrays = load_file(path)
    model = minitx.load(parity.GOLDEN / path.stem, "float64")
    given = {name[6:]: x for name, x in arrays.items() if name.startswith("input.")}
    loss = arrays["loss"].item()
    names = [name for name in arrays if name[:6] not in ("input.", "loss")]
    return model, given, {as_key(name): arrays[name] for name in names}, loss


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_gradient_is_that_of_automatic_derivatives(path):
    model, given, expected, loss = recorded(path)
    arrays = [key for key, own in owners(model).items() if key == own]
    everything = [*arrays, *tiny.computed(model, "types" in given)]
    grads = minitx.gradients(model, wrt=everything, **given)
    assert abs(grads.loss - loss) < 1e-12
    # points of no influence on the loss, such as a mean that is edited by nobody, have all an entry
    missing = [key for key in everything if key not in expected]
    assert all(not grads[key].any() for key in missing), missing
    largest = max(abs(x).max() for x in expected.values())
    for key, x in expected.items():
        size = max(abs(x).max(), 1e-4 * largest)  # b_K moves nothing: all rounding
        assert abs(grads[key] - x).max() <= LIMIT * size, key


def drawn(model, rng):
    """Tokens of two texts, the second padded on the left, what goes with them, and targets."""
    tokens, given = tiny.texts(model, (9, 6), (7, 5))
    n_classes = model.weights.W_U.shape[1]
    targets = np.where(given["valid"], rng.integers(0, n_classes, tokens.shape), -100)
    return tokens, targets, given


def test_padding_and_hidden_tokens_get_exact_zeros():
    model = tiny.load("bert-masked")
    tokens, targets, given = drawn(model, np.random.default_rng(1))
    wrt = ["embed", "resid_pre", "k", "v", "W_type"]
    types = np.zeros_like(tokens)
    grads = minitx.gradients(model, tokens, targets, wrt, types=types, **given)
    padding = ~given["valid"]
    assert padding.sum() == 3
    for key, dx in grads.items():
        if key == "W_type":
            assert dx[0].any() and not dx[1:].any()  # a type that no token has
        else:
            by_token = dx.swapaxes(1, 2) if key[0] in ("k", "v") else dx
            assert not by_token[padding].any() and by_token[~padding].any(), key


def test_the_key_bias_moves_nothing():
    """It adds the same to all scores of a query, which softmax takes off again: all rounding."""
    model = tiny.load("gpt2-causal")
    tokens, targets, given = drawn(model, np.random.default_rng(2))
    grads = minitx.gradients(model, tokens, targets, ["b_K", "b_Q"], **given)
    assert abs(grads["b_K", 0]).max() < 1e-15  # measured: 6e-17
    assert abs(grads["b_Q", 0]).max() > 1e-4


@pytest.mark.parametrize("wrt", [("W_Q", 1), ("resid_pre", 1), "b_U", ("enc_W_Q", 1), "W_pos"])
def test_a_pass_that_stops_early_gives_the_same(wrt):
    model = tiny.load("bart-causal")
    tokens, targets, given = drawn(model, np.random.default_rng(3))
    whole = minitx.gradients(model, tokens, targets, [wrt, "W_E", "enc_embed"], **given)
    alone = minitx.gradients(model, tokens, targets, [wrt], **given)
    assert [*alone] == [wrt] and (alone[wrt] == whole[wrt]).all() and alone[wrt].any()


def test_pieces_of_the_vocabulary_give_the_same(monkeypatch):
    model = tiny.load("bert-masked")
    tokens, targets, given = drawn(model, np.random.default_rng(4))
    wrt = ["W_E", "W_head", "ln_head_w", "logits", ("resid_post", -1)]
    whole = minitx.gradients(model, tokens, targets, wrt, **given)
    monkeypatch.setattr(sys.modules["minitx.learning.gradients"], "SCORES", 4 * 61)
    pieces = minitx.gradients(model, tokens, targets, wrt, **given)
    assert abs(whole.loss - pieces.loss) < 1e-14
    assert whole["logits"].shape == (*tokens.shape, 61)
    for key in whole:
        assert abs(whole[key] - pieces[key]).max() < 1e-15, key  # measured: 2e-16


def test_a_tied_output_embedding_has_the_whole_gradient_under_both_names():
    model = tiny.load("gpt2-causal")
    tokens, targets, given = drawn(model, np.random.default_rng(5))
    grads = minitx.gradients(model, tokens, targets, ["W_U", "W_E", "embed", "logits"], **given)
    assert (grads["W_U"] == grads["W_E"].T).all()
    x = minitx.run(model, tokens, "ln_final", **given)["ln_final"]
    by_output = np.einsum("btd,btv->vd", x, grads["logits"])
    by_input = table(grads["embed"], tokens, 61)
    assert abs(by_input + by_output - grads["W_E"]).max() < 1e-14


def test_an_edited_point_is_a_constant():
    """Positions at zero: the table gets exact zeros, and all after it the gradient of that run."""
    model = tiny.load("gpt2-causal")
    tokens, targets, given = drawn(model, np.random.default_rng(6))
    zero = {"pos_embed": np.zeros_like}
    edited = minitx.gradients(model, tokens, targets, ["W_pos", "W_E"], edits=zero, **given)
    without = tiny.with_weights(model, W_pos=np.zeros_like(model.weights.W_pos))
    expected = minitx.gradients(without, tokens, targets, ["W_pos", "W_E"], **given)
    assert not edited["W_pos"].any() and expected["W_pos"].any()
    assert edited.loss == expected.loss and (edited["W_E"] == expected["W_E"]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_slopes_of_activations(name, dtype):
    """Against differences of the kernel in float64; float32 of GELU is off by its fit: 3e-6."""
    x = np.linspace(-9, 9, 2001)
    kernel = ACTIVATIONS[name]
    slope = (kernel(x + 1e-6) - kernel(x - 1e-6)) / 2e-6
    if name == "relu":
        slope[abs(x) < 1e-9] = 0  # its corner
    given = SLOPES[kernel](x.astype(dtype))
    assert given.dtype == dtype
    assert abs(given - slope).max() < (1e-8 if dtype == np.float64 else 5e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelus_slope_from_its_value(dtype):
    """At 0, too, where value and place are both 0."""
    x = np.linspace(-9, 9, 2001).astype(dtype)
    x[1000] = 0
    exact = SLOPES[gelu_](x.astype(np.float64))
    given = activation(np.ones_like(x), x, "gelu", gelu_(x.copy()))
    assert given.dtype == dtype and given[1000] == 0.5
    assert abs(given - exact).max() < (1e-12 if dtype == np.float64 else 5e-6)


def test_float32_is_float64_rounded():
    small, large = (tiny.load("bert-masked", dtype) for dtype in (np.float32, np.float64))
    tokens, targets, given = drawn(large, np.random.default_rng(7))
    exact = minitx.gradients(large, tokens, targets, **given)
    grads = minitx.gradients(small, tokens, targets, **given)
    largest = max(abs(x).max() for x in exact.values())
    for key, x in grads.items():
        assert x.dtype == np.float32
        assert abs(x - exact[key]).max() < 1e-5 * largest, key  # measured: 1e-6


def test_what_is_returned_shows_itself():
    model = tiny.load("gpt2-causal")
    grads = minitx.gradients(model, [5, 6, 7], [6, 7, -100], [("W_Q", -1), "W_pos"])
    assert [*grads] == [("W_Q", 1), "W_pos"] and grads.n_targets == 2
    assert "mean of 2 targets" in repr(grads) and "W_Q 1" in repr(grads)
    with pytest.raises(KeyError, match="'W_K' was not requested; wrt had: W_Q, W_pos"):
        grads["W_K"]


WRONG = {
    "targets are \\[2\\]; wanted \\[1, 3\\]": ([6, 7], None),
    "targets: 99 is out of range; wanted 0 to 60": ([6, 99, 7], None),
    "targets: -1 is out of range": ([6, -1, 7], None),
    "all targets are -100": ([-100] * 3, None),
    "no array or point 'W_po'; closest: W_pos": ([6, 7, 8], ["W_po"]),
    "no array or point \\('W_Q', 9\\)": ([6, 7, 8], [("W_Q", 9)]),
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_requests_are_refused(message):
    targets, wrt = WRONG[message]
    with pytest.raises(ValueError, match=message):
        minitx.gradients(tiny.load("gpt2-causal"), [5, 6, 7], targets, wrt)


def test_losses_that_are_no_cross_entropy_are_refused():
    with pytest.raises(ValueError, match="'replaced' head of 1 is not a cross-entropy"):
        minitx.gradients(tiny.load("electra-replaced"), [5, 6], [0, 0])
    with pytest.raises(ValueError, match="edits replace the logits"):
        model = tiny.load("gpt2-causal")
        minitx.gradients(model, [5, 6], [6, 7], edits={"logits": np.zeros_like})


def test_arrays_that_may_be_written_leave_the_model_alone():
    model = tiny.load("bart-causal", np.float64)
    copy = writable(model)
    for key, x in parameters(copy).items():
        assert x.flags.writeable and (x == parameters(model)[key]).all(), key
    copy.weights.W_E[:] = 0
    assert not copy.weights.W_U.any() and not copy.encoder.weights.W_E.any()
    assert model.weights.W_E.any()
