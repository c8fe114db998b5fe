"""Heads, layers and MLPs that write nothing.

T tokens, H heads, d values of each.
"""

from functools import partial

import numpy as np

from . import validation
from .record import Change, Control

GROUP = "Switch off"
# of a whole layer, by stack: what it writes to the residual stream
WRITES = {
    "": ("attn_out", "mlp_out"),
    "encoder": ("enc_attn_out", "enc_mlp_out"),
    "decoder": ("attn_out", "cross_out", "mlp_out"),
    "cross": ("cross_out",),
}


def _check_number(what, numbers, n):
    """Raise ValueError for a layer or head that the stack does not have."""
    if max(numbers) >= n:
        raise ValueError(f"{what} {max(numbers)} is out of range; wanted 0 to {n - 1}")


def _check_layers(layers, place):
    _check_number("layer", layers, place.stack.config.n_layers)


# heads


def _check_heads(changes, place):
    layers, heads = zip(*changes.heads_off)
    _check_layers(layers, place)
    _check_number("head", heads, place.stack.config.n_heads)


def _by_layer(changes):
    """{layer: heads that are off}."""
    by_layer = {}
    for layer, head in changes.heads_off:
        by_layer.setdefault(layer, []).append(head)
    return by_layer


def _edits_heads(changes, place, before):
    point, by_layer = place.point("z"), _by_layer(changes)
    return {(point, layer): partial(_without, heads=h) for layer, h in by_layer.items()}


def _without(z, heads):  # [1 H T d]
    z[:, heads] = 0
    return z


def _python_heads(changes, where):
    H, point = where.place.stack.config.n_heads, where.place.point("z")
    for layer, heads in _by_layer(changes).items():
        is_on = np.isin(range(H), heads, invert=True).astype(int).tolist()
        on, listed = f"np.array({is_on})[:, None, None]", ", ".join(map(str, heads))
        yield f'edits["{point}", {layer}] = lambda z: z * {on}  # without head {listed}'


# layers


def _edits_layers(changes, place, before):
    points = WRITES[place.name]
    return {(point, n): np.zeros_like for n in changes.layers_off for point in points}


def _python_layers(changes, where):
    for layer in changes.layers_off:
        for point in WRITES[where.place.name]:
            yield f'edits["{point}", {layer}] = np.zeros_like  # layer {layer} writes nothing'


def _silent_layers(changes, n_heads):
    return {n for x in changes.layers_off for n in range(x * n_heads, (x + 1) * n_heads)}


HEADS = Change(
    "heads_off",
    (),
    Control(
        "heads",
        "off",
        GROUP,
        note="What a head, or a layer, would write is left out.",
        words=("switch {} off", "switch {} on again"),
    ),
    partial(validation.heads, "heads_off"),
    lambda changes: " ".join(f"L{layer}H{head}" for layer, head in changes.heads_off) + " off",
    _edits_heads,
    _python_heads,
    _check_heads,
    silent=lambda changes, H: {layer * H + head for layer, head in changes.heads_off},
)
LAYERS = Change(
    "layers_off",
    (),
    Control("layers", "all of layer {}", GROUP, cell="L{}"),
    partial(validation.layers, "layers_off"),
    lambda changes: f"layer {', '.join(map(str, changes.layers_off))} off",
    _edits_layers,
    _python_layers,
    lambda changes, place: _check_layers(changes.layers_off, place),
    silent=_silent_layers,
)


# MLPs


def _check_mlps(changes, place):
    if place.name == "cross":
        raise ValueError("cross-attention has no MLPs; those of its layers are the decoder's")
    _check_layers(changes.mlps_off, place)


def _edits_mlps(changes, place, before):
    return {(place.point("mlp_out"), layer): np.zeros_like for layer in changes.mlps_off}


def _python_mlps(changes, where):
    point = where.place.point("mlp_out")
    for layer in changes.mlps_off:
        yield f'edits["{point}", {layer}] = np.zeros_like  # the MLP writes nothing'


MLPS = Change(
    "mlps_off",
    (),
    Control("layers", "the MLP of layer {}", GROUP, cell="M{}"),
    partial(validation.layers, "mlps_off"),
    lambda changes: f"MLP {', '.join(map(str, changes.mlps_off))} off",
    _edits_mlps,
    _python_mlps,
    _check_mlps,
)
