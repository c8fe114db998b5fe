"""The shapes of a model's arrays by the letters of their axes, and the tensors of each layer."""

from ..heads import OF_PICTURES, of_classes

SHAPES = {  # our name -> axes; letters: see model.py
    "W_E": "VE",
    "W_pos": "PE",
    "W_rel": "RH",
    "W_dist": "RD",
    "ln_dist_w": "D",
    "ln_dist_b": "D",
    "W_type": "NE",
    "ln_embed_w": "E",
    "ln_embed_b": "E",
    "W_map": "ED",
    "b_map": "D",
    "ln1_w": "D",
    "ln1_b": "D",
    "W_Q": "DA",
    "b_Q": "A",
    "W_K": "DK",
    "b_K": "K",
    "W_V": "DK",
    "b_V": "K",
    "W_O": "AD",
    "b_O": "D",
    "W_Q_pos": "DA",
    "b_Q_pos": "A",
    "W_K_pos": "DA",
    "b_K_pos": "A",
    "ln_cross_w": "D",
    "ln_cross_b": "D",
    "ln2_w": "D",
    "ln2_b": "D",
    "ln_q_w": "d",
    "ln_q_b": "d",
    "ln_k_w": "d",
    "ln_k_b": "d",
    "ln_all_q_w": "A",
    "ln_all_k_w": "K",
    "attn_out_w": "D",
    "mlp_out_w": "D",
    "W_gate": "DM",
    "b_gate": "M",
    "W_in": "DM",
    "b_in": "M",
    "W_out": "MD",
    "b_out": "D",
    "ln_final_w": "D",
    "ln_final_b": "D",
    "W_head": "DE",
    "b_head": "E",
    "ln_head_w": "E",
    "ln_head_b": "E",
    "W_U": "EV",
    "b_U": "V",
    "logit_scale": "1",
}
OF_HEAD = "W_head", "b_head", "ln_head_w", "ln_head_b", "W_U", "b_U"


def sizes_of(config):
    """{letter of an axis: its size}; letters: see model.py."""
    sizes = {"V": config.n_vocab, "P": config.n_pos, "N": config.n_types}
    sizes["R"] = config.n_buckets or config.n_distances
    sizes |= {"D": config.d_model, "M": config.d_mlp, "H": config.n_heads}
    sizes |= {"A": config.n_heads * config.d_head, "K": config.n_kv * config.d_head}
    sizes["E"] = config.d_embed or config.d_model
    sizes["F"] = config.d_model * max(1, len(config.head_reads))  # what a head for a picture reads
    return sizes | {"d": config.d_head, "1": 1}


def axes_of(ours, task_head):
    """Letters of an array's axes; a classifier gives C classes in place of V words."""
    if ours not in OF_HEAD or not of_classes(task_head):
        return SHAPES[ours]
    if ours == "W_U" and task_head in OF_PICTURES:
        return "FC"
    return SHAPES[ours].replace("E", "D").replace("V", "C")


def layer_prefix(family, config, i):
    """What stands before the names of a layer's tensors; several layers may have the same."""
    numbers = config.shared_layers[i] if config.shared_layers else (i,)
    return family.layer_prefix.format(*numbers)
