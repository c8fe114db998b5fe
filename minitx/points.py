"""The names of all intermediates of a forward pass: POINTS, and those of them that a model has."""

import difflib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .arrays import Model
from .heads import require_head
from .model import CROSS, ENCODER

Key = str | tuple[str, int]  # of a point: its name, or (name, layer)


class Point(NamedTuple):
    """One intermediate of the forward pass.

    The table of all points, POINTS, by name:

    >>> import minitx
    >>> minitx.POINTS["pattern"].axes, minitx.POINTS["pattern"].meaning
    ('B H T S', 'softmax of scores: the attention')
    >>> minitx.POINTS["cross_pattern"].needs
    ('an encoder',)
    """

    axes: str  # letters: see model.py
    meaning: str
    per_layer: bool = True  # False: it occurs once in a pass
    needs: tuple[str, ...] = ()  # what a model must have, of NEEDS


BY_DISTANCE = {"buckets", "alibi"}
# what a point may need -> does a model meet it? given: whether the caller gave token types
NEEDS = {
    "a position table": lambda model, given: model.weights.W_pos is not None,
    "a bias by distance": lambda model, given: bool({*model.config.mechanisms} & BY_DISTANCE),
    "terms of content and position": lambda model, given: bool(model.config.pos_terms),
    "a term of content with position": lambda model, given: "c2p" in model.config.pos_terms,
    "a term of position with content": lambda model, given: "p2c" in model.config.pos_terms,
    "rotary positions": lambda model, given: bool(model.config.rotary),
    "norms of queries and keys": lambda model, given: model.config.qk_norm,
    "norms of all queries and keys": lambda model, given: model.config.qk_norm_all,
    "norms of what is written": lambda model, given: model.layers[0].attn_out_w is not None,
    "a stream between attention and MLP": lambda model, given: not model.config.parallel,
    "token types": lambda model, given: given or model.config.default_type is not None,
    "a norm of the embeddings": lambda model, given: model.weights.ln_embed_w is not None,
    "norms with a mean": lambda model, given: not model.config.rms_norm,
    "a gated MLP": lambda model, given: model.config.gated,
    "an encoder": lambda model, given: model.encoder is not None,
    "a final norm": lambda model, given: model.weights.ln_final_w is not None,
    "a task head": lambda model, given: model.config.task_head is not None,
}
NORMED, FINAL, SOURCE = ("a norm of the embeddings",), ("a final norm",), ("an encoder",)
BIASED, ROTARY = ("a bias by distance",), ("rotary positions",)
QK_NORM, WITH_MEAN = ("norms of queries and keys",), ("norms with a mean",)
IN_TURN = ("a stream between attention and MLP",)
TERMS = ("terms of content and position",)
C2P, P2C = ("a term of content with position",), ("a term of position with content",)
ALL_QK, WRITTEN = ("norms of all queries and keys",), ("norms of what is written",)


def _norm(name, what, per_layer=True, needs=(), axes="B T D"):
    """The three points of a norm; `what` is described as 'norm' or 'norm: its use'."""
    norm = what.partition(":")[0]
    mean, scale = f"mean that the {norm} subtracts", f"1/sigma that the {norm} multiplies by"
    three = {f"{name}_mean": Point("B T", mean, per_layer, (*needs, *WITH_MEAN))}
    three[f"{name}_scale"] = Point("B T", scale, per_layer, needs)
    return three | {name: Point(axes, what, per_layer, needs)}


# One name, one meaning in all families, in the order of the forward pass. In an encoder-decoder
# these are the decoder's; the keys S of cross-attention are the tokens of the source.
POINTS = {
    "embed": Point("B T E", "rows of the word embedding", False),
    "pos_embed": Point("B T E", "rows of the position embedding", False, ("a position table",)),
    "type_embed": Point("B T E", "rows of the token-type embedding", False, ("token types",)),
    **_norm("ln_embed", "LayerNorm of the embedding sum", False, NORMED, "B T E"),
    "pos_bias": Point("1 H T S", "what is added to the scores by distance", False, BIASED),
    "dist_embed": Point("1 R D", "rows of the table of distances (DeBERTa)", False, TERMS),
    "pos_row": Point("1 T S", "row of that table for each query and key", False, TERMS),
    "resid_pre": Point("B T D", "residual stream before the layer; normed as resid_post is"),
    **_norm("ln1", "first LayerNorm: attention's input (GPT-2) or the sum after it (BERT)"),
    "pos_angle": Point("B T r", "angles by which queries and keys are turned", needs=ROTARY),
    "ln_all_q_scale": Point("B T", "1/sigma of the queries of all heads together", needs=ALL_QK),
    "ln_all_q": Point("B T A", "norm of all heads' queries together (OLMo 2)", needs=ALL_QK),
    "ln_q_mean": Point("B H T", "mean that it subtracts (Phi)", needs=QK_NORM + WITH_MEAN),
    "ln_q_scale": Point("B H T", "1/sigma that the norm of queries multiplies by", needs=QK_NORM),
    "ln_q": Point("B H T d", "norm of each head's queries (Qwen3)", needs=QK_NORM),
    "q_in": Point("B H T d", "queries before they are turned", needs=ROTARY),
    "q": Point("B H T d", "queries, as they are compared with keys"),
    "ln_all_k_scale": Point("B T", "1/sigma of the keys of all heads together", needs=ALL_QK),
    "ln_all_k": Point("B T K", "norm of all heads' keys together (OLMo 2)", needs=ALL_QK),
    "ln_k_mean": Point("B G T", "mean that it subtracts (Phi)", needs=QK_NORM + WITH_MEAN),
    "ln_k_scale": Point("B G T", "1/sigma that the norm of keys multiplies by", needs=QK_NORM),
    "ln_k": Point("B G T d", "norm of each head's keys (Qwen3)", needs=QK_NORM),
    "k_in": Point("B G T d", "keys before they are turned", needs=ROTARY),
    "k": Point("B G T d", "keys; several heads may share theirs"),
    "v": Point("B G T d", "values, shared as keys are"),
    "k_pos": Point("1 H R d", "keys of distances", needs=C2P),
    "c2p": Point("B H T S", "content with position: scaled q.k_pos of their distance", needs=C2P),
    "q_pos": Point("1 H R d", "queries of distances", needs=P2C),
    "p2c": Point("B H T S", "position with content: scaled q_pos.k of their distance", needs=P2C),
    "c2c": Point("B H T S", "content with content: scaled q.k, one term of scores", needs=TERMS),
    "scores": Point("B H T S", "scaled q.k, capped in Gemma 2; -inf where a key is hidden"),
    "pattern": Point("B H T S", "softmax of scores: the attention"),
    "z": Point("B H T d", "pattern times values"),
    "head_out": Point(
        "B H T D",
        "what each head writes (z W_O by head); their sum with b_O, normed in Gemma 2, is attn_out",
    ),
    "attn_out_scale": Point("B T", "1/sigma of what attention writes (Gemma 2)", needs=WRITTEN),
    "attn_out": Point("B T D", "what attention writes to the residual stream"),
    "resid_mid": Point("B T D", "residual stream between attention and MLP", needs=IN_TURN),
    **_norm("ln_cross", "LayerNorm: cross-attention's input, or the sum after it", needs=SOURCE),
    f"{CROSS}q": Point("B H T d", "queries to the source", needs=SOURCE),
    f"{CROSS}k": Point("B H S d", "keys of the source", needs=SOURCE),
    f"{CROSS}v": Point("B H S d", "values of the source", needs=SOURCE),
    f"{CROSS}scores": Point("B H T S", "scaled q.k; -inf on padding of the source", needs=SOURCE),
    f"{CROSS}pattern": Point("B H T S", "where each token looks in the source", needs=SOURCE),
    f"{CROSS}z": Point("B H T d", "cross_pattern times values of the source", needs=SOURCE),
    f"{CROSS}head_out": Point(
        "B H T D", "what each head writes; their sum with b_O is cross_out", needs=SOURCE
    ),
    f"{CROSS}out": Point("B T D", "what cross-attention writes to the stream", needs=SOURCE),
    "resid_cross": Point("B T D", "stream between cross-attention and MLP", needs=SOURCE),
    **_norm("ln2", "second LayerNorm: the MLP's input (GPT-2) or the sum after it (BERT)"),
    "pre": Point("B T M", "MLP before the activation"),
    "pre_linear": Point("B T M", "what the gate, post, is multiplied by", needs=("a gated MLP",)),
    "post": Point("B T M", "MLP after the activation"),
    "mlp_out_scale": Point("B T", "1/sigma of what the MLP writes (Gemma 2)", needs=WRITTEN),
    "mlp_out": Point("B T D", "what the MLP writes to the residual stream"),
    "resid_post": Point(
        "B T D", "residual stream after the layer: normed in BERT, in GPT-2 by final_norm"
    ),
    **_norm("ln_final", "final LayerNorm (GPT-2)", False, FINAL),
    "logits": Point(
        "B T V",
        "scores over the vocabulary, or over classes: [B T C] or [B C]",
        False,
        ("a task head",),
    ),
}
# An encoder, which runs first, has the same but those that need another, and no token types; T and
# S are then the tokens of the source.
OTHERS = {SOURCE, SOURCE + WITH_MEAN, ("a task head",), ("token types",)}
OTHERS |= {
    ROTARY,
    QK_NORM,
    QK_NORM + WITH_MEAN,
    ALL_QK,
    WRITTEN,
    TERMS,
    C2P,
    P2C,
}  # no encoder of an encoder-decoder here has these
POINTS = {
    ENCODER + name: point._replace(meaning=f"encoder: {point.meaning}")
    for name, point in POINTS.items()
    if point.needs not in OTHERS
} | POINTS
# by the in-place kernels that come next
OVERWRITTEN = {f"{part}{name}" for part in ("", ENCODER) for name in ("scores", "pre")}
OVERWRITTEN |= {f"{CROSS}scores", "c2c"}

ON_REQUEST = {f"{part}head_out" for part in ("", ENCODER, CROSS)}  # H times the stream's memory


def points(model: Model, types: bool = False) -> list[Key]:
    """All points of a model: names, and (name, layer) for those of the layers.

    types: whether token types are given.
    """
    keys: list[Key] = []
    for name, point in POINTS.items():
        stack = stack_of(name, model)
        if stack is None or not all(NEEDS[need](stack, types) for need in point.needs):
            continue
        if point.per_layer:
            layers = [layer.index for layer in stack.layers if _is_in(name, layer, stack.config)]
            keys += [(name, layer) for layer in layers]
        else:
            keys.append(name)
    return keys


TURNED = "pos_angle", "q_in", "k_in"


def _is_in(name, layer, cfg):
    """Whether a layer has a point that its model has: not the numbers of a norm that it lacks.

    Some layers of SmolLM3 turn nothing.
    """
    if name in TURNED:
        return cfg.rotary[layer.index] is not None
    norm, _, number = name.removeprefix(ENCODER).rpartition("_")
    is_lacking = norm in ("ln1", "ln2") and getattr(layer, f"{norm}_w") is None
    return not (is_lacking and number in ("mean", "scale"))


def expand(names, available, model):
    """Names, or (name, layer), as points of the model, each once, in order.

    None: all points but those on request.
    """
    if names is None:
        return [point for point in available if name_of(point) not in ON_REQUEST]
    if isinstance(names, str) or _is_pair(names):
        names = [names]
    if not isinstance(names, Iterable):
        raise ValueError(f"keep is {names!r:.80}; wanted names of points, or pairs (name, layer)")
    expanded = {}
    named = [(point, name_of(point)) for point in available]
    for key in names:
        wanted = from_first(key, model)
        matches = [point for point, name in named if wanted in (point, name)]
        if not matches:
            _refuse(key, model)
        expanded |= dict.fromkeys(matches)
    return list(expanded)


def from_first(key, model):
    """("q", -1) -> ("q", last layer), as lists count; any other key as it is."""
    if _is_pair(key):
        name, layer = key
        stack = stack_of(str(name), model) or model
        return name, layer + stack.config.n_layers if layer < 0 else layer
    return key


def _is_pair(key):
    """Whether a key is (name, layer), of whatever name."""
    return isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], int | np.integer)


def stack_of(name, model):
    """The stack in which a point lies, the encoder or the model itself; None: it has no encoder."""
    return model.encoder if name.startswith(ENCODER) else model


def name_of(key):
    """The name in a point's key, which is a name or (name, layer)."""
    return key[0] if isinstance(key, tuple) and len(key) == 2 else key


def has_texts(key: Key) -> bool:
    """Whether a point's first axis is that of the texts; tables by distance have none."""
    return POINTS[name_of(key)].axes.startswith("B")


def text_of(key: Key) -> str:
    """("q", 3) -> "q.3"; "logits" as it is."""
    return key if isinstance(key, str) else f"{key[0]}.{key[1]}"


def key_of(text: str) -> Key:
    """ "q" -> "q"; "q.3" and "q.L3" -> ("q", 3); what a point is called is not checked."""
    name, _, layer = text.strip().partition(".")
    layer = layer.removeprefix("L")
    return (name, int(layer)) if layer.isdecimal() else text.strip()


def _refuse(key, model):
    """Raises ValueError that says why the model has no such point."""
    name = name_of(key)
    if not isinstance(name, str) or name not in POINTS:
        _name_here(key)
        close = ", ".join(difflib.get_close_matches(str(name), POINTS, 3, 0.4)) or "none"
        names = ", ".join(dict.fromkeys(map(name_of, points(model))))
        raise ValueError(f"unknown point {name!r}; closest: {close}; this model has: {names}")
    if name == "logits":
        require_head(model)
    stack, point = stack_of(name, model), POINTS[name]
    needs = SOURCE if stack is None else point.needs
    cfg = (stack or model).config
    why = f", layers 0 to {cfg.n_layers - 1}" if point.per_layer else ""
    if needs:
        why += f"; it needs {' and '.join(needs)}"
    raise ValueError(f"this model has no point {key!r} ({cfg.model_type}{why})")


def _name_here(key):
    """Raises ValueError with our name for a point that another library calls by this one."""
    from . import names  # which needs POINTS

    try:
        point = names.point_of(key)
    except (ValueError, TypeError):
        return
    raise ValueError(f"unknown point {key!r:.80}; minitx calls it {point!r}")
