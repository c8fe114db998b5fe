"""Checks of lesson 9: where order arrives, what the values of a mask mean, a mask of one's own."""

from functools import cache

import numpy as np
import scipy

import minitx
from minitx.analysis.texts import corpus

from . import NOT_YET, Wrong
from .arrays import needs_function

SENTENCES = "The man told the child.", "The child told the man."
ROUNDING = 1e-3  # rows that differ by less do so because sums were taken in another order
SCORES, MASK = np.array([1.0, 2.0, 1.5, -0.5]), np.array([0.1, 0.4, 0.7, 1.0])
T = 128


def no_positions():
    """Edits that set the rows of the positions to zero."""
    return {"pos_embed": np.zeros_like}


def check_layer(answer):
    """The first layer after which the last token's row differs in two orders of the same words."""
    if answer is ...:
        return NOT_YET
    model = minitx.load("tiny-gpt2")
    rows = []
    for text in SENTENCES:
        trace = minitx.run(model, text, ["resid_post"], no_positions())
        rows.append(trace.stack("resid_post")[:, 0, -1])
    differs = abs(rows[0] - rows[1]).max(axis=1) > ROUNDING
    first = int(differs.argmax())
    if answer not in range(len(differs)):
        raise Wrong(f"{answer!r} is no layer: this model has layers 0 to {len(differs) - 1}")
    if answer < first:
        raise Wrong(
            f"after layer {answer} the row is still the same: what it sums is the same rows in "
            "another order, and a sum does not mind the order"
        )
    if answer > first:
        raise Wrong(
            f"after layer {answer} the row differs, but it did so earlier: when do the rows that "
            "are summed differ themselves?"
        )
    return f"right: layer {first} sums rows that already know what stood before them"


def check_meaning(answer):
    """A change of the scores whose softmax is the mask times the softmax, brought to sum 1."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda scores, mask: scores * mask")
    got = np.asarray(answer(SCORES.copy(), MASK.copy()), float)
    if got.shape != SCORES.shape:
        raise Wrong(f"the function gives {list(got.shape)}; wanted new scores {list(SCORES.shape)}")
    weights = MASK * scipy.special.softmax(SCORES)
    if np.allclose(got, weights) or np.allclose(got, weights / weights.sum()):
        raise Wrong(
            "these are the weights; wanted are scores, which the softmax then makes weights"
        )
    if np.allclose(got, SCORES * MASK):
        raise Wrong("this multiplies the scores; a factor on e^s is something else on s")
    if np.allclose(got, SCORES + MASK):
        raise Wrong("adding m to s multiplies e^s by e^m; which number x has e^x = m?")
    if not np.allclose(scipy.special.softmax(got), weights / weights.sum()):
        raise Wrong(
            "the softmax of these scores is not the mask times the weights: e^(s + ?) = m e^s"
        )
    return "right: a factor on the weights is a summand, its logarithm, on the scores"


def check_mask(answer):
    """A mask by distance with a lower loss than the linear one and than its values dealt anew."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda distance: 1 + distance")
    distance = np.maximum(np.arange(T)[:, None] - np.arange(T), 0)
    mask = np.broadcast_to(np.asarray(answer(distance), float), (T, T))
    seen = mask[np.tri(T, dtype=bool)]
    if not ((seen > 0) & (seen <= 1)).all():
        raise Wrong(f"values are from {seen.min():g} to {seen.max():g}; wanted above 0, up to 1")
    if np.ptp(seen) == 0:
        raise Wrong("this mask is the same at every distance, so it says nothing about positions")
    loss, linear = loss_under(mask), linear_loss()
    if loss >= linear:
        raise Wrong(
            f"the loss is {loss:.2f} nats, with the linear mask {linear:.2f}: should near tokens "
            "weigh more against far ones, or less?"
        )
    random = loss_under(in_random_order(mask))
    if loss >= random:
        raise Wrong(f"dealt at random its values give {random:.2f} nats, in order {loss:.2f}")
    return f"right: {loss:.2f} nats; linear {linear:.2f}, your values dealt at random {random:.2f}"


@cache
def documents():
    """The documents that masks are compared on: four of T tokens."""
    model = minitx.load("tiny-gpt2")
    return model, [np.array(x) for x in corpus.documents(model, "sample", 4, T)]


@cache
def linear_loss():
    """The loss under the lesson's linear mask."""
    distance = np.maximum(np.arange(T)[:, None] - np.arange(T), 0)
    farthest = np.maximum(distance.max(axis=1, keepdims=True), 1)
    return loss_under(1 - 0.9 * distance / farthest)


def in_random_order(mask):
    """The values of each row [T T] in random order; a token's own value stays."""
    rng, mask = np.random.default_rng(0), mask.copy()
    for t in range(T):
        mask[t, :t] = rng.permutation(mask[t, :t])
    return mask


def loss_under(mask):
    """Mean loss of tiny-gpt2 without positions, its weights times the mask [T T], in nats."""
    model, texts = documents()
    added = np.log(np.where(np.tri(T, dtype=bool), mask, 1)).astype(np.float32)
    edits = no_positions() | {"scores": lambda scores: scores + added}
    losses = []
    for tokens in texts:
        logits = minitx.run(model, tokens, ["logits"], edits)["logits"][0, :-1]
        log_p = scipy.special.log_softmax(logits.astype(float), axis=1)
        losses.append(-log_p[np.arange(T - 1), tokens[1:]])
    return np.concatenate(losses).mean()
