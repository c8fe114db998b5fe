"""Writes a model of the zoo as a real family has it: config.json, names and layouts of its tensors.

GPT-2's layout with rotary positions is GPT-NeoX with sequential parts, with ALiBi it is BLOOM,
with fixed rows or none GPT-2 itself; RoBERTa's layout with a bias by bucket is MPNet without a
position table, with terms of content and place it is DeBERTa, with buckets DeBERTa v2. Nothing is
computed but transposes, and q, k, v put together in another order.
"""

from minitx.weights.training import places, train
from minitx.weights.training.models import EMBED_NORM, VOCAB
from minitx.weights.training.torches import torch

PARTS = {  # GPT-2's name in a layer: GPT-NeoX's and BLOOM's
    "ln_1": "input_layernorm",
    "ln_2": "post_attention_layernorm",
    "mlp.c_fc": "mlp.dense_h_to_4h",
    "mlp.c_proj": "mlp.dense_4h_to_h",
}
NEOX = {
    **PARTS,
    "attn.c_attn": "attention.query_key_value",
    "attn.c_proj": "attention.dense",
    "transformer.wte": "gpt_neox.embed_in",
    "transformer.ln_f": "gpt_neox.final_layer_norm",
    "transformer.h": "gpt_neox.layers",
}
BLOOM = {
    **PARTS,
    "attn.c_attn": "self_attention.query_key_value",
    "attn.c_proj": "self_attention.dense",
    "transformer.wte": "transformer.word_embeddings",
    EMBED_NORM: EMBED_NORM,
}
MPNET = {
    **{f"attention.self.{part}": f"attention.attn.{part[0]}" for part in ("query", "key", "value")},
    "attention.output.dense": "attention.attn.o",
    "attention.output.LayerNorm": "attention.LayerNorm",
    "roberta.": "mpnet.",
}
DEBERTA = {
    "lm_head.dense": "cls.predictions.transform.dense",
    "lm_head.layer_norm": "cls.predictions.transform.LayerNorm",
    "lm_head.bias": "cls.predictions.bias",
    "roberta.": "deberta.",
}
DEBERTA2 = DEBERTA | {
    f"attention.self.{part}.": f"attention.self.{part}_proj." for part in ("query", "key", "value")
}


def export(recipe, w, out):
    """Write config.json, tokenizer_config.json and, in float16, model.safetensors."""
    if (recipe.family, recipe.place) in AS_THEY_ARE:
        train.export(recipe, w, out)
        return
    config, names, drop = OTHERS[recipe.family, recipe.place]
    weights = {name: p.detach() for name, p in w.items() if not name.endswith(drop)}
    if recipe.place == "disentangled":
        weights = fused(recipe, weights)
    arrays = {renamed(name, names): stored(recipe, name, p) for name, p in weights.items()}
    train.write_json(out / "config.json", config(recipe))
    train.write_json(out / "tokenizer_config.json", tokenizer_config(recipe))
    train.save_half(out / "model.safetensors", arrays)


def renamed(name, names):
    """The name with each part replaced that the table has."""
    for old, new in names.items():
        name = name.replace(old, new)
    return name


def stored(recipe, name, p):
    """A weight of GPT-2's layout as [out in], q k v of each head together; others as they are."""
    if not name.startswith("transformer.h."):
        return p.contiguous()
    if "c_attn" in name:
        heads = p.unflatten(-1, (3, recipe.heads, -1))  # [(D) 3 H d] -> [(D) H 3 d]
        p = heads.transpose(-3, -2).flatten(-3)
    return p.T.contiguous() if p.ndim == 2 else p.contiguous()


def fused(recipe, weights):
    """The weights with q, k and v of each head in one matrix [3 D D], as DeBERTa has them."""
    weights = dict(weights)
    for i in range(recipe.layers):
        own = f"roberta.encoder.layer.{i}.attention.self"
        parts = [weights.pop(f"{own}.{part}.weight") for part in ("query", "key", "value")]
        of_heads = [p.unflatten(0, (recipe.heads, -1)) for p in parts]  # [H d D]
        weights[f"{own}.in_proj.weight"] = torch.stack(of_heads, 1).flatten(0, 2)
        for part in ("query", "value"):
            weights[f"{own}.{part[0]}_bias"] = weights.pop(f"{own}.{part}.bias")
    return weights


def tokenizer_config(recipe):
    """Which token is which, and the longest input that was trained."""
    names = dict(zip(("bos", "pad", "eos", "unk", "mask"), recipe.specials))
    if recipe.family == "gpt2":
        names["eos"] = names["bos"]
    tokens = {f"{kind}_token": token for kind, token in names.items()}
    limit = {"model_max_length": recipe.stages[-1][0]}
    return {"tokenizer_class": "PreTrainedTokenizerFast"} | limit | tokens


def sizes(recipe):
    """What most configs say alike."""
    return {
        "dtype": "float16",
        "vocab_size": VOCAB,
        "hidden_size": recipe.width,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "initializer_range": train.INIT,
        "tie_word_embeddings": True,
    }


def neox(recipe):
    """GPT-NeoX that turns the whole of each head, part after part as GPT-2."""
    config = {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"]}
    config |= {"intermediate_size": 4 * recipe.width, "hidden_act": "gelu_new"}
    config |= {"layer_norm_eps": recipe.eps, "max_position_embeddings": recipe.stages[-1][0]}
    config |= {"use_parallel_residual": False, "rotary_pct": 1.0, "rotary_emb_base": 10000}
    config |= {"attention_dropout": 0.0, "hidden_dropout": 0.0}
    return sizes(recipe) | config | {"bos_token_id": 0, "eos_token_id": 0}


def bloom(recipe):
    """BLOOM: the sizes have names of their own."""
    config = {"model_type": "bloom", "architectures": ["BloomForCausalLM"]}
    config |= {"n_layer": recipe.layers, "n_head": recipe.heads, "seq_length": recipe.stages[-1][0]}
    config |= {"layer_norm_epsilon": recipe.eps, "apply_residual_connection_post_layernorm": False}
    config |= {"attention_dropout": 0.0, "hidden_dropout": 0.0}
    config = sizes(recipe) | config | {"bos_token_id": 0, "eos_token_id": 0}
    del config["num_hidden_layers"], config["num_attention_heads"]
    return config


def mpnet(recipe):
    """MPNet whose position table is 0: the bias of a distance alone says where a token is."""
    config = {"model_type": "mpnet", "architectures": ["MPNetForMaskedLM"]}
    config |= {"intermediate_size": 4 * recipe.width, "hidden_act": "gelu"}
    config |= {"max_position_embeddings": recipe.stages[-1][0] + recipe.offset}
    config |= {"layer_norm_eps": recipe.eps, "relative_attention_num_buckets": 32}
    config |= {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    return sizes(recipe) | config | MASKED_IDS


def deberta(recipe):
    """DeBERTa: exact distances up to the longest input, nothing added to the words."""
    context = recipe.stages[-1][0]
    config = {"model_type": "deberta", "architectures": ["DebertaForMaskedLM"]}
    config |= {"intermediate_size": 4 * recipe.width, "hidden_act": "gelu"}
    config |= {"max_position_embeddings": context, "max_relative_positions": context}
    config |= {"relative_attention": True, "pos_att_type": "c2p|p2c"}
    config |= {"position_biased_input": False, "type_vocab_size": 0, "layer_norm_eps": recipe.eps}
    config |= {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    return sizes(recipe) | config | MASKED_IDS


def deberta2(recipe):
    """DeBERTa v2 as v3 is: buckets, a norm of the table, read by the matrices for words."""
    config = {"model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"]}
    config |= {"position_buckets": places.N_BUCKETS // 2}
    config |= {"max_relative_positions": places.MAX_DISTANCE}
    config |= {"share_att_key": True, "norm_rel_ebd": "layer_norm"}
    return deberta(recipe) | config


def modernbert(recipe):
    """ModernBERT whose layers all see the whole input."""
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    config = {"model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"]}
    config |= {"intermediate_size": 8 * recipe.width // 3 // 8 * 8, "norm_eps": recipe.eps}
    config |= {"max_position_embeddings": recipe.stages[-1][0]}
    config |= {"layer_types": ["full_attention"] * recipe.layers}
    config |= {"rope_parameters": {"full_attention": rope, "sliding_attention": rope}}
    config |= {"hidden_activation": "gelu", "classifier_activation": "gelu"}
    config |= dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), False)
    config |= {"cls_token_id": 0, "sep_token_id": 2, "decoder_bias": True, "local_attention": 128}
    return sizes(recipe) | config | MASKED_IDS


MASKED_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
TABLES = "position_embeddings.weight", "token_type_embeddings.weight"
AS_THEY_ARE = {
    *(("gpt2", place) for place in ("learned", "sinusoidal", "none")),
    *(("roberta", place) for place in ("learned", "sinusoidal", "none")),
}
OTHERS = {  # (layout, place): its config, its names, the weights that it has not
    ("gpt2", "rotary"): (neox, NEOX, ("wpe.weight",)),
    ("gpt2", "alibi"): (bloom, BLOOM, ("wpe.weight",)),
    ("roberta", "buckets"): (mpnet, MPNET, ("token_type_embeddings.weight",)),
    ("roberta", "disentangled"): (deberta, DEBERTA, TABLES),
    ("roberta", "disentangled-buckets"): (deberta2, DEBERTA2, TABLES),
    ("modernbert", "rotary"): (modernbert, {}, ()),
}
