"""GPT-J (Wang & Komatsuzaki 2021): attention and MLP read the same stream, behind one norm.

Rotary positions turn neighbouring features, in a part of each head. Those of queries and keys are
put where `turned` wants them, so both lie in another order than in the file.
"""

from ...rotary import rotary
from . import gpt2, llama
from .family import Family, Key, dense, norm, tensor

CONFIG = {
    "n_layers": Key("n_layer"),
    "n_heads": Key("n_head"),
    "d_model": Key("n_embd"),
    "d_mlp": Key("n_inner", None),
    "n_ctx": Key("n_positions"),
    "eps": Key("layer_norm_epsilon"),
    "act": Key("activation_function"),
    "pad_id": Key("pad_token_id", None),
    "tied": Key("tie_word_embeddings", False),
}
LAYER = {
    **norm("ln1", "ln_1"),
    "W_Q": tensor("attn.q_proj.weight", transposed=True, neighbours=True),
    "W_K": tensor("attn.k_proj.weight", transposed=True, neighbours=True),
    "W_V": tensor("attn.v_proj.weight", transposed=True),
    "W_O": tensor("attn.out_proj.weight", transposed=True),
    **norm("ln2", "ln_1"),
    **dense("in", "mlp.fc_in"),
    **dense("out", "mlp.fc_out"),
}
# what old files call it; the reference library looks at neither
ONLY = {"rotary": True, "rope_scaling": None}


def places(raw, values):
    """The first `rotary_dim` features of each head are turned."""
    width, of_head = raw.get("rotary_dim"), values["d_model"] // values["n_heads"]
    if type(width) is not int or not 0 < width <= of_head or width % 2:
        text = f"rotary_dim is {width!r:.80}"
        raise ValueError(f"{text}; wanted an even number from 2 to a head's {of_head} features")
    turn = rotary({"rope_theta": llama.THETA}, width, values["n_ctx"])
    return {"rotary": (turn,) * values["n_layers"]}


FAMILY = Family(
    config=CONFIG,
    fixed={
        "n_types": 0,
        "n_pos": 0,
        "pre_norm": True,
        "parallel": True,
        "causal": True,
        "read_at": "last",
    },
    derived=gpt2.derived,
    places=places,
    only=ONLY,
    knows=("rotary_dim",),
    body={"W_E": tensor("wte.weight"), **norm("ln_final", "ln_f")},
    layer=LAYER,
    layer_prefix="h.{}.",
    heads={
        "causal": dense("U", "lm_head"),
        "sequence": {"W_U": tensor("score.weight", transposed=True)},
        "question": dense("U", "qa_outputs"),
    },
)
