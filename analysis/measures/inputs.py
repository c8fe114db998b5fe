"""What the attention layers read, and the weights with which they read it.

T tokens, D width, d width of a head.
"""

import re

import numpy as np

from minitx import head_weights
from minitx.kernels import layer_norm, linear
from minitx.loading.families import FAMILIES

from ..contract.registry import NotApplicable
from ..maths import factors, profiles
from ..running import passes


def reachable(model):
    """Rows of the position table that a token can read, first token first: [T D].

    Raises NotApplicable where the table is not all that says where a token is.
    """
    cfg = model.config
    if model.weights.W_pos is None:
        what = "which this checkpoint lacks"
        if not cfg.n_pos:
            what = f"and {cfg.model_type} has none: {_instead(cfg)}"
        raise NotApplicable(f"needs the position table, {what}")
    check_table_alone(model)
    return np.asarray(model.weights.W_pos[cfg.offset : cfg.offset + cfg.n_ctx])


def varying(model):
    """Rows of the position table, as `reachable`: [T D].

    Raises NotApplicable also where all rows are the same, as in a model that was trained without.
    """
    table = reachable(model)
    if (table == table[0]).all():
        raise NotApplicable("needs a position table whose rows differ; here all are the same")
    return table


FEWEST_ROWS = 16  # of a range: fewer have hardly a frequency away from 0


def row_range(rows, T):
    """The slice of a table of T rows that FIRST:LAST names, LAST not included; "": all rows.

    Either end may be left out. Raises ValueError for what is no range of the table, or for a
    range of fewer than FEWEST_ROWS rows.

    The rows that inputs of 128 tokens reach, and those behind them:

    >>> row_range("0:128", 512), row_range("128:", 512)
    (slice(0, 128, None), slice(128, 512, None))
    """
    if not rows:
        return slice(0, T)
    ends = re.fullmatch(r"(\d*):(\d*)", rows.strip())
    if ends:
        first, last = int(ends[1] or 0), int(ends[2] or T)
        if first + FEWEST_ROWS <= last <= T:
            return slice(first, last)
    raise ValueError(
        f"--rows is {rows!r}; wanted FIRST:LAST, such as 0:{T // 2}, {FEWEST_ROWS} rows or more; "
        f"this model's tokens read rows 0 to {T - 1}, so LAST is {T} at most"
    )


def _instead(cfg):
    """What a model without a position table has in its place."""
    if cfg.rotary:
        return "its queries and keys are turned by their place (`kernel` and `lags` read these)"
    if cfg.mechanisms:
        return "its positions are a term of the scores (`kernel` reads it)"
    return "nothing tells positions"


def check_table_alone(model):
    """Raises NotApplicable for a model that has a table, and a bias by distance beside it."""
    cfg = model.config
    if cfg.n_pos and cfg.n_buckets:
        what = f"and {cfg.model_type} adds a term to the scores, by distance, as well"
        raise NotApplicable(f"needs positions that are only in the table, {what}")


def check_uncapped(model):
    """Raises NotApplicable for a model whose scores are not the scaled products themselves."""
    cfg = model.config
    if cfg.score_cap:
        what = f"and {cfg.model_type} caps its scores at {cfg.score_cap:g}"
        raise NotApplicable(f"needs scores that are products of queries and keys, {what}")


def of_text(model, document, edits=passes.NOTHING):
    """Input X [L T D] of every attention layer on one document [T].

    edits: {point: array or f(x)} as in `run`.
    """
    return passes.value(reading(model, document, edits))


def reading(model, document, edits=passes.NOTHING):
    """The Reading of `of_text`."""
    point = "ln1" if model.config.pre_norm else "resid_pre"
    by_layer = []

    def watch(name, x, layer=None):
        if name == point:
            by_layer.append(x[0].copy())

    return passes.Reading(model, document, watch, lambda _: np.array(by_layer), edits)


def with_profiles(model, document, edits=passes.NOTHING, reach=profiles.REACH):
    """A Reading: what `of_text` gives, and the attention profiles of every head [L H R]."""
    plain = reading(model, document, edits)
    attention = []

    def watch(name, x, layer=None):
        plain.watch(name, x, layer)
        if name == "pattern":
            attention.append(profiles.profile(x[0], reach))

    return plain._replace(watch=watch, value=lambda x: (plain.value(x), np.array(attention)))


def of_positions(model, layer=0, T=None):
    """Input X [T D] of a layer if the stream held positions alone.

    In layer 0 it is exactly the positions' share of the input, up to the norm's scale, which words
    would change; in later layers it is the input if the layers before had written nothing.
    """
    return of_rows(model, reachable(model)[:T], layer)


def of_rows(model, rows, layer=0):
    """`of_positions` of other rows [T D] in place of those of the position table."""
    cfg, w = model.config, model.weights
    if w.W_type is not None and cfg.default_type is not None:
        rows = rows + w.W_type[cfg.default_type]
    return normed(model, rows, layer)


def normed(model, x, layer=0):
    """A sum of embeddings [T E] as this layer reads it if no layer before it writes: [T D]."""
    w, x = model.weights, embedding_norm(model, x, layer)
    return x if w.W_map is None else linear(x, w.W_map, w.b_map)


def embedding_norm(model, x, layer=0):
    """The same before it is mapped to the width of the stream (ALBERT): [T E]."""
    norm = norm_before(model, layer)
    return x if norm is None else layer_norm(x, *norm, model.config.eps)


def gained(model, rows):
    """Rows of the position table [T E] by the norm's gain and through the map: [T D] (ALBERT).

    Elsewhere the rows as they are: `residual.split` counts that gain among those of its norms.
    """
    w = model.weights
    return rows if w.W_map is None else (rows * w.ln_embed_w) @ w.W_map


def norm_before(model, layer=0):
    """Gain and bias [D] of the norm of what a layer reads; None in Marian, which has no such norm.

    Where norms follow each addition it is that of the embedding sum.
    """
    cfg, w = model.config, model.weights
    gain, bias = w.ln_embed_w, w.ln_embed_b
    if cfg.pre_norm:
        gain, bias = model.layers[layer].ln1_w, model.layers[layer].ln1_b
    if gain is None and cfg.sinusoids:
        return None
    if gain is None or bias is None:
        raise NotApplicable(f"needs the norm before layer {layer}, which this checkpoint lacks")
    return gain, bias


def layers(model):
    """Numbers of the layers whose query and key weights are in this checkpoint."""
    wanted = ["W_Q", "W_K"]
    if model.config.attn_bias and not model.config.rms_norm:  # T5 has no biases
        own = FAMILIES[model.config.model_type].layer
        wanted += [name for name in ("b_Q", "b_K") if name in own]  # DeBERTa's keys have none
    numbers = [w.index for w in model.layers if all(getattr(w, x) is not None for x in wanted)]
    if not numbers:
        raise NotApplicable("needs query and key weights, which this checkpoint lacks")
    return numbers


def layers_named(model, layer):
    """The layers that --layer names: one, or with -1 all of `layers`.

    Raises ValueError for one that is not there.
    """
    available = layers(model)
    if layer == -1:
        return available
    if layer not in available:
        raise ValueError(f"--layer is {layer}; wanted -1, or one of {available}")
    return [layer]


def query_key(model, layer, head, bias=False):
    """W_Q [D d] and W_K [D d] of one head; with bias=True also b_Q [d] and b_K [d].

    Biases that a family does not have are 0; gains of norms are in (minitx/head_weights.py).
    """
    w = model.layers[layer]
    if w.W_Q is None or w.W_K is None:
        raise ValueError(
            f"layer {layer} has no query and key weights in this checkpoint; "
            f"layers {layers(model)} have"
        )
    kinds = (head_weights.matrices, head_weights.biases) if bias else (head_weights.matrices,)
    return [kind(w, model.config, letter)[head] for kind in kinds for letter in "QK"]


def is_pruned(model, layer, head):
    """Whether a head compares nothing, since its query or key weights are zero."""
    return not all(W.any() for W in query_key(model, layer, head))


def qk_directions(model):
    """U_Q and U_K of every head: [L H D r] twice."""
    U_Q, _, U_K = factors.svd(*queries_keys(model, range(model.config.n_layers)))
    return U_Q, U_K


def queries_keys(model, numbers):
    """W_Q and W_K of every head of these layers: [2 L H D d]."""
    layers = [model.layers[layer] for layer in numbers]
    sides = [[head_weights.matrices(w, model.config, letter) for w in layers] for letter in "QK"]
    return np.array(sides)
