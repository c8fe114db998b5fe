"""Makes the models of tests/golden whose places are no table: rotary positions, ALiBi, none.

Read downward: the table of variants, a random model, its files, the reference in float64, what the
library computes, folders: each holds what those of make_golden.py do. Points have the names of
minitx.POINTS.

The library computes angles of rotary positions, the statistics of RMSNorm, the softmax of attention
and the slopes of ALiBi in float32, even in a float64 model: this moves outputs by 1e-7 and more. So
the reference is made while the library's word for float32 means float64 (`in_float64`), with the
frequencies computed anew, and BLOOM's GELU with all digits of sqrt(2/pi), of which the library has
eight. unpatched.safetensors has the outputs of the library as it is, in float32.
"""

import contextlib
import importlib
import re
from functools import partial

import make_golden as single
import numpy as np
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom import modeling_bloom

LLAMA = dict(
    vocab_size=61,
    hidden_size=24,
    intermediate_size=30,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=32,
    rms_norm_eps=1e-5,
    rope_theta=100.0,
    bos_token_id=1,
    eos_token_id=2,
)
QWEN = {k: v for k, v in LLAMA.items() if k not in ("bos_token_id", "eos_token_id")}
NEOX = dict(
    vocab_size=61,
    hidden_size=24,
    intermediate_size=30,
    num_hidden_layers=2,
    num_attention_heads=3,
    max_position_embeddings=32,
    layer_norm_eps=1e-5,
    rotary_pct=0.25,
    rotary_emb_base=100,
)
BLOOM = dict(vocab_size=61, hidden_size=18, n_layer=2, n_head=3)
MODERNBERT = dict(
    vocab_size=61,
    hidden_size=24,
    intermediate_size=20,
    num_hidden_layers=4,
    num_attention_heads=3,
    max_position_embeddings=32,
    local_attention=6,
    global_rope_theta=500.0,
    local_rope_theta=50.0,
    pad_token_id=3,
    bos_token_id=1,
    cls_token_id=1,
    eos_token_id=2,
    sep_token_id=2,
)
SIZES = {
    "Llama": LLAMA,
    "Mistral": LLAMA,
    "Qwen2": QWEN,
    "Qwen3": QWEN,
    "GPTNeoX": NEOX,
    "Bloom": BLOOM,
    "ModernBert": MODERNBERT,
}
T = 12, 7  # tokens of the two texts

SCALED = {  # rope_scaling of the older form of a config.json
    "linear": dict(rope_type="linear", factor=3.0),
    "llama3": dict(
        rope_type="llama3",
        factor=4.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=64,
    ),
    "yarn": dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=40, beta_fast=4),
}


# --- a random model


def draw(name, shape, config, rng):
    """Random values on the scale at which scores have a deviation near 2 and logits near 4."""
    if "norm" in name or re.search(r"ln_f", name):
        return rng.normal(1.0 if name.endswith("weight") else 0.0, 0.2, shape)
    if len(shape) == 1:
        return rng.normal(0.0, 0.3, shape)
    if "embed" in name:
        return rng.normal(0.0, 0.8, shape)
    gain = 3 if re.match("score|classifier", name) else 1.4
    return rng.normal(0.0, gain / shape[1] ** 0.5, shape)


# --- its files


def with_old_rope(tensors, config, _):
    """rope_theta and rope_scaling, as the library wrote them before rope_parameters."""
    given = config.pop("rope_parameters")
    config["rope_theta"] = given.pop("rope_theta")
    config["rope_scaling"] = None if given["rope_type"] == "default" else given
    return tensors


def with_frequencies(tensors, *_):
    """The buffers that old files hold, which nothing reads."""
    layers = {re.search(r"^(.*layers\.\d+\.self_attn)\.", name) for name in tensors} - {None}
    omega = torch.ones(3)
    return tensors | {f"{layer[1]}.rotary_emb.inv_freq": omega.clone() for layer in layers}


def with_masks(attention, T):
    """A change: the causal mask that old files hold beside each layer's attention, by its name."""

    def change(tensors, *_):
        layers = {re.search(rf"^(.*{attention})\.", name) for name in tensors} - {None}
        prefixes = {layer[1] for layer in layers}
        masks = {f"{prefix}.bias": torch.ones(1, 1, T, T).tril().bool() for prefix in prefixes}
        return tensors | masks | {f"{name}.masked_bias": torch.tensor(-1e9) for name in prefixes}

    return change


def with_old_layers(tensors, config, _):
    """Windows as they were described before layer_types."""
    del config["layer_types"]
    return with_old_rope(tensors, config, _)


def with_old_neox(tensors, config, _):
    """rotary_pct and rotary_emb_base, and the output embedding by its old name."""
    given = config.pop("rope_parameters")
    config |= {
        "rotary_pct": given["partial_rotary_factor"],
        "rotary_emb_base": given["rope_theta"],
    }
    return {name.replace("lm_head", "embed_out"): x for name, x in tensors.items()}


def with_old_modernbert(tensors, config, _):
    """Two bases and how many layers there are to one that sees all, as in the published file."""
    del config["rope_parameters"], config["layer_types"]
    config |= {"global_rope_theta": 500.0, "local_rope_theta": 50.0}
    config["global_attn_every_n_layers"] = 3
    return tensors


DISK = {
    "attention-buffers": with_masks(r"layers\.\d+\.attention", 32),
    "no-prefix": single.DISK["no-prefix"],
    "old-layers": with_old_layers,
    "old-neox": with_old_neox,
    "old-modernbert": with_old_modernbert,
    "F16": single.DISK["F16"],
    "BF16": single.DISK["BF16"],
    "old-rope": with_old_rope,
    "buffers": with_frequencies,
}


# --- the reference in float64


@contextlib.contextmanager
def in_float64(model):
    """Inside, what the library would do in float32 is done in float64, from the frequencies on."""
    kept = torch.float32, torch.float, torch.Tensor.float
    gelu = modeling_bloom.bloom_gelu_forward
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    modeling_bloom.bloom_gelu_forward = partial(torch.nn.functional.gelu, approximate="tanh")
    of_length = ROPE_INIT_FUNCTIONS["dynamic"]
    ROPE_INIT_FUNCTIONS["dynamic"] = partial(of_whole_length, of_length)
    try:
        for module in model.modules():
            if type(module).__name__.endswith("RotaryEmbedding"):
                module.__init__(model.config)
                module.double()
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept
        modeling_bloom.bloom_gelu_forward = gelu
        ROPE_INIT_FUNCTIONS["dynamic"] = of_length


def of_whole_length(compute, config, device=None, seq_len=None, layer_type=None):
    """Frequencies by a length as a Python number: torch divides whole numbers in float32."""
    return compute(config, device, seq_len and int(seq_len), layer_type)


# --- what the reference library computes

# end of a module's name, and the points that come in and go out (None: neither); in brackets the
# layer
LAYER = r"(?:layers|h)\.(\d+)\."
HOOKS = [
    (r"(?:embed_tokens|embed_in|word_embeddings|tok_embeddings)", None, "embed"),
    (r"(?:word_embeddings_layernorm|embeddings\.norm)", None, "ln_embed"),
    (LAYER + r"(?:input_layernorm|attn_norm)", None, "ln1"),
    (
        LAYER + r"(?:self_attn\.o_proj|attention\.dense|self_attention\.dense|attn\.Wo)",
        "z",
        "attn_out",
    ),
    (LAYER + r"(?:post_attention_layernorm|mlp_norm)", "resid_mid", "ln2"),
    (LAYER + r"mlp\.(?:gate_proj|dense_h_to_4h)", None, "pre"),
    (LAYER + r"mlp\.up_proj", None, "pre_linear"),
    (LAYER + r"mlp\.Wi", None, "pre and pre_linear"),
    (LAYER + r"mlp\.(?:down_proj|dense_4h_to_h|Wo)", "post", "mlp_out"),
    (r"(?:model\.norm|final_layer_norm|ln_f|final_norm)", None, "ln_final"),
]


def watch(model, every, seen):
    """Hooks that file what passes through the modules in `seen` under names of points."""
    d = head_width(model.config)
    normed = "qwen3" in model.config.model_type
    for name, module in model.named_modules():
        for end, file in queries_keys(normed).items():
            if match := re.search(rf"{end}$", name):
                file(module, match[1], d, seen)
        for end, *points in HOOKS * every:
            if match := re.search(rf"(?:^|\.){end}$", name):
                layer = f".{match[1]}" if match.groups() else ""
                if getattr(model.config, "use_parallel_residual", False):
                    ends = [None if point == "resid_mid" else point for point in points]
                    file_points(module, ends, layer, d, seen)
                else:
                    file_points(module, points, layer, d, seen)
        if every and type(module).__name__.endswith("RotaryEmbedding"):
            file_angles(module, model.config, seen)


def head_width(config):
    """Of one head."""
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def by_heads(x, d):
    """[1 T H*d] or [1 T H d] -> [H T d]."""
    return x.reshape(*x.shape[:2], -1, d)[0].transpose(0, 1)


def queries_keys(normed):
    """{end of a module's name: what files queries and keys, not yet turned, as they leave it}."""

    def of_one(point):
        return lambda module, layer, d, seen: file_heads(module, f"{point}.{layer}", d, seen)

    def fused(split):
        return lambda module, layer, d, seen: file_fused(module, layer, partial(split, d=d), seen)

    last = "norm" if normed else "proj"
    files = {rf"{LAYER}self_attn\.{x}_{last}": of_one(f"{x}_in") for x in "qk"}
    if normed:
        files = {rf"{LAYER}self_attn\.{x}_norm": file_norm(x) for x in "qk"}
    files[LAYER + r"attention\.query_key_value"] = fused(of_each_head)
    files[LAYER + r"self_attention\.query_key_value"] = fused(of_each_head)
    files[LAYER + r"attn\.Wqkv"] = fused(one_after_another)
    return files


def of_each_head(x, d):
    """[1 T H*3*d] -> queries, keys, values [H T d]."""
    return x[0].unflatten(-1, (-1, 3, d)).permute(2, 1, 0, 3)


def one_after_another(x, d):
    """[1 T 3*H*d] -> queries, keys, values [H T d]."""
    return x[0].unflatten(-1, (3, -1, d)).permute(1, 2, 0, 3)


def file_fused(module, layer, split, seen):
    """Queries and keys as they leave a fused module; values too, which nothing turns."""

    def hook(module, args, out):
        q, k, v = split(out)
        seen.update({f"q_in.{layer}": q, f"k_in.{layer}": k, f"v.{layer}": v})

    module.register_forward_hook(hook)


def file_norm(x):
    """Files the norm of queries (x: q) or keys: its number, and what it gives, not yet turned."""

    def file(module, layer, d, seen):
        def hook(module, args, out):
            scale = statistics(module, args[0])["scale"][0].transpose(0, 1)  # [H T]
            normed = out[0].transpose(0, 1)
            seen[f"ln_{x}_scale.{layer}"] = scale
            seen.update({f"ln_{x}.{layer}": normed, f"{x}_in.{layer}": normed})

        module.register_forward_hook(hook)

    return file


def file_heads(module, name, d, seen):
    """Queries or keys as they leave a module."""

    def hook(module, args, out):
        seen[name] = by_heads(out, d)

    module.register_forward_hook(hook)


def file_points(module, points, layer, d, seen):
    """What enters and leaves a module, and the numbers of a norm."""

    def hook(module, args, out):
        for point, x in zip(points, (args[0], out)):
            if point == "z":
                seen[point + layer] = by_heads(x, d)
            elif point == "pre and pre_linear":
                seen[f"pre{layer}"], seen[f"pre_linear{layer}"] = x[0].chunk(2, -1)
            elif point:
                seen[point + layer] = x[0]
        if "norm" in type(module).__name__.lower():
            for what, x in statistics(module, args[0]).items():
                seen[f"{points[1]}_{what}{layer}"] = x[0]

    module.register_forward_hook(hook)


def statistics(module, x):
    """{"scale" and, in a LayerNorm, "mean": tensor} of a norm's input."""
    if isinstance(module, torch.nn.LayerNorm):
        scale = (x.var(-1, unbiased=False) + module.eps).rsqrt()
        return {"mean": x.mean(-1), "scale": scale}
    return {"scale": (x.pow(2).mean(-1) + module.variance_epsilon).rsqrt()}


def file_angles(module, config, seen):
    """The angles of every layer: positions times frequencies, in ModernBERT those of its kind."""
    own = hasattr(module, "full_attention_inv_freq")

    def hook(module, args, kwargs, out):
        positions = kwargs["position_ids"] if "position_ids" in kwargs else args[1]
        for i in range(config.num_hidden_layers):
            name = f"{config.layer_types[i]}_inv_freq" if own else "inv_freq"
            seen[f"pos_angle.{i}"] = positions[0, :, None].double() * getattr(module, name)

    module.register_forward_hook(hook, with_kwargs=True)


@contextlib.contextmanager
def watched_attention(model, seen):
    """Inside, queries, keys and values are filed in `seen` as attention gets them."""
    modeling = importlib.import_module(type(model).__module__)
    if model.config.model_type == "bloom":  # its attention is a method: queries are not turned
        yield
        for name in [name for name in seen if re.match(r"[qk]_in\.", name)]:
            seen[name.replace("_in", "")] = seen.pop(name)
        return
    plain = modeling.eager_attention_forward

    def watched(module, query, key, value, *args, **kwargs):
        for name, x in zip("qkv", (query, key, value)):
            seen[f"{name}.{module.layer_idx}"] = x[0]
        return plain(module, query, key, value, *args, **kwargs)

    modeling.eager_attention_forward = watched
    try:
        yield
    finally:
        modeling.eager_attention_forward = plain


def inputs(model, words, rng):
    """Two texts, and what the variant gives besides tokens."""
    lengths = (max(T),) * len(T) if "long" in words else T
    texts = [dict(tokens=rng.integers(5, 60, n)) for n in lengths]
    for text in texts:
        n = len(text["tokens"])
        if "positions" in words:
            text["positions"] = rng.permutation(2 * n)[:n]
        if "holes" in words:  # hidden tokens inside a text; the library lets them keep their places
            text["valid"] = ~np.isin(np.arange(n), (2, 3))
            if model.config.model_type != "bloom":  # which counts valid tokens
                text["positions"] = np.arange(n)
        if "mask" in words:  # which keys each query may see, itself always
            text["mask"] = (rng.random((n, n)) < 0.6) | np.eye(n, dtype=bool)
    return texts


def run(model, text, seen):
    """{point: tensor without batch axis} of one text, alone and unpadded, by the library."""
    given = {name: torch.tensor(value)[None] for name, value in text.items()}
    extra = {"output_hidden_states": True, "output_attentions": True, "return_dict": True}
    if "positions" in given and model.config.model_type != "bloom":
        extra["position_ids"] = given["positions"]
    if "mask" in given:
        extra["attention_mask"] = single.visible(given, True, model.dtype)
    elif "valid" in given:
        extra["attention_mask"] = given["valid"].long()
    with watched_attention(model, seen):
        out = model(given["tokens"], **extra)
    tensors = dict(seen)
    if model.config.model_type == "bloom" and "ln_final" in seen:
        tensors["pos_bias"] = alibi(torch.ones_like(given["tokens"]), model.config.n_head)
    if (getattr(model.config, "rope_parameters", None) or {}).get("partial_rotary_factor") == 0:
        tensors = {name: x for name, x in tensors.items() if "_in." not in name}
    tensors |= {f"hidden.{n}": x[0] for n, x in enumerate(out.hidden_states)}
    tensors |= {f"pattern.{n}": x[0] for n, x in enumerate(out.attentions)}
    if "logits" in out:
        tensors["logits"] = out.logits[0]
    return tensors


def alibi(valid, n_heads):
    """-slope * distance [H T T] from what the library adds for each key, whatever the query."""
    rows = modeling_bloom.build_alibi_tensor(valid, n_heads, torch.float64)  # [H 1 T]
    return -abs(rows - rows.transpose(1, 2))


GENERATED = 8  # tokens after the shorter text


@torch.no_grad()
def generated(folder, arrays):
    """{"0.generated": ids}: the likeliest continuation of the second text, by the library."""
    model = single.library_model(folder, "float32")
    if not type(model).__name__.endswith("ForCausalLM"):
        return {}
    tokens = torch.tensor(arrays["1.tokens"])[None]
    for _ in range(GENERATED):
        nearest = model(tokens).logits[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, nearest], dim=1)
    return {"generated": tokens[0].numpy()}


def more(folder, arrays, maker):
    """What unpatched.safetensors holds."""
    return single.unpatched(folder, arrays, maker) | generated(folder, arrays)


STEPS = {"draw": draw, "inside": in_float64, "watch": watch, "inputs": inputs, "run": run}
MAKER = single.Maker(SIZES, DISK, **STEPS, more=more)
