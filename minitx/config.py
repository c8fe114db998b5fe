"""What one checkpoint is: its sizes and the few choices in which the families differ, as plain values.

`from_hf` reads a config.json in Hugging Face layout. A missing key is an error, because a library's class defaults
are often not what a checkpoint was trained with; an option that is not computed here is refused, not ignored.
"""
from dataclasses import dataclass

from .kernels import ACTIVATIONS

def need(fits, message):  # the one way to refuse an input whose message costs nothing to write
    if not fits:
        raise ValueError(message)

@dataclass(frozen=True)
class Config:
    model_type: str
    n_layers: int
    n_heads: int
    d_model: int
    d_mlp: int
    n_vocab: int
    n_ctx: int              # longest input, in tokens
    n_pos: int              # rows of the position table, of which `offset : offset + n_ctx` can be reached
    n_types: int            # rows of the token-type table; 0: none
    eps: float
    act: str                # activation of the MLP
    head_act: str | None = None  # activation inside the head
    pre_norm: bool = False  # LayerNorm before attention and MLP (GPT-2) or after the addition (BERT)
    causal: bool = False    # keys to the right are hidden
    offset: int = 0         # row of the position table that the first token reads
    pad: int | None = None  # token id that takes no position (RoBERTa); None: every id takes one
    pad_token: int = 0      # token id that fills up a batch
    default_type: int | None = None  # token type added when none is given; None: nothing is added
    scale_attn: bool = True          # scores / sqrt(d_head)
    scale_by_layer: bool = False     # scores / (layer + 1)
    tied: bool = True                # without an output embedding of its own, the word embedding serves
    architecture: str = ""           # the class name that the checkpoint was saved from
    head: str | None = None          # "masked", "causal", "sequence", or None; known once the file is read

    @property
    def d_head(self): return self.d_model // self.n_heads

    def attn_scale(self, layer):  # the factor on q.k
        return (self.d_head ** -0.5 if self.scale_attn else 1.0) / (layer + 1 if self.scale_by_layer else 1)

def _bert(get):
    return dict(n_layers=get("num_hidden_layers"), n_heads=get("num_attention_heads"), d_model=get("hidden_size"),
                d_mlp=get("intermediate_size"), n_pos=get("max_position_embeddings"), eps=get("layer_norm_eps"),
                n_ctx=get("max_position_embeddings"), n_types=get("type_vocab_size"), default_type=0,
                act=get("hidden_act"), head_act=get("hidden_act"), pad_token=get("pad_token_id", None) or 0)

def _roberta(get):
    pad = get("pad_token_id")  # also decides where positions begin, so no default will do
    return _bert(get) | dict(pad=pad, pad_token=pad, offset=pad + 1, head_act="gelu",
                             n_ctx=get("max_position_embeddings") - pad - 1)

def _distilbert(get):
    return dict(n_layers=get("n_layers"), n_heads=get("n_heads"), d_model=get("dim"), d_mlp=get("hidden_dim"),
                n_pos=get("max_position_embeddings"), n_ctx=get("max_position_embeddings"), n_types=0, eps=1e-12,
                act=get("activation"), head_act=get("activation"), pad_token=get("pad_token_id", None) or 0)

def _gpt2(get):
    return dict(n_layers=get("n_layer"), n_heads=get("n_head"), d_model=get("n_embd"), n_pos=get("n_positions"),
                n_ctx=get("n_positions"), d_mlp=get("n_inner", None) or 4 * get("n_embd"), n_types=get("vocab_size"),
                eps=get("layer_norm_epsilon"), scale_attn=get("scale_attn_weights", True), pre_norm=True, causal=True,
                act=get("activation_function"), scale_by_layer=get("scale_attn_by_inverse_layer_idx", False))

FAMILIES = {"bert": _bert, "roberta": _roberta, "xlm-roberta": _roberta, "camembert": _roberta,
            "distilbert": _distilbert, "gpt2": _gpt2}

# Options that change the result and are not computed here: key -> the only value accepted.
_ONLY = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}

def from_hf(raw):
    """Config from the dictionary of a config.json; ValueError for whatever would be computed wrongly."""
    try:
        kind = raw.get("model_type")
        need(kind in FAMILIES, f"model_type is {kind!r}; supported: {', '.join(FAMILIES)}")
        for key, only in _ONLY.items():
            need(raw.get(key) in (only, None), f"{key} is {raw.get(key)!r}; only {only!r} is supported")
        def get(key, *default):
            value = raw.get(key, *default)
            need(default or value is not None, f"{key!r} is missing ({kind}); there are: {', '.join(sorted(raw))}")
            return value
        cfg = Config(model_type=kind, n_vocab=get("vocab_size"), tied=get("tie_word_embeddings", True),
                     architecture=(get("architectures", None) or [""])[0], **FAMILIES[kind](get))
        for name in ("n_layers", "n_heads", "d_model", "d_mlp", "n_vocab", "n_ctx"):
            fits = type(value := getattr(cfg, name)) is int and value >= 1
            need(fits, f"{name} comes out as {value!r}; wanted a whole number of at least 1")
        fits = isinstance(cfg.eps, (int, float)) and 0 <= cfg.eps < 1
        need(fits, f"the norms' epsilon is {cfg.eps!r}; wanted a number from 0 to 1")
        need(0 <= cfg.pad_token < cfg.n_vocab, f"pad_token_id is {cfg.pad_token}; wanted 0 to {cfg.n_vocab - 1}")
        need(cfg.d_model % cfg.n_heads == 0, f"width {cfg.d_model} is not divisible by {cfg.n_heads} heads")
        need(cfg.act in ACTIVATIONS, f"unknown activation {cfg.act!r}; supported: {', '.join(ACTIVATIONS)}")
        return cfg
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        wrong = "" if type(error) is ValueError else "a value is of the wrong kind: "
        raise ValueError(f"config.json: {wrong}{error}") from error
