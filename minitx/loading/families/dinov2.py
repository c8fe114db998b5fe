"""DINOv2 (Oquab et al. 2023): a ViT that scales what attention and MLP write, feature by feature.

That scale is multiplied into W_O, b_O, W_out and b_out, so that the point attn_out is what reaches
the stream. Its largest models have a gate in the MLP, fused with what it multiplies.
"""

from . import pictures
from .family import Family, Key, Tensor, by_half, norm, part
from .vit import ATTENTION, BODY, CONFIG, IMAGE


def scaled_columns(weight, scale):
    """A matrix [out in] of PyTorch's, its outputs scaled: [in out]."""
    return (weight * scale[:, None]).T


def scaled(bias, scale):
    """A bias, scaled."""
    return bias * scale


def written(ours, names, number):
    """Weight and bias of what writes to the stream, times the layer's scale of that number."""
    scale = (f"layer_scale{number}.lambda1",)
    weights, biases = (tuple(f"{n}.{kind}" for n in names) for kind in ("weight", "bias"))
    return {
        f"W_{ours}": Tensor(weights, others=scale, join=scaled_columns),
        f"b_{ours}": Tensor(biases, others=scale, join=scaled),
    }


def second(cfg):
    """The half after the gate, or the whole where there is no gate."""
    return (1, (1, 1)) if cfg.gated else (1, (0, 1))


def inner(kind):
    """Weight or bias of the MLP's first matrix: by itself, or the second half behind the gate."""
    names = (f"mlp.fc1.{kind}", f"mlp.weights_in.{kind}")
    return Tensor(names, kind == "weight", 1, second)


GATE = part("gate", "mlp.weights_in", 0, by_half)
LAYER = {
    **norm("ln1", "norm1"),
    **ATTENTION,
    **written("O", ["attention.output.dense"], 1),
    **norm("ln2", "norm2"),
    **{ours: tensor._replace(only="gated") for ours, tensor in GATE.items()},
    "W_in": inner("weight"),
    "b_in": inner("bias"),
    **written("out", ["mlp.fc2", "mlp.weights_out"], 2),
}


def derived(values):
    """The MLP's width: with a gate two thirds of it, rounded up to a multiple of 8; and SiLU."""
    ratio = values["d_mlp"]
    if not isinstance(ratio, int | float) or not 0 < ratio <= 64:
        raise ValueError(f"mlp_ratio is {ratio!r:.80}; wanted a number above 0, at most 64")
    width = int(values["d_model"] * ratio)
    if not values["gated"]:
        return {"d_mlp": width}
    return {"d_mlp": (width * 2 // 3 + 7) // 8 * 8, "act": "silu"}


FAMILY = Family(
    config=CONFIG | {"d_mlp": Key("mlp_ratio"), "gated": Key("use_swiglu_ffn", False)},
    fixed=pictures.UNTIED,
    sizes=pictures.sizes(specials=1),
    knows=pictures.KNOWS,
    derived=derived,
    body=BODY,
    layer=LAYER,
    layer_prefix="encoder.layer.{}.",
    heads={"image": IMAGE},
    head_reads={"image": ("class", "patches")},
)
