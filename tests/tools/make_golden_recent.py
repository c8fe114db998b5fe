"""Makes the models of tests/golden of GPT-Neo, Gemma, StarCoder 2, Phi, SmolLM3, OLMo and Granite.

As make_golden_decoders.py, whose sizes, patches and hooks are used and added to here: six
configurations of each, tiny and with random weights.
"""

import re
from functools import partial

import make_golden as single
import make_golden_decoders as decoders
import make_golden_places as places
import torch
from make_golden_decoders import GATED, LLAMA, SMALL, eager
from make_golden_places import LAYER

NEO = dict(vocab_size=23, hidden_size=8, num_layers=2, num_heads=2, intermediate_size=10)
NEO |= dict(max_position_embeddings=16, attention_types=[[["global", "local"], 1]], window_size=3)
NEO |= dict(bos_token_id=1, eos_token_id=2)
STAR = LLAMA | dict(norm_epsilon=1e-5, num_attention_heads=4)
SIZES = {
    "GPTNeo": NEO,
    "Gemma": LLAMA | dict(head_dim=6),
    "Starcoder2": {key: value for key, value in STAR.items() if key != "rms_norm_eps"},
    "SmolLM3": LLAMA,
    "Olmo": {key: value for key, value in LLAMA.items() if key != "rms_norm_eps"},
    "Granite": LLAMA
    | dict(embedding_multiplier=1.7, logits_scaling=0.6)
    | dict(residual_multiplier=0.7, attention_multiplier=0.4),
    "Phi": SMALL
    | dict(intermediate_size=10, max_position_embeddings=32, rope_theta=100.0)
    | dict(bos_token_id=1, eos_token_id=2, pad_token_id=0),
}
VARIANTS = single.variants("make_golden_recent")


# --- files


def with_masks(tensors, *_):
    """The masks that old GPT-Neo files hold in each layer."""
    layers = {re.search(r"^(.*attn\.attention)\.", name) for name in tensors} - {None}
    prefixes = {layer[1] for layer in layers}
    masks = {f"{prefix}.bias": torch.ones(1, 1, 16, 16).tril().bool() for prefix in prefixes}
    return tensors | masks | {f"{prefix}.masked_bias": torch.tensor(-1e9) for prefix in prefixes}


def with_old_act(tensors, config, _):
    """As in the first Gemma's published files: "gelu", which means its form with tanh."""
    config |= {"hidden_act": "gelu", "hidden_activation": None}
    return tensors


DISK = decoders.DISK | {"neo-buffers": with_masks, "old-act": with_old_act}


# --- what the reference library computes

LLAMA_HOOKS = [
    *GATED[:3],
    (LAYER + r"self_attn\.o_proj", "z", "attn_out"),
    (LAYER + "input_layernorm", None, "ln1"),
    (LAYER + "post_attention_layernorm", "resid_mid", "ln2"),
    (r"model\.norm", None, "ln_final"),
]
HOOKS = {
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


WATCHED = {"gpt_neo": of_gpt_neo, "phi": of_phi, "smollm3": of_smollm3}
decoders.SIZES.update(SIZES)
decoders.HOOKS.update(HOOKS)
decoders.WATCHED.update(WATCHED)


if __name__ == "__main__":
    steps = {"build": decoders.build, "reference": decoders.reference, "run": decoders.run}
    single.remake("recent", VARIANTS, partial(places.make, **steps, layout=DISK))
