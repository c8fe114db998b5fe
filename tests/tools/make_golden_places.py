"""Makes the models of tests/golden whose places are no table: rotary positions, ALiBi, none.

Folders hold what those of make_golden.py do. Points have the names of minitx.POINTS.

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
from unittest.mock import patch

import make_golden as single
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom import modeling_bloom

SMALL = dict(
    vocab_size=61,
    hidden_size=24,
    intermediate_size=30,
    num_hidden_layers=2,
    num_attention_heads=3,
    max_position_embeddings=32,
)
QWEN = SMALL | dict(
    num_attention_heads=4,
    num_key_value_heads=2,
    rms_norm_eps=1e-5,
    rope_theta=100.0,
)
LLAMA = QWEN | dict(bos_token_id=1, eos_token_id=2)
NEOX = SMALL | dict(
    layer_norm_eps=1e-5,
    rotary_pct=0.25,
    rotary_emb_base=100,
)
BLOOM = dict(vocab_size=61, hidden_size=18, n_layer=2, n_head=3)
MODERNBERT = SMALL | dict(
    intermediate_size=20,
    num_hidden_layers=4,
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


draw = partial(single.drawn, norm="norm|ln_f", words="embed", head="score|classifier")


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


@contextlib.contextmanager
def in_float64(model):
    """Inside, what the library would do in float32 is done in float64, from the frequencies on."""
    gelu = partial(torch.nn.functional.gelu, approximate="tanh")
    of_length = partial(of_whole_length, ROPE_INIT_FUNCTIONS["dynamic"])
    with (
        patch.multiple(torch, float32=torch.float64, float=torch.float64),
        patch.object(torch.Tensor, "float", torch.Tensor.double),
        patch.object(modeling_bloom, "bloom_gelu_forward", gelu),
        patch.dict(ROPE_INIT_FUNCTIONS, dynamic=of_length),
    ):
        for module in model.modules():
            if type(module).__name__.endswith("RotaryEmbedding"):
                module.__init__(model.config)
                module.double()
        yield


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
    d = head_width(model.config)
    norms = [(LAYER + rf"self_attn\.{x}_norm", x) for x in "qk"]
    single.hooked(model, norms, partial(file_norm, seen))
    fused = [(LAYER + r"self_attention\.query_key_value",)]
    single.hooked(model, fused, partial(file_fused, d, seen))
    rows = HOOKS * every
    if getattr(model.config, "use_parallel_residual", False):
        rows = [(end, None if x == "resid_mid" else x, y) for end, x, y in rows]
    single.hooked(model, rows, partial(file_points, d, seen))
    if every:
        watch_angles(model, seen)


def head_width(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def by_heads(x, d):
    """[1 T H*d] or [1 T H d] -> [H T d]."""
    return x.reshape(*x.shape[:2], -1, d)[0].transpose(0, 1)


def file_fused(d, seen, name, points, ending, module, args, out):
    """BLOOM's queries, keys and values, [1 T H*3*d] -> [H T d] each: nothing turns them."""
    parts = out[0].unflatten(-1, (-1, 3, d)).permute(2, 1, 0, 3)
    seen.update({point + ending: x for point, x in zip("qkv", parts)})


def file_norm(seen, name, points, ending, module, args, out):
    """The norm of queries or keys: its number, and what it gives."""
    scale = single.statistics(module, args[0])["scale"][0].transpose(0, 1)  # [H T]
    seen[f"ln_{points[0]}_scale{ending}"] = scale
    seen[f"ln_{points[0]}{ending}"] = out[0].transpose(0, 1)


def file_points(d, seen, name, points, ending, module, args, out):
    """What enters and leaves a module, and the numbers of a norm."""
    for point, x in zip(points, (args[0], out)):
        if point == "z":
            seen[point + ending] = by_heads(x, d)
        elif point == "pre and pre_linear":
            seen[f"pre{ending}"], seen[f"pre_linear{ending}"] = x[0].chunk(2, -1)
        elif point:
            # OPT's MLP reads [T D]; Falcon adds to what the MLP gives, in place
            seen[point + ending] = (x[0] if x.ndim > 2 else x).clone()
    x = args[0][0] if args[0].ndim > 2 else args[0]
    single.file_statistics(module, x, points[1], ending, seen)


def watch_angles(model, seen):
    """The angles of every layer: positions times frequencies, in ModernBERT those of its kind."""
    config = model.config

    def hook(module, args, kwargs, out):
        positions = kwargs["position_ids"] if "position_ids" in kwargs else args[1]
        own = hasattr(module, "full_attention_inv_freq")
        for i in range(config.num_hidden_layers):
            name = f"{config.layer_types[i]}_inv_freq" if own else "inv_freq"
            seen[f"pos_angle.{i}"] = positions[0, :, None].double() * getattr(module, name)

    for module in model.modules():
        if type(module).__name__.endswith("RotaryEmbedding"):
            module.register_forward_hook(hook, with_kwargs=True)


@contextlib.contextmanager
def watched_attention(model, seen):
    """Inside, queries, keys and values are filed in `seen` as attention gets them."""
    with contextlib.ExitStack() as stack:
        if model.config.model_type != "bloom":  # its attention is a method: `watch` files them
            modeling = importlib.import_module(type(model).__module__)
            stack.enter_context(eager(modeling, seen))
            stack.enter_context(turned_by(modeling, seen))
        yield


def eager(modeling, seen):
    """A context for families whose attention is a function."""
    plain = modeling.eager_attention_forward

    def watched(module, query, key, value, *args, **kwargs):
        for name, x in zip("qkv", (query, key, value)):
            seen[f"{name}.{module.layer_idx}"] = x[0]
        return plain(module, query, key, value, *args, **kwargs)

    return patch.object(modeling, "eager_attention_forward", watched)


def turned_by(modeling, seen, names=("q_in", "k_in")):
    """Queries and keys as the library turns them, layer after layer."""
    plain, calls = modeling.apply_rotary_pos_emb, []

    def watched(q, k, *args, **kwargs):
        out = plain(q, k, *args, **kwargs)
        for name, x in zip(names, (q, k, *out)):
            seen[f"{name}.{len(calls)}"] = x[0]
        calls.append(1)
        return out

    return patch.object(modeling, "apply_rotary_pos_emb", watched)


def inputs(model, words, rng):
    lengths = (max(T),) * len(T) if "long" in words else T
    texts = [dict(tokens=rng.integers(5, 60, n)) for n in lengths]
    return single.given(model.config, texts, words, rng, lambda n: 2 * n)


def run(model, text, seen, watched=None):
    given = {name: torch.tensor(value)[None] for name, value in text.items()}
    extra = dict(single.OUTPUTS)
    if "positions" in given and model.config.model_type != "bloom":
        extra["position_ids"] = given["positions"]
    if "mask" in given:
        extra["attention_mask"] = single.visible(given, True, model.dtype)
    elif "valid" in given:
        extra["attention_mask"] = given["valid"].long()
    with (watched or watched_attention)(model, seen):
        out = model(given["tokens"], **extra)
    tensors = dict(seen)
    if model.config.model_type == "bloom" and "ln_final" in seen:
        tensors["pos_bias"] = alibi(torch.ones_like(given["tokens"]), model.config.n_head)
    if (getattr(model.config, "rope_parameters", None) or {}).get("partial_rotary_factor") == 0:
        tensors = {name: x for name, x in tensors.items() if "_in." not in name}
    return tensors | single.of_output(model, out)


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
