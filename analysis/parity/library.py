"""What the reference library, Hugging Face transformers on PyTorch, computes: minitx's points.

The only module of the package that imports torch, and only when it is called. Read downward: the
model, its points by hooks on modules, its points from outputs, the inputs.
"""

import re
from typing import NamedTuple

import numpy as np

from minitx.names import MODULES, layer_of

BY_HEADS = ("q", "k", "v", "z")
STACKS = ("encoder", "decoder")
NEEDED = "the reference library is not here ({}); wanted: pip install 'minitx[torch]'"


class Inputs(NamedTuple):
    """What the library and minitx both read: ids and validity [B T], of a source [B S]."""

    tokens: np.ndarray
    valid: np.ndarray
    source: np.ndarray | None = None
    source_valid: np.ndarray | None = None


def load(folder, dtype="float64"):
    """A checkpoint folder as the library reads it, attention written out plainly, on the CPU.

    T5's norms take their statistics in float32 even in a float64 model, which moves outputs by
    1e-6; here they are taken in the model's own precision. Raises ValueError if the library is not
    installed or finds other tensors than it wants.
    """
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise ValueError(NEEDED.format(error)) from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    config.reorder_and_upcast_attn = False  # another order of arithmetic, for float32 alone
    cls = class_of(config)
    model, report = cls.from_pretrained(
        folder,
        config=config,
        dtype=dtype,
        attn_implementation="eager",
        output_loading_info=True,
        local_files_only=True,
        use_safetensors=True,
    )
    check_whole(folder, report)
    in_own_precision(model)
    return model.eval()


def class_of(config):
    """The library's class that a checkpoint was saved from.

    Published BARTs are saved without the head that they were trained with, and used with it.
    """
    import transformers
    from transformers.models.bart.modeling_bart import BartEncoder

    name = (config.architectures or [""])[0]
    others = {"BartModel": transformers.BartForConditionalGeneration, "BartEncoder": BartEncoder}
    return others.get(name) or getattr(transformers, name, transformers.AutoModel)


def check_whole(folder, report):
    """Raises ValueError if tensors are missing or of another shape, which the library would draw.

    report: what from_pretrained tells of its reading.
    """
    may_lack = re.compile(r"pooler|final_logits_bias|embed_positions")
    missing = [name for name in sorted(report["missing_keys"]) if not may_lack.search(name)]
    if missing or report["mismatched_keys"]:
        wrong = missing or sorted(map(str, report["mismatched_keys"]))
        raise ValueError(f"the reference library lacks tensors of {folder}: {', '.join(wrong[:4])}")


def in_own_precision(model):
    """Let T5's norms take their statistics in the precision of the model."""
    for module in model.modules():
        if type(module).__name__ == "T5LayerNorm":
            module.forward = _rms_norm.__get__(module)


def _rms_norm(self, x):
    scale = (x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon).rsqrt()
    return self.weight * (x * scale)


# --- by hooks


def watch(model, seen):
    """Hooks on the modules that file what passes through them in `seen`, {point: tensor}.

    A point of a layer is (name, layer). GPT-2 reads token types from its word embedding as well:
    the first rows that come out of it are the words'.
    """
    heads = {side: n_heads(model.config, side) for side in STACKS}

    def hook(module, args, out, side, ends, layer):
        begins = "enc_" if side == "encoder" and is_pair(model) else ""
        if ends[1] == "embed":
            out = out * outer_scale(model, side)
        for name, x in zip(ends, (args[0], out)):
            for point, tensor in parts(name, x):
                is_split = point.removeprefix("cross_") in BY_HEADS
                own = by_heads(tensor, heads[side]) if is_split else tensor
                seen.setdefault(key(begins + point, layer), own)
        if "norm" in type(module).__name__.lower():
            for what, x in statistics(module, args[0]).items():
                seen.setdefault(key(f"{begins}{ends[1]}_{what}", layer), x)

    rows = MODULES
    if any(type(module).__name__.endswith("RotaryEmbedding") for module in model.modules()):
        rows = [row for row in MODULES if row.after not in ("q", "k")]  # turned behind the modules
    for name, module in model.named_modules():
        side = "decoder" if "decoder" in name or not is_pair(model) else "encoder"
        for row in rows:
            if (layers := layer_of(row, name)) is not None:
                given = side, (row.before, row.after), *(layers or [None])
                module.register_forward_hook(
                    lambda m, args, out, given=given: hook(m, args, out, *given)
                )


def outer_scale(model, side):
    """The factor on rows of the word embedding that Marian's stacks apply outside of it."""
    stack = getattr(getattr(model, "model", None), side, None)
    return getattr(stack, "embed_scale", 1.0)


def key(name, layer):
    """A point's key: its name, or (name, layer)."""
    return name if layer is None else (name, layer)


def parts(name, x):
    """(point, tensor) of what goes in or comes out; GPT-2 computes q, k and v side by side."""
    if name is None:
        return []
    if name == "qkv":
        return list(zip("qkv", x.chunk(3, -1)))
    return [(name, x)]


def by_heads(x, n):
    """[B T H*d] -> [B H T d]."""
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def n_heads(config, side):
    """Heads of one of the stacks."""
    names = "num_heads", f"{side}_attention_heads", "num_attention_heads"
    return next(n for n in (getattr(config, name, None) for name in names) if n)


def statistics(module, x):
    """{"scale" and, in a LayerNorm, "mean": tensor} of a norm's input."""
    eps = module.variance_epsilon if hasattr(module, "variance_epsilon") else module.eps
    if getattr(module, "bias", None) is None and hasattr(module, "variance_epsilon"):  # T5's
        return {"scale": (x.pow(2).mean(-1) + eps).rsqrt()}
    scale = (x.var(-1, unbiased=False) + eps).rsqrt()
    return {"mean": x.mean(-1), "scale": scale}


def is_pair(model):
    """Whether a model has an encoder and a decoder."""
    return hasattr(model, "get_decoder") and bool(model.config.is_encoder_decoder)


# --- from outputs


def run(model, inputs, seen):
    """{point: array with batch axis} of one batch; seen: what the hooks of `watch` fill."""
    import torch

    seen.clear()
    given = {name: torch.tensor(x) for name, x in inputs._asdict().items() if x is not None}
    how = {"output_hidden_states": True, "output_attentions": True, "return_dict": True}
    with torch.no_grad():
        if is_pair(model):
            out = model(
                given["source"],
                given["source_valid"].long(),
                decoder_input_ids=given["tokens"],
                decoder_attention_mask=given["valid"].long(),
                **how,
            )
        else:
            rows = given["tokens"], given["valid"].long()
            if type(model).__name__.endswith("ForMultipleChoice"):  # each is a choice by itself
                rows = [x[:, None] for x in rows]
            out = model(rows[0], attention_mask=rows[1], **how)
    tensors = dict(seen) | outputs(out)
    if (scores := logits_of(model, out)) is not None:
        tensors["logits"] = scores
    return {name: in_rows(name, x, inputs.tokens).numpy() for name, x in tensors.items()}


def in_rows(name, x, tokens):
    """What passed in a layer, [B T …]; OPT joins the rows of a batch, [B*T …]."""
    is_joined = isinstance(name, tuple) and x.ndim < 3 and len(x) == tokens.size > len(tokens)
    return x.unflatten(0, tokens.shape) if is_joined else x


OUTPUTS = {  # the library's name -> ours
    "hidden_states": "resid_pre",
    "decoder_hidden_states": "resid_pre",
    "encoder_hidden_states": "enc_resid_pre",
    "attentions": "pattern",
    "decoder_attentions": "pattern",
    "encoder_attentions": "enc_pattern",
    "cross_attentions": "cross_pattern",
}


def outputs(out):
    """{point: tensor} of what the library returns.

    The last of its hidden states, after the last layer or the final norm, is no resid_pre: that is
    left to the hooks.
    """
    tensors = {}
    for theirs, ours in OUTPUTS.items():
        layers = getattr(out, theirs, None) or ()
        own = layers[:-1] if "hidden" in theirs else layers
        tensors |= {(ours, n): x for n, x in enumerate(own)}
    return tensors


def logits_of(model, out):
    """What a task head gives, classes last: start and end of an answer side by side; or None."""
    if "start_logits" in out:
        import torch

        return torch.stack([out.start_logits, out.end_logits], dim=-1)
    if type(model).__name__ == "ElectraForPreTraining":
        return out.logits[..., None]
    return getattr(out, "prediction_logits", getattr(out, "logits", None))
