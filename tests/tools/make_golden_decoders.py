"""Makes the models of tests/golden of the later decoders, from OPT and GPT-J to Granite.

Six configurations of each, tiny and with random weights. Folders hold what those of
make_golden_places.py do, with the same patches: what the library computes in float32 is done in
float64 (`in_float64`); here these are Gemma's factor on its embeddings and GPT-J's table of sines,
too. GPT-J's queries and keys are written with their features in minitx's order.
"""

import contextlib
import importlib
from functools import partial
from unittest.mock import patch

import make_golden as single
import make_golden_places as places
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
PLAIN = {key: x for key, x in LLAMA.items() if key != "rms_norm_eps"}
SIZES = {
    "OPT": SMALL | dict(ffn_dim=10, max_position_embeddings=16),
    "GPTJ": dict(vocab_size=23, n_embd=12, n_layer=2, n_head=2, n_positions=32, rotary_dim=4)
    | dict(bos_token_id=1, eos_token_id=2),
    "Phi3": LLAMA,
    "Olmo2": LLAMA,
    "Falcon": SMALL | dict(num_attention_heads=4, num_kv_heads=2, rope_theta=100.0, eos_token_id=2),
    "Gemma2": GEMMA | dict(attn_logit_softcapping=3.0, final_logit_softcapping=4.0),
    **dict.fromkeys(
        ("Gemma3Text", "Gemma3"), GEMMA | dict(rope_theta=500.0, rope_local_base_freq=50.0)
    ),
    "GPTNeo": NEO,
    "Gemma": LLAMA | dict(head_dim=6),
    "Starcoder2": PLAIN | dict(norm_epsilon=1e-5, num_attention_heads=4),
    "SmolLM3": LLAMA,
    "StableLm": PLAIN | dict(hidden_size=16),
    "Olmo": PLAIN,
    "Granite": LLAMA
    | dict(embedding_multiplier=1.7, logits_scaling=0.6)
    | dict(residual_multiplier=0.7, attention_multiplier=0.4),
    "Phi": SMALL
    | dict(intermediate_size=10, max_position_embeddings=32, rope_theta=100.0)
    | dict(bos_token_id=1, eos_token_id=2, pad_token_id=0),
}
T = 9, 5  # tokens of the two texts
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=40, beta_fast=4)
LINEAR = dict(rope_type="linear", factor=8.0)


draw = partial(
    single.drawn, norm=r"norm|\.ln_\w+\.", words="embed|wte", head="score|classifier|qa_outputs"
)


# --- its files


def with_old_gemma3(tensors, config, _):
    """Two bases, one scaling and a pattern, as in the published files."""
    given = config.pop("rope_parameters")
    theta = {kind: given[kind].pop("rope_theta") for kind in given}
    config["rope_theta"] = theta["full_attention"]
    config["rope_local_base_freq"] = theta["sliding_attention"]
    config["rope_scaling"] = given["full_attention"]
    config["sliding_window_pattern"] = config.pop("_sliding_window_pattern")
    del config["layer_types"]
    return tensors


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
    "no-prefix": single.renamed(r"^(model|transformer)\.", ""),
}


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
EMBED = ("(?:embed_tokens|wte|word_embeddings)", None, "embed")
LAST = (r"(?:model\.norm|model\.final_layernorm|decoder\.final_layer_norm|ln_f)", None, "ln_final")
ENDS = [EMBED, LAST]
MLP = [
    (LAYER + r"mlp\.gate_proj", None, "pre"),
    (LAYER + r"mlp\.up_proj", None, "pre_linear"),
    (LAYER + r"mlp\.down_proj", "post", None),
]
READ = (LAYER + r"self_attn\.o_proj", "z", None)
OF_LAYER = [
    (LAYER + r"self_attn\.o_proj", "z", "attn_out"),
    (LAYER + "input_layernorm", None, "ln1"),
    (LAYER + "post_attention_layernorm", "resid_mid", "ln2"),
]
WRITTEN = [  # what a norm makes of what is written
    *MLP,
    READ,
    (LAYER + "post_attention_layernorm", None, "attn_out"),
    (LAYER + "post_feedforward_layernorm", None, "mlp_out"),
    *ENDS,
]
GEMMA_HOOKS = [
    *WRITTEN,
    (LAYER + "input_layernorm", None, "ln1"),
    (LAYER + "pre_feedforward_layernorm", "resid_mid", "ln2"),
]
PARALLEL = [
    (LAYER + r"mlp\.(?:fc_in|dense_h_to_4h)", None, "pre"),
    (LAYER + r"mlp\.(?:fc_out|dense_4h_to_h)", "post", "mlp_out"),
    (LAYER + r"(?:attn\.out_proj|self_attention\.dense)", "z", "attn_out"),
    (LAYER + "(?:ln_1|input_layernorm|ln_attn)", None, "ln1"),
    (LAYER + "(?:ln_1|input_layernorm|ln_mlp)", None, "ln2"),
    *ENDS,
]
C_MLP = [(LAYER + r"mlp\.c_fc", None, "pre"), (LAYER + r"mlp\.c_proj", "post", "mlp_out")]
LLAMA_HOOKS = [*MLP, *OF_LAYER, *ENDS]
HOOKS = {
    "opt": [
        ("embed_positions", None, "pos_embed"),
        (LAYER + "self_attn_layer_norm", None, "ln1"),
        (LAYER + r"self_attn\.out_proj", "z", "attn_out"),
        (LAYER + "final_layer_norm", "resid_mid", "ln2"),
        (LAYER + "fc1", None, "pre"),
        (LAYER + "fc2", "post", "mlp_out"),
        *ENDS,
    ],
    "gptj": PARALLEL,
    "falcon": PARALLEL,
    "phi3": [
        *OF_LAYER,
        (LAYER + r"mlp\.gate_up_proj", None, "pre and pre_linear"),
        (LAYER + r"mlp\.down_proj", "post", "mlp_out"),
        *ENDS,
    ],
    "olmo2": [
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
        ("wpe", None, "pos_embed"),
        (LAYER + "ln_1", None, "ln1"),
        (LAYER + r"attn\.attention\.out_proj", "z", "attn_out"),
        (LAYER + "ln_2", "resid_mid", "ln2"),
        *C_MLP,
        *ENDS,
    ],
    **dict.fromkeys(("gemma", "smollm3", "stablelm", "olmo"), LLAMA_HOOKS),
    "starcoder2": [*OF_LAYER, *C_MLP, *ENDS],
    "granite": [*MLP, READ, *OF_LAYER[1:], LAST],  # of what is written the stream has a part
    "phi": [
        (LAYER + "input_layernorm", None, "ln1"),
        (LAYER + "input_layernorm", None, "ln2"),
        (LAYER + r"self_attn\.dense", "z", "attn_out"),
        (LAYER + r"mlp\.fc1", None, "pre"),
        (LAYER + r"mlp\.fc2", "post", "mlp_out"),
        *ENDS,
    ],
}


def watch(model, every, seen):
    if every:
        d = places.head_width(model.config)
        rows = HOOKS[model.config.model_type]
        single.hooked(model, rows, partial(places.file_points, d, seen))
        places.watch_angles(model, seen)


@contextlib.contextmanager
def watched_attention(model, seen):
    watched = WATCHED.get(model.config.model_type, eager)
    modeling = importlib.import_module(type(model).__module__)
    with contextlib.ExitStack() as stack:
        watched(model, modeling, seen, stack)
        yield


def eager(model, modeling, seen, stack, turned=True):
    """Of families whose attention is a function; turned: it is given all queries and keys."""
    stack.enter_context(places.eager(modeling, seen))
    if turned and hasattr(modeling, "apply_rotary_pos_emb"):
        stack.enter_context(places.turned_by(modeling, seen))


def on_modules(model, rows, file, stack):
    """Hooks on modules of attention, until the stack closes."""
    rows = [(rf"{LAYER}self_attn\.{end}", *points) for end, *points in rows]
    for handle in single.hooked(model, rows, file):
        stack.callback(handle.remove)


def of_opt(model, modeling, seen, stack):
    """OPT divides its queries by the root of the width before attention gets them."""
    eager(model, modeling, seen, stack)
    d = places.head_width(model.config)

    def file(name, points, ending, module, args, out):
        seen[f"q_own{ending}"] = places.by_heads(out, d)

    on_modules(model, [("q_proj",)], file, stack)


def by_method(attentions, seen, stack, order=slice(None)):
    """Of families whose attention is a method; order: of the features of queries and keys."""
    for layer, attention in enumerate(attentions):

        def watched(query, key, value, *args, plain=attention._attn, layer=layer, **kwargs):
            for name, x in zip("qkv", (query[..., order], key[..., order], value)):
                seen[f"{name}.{layer}"] = x[0]
            return plain(query, key, value, *args, **kwargs)

        stack.enter_context(patch.object(attention, "_attn", watched))


def of_gptj(model, modeling, seen, stack):
    """GPT-J's features are put in minitx's order."""
    half = model.config.rotary_dim // 2
    d = model.config.n_embd // model.config.n_head
    order = [*range(0, 2 * half, 2), *range(1, 2 * half, 2), *range(2 * half, d)]
    by_method([block.attn for block in model.transformer.h], seen, stack, order)


def of_falcon(model, modeling, seen, stack):
    """Falcon's attention is written out in one method; it repeats keys that heads share."""
    names = "q_in", "k_in", "q", "k"
    stack.enter_context(places.turned_by(modeling, seen, names))
    for layer, block in enumerate(model.transformer.h):
        attention = block.self_attention

        def watched(fused, plain=attention._split_heads, layer=layer):
            out = plain(fused)
            seen[f"v.{layer}"] = out[2][0].transpose(0, 1)
            return out

        stack.enter_context(patch.object(attention, "_split_heads", watched))


def of_gpt_neo(model, modeling, seen, stack):
    by_method([block.attn.attention for block in model.transformer.h], seen, stack)


def of_phi(model, modeling, seen, stack):
    """Queries and keys whole, as they leave their matrices, or their norms."""
    eager(model, modeling, seen, stack, turned=False)  # it turns only a part of them
    d = places.head_width(model.config)

    def file(name, points, ending, module, args, out):
        (x,) = points
        if name.endswith("proj"):
            seen[f"{x}_in{ending}"] = places.by_heads(out, d)
        else:
            seen[f"{x}_in{ending}"] = seen[f"ln_{x}{ending}"] = out[0]
            single.file_statistics(module, args[0][0], f"ln_{x}", ending, seen)

    on_modules(model, [(f"{x}_(?:proj|layernorm)", x) for x in "qk"], file, stack)


def of_smollm3(model, modeling, seen, stack):
    """Only some layers turn queries and keys; the library computes angles for all."""
    eager(model, modeling, seen, stack, turned=False)
    d = places.head_width(model.config)

    def file(name, points, ending, module, args, out):
        if model.config.no_rope_layers[int(ending[1:])]:
            seen[points[0] + ending] = places.by_heads(out, d)
        else:
            seen.pop(f"pos_angle{ending}", None)

    on_modules(model, [(f"{x}_proj", f"{x}_in") for x in "qk"], file, stack)


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
    texts = [dict(tokens=rng.integers(3, 22, n)) for n in T]
    return single.given(model.config, texts, words, rng, lambda n: n + 3)


def run(model, text, seen):
    return once(places.run(model, text, seen, watched_attention), model.config)


def keeps(name):
    """Whether an array is stored of a variant that does not ask for every point."""
    return "_in." not in name


STEPS = {"inside": in_float64, "watch": watch, "inputs": inputs, "run": run}
MAKER = single.Maker(SIZES, DISK, draw=draw, **STEPS, keeps=keeps, more=places.more)
