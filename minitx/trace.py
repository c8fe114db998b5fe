"""See and change what happens inside: POINTS lists the names, `run` records and edits them."""
import difflib

import numpy as np

from .model import check_input, forward, logits

def _norm(name, norm, use):  # a LayerNorm's three points
    return {f"{name}_mean": ("B T", f"mean that the {norm} takes off"),
            f"{name}_scale": ("B T", f"1/sigma that the {norm} multiplies by"), name: ("B T D", f"{norm}{use}")}

POINTS = {  # name -> (axes, meaning): one name, one meaning in all families
    "embed": ("B T D", "rows of the word embedding"), "pos_embed": ("B T D", "rows of the position embedding"),
    "type_embed": ("B T D", "rows of the token-type embedding"),
    **_norm("ln_embed", "LayerNorm of the embedding sum", ""),
    "resid_pre": ("B T D", "residual stream before the layer"),
    **_norm("ln1", "first LayerNorm", ": attention's input (GPT-2) or the sum after it (BERT)"),
    "q": ("B H T d", "queries"), "k": ("B H T d", "keys"), "v": ("B H T d", "values"),
    "scores": ("B H T S", "scaled q.k; -inf where a key is hidden"),
    "pattern": ("B H T S", "softmax of scores: the attention"), "z": ("B H T d", "pattern times values"),
    "attn_out": ("B T D", "what attention writes to the residual stream"),
    "resid_mid": ("B T D", "residual stream between attention and MLP"),
    **_norm("ln2", "second LayerNorm", ": the MLP's input (GPT-2) or the sum after it (BERT)"),
    "pre": ("B T M", "MLP before the activation"), "post": ("B T M", "MLP after the activation"),
    "mlp_out": ("B T D", "what the MLP writes to the residual stream"),
    "resid_post": ("B T D", "residual stream after the layer"),
    **_norm("ln_final", "final LayerNorm", " (GPT-2)"),
    "logits": ("B T V", "scores over the vocabulary, or [B C] over classes")}
LAYERED = set(POINTS) - {name for name in POINTS if "embed" in name or "final" in name or name == "logits"}
_OVERWRITTEN = {"scores", "pre"}  # by the in-place kernels that come next

class Trace:
    """What a run recorded: trace["q", 3], trace["logits"], trace.stack("q") [L ...], trace.nbytes."""
    def __init__(self, tokens, valid, keep, edits):
        self.tokens, self.valid, self.values = tokens, valid, {}  # [B T], [B T], name or (name, layer) -> array
        self._keep, self._edits = keep, edits

    def __call__(self, name, x, layer=None):  # the tap that `forward` calls: x, or what takes its place
        key = name if layer is None else (name, layer)
        if key in self._edits:
            x = _edited(key, x, self._edits[key])
        if key in self._keep:
            self.values[key] = x.copy(order="K") if name in _OVERWRITTEN else x  # else nobody writes to it any more
        return x

    def __getitem__(self, key):
        if key not in self.values:
            hint = f"trace[{key!r}, layer] or trace.stack({key!r})" if key in LAYERED else f"kept: {list(self.values)}"
            raise KeyError(f"{key!r} is not in this trace; {hint}")
        return self.values[key]

    def stack(self, name):
        """One point of all layers as an array [L ...]."""
        layers = sorted(key[1] for key in self.values if isinstance(key, tuple) and key[0] == name)
        if not layers or layers != list(range(len(layers))):
            raise KeyError(f"{name!r} was kept in layers {layers}; stack needs all of them")
        return np.stack([self.values[name, layer] for layer in layers])

    @property
    def nbytes(self): return sum(x.nbytes for x in self.values.values())  # of the recorded arrays, point by point

def _edited(key, x, edit):  # an array or f(x), in x's own shape, dtype and memory order
    value, new = np.asarray(edit(x.copy(order="K")) if callable(edit) else edit), np.empty_like(x)
    try:
        np.copyto(new, value)
    except (ValueError, TypeError):
        given = f"{value.dtype} {list(value.shape)}"
        raise ValueError(f"the edit of {key!r} gives {given}; wanted {x.dtype} {list(x.shape)}") from None
    return new

def run(model, text, keep=None, edits=None, *, valid=None, types=None, positions=None, mask=None):
    """Forward pass with the points in `keep` recorded (None: all) and those in `edits` replaced -> Trace.

    text: a text, a list of texts, or token ids [T] or [B T]; the rest as for `forward`. keep: names, or (name, layer).
    edits: {name or (name, layer): array or f(x) -> array}; recorded as edited. ValueError for a point there is not.
    """
    tokens, valid, types = _input(model, text, valid, types)
    keep = _choose(keep, there := points(model, types is not None), model)
    general_first = sorted((edits or {}).items(), key=lambda edit: isinstance(edit[0], tuple))
    edits = {key: edit for name, edit in general_first for key in _choose([name], there, model)}
    trace = Trace(tokens, valid, frozenset(keep), edits)
    x = forward(model, tokens, valid=valid, types=types, positions=positions, mask=mask, at=trace)
    if "logits" in keep:
        logits(model, x, valid=valid, at=trace)
    return trace

def cost(model, text, keep=None, *, types=None):
    """Bytes that the trace of `run(model, text, keep, types=types)` would hold."""
    tokens, _, types = _input(model, text, None, types)
    cfg, (B, T) = model.config, tokens.shape
    sizes = dict(B=B, T=T, S=T, H=cfg.n_heads, d=cfg.d_head, D=cfg.d_model, M=cfg.d_mlp, V=cfg.n_vocab)
    shapes = {name: [sizes[letter] for letter in axes.split()] for name, (axes, _) in POINTS.items()}
    if cfg.head == "sequence":
        shapes["logits"] = [B, model.weights.W_U.shape[1]]
    keys = _choose(keep, points(model, types is not None), model)
    return sum(int(np.prod(shapes[k if isinstance(k, str) else k[0]])) for k in keys) * model.weights.W_pos.itemsize

def points(model, types=False):
    """Keys of all points of a model: names, and (name, layer) for those of the layers."""
    w, cfg = model.weights, model.config
    there = {"type": types or cfg.default_type is not None, "logits": cfg.head is not None,
             "ln_embed": w.ln_embed_w is not None, "ln_final": w.ln_final_w is not None}
    names = [name for name in POINTS if all(on for part, on in there.items() if name.startswith(part))]
    return [key for name in names for key in ([(name, i) for i in range(cfg.n_layers)] if name in LAYERED else [name])]

def _choose(keys, there, model):  # names spelled out per layer, checked against what the model has; None: all of it
    chosen = {}
    for key in there if keys is None else [keys] if isinstance(keys, str) or keys in there else keys:
        name, layer = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if not isinstance(name, str) or name not in POINTS:
            near = ", ".join(difflib.get_close_matches(str(name), POINTS, 3, 0.4)) or "none"
            raise ValueError(f"unknown point {name!r}; near to it: {near}; all: {', '.join(POINTS)}")
        found = [k for k in there if k == key or layer is None and isinstance(k, tuple) and k[0] == name]
        if not found and name == "logits":
            logits(model, None)  # says why there are none
        if not found:
            layers = f", layers 0 to {model.config.n_layers - 1}" if name in LAYERED else ""
            raise ValueError(f"this model has no point {key!r} ({model.config.model_type}{layers})")
        chosen |= dict.fromkeys(found)
    return list(chosen)

def _input(model, text, valid, types):  # a text, texts or ids -> tokens, valid, types [B T]
    if isinstance(text, str) or isinstance(text, (list, tuple)) and text and isinstance(text[0], (str, tuple)):
        if valid is not None or types is not None:
            raise ValueError("valid and types go with token ids; a text brings its own")
        return check_input(model.config, **vars(model.encode([text] if isinstance(text, str) else text)))
    return check_input(model.config, text, valid, types)
