"""Small trainings from nothing for tests: settings, a stream of ids, a Loop; the same for all."""

import numpy as np

from minitx.learning.batches import Words
from minitx.learning.loop import How, Loop
from minitx.learning.start import start
from minitx.learning.tokens import Stream

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8}
SIZES |= {"intermediate_size": 12, "vocab_size": 24, "max_position_embeddings": 20}
SETTINGS = {
    "gpt2": {
        **{"n_layer": 2, "n_head": 2, "n_embd": 8, "n_positions": 16, "n_inner": 12},
        **{"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "vocab_size": 24},
    },
    "roberta": SIZES
    | {"layer_norm_eps": 1e-5, "hidden_act": "gelu", "type_vocab_size": 1, "pad_token_id": 1},
    "llama": SIZES
    | {"rms_norm_eps": 1e-5, "hidden_act": "silu", "num_key_value_heads": 1, "rope_theta": 50.0},
}
MASK = 4
NUMBERS = {"steps": 200, "context": 12, "batch": 6, "rate": 0.01, "warm_up": 0.1, "decay": 0.1}
NUMBERS |= {"betas": (0.9, 0.98), "eps": 1e-6, "clip": 1.0, "masked": 0.3, "span": 1.0}
NUMBERS |= {"seed": 0, "snapshots": 0, "dtype": "float64"}


def stream(is_masked, n=900, n_vocab=24):
    """Ids of which each says a little about the next."""
    rng = np.random.default_rng(7)
    ids = 5 + np.cumsum(rng.choice([1, 2, 5], n, p=[0.7, 0.2, 0.1])) % (n_vocab - 5)
    ends = [np.array([0]), np.array([2])] if is_masked else [ids[:0], ids[:0]]
    return Stream(ids, *ends, MASK if is_masked else None, None, {})


def loop_of(name, **numbers):
    """A Loop that has done no step; 200 of them in float64 where nothing else is said."""
    settings = {"model_type": name, "initializer_range": 0.2, **SETTINGS[name]}
    for probability in ("attention_probs_dropout_prob", "hidden_dropout_prob"):
        settings[probability] = 0.0
    for probability in ("attn_pdrop", "embd_pdrop", "resid_pdrop"):
        settings[probability] = 0.0
    how = How(**NUMBERS)._replace(span=1.0 if name == "gpt2" else 2.0)._replace(**numbers)
    words = Words(stream(name == "roberta"), how.context, how.masked, how.span)
    return Loop(start(settings, how.seed, how.dtype), words, how)
