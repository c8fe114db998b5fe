"""DeBERTa (He et al. 2021), its second version and v3: a BERT whose scores have three terms.

Content with content, content with position and position with content, where a position is the
distance of query and key: a row of one table that all layers read. In v2 far distances share rows,
the rows may be normed, and a layer may read them by its matrices for words. Published checkpoints
hold a table of absolute positions too, which their enhanced mask decoder adds before the
vocabulary: neither the reference library nor minitx computes that, so such a file has no head for
words here.
"""

from . import bert
from .family import Key, by_head, dense, norm, part, tensor

TERMS = "c2p", "p2c"
TABLE = "embeddings.position_embeddings.weight"
CONFIG = {
    **{field: key for field, key in bert.CONFIG.items() if field != "n_pos"},
    "n_types": Key("type_vocab_size", 0),
}
BODY = {
    "W_E": tensor("embeddings.word_embeddings.weight"),
    "W_pos": tensor(TABLE, only="n_pos"),
    "W_type": tensor("embeddings.token_type_embeddings.weight", only="n_types"),
    **norm("ln_embed", "embeddings.LayerNorm"),
    "W_dist": tensor("encoder.rel_embeddings.weight", only="n_distances"),
}
SELF = "attention.self"
BLOCK = {name: entry for name, entry in bert.LAYER.items() if name[-2:] not in ("_Q", "_K", "_V")}
LAYER1 = {
    **{f"W_{x}": part(x, f"{SELF}.in_proj", i, by_head)[f"W_{x}"] for i, x in enumerate("QKV")},
    "b_Q": tensor(f"{SELF}.q_bias"),
    "b_V": tensor(f"{SELF}.v_bias"),
    "W_K_pos": tensor(f"{SELF}.pos_proj.weight", transposed=True, only="own_c2p"),
    "W_Q_pos": tensor(f"{SELF}.pos_q_proj.weight", transposed=True, only="own_p2c"),
    "b_Q_pos": tensor(f"{SELF}.pos_q_proj.bias", only="own_p2c"),
    **BLOCK,
}


def only(field, entries):
    """The same tensors, expected where that field of Config is true."""
    return {name: entry._replace(only=field) for name, entry in entries.items()}


LAYER2 = {
    **dense("Q", f"{SELF}.query_proj"),
    **dense("K", f"{SELF}.key_proj"),
    **dense("V", f"{SELF}.value_proj"),
    **only("own_c2p", dense("K_pos", f"{SELF}.pos_key_proj")),
    **only("own_p2c", dense("Q_pos", f"{SELF}.pos_query_proj")),
    **BLOCK,
}
OLD, NEW = "cls.predictions", "lm_predictions.lm_head"  # as the library has it, and as published
MASKED = {
    "W_head": tensor(f"{OLD}.transform.dense.weight", f"{NEW}.dense.weight", transposed=True),
    "b_head": tensor(f"{OLD}.transform.dense.bias", f"{NEW}.dense.bias"),
    "ln_head_w": tensor(f"{OLD}.transform.LayerNorm.weight", f"{NEW}.LayerNorm.weight"),
    "ln_head_b": tensor(f"{OLD}.transform.LayerNorm.bias", f"{NEW}.LayerNorm.bias"),
    "W_U": tensor(f"{OLD}.decoder.weight", transposed=True),
    "b_U": tensor(f"{OLD}.decoder.bias", f"{NEW}.bias", f"{OLD}.bias"),
}
HEADS = {
    "masked": MASKED,
    "sequence": bert.SEQUENCE,
    "token": bert.TOKEN,
    "question": bert.QUESTION,
}
DECODER = f"its enhanced mask decoder adds {TABLE} before the vocabulary, which is not computed"


def withheld(cfg, names):
    """The head for words of a file with positions that its layers do not read."""
    return {"masked": DECODER} if TABLE in names and not cfg.n_pos else {}


def places(raw, values):
    """How distances enter, and whether a table of positions is added to the words."""
    is_placed = flag(raw, "position_biased_input", True)
    terms = pos_terms(raw.get("pos_att_type"))
    d_head = values["d_model"] // values["n_heads"]
    n_types = values["n_types"]
    values = {"n_pos": values["n_ctx"] if is_placed else 0}
    values["default_type"] = 0 if n_types else None
    values["d_scale"] = float((1 + len(terms)) * d_head)
    if not flag(raw, "legacy", True):  # the library's other head has no matrix of its own
        values["tied"] = True
    if not terms or not flag(raw, "relative_attention", False):
        return values
    farthest = raw.get("max_relative_positions", -1)
    half = number("max_relative_positions", farthest) or raw["max_position_embeddings"]
    return values | {"pos_terms": terms, "n_distances": 2 * half, "max_distance": half}


def places2(raw, values):
    """The same with buckets of distances, and what reads them."""
    values = places(raw, values)
    if "pos_terms" not in values:
        return values
    half, largest = number("position_buckets", raw.get("position_buckets", -1)), "max_distance"
    if half:
        if half < 2 or values[largest] - 1 <= half // 2:
            text = f"position_buckets is {half}, the farthest distance {values[largest]}"
            raise ValueError(f"{text}; wanted at least 2 buckets, and fewer than two per distance")
        values |= {"n_distances": 2 * half, "log_distances": True}
    normed = [word.strip() for word in str(raw.get("norm_rel_ebd", "none")).lower().split("|")]
    return values | {
        "own_distances": not flag(raw, "share_att_key", False),
        "norm_distances": "layer_norm" in normed,
    }


def pos_terms(given):
    """The terms beside that of the words, from a list or "c2p|p2c"; each is counted once."""
    words = given
    if isinstance(given, str):
        words = [word.strip() for word in given.lower().split("|")]
    words = words or []
    if not isinstance(words, list) or not {*words} <= {*TERMS} or len({*words}) < len(words):
        text = f"pos_att_type is {given!r:.80}"
        raise ValueError(f"{text}; wanted c2p, p2c, both, or neither, each once")
    return tuple(term for term in TERMS if term in words)


def flag(raw, name, default):
    """A key of config.json that is true or false."""
    value = raw.get(name, default)
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r:.80}; wanted true or false")
    return value


def number(name, value):
    """A whole number; 0 where it is below 1, which stands for none."""
    if type(value) is not int:
        raise ValueError(f"{name} is {value!r:.80}; wanted a whole number")
    return max(value, 0)


KNOWS = (
    "position_biased_input",
    "pos_att_type",
    "legacy",
    "relative_attention",
    "max_relative_positions",
)
DEBERTA = bert.FAMILY._replace(
    config=CONFIG,
    fixed={},
    places=places,
    knows=KNOWS,
    body=BODY,
    layer=LAYER1,
    heads=HEADS,
    sequence_act="gelu",
    withheld=withheld,
)
NORM2 = only("norm_distances", norm("ln_dist", "encoder.LayerNorm"))
DEBERTA2 = DEBERTA._replace(
    config=CONFIG | {"d_kv": Key("attention_head_size", 0)},
    places=places2,
    knows=(*KNOWS, "position_buckets", "norm_rel_ebd", "share_att_key"),
    body=BODY | NORM2,
    layer=LAYER2,
    heads=HEADS | {"choice": bert.SEQUENCE},
)
