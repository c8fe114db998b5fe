"""Checks of lesson 21: what a unit writes, the agreement rate, a unit that beats other values."""

import numpy as np

import minitx
from minitx.analysis.texts import corpus

from . import NOT_YET, Wrong
from .arrays import is_close, needs_function, refuse

FIRST, LAST, T = 140, 153, 96  # passages that the lesson has not shown
TOP = 20  # strongest places of a unit
OTHERS = 200  # values of other keys


def check_memory(answer):
    """What one unit writes: post[:, k] times its row of W_out."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda post, W_out, k: W_out[k]")
    rng = np.random.default_rng(0)
    post, W_out, k = rng.standard_normal((5, 6)), rng.standard_normal((6, 6)), 2
    given = np.asarray(answer(post.copy(), W_out.copy(), k))
    refuse(given, W_out[k], "this is the value; how much of it is written depends on the token")
    refuse(given, post @ W_out, "this is what all units write together")
    refuse(given, np.outer(post[:, k], W_out[:, k]), "the value is a row of W_out, not a column")
    refuse(given, np.outer(post[k], W_out[k]), "the unit's activities are a column of post")
    if given.shape != (5, 6):
        raise Wrong(f"wanted [5, 6], a row for each token; this gives {list(given.shape)}")
    if not is_close(given, np.outer(post[:, k], W_out[k])):
        raise Wrong("not it: the unit's activity at each token, times its value")
    return "right: summed over all units, that is the MLP without its bias"


def check_agreement(answer):
    """Share of keys whose value's first word follows at the key's strongest place."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda post, values, comes: 0.5")
    rng = np.random.default_rng(2)  # with it no two of the mistakes below give one number
    post, comes = rng.standard_normal((40, 30)), rng.integers(0, 30, 40)
    values = rng.standard_normal((30, 30))
    fits = rng.permutation(30)[:12]
    values[fits, comes[post[:, fits].argmax(axis=0)]] = 9
    given = answer(post.copy(), values.copy(), comes.copy())
    if np.shape(given) != ():
        raise Wrong(f"wanted one number, this gives {list(np.shape(given))}")
    first, place = values.argmax(axis=1), post.argmax(axis=0)
    share = (first == comes[place]).mean()
    if np.isclose(given, share):
        return "right: one place and one word for each key"
    for wrong, hint in (
        ((first == comes[place]).sum(), "this is their number; divide by the number of keys"),
        ((values.argmax(axis=0) == comes[place]).mean(), "the first word is along a row of values"),
        ((first == place).mean(), "compare words: comes at the place, not the place itself"),
        ((first == comes[post.argmin(axis=0)]).mean(), "the strongest place is the maximum"),
    ):
        if np.isclose(given, wrong):
            raise Wrong(f"{given:.3g}: {hint}")
    raise Wrong(f"{given:.3g} is not it: for each key its strongest place, then what follows there")


def check_unit(answer):
    """A unit whose value ranks what follows above 200 other values, on other passages."""
    if answer is ...:
        return NOT_YET
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise Wrong(f"{answer!r}: wanted (layer, unit)")
    model = minitx.load("tiny-stories")
    layer, unit = answer
    n_units = model.config.d_mlp
    if layer not in range(model.config.n_layers) or unit not in range(n_units):
        raise Wrong(f"{answer}: there are {model.config.n_layers} layers of {n_units} units")
    follows = strongest(model, layer, unit)
    values = model.layers[layer].W_out @ model.weights.W_U
    rng = np.random.default_rng(0)
    others = rng.permutation(np.delete(np.arange(n_units), unit))[:OTHERS]
    own, *foreign = (rank(values[k], follows) for k in (unit, *others))
    said = f"on other passages {own:.2f} of the words are below what follows"
    if own <= max(foreign):
        n = int(np.sum(np.array(foreign) >= own))
        raise Wrong(f"{said}; so it is with {n} of {OTHERS} other values: chance reaches that")
    return f"right: {said}, with the best of {OTHERS} other values {max(foreign):.2f}"


def strongest(model, layer, unit):
    """What follows where a unit is most active, in passages that the lesson has not shown."""
    documents = [*corpus.documents(model, "stories", LAST, T)]
    tokens = np.array(documents[FIRST:])
    post = minitx.run(model, tokens, [("post", layer)])["post", layer][:, :-1, unit]
    return tokens[:, 1:].ravel()[np.argsort(-post.ravel())[:TOP]]


def rank(value, follows):
    """Share of the words whose logit a value raises less than those of what follows."""
    return float((value < value[follows, None]).mean())
