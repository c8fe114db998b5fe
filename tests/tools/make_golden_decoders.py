"""Makes the models of tests/golden of the later decoders, from OPT and GPT-J to Granite.

Six configurations of each, tiny and with random weights. Folders hold what those of
make_golden_places.py do, with the same patches: what the library computes in float32 is done in
float64 (`in_float64`); here these are Gemma's factor on its embeddings and GPT-J's table of sines,
too. GPT-J's queries and keys are written with their features in minitx's order.
"""

import contextlib
import importlib
import re

import make_golden as single
import make_golden_places as places
import numpy as np
import torch
from make_golden_places import LAYER

SMALL = dict(vocab_size=23, hidden_size=8, num_hidden_layers=2, num_attention_heads=2)
LLAMA = SMALL | dict(
    intermediate_size=10, num_key_value_heads=2, max_position_embeddings=32, rms_norm_eps=1e-5
)
LLAMA |= dict(rope_theta=100.0, bos_token_id=1, eos_token_id=2, pad_token_id=0)
GEMMA = LLAMA | dict(head_dim=6, query_pre_attn_scalar=5, sliding_window=4, layer_types=None)
NEO = dict(vocab_size=23, hidden_size=8, num_layers=2, num_heads=2, intermediate_size=10)
NEO |= dict(max_position_embeddings=16, attention_types=[[["global", "local"], 1]], window_size=3)
NEO |= dict(bos_token_id=1, eos_token_id=2)
STAR = LLAMA | dict(norm_epsilon=1e-5, num_attention_heads=4)
SIZES = {
    "OPT": SMALL | dict(ffn_dim=10, max_position_embeddings=16),
    "GPTJ": dict(vocab_size=23, n_embd=12, n_layer=2, n_head=2, n_positions=32, rotary_dim=4)
    | dict(bos_token_id=1, eos_token_id=2),
    "Phi3": LLAMA,
    "Olmo2": LLAMA,
    "Falcon": SMALL | dict(num_attention_heads=4, num_kv_heads=2, rope_theta=100.0, eos_token_id=2),
    "Gemma2": GEMMA | dict(attn_logit_softcapping=3.0, final_logit_softcapping=4.0),
    "Gemma3Text": GEMMA | dict(rope_theta=500.0, rope_local_base_freq=50.0),
    "GPTNeo": NEO,
    "Gemma": LLAMA | dict(head_dim=6),
    "Starcoder2": {key: value for key, value in STAR.items() if key != "rms_norm_eps"},
    "SmolLM3": LLAMA,
    "StableLm": {key: value for key, value in LLAMA.items() if key != "rms_norm_eps"}
    | dict(hidden_size=16),
    "Olmo": {key: value for key, value in LLAMA.items() if key != "rms_norm_eps"},
    "Granite": LLAMA
    | dict(embedding_multiplier=1.7, logits_scaling=0.6)
    | dict(residual_multiplier=0.7, attention_multiplier=0.4),
    "Phi": SMALL
    | dict(intermediate_size=10, max_position_embeddings=32, rope_theta=100.0)
    | dict(bos_token_id=1, eos_token_id=2, pad_token_id=0),
}
SIZES["Gemma3"] = SIZES["Gemma3Text"]
T = 9, 5  # tokens of the two texts
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=40, beta_fast=4)
LINEAR = dict(rope_type="linear", factor=8.0)


# --- a random model


def draw(name, shape, config, rng):
    """Random values on the scale at which scores have a deviation near 2 and logits near 4."""
    if "norm" in name or re.search(r"\.ln_\w+\.", name):
        middle = name.endswith("weight") and not config.model_type.startswith("gemma")
        return rng.normal(float(middle), 0.2, shape)
    if len(shape) == 1:
        return rng.normal(0.0, 0.3, shape)
    if re.search(r"embed|wte", name):
        return rng.normal(0.0, 0.8, shape)
    gain = 3 if re.match("score|classifier|qa_outputs", name) else 1.4
    return rng.normal(0.0, gain / shape[1] ** 0.5, shape)


# --- its files


def with_old_gemma3(tensors, config, _):
    """Two bases, one scaling and a pattern, as in the published files."""
    given = config.pop("rope_parameters")
    theta = {kind: given[kind].pop("rope_theta") for kind in given}
    config["rope_theta"], config["rope_local_base_freq"] = (
        theta["full_attention"],
        theta["sliding_attention"],
    )
    config["rope_scaling"] = given["full_attention"]
    config["sliding_window_pattern"] = config.pop("_sliding_window_pattern")
    del config["layer_types"]
    return tensors


def without_prefix(tensors, *_):
    """The names of a bare model, but for the head's."""
    return {re.sub(r"^(model|transformer)\.", "", name): x for name, x in tensors.items()}


def with_old_type(tensors, config, _):
    """The type of rope as in the published files of Phi-3."""
    config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")
    return tensors


def with_old_act(tensors, config, _):
    """As in the first Gemma's published files: "gelu", which means its form with tanh."""
    config |= {"hidden_act": "gelu", "hidden_activation": None}
    return tensors


DISK = places.DISK | {
    "old-type": with_old_type,
    "old-act": with_old_act,
    "gptj-buffers": places.with_masks(r"h\.\d+\.attn", 32),
    "neo-buffers": places.with_masks(r"attn\.attention", 16),
    "old-gemma3": with_old_gemma3,
    "no-prefix": without_prefix,
}


# --- the reference in float64


@contextlib.contextmanager
def in_float64(model):
    """As that of make_golden_places.py; constants of Gemma and GPT-J have all their digits, too."""
    with places.in_float64(model):
        kept = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        for module in model.modules():
            if hasattr(module, "scalar_embed_scale"):
                module.embed_scale = torch.tensor(module.scalar_embed_scale)
            if type(module).__name__ == "GPTJAttention":
                modeling = importlib.import_module(type(module).__module__)
                sines = modeling.create_sinusoidal_positions
                module.embed_positions = sines(module.max_positions, module.pos_embd_dim)
        torch.set_default_dtype(kept)
        yield


# --- what the reference library computes

# model type -> end of a module's name, and the points that come in and go out (None: neither)
GATED = [
    (LAYER + r"mlp\.gate_proj", None, "pre"),
    (LAYER + r"mlp\.up_proj", None, "pre_linear"),
    (LAYER + r"mlp\.down_proj", "post", None),
    (LAYER + r"self_attn\.o_proj", "z", None),
    ("embed_tokens", None, "embed"),
    (r"model\.norm", None, "ln_final"),
]
WRITTEN = [
    (LAYER + "post_attention_layernorm", None, "attn_out"),
    (LAYER + "post_feedforward_layernorm", None, "mlp_out"),
]
GEMMA_HOOKS = [
    *GATED,
    *WRITTEN,
    (LAYER + "input_layernorm", None, "ln1"),
    (LAYER + "pre_feedforward_layernorm", "resid_mid", "ln2"),
]
PARALLEL = [
    (LAYER + r"mlp\.(?:fc_in|dense_h_to_4h)", None, "pre"),
    (LAYER + r"mlp\.(?:fc_out|dense_4h_to_h)", "post", "mlp_out"),
    (LAYER + r"(?:attn\.out_proj|self_attention\.dense)", "z", "attn_out"),
    ("(?:wte|word_embeddings)", None, "embed"),
    ("ln_f", None, "ln_final"),
    (LAYER + "(?:ln_1|input_layernorm|ln_attn)", None, "ln1"),
    (LAYER + "(?:ln_1|input_layernorm|ln_mlp)", None, "ln2"),
]
LLAMA_HOOKS = [
    *GATED[:3],
    (LAYER + r"self_attn\.o_proj", "z", "attn_out"),
    (LAYER + "input_layernorm", None, "ln1"),
    (LAYER + "post_attention_layernorm", "resid_mid", "ln2"),
    (r"model\.norm", None, "ln_final"),
]
HOOKS = {
    "opt": [
        ("embed_tokens", None, "embed"),
        ("embed_positions", None, "pos_embed"),
        (LAYER + "self_attn_layer_norm", None, "ln1"),
        (LAYER + r"self_attn\.out_proj", "z", "attn_out"),
        (LAYER + "final_layer_norm", "resid_mid", "ln2"),
        (LAYER + "fc1", None, "pre"),
        (LAYER + "fc2", "post", "mlp_out"),
        (r"decoder\.final_layer_norm", None, "ln_final"),
    ],
    "gptj": PARALLEL,
    "falcon": PARALLEL,
    "phi3": [
        (LAYER + "input_layernorm", None, "ln1"),
        (LAYER + r"self_attn\.o_proj", "z", "attn_out"),
        (LAYER + "post_attention_layernorm", "resid_mid", "ln2"),
        (LAYER + r"mlp\.gate_up_proj", None, "pre and pre_linear"),
        (LAYER + r"mlp\.down_proj", "post", "mlp_out"),
        ("embed_tokens", None, "embed"),
        (r"model\.norm", None, "ln_final"),
    ],
    "olmo2": [
        *GATED,
        *WRITTEN,
        (LAYER + r"self_attn\.q_norm", None, "ln_all_q"),
        (LAYER + r"self_attn\.k_norm", None, "ln_all_k"),
    ],
    "gemma2": GEMMA_HOOKS,
    "gemma3_text": [
        *GEMMA_HOOKS,
        (LAYER + r"self_attn\.q_norm", None, "ln_q"),
        (LAYER + r"self_attn\.k_norm", None, "ln_k"),
    ],
    "gpt_neo": [
        ("wte", None, "embed"),
        ("wpe", None, "pos_embed"),
        (LAYER + "ln_1", None, "ln1"),
        (LAYER + r"attn\.attention\.out_proj", "z", "attn_out"),
        (LAYER + "ln_2", "resid_mid", "ln2"),
        (LAYER + r"mlp\.c_fc", None, "pre"),
        (LAYER + r"mlp\.c_proj", "post", "mlp_out"),
        ("ln_f", None, "ln_final"),
    ],
    "gemma": [*LLAMA_HOOKS, ("embed_tokens", None, "embed")],
    "smollm3": [*LLAMA_HOOKS, ("embed_tokens", None, "embed")],
    "stablelm": [*LLAMA_HOOKS, ("embed_tokens", None, "embed")],
    "starcoder2": [
        *LLAMA_HOOKS[3:],
        (LAYER + r"mlp\.c_fc", None, "pre"),
        (LAYER + r"mlp\.c_proj", "post", "mlp_out"),
        ("embed_tokens", None, "embed"),
    ],
    "olmo": [*LLAMA_HOOKS, ("embed_tokens", None, "embed")],
    "granite": [  # of what is written the stream has a part
        *GATED[:3],
        (LAYER + r"self_attn\.o_proj", "z", None),
        *LLAMA_HOOKS[4:],
    ],
    "phi": [
        (LAYER + "input_layernorm", None, "ln1"),
        (LAYER + "input_layernorm", None, "ln2"),
        (LAYER + r"self_attn\.dense", "z", "attn_out"),
        (LAYER + r"mlp\.fc1", None, "pre"),
        (LAYER + r"mlp\.fc2", "post", "mlp_out"),
        (r"model\.final_layernorm", None, "ln_final"),
        ("embed_tokens", None, "embed"),
    ],
}


def watch(model, every, seen):
    """Hooks that file what passes through the modules in `seen` under names of points."""
    if not every:
        return
    for name, module in model.named_modules():
        for end, *points in HOOKS[model.config.model_type]:
            if match := re.search(rf"(?:^|\.){end}$", name):
                layer = f".{match[1]}" if match.groups() else ""
                file_points(module, points, layer, model.config, seen)
        if type(module).__name__.endswith("RotaryEmbedding"):
            places.file_angles(module, model.config, seen)


def file_points(module, points, layer, config, seen):
    """What enters and leaves a module, and the numbers of a norm."""

    def hook(module, args, out):
        for point, x in zip(points, (args[0], out)):
            if point == "z":
                seen[point + layer] = places.by_heads(x, places.head_width(config))
            elif point == "pre and pre_linear":
                seen[f"pre{layer}"], seen[f"pre_linear{layer}"] = x[0].chunk(2, -1)
            elif point:
                # OPT's MLP reads [T D]; Falcon adds to what the MLP gives, in place
                seen[point + layer] = (x[0] if x.ndim > 2 else x).clone()
        if "norm" in type(module).__name__.lower():
            x = args[0][0] if args[0].ndim > 2 else args[0]
            for what, value in statistics(module, x).items():
                seen[f"{points[1]}_{what}{layer}"] = value

    module.register_forward_hook(hook)


def statistics(module, x):
    """{"scale" and, in a LayerNorm, "mean": tensor} of a norm's input."""
    if isinstance(module, torch.nn.LayerNorm):
        return places.statistics(module, x)
    if type(module).__name__ == "OlmoLayerNorm":  # it has neither gain nor bias
        return places.statistics(torch.nn.LayerNorm(x.shape[-1], 1e-5), x)
    eps = getattr(module, "variance_epsilon", None) or module.eps
    return {"scale": (x.pow(2).mean(-1) + eps).rsqrt()}


@contextlib.contextmanager
def watched_attention(model, seen):
    """Inside, queries, keys and values are filed in `seen` as attention gets them."""
    watched = WATCHED.get(model.config.model_type, eager)
    modeling = importlib.import_module(type(model).__module__)
    with contextlib.ExitStack() as stack:
        watched(model, modeling, seen, stack)
        yield


def replaced(owner, name, function, stack):
    """Another function in place of one of the library's, until the stack closes."""
    stack.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, function)


def eager(model, modeling, seen, stack):
    """Of families whose attention is a function."""
    plain = modeling.eager_attention_forward

    def watched(module, query, key, value, *args, **kwargs):
        for name, x in zip("qkv", (query, key, value)):
            seen[f"{name}.{module.layer_idx}"] = x[0]
        return plain(module, query, key, value, *args, **kwargs)

    replaced(modeling, "eager_attention_forward", watched, stack)
    if hasattr(modeling, "apply_rotary_pos_emb"):
        turned_by(modeling, seen, stack)


def turned_by(modeling, seen, stack, names=("q_in", "k_in")):
    """Queries and keys as the library turns them, layer after layer."""
    plain, calls = modeling.apply_rotary_pos_emb, []

    def watched(q, k, *args, **kwargs):
        out = plain(q, k, *args, **kwargs)
        for name, x in zip(names, (q, k, *out)):
            seen[f"{name}.{len(calls)}"] = x[0]
        calls.append(1)
        return out

    replaced(modeling, "apply_rotary_pos_emb", watched, stack)


def of_opt(model, modeling, seen, stack):
    """OPT divides its queries by the root of the width before attention gets them."""
    eager(model, modeling, seen, stack)
    d = places.head_width(model.config)
    for name, module in model.named_modules():
        if match := re.search(rf"{LAYER}self_attn\.q_proj$", name):

            def hook(module, args, out, key=f"q_own.{match[1]}"):
                seen[key] = places.by_heads(out, d)

            stack.callback(module.register_forward_hook(hook).remove)


def of_gptj(model, modeling, seen, stack):
    """GPT-J's attention is a method; its features are put in minitx's order."""
    half = model.config.rotary_dim // 2
    d = model.config.n_embd // model.config.n_head
    order = [*range(0, 2 * half, 2), *range(1, 2 * half, 2), *range(2 * half, d)]
    for layer, block in enumerate(model.transformer.h):
        attn = block.attn

        def watched(query, key, value, *args, plain=attn._attn, layer=layer, **kwargs):
            seen[f"q.{layer}"], seen[f"k.{layer}"] = query[0][..., order], key[0][..., order]
            seen[f"v.{layer}"] = value[0]
            return plain(query, key, value, *args, **kwargs)

        stack.callback(attn.__dict__.pop, "_attn")
        attn._attn = watched


def of_falcon(model, modeling, seen, stack):
    """Falcon's attention is written out in one method; it repeats keys that heads share."""
    turned_by(modeling, seen, stack, ("q_in", "k_in", "q", "k"))
    for layer, block in enumerate(model.transformer.h):
        attention = block.self_attention

        def watched(fused, plain=attention._split_heads, layer=layer):
            out = plain(fused)
            seen[f"v.{layer}"] = out[2][0].transpose(0, 1)
            return out

        stack.callback(attention.__dict__.pop, "_split_heads")
        attention._split_heads = watched


def of_gpt_neo(model, modeling, seen, stack):
    """Its attention is a method."""
    for layer, block in enumerate(model.transformer.h):
        attn = block.attn.attention

        def watched(query, key, value, *args, plain=attn._attn, layer=layer, **kwargs):
            for name, x in zip("qkv", (query, key, value)):
                seen[f"{name}.{layer}"] = x[0]
            return plain(query, key, value, *args, **kwargs)

        stack.callback(attn.__dict__.pop, "_attn")
        attn._attn = watched


def of_phi(model, modeling, seen, stack):
    """Queries and keys whole, as they leave their matrices, or their norms."""
    plain = modeling.apply_rotary_pos_emb
    eager(model, modeling, seen, stack)
    modeling.apply_rotary_pos_emb = plain  # it gets only the part that is turned
    d = places.head_width(model.config)
    for name, module in model.named_modules():
        if not (match := re.search(rf"{LAYER}self_attn\.([qk])_(proj|layernorm)$", name)):
            continue
        layer, x, kind = match.groups()

        def hook(module, args, out, layer=layer, x=x, kind=kind):
            seen[f"{x}_in.{layer}"] = places.by_heads(out, d) if kind == "proj" else out[0]
            if kind == "layernorm":
                seen[f"ln_{x}.{layer}"] = out[0]
                for what, number in places.statistics(module, args[0]).items():
                    seen[f"ln_{x}_{what}.{layer}"] = number[0]

        stack.callback(module.register_forward_hook(hook).remove)


def of_smollm3(model, modeling, seen, stack):
    """Only some layers turn queries and keys; the library computes angles for all."""
    plain = modeling.apply_rotary_pos_emb
    eager(model, modeling, seen, stack)
    modeling.apply_rotary_pos_emb = plain
    d = places.head_width(model.config)
    for name, module in model.named_modules():
        if not (match := re.search(rf"{LAYER}self_attn\.([qk])_proj$", name)):
            continue
        layer, x = match.groups()

        def hook(module, args, out, key=f"{x}_in.{layer}"):
            seen[key] = places.by_heads(out, d)

        if model.config.no_rope_layers[int(layer)]:
            stack.callback(module.register_forward_hook(hook).remove)
        else:
            stack.callback(seen.pop, f"pos_angle.{layer}", None)


WATCHED = {"opt": of_opt, "gptj": of_gptj, "falcon": of_falcon}
WATCHED |= {"gpt_neo": of_gpt_neo, "phi": of_phi, "smollm3": of_smollm3, "stablelm": of_phi}


def once(seen, config):
    """The points as minitx has them: keys and values without repetition, OPT's own queries."""
    tensors = {name: x for name, x in seen.items() if not name.startswith("q_own")}
    for name, x in seen.items():
        if name.startswith("q_own"):
            tensors[name.replace("_own", "")] = x
        if config.model_type == "falcon" and config.new_decoder_architecture:
            if name.split(".")[0] in ("k", "k_in", "v"):
                tensors[name] = x[:: config.num_attention_heads // config.num_kv_heads]
    return tensors


def inputs(model, words, rng):
    """Two texts, and what the variant gives besides tokens."""
    texts = [dict(tokens=rng.integers(3, 22, n)) for n in T]
    for text in texts:
        n = len(text["tokens"])
        if "positions" in words:
            text["positions"] = rng.permutation(n + 3)[:n]
        if "holes" in words:  # hidden tokens inside a text, which keep their places
            text["valid"] = ~np.isin(np.arange(n), (2, 3))
            text["positions"] = np.arange(n)
    return texts


def run(model, text, seen):
    """{point: tensor without batch axis} of one text, alone and unpadded, by the library."""
    given = {name: torch.tensor(value)[None] for name, value in text.items()}
    extra = {"output_hidden_states": True, "output_attentions": True, "return_dict": True}
    if "positions" in given:
        extra["position_ids"] = given["positions"]
    if "valid" in given:
        extra["attention_mask"] = given["valid"].long()
    with watched_attention(model, seen):
        out = model(given["tokens"], **extra)
    tensors = once(seen, model.config)
    tensors |= {f"hidden.{n}": x[0] for n, x in enumerate(out.hidden_states)}
    tensors |= {f"pattern.{n}": x[0] for n, x in enumerate(out.attentions)}
    logits = single.logits_of(model, out)
    return tensors if logits is None else tensors | {"logits": logits[0]}


def keeps(name):
    """Whether an array is stored of a variant that does not ask for every point."""
    return "_in." not in name


STEPS = {"inside": in_float64, "watch": watch, "inputs": inputs, "run": run}
MAKER = single.Maker(SIZES, DISK, draw=draw, **STEPS, keeps=keeps, more=places.more)
