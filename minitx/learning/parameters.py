"""The names of a model's arrays, formed as those of points: "W_E", ("W_Q", 3), ("enc_b_O", 0).

Arrays of an encoder begin with enc_, those of cross-attention with cross_ (its norm is ln_cross).
An embedding and the W_U that is tied to it are one array.
"""

from dataclasses import replace

import numpy as np

from ..arrays import Cross, Model
from ..machine.mapped import require_arrays
from ..points import Key

ENCODER, CROSS = "enc_", "cross_"


def parameters(model: Model) -> dict[Key, np.ndarray]:
    """All arrays of a model by name, or (name, layer); those of its encoder come last.

    >>> import minitx
    >>> from minitx.learning.parameters import parameters
    >>> arrays = parameters(minitx.load("tiny-bart"))
    >>> arrays["W_Q", 0].shape, arrays["cross_W_Q", 0].shape, arrays["enc_W_Q", 0].shape
    ((64, 64), (64, 64), (64, 64))
    """
    require_arrays(model, "a dictionary of all arrays")
    named: dict[Key, np.ndarray] = dict(_arrays(model.weights))
    for layer in model.layers:
        for name, x in _arrays(layer).items():
            named[name, layer.index] = x
        for name, x in _arrays(vars(layer).get("cross")).items():
            named[cross_name(name), layer.index] = x
    if model.encoder is not None:
        for key, x in parameters(model.encoder).items():
            named[prefixed(ENCODER, key)] = x
    return named


def _arrays(part):
    """The arrays of one part, by name."""
    held = {} if part is None else vars(part)
    return {name: x for name, x in held.items() if isinstance(x, np.ndarray)}


def cross_name(name):
    """W_Q of cross-attention -> cross_W_Q; the arrays of its norm have names of their own."""
    return name if name.startswith("ln_cross") else CROSS + name


def prefixed(prefix, key):
    """A name, or (name, layer), with a prefix before the name."""
    if isinstance(key, tuple):
        return prefix + key[0], key[1]
    return prefix + key


def owners(model: Model) -> dict[Key, Key]:
    """{name: first name of the same array}; most arrays own themselves.

    The same are arrays in one memory; and, where a config ties them, embeddings of equal values,
    as some files hold them twice.
    """
    named = parameters(model)
    first: dict = {}
    owner = {key: first.setdefault(_place(x), key) for key, x in named.items()}
    if model.config.tied:
        for key in ("W_U", "enc_W_E"):
            if owner.get(key) == "W_E":
                continue  # the same memory
            other = named["W_E"].T if key == "W_U" else named["W_E"]
            if np.array_equal(named.get(key, ()), other):
                owner[key] = "W_E"
    return owner


def _place(x):
    """Where an array lies, whichever way round it is seen: its first byte, and its size."""
    return x.__array_interface__["data"][0], x.size


def is_tied_output(key, owner):
    """Whether an array is the output embedding W_U that is W_E transposed."""
    return key == "W_U" and owner != key


def writable(model: Model) -> Model:
    """The model with arrays of its own, which may be changed in place; tied ones stay tied."""
    require_arrays(model, "a copy that learns")
    named = parameters(model)
    owner = owners(model)
    copies = {key: named[key].copy(order="K") for key in dict.fromkeys(owner.values())}
    arrays = {key: copies[own] for key, own in owner.items()}
    if is_tied_output("W_U", owner.get("W_U", "W_U")):
        arrays["W_U"] = arrays["W_U"].T
    return with_arrays(model, arrays, "")


def with_arrays(model, arrays, prefix):
    """The model with other arrays, by name."""
    layers = [_part(layer, arrays, prefix, layer.index) for layer in model.layers]
    encoder = model.encoder
    if encoder is not None:
        encoder = with_arrays(encoder, arrays, ENCODER)
    return replace(
        model,
        weights=_part(model.weights, arrays, prefix),
        layers=tuple(layers),
        encoder=encoder,
    )


def _part(part, arrays, prefix, layer=None):
    """Weights, a Layer or a Cross with other arrays."""
    held = dict(vars(part))
    for name in _arrays(part):
        key = cross_name(name) if isinstance(part, Cross) else prefix + name
        if layer is not None:
            key = key, layer
        held[name] = arrays[key]
    if held.get("cross") is not None:
        held["cross"] = _part(held["cross"], arrays, prefix, layer)
    return type(part)(**held)
