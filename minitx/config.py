"""What one checkpoint is: its sizes and the few choices in which families differ, as plain values.

The files in loading/families/ say which key of a config.json gives which of these values.
"""

from dataclasses import dataclass
from functools import cached_property

from .config_parts import NOTHING_SET, Generation, Picture, Rotary
from .machine import show


@dataclass(frozen=True, repr=False)
class Config(show.Shown):
    """Sizes and choices of one model; the default of a choice is what most families share."""

    model_type: str
    n_layers: int
    n_heads: int
    d_model: int
    d_mlp: int
    n_vocab: int  # of a model of pictures: numbers in the row of a patch
    n_ctx: int  # longest input, in tokens
    n_pos: int  # rows of the position table, `offset : offset + n_ctx` of which are read; 0: none
    n_types: int  # rows of the token-type table; 0: none
    eps: float  # added to the variance by every norm
    act: str  # activation of the MLP
    head_act: str | None = None  # activation inside the task head
    pre_norm: bool = False  # norms before attention and MLP (GPT-2), or after the addition (BERT)
    norm_residual: bool = False  # what is added to is the normed stream (some BLOOM)
    parallel: bool = False  # attention and MLP read the same stream (GPT-NeoX)
    rms_norm: bool = False  # norms take no mean off and have no bias (T5)
    gated: bool = False  # the MLP is act(x W_gate) (x W_in) (T5 v1.1)
    qk_norm: bool = False  # each head's queries and keys are normed (Qwen3)
    qk_norm_all: bool = False  # queries, and keys, are normed for all heads together (OLMo 2)
    attn_bias: bool = True  # attention has biases, where a family may leave them out
    mlp_bias: bool = True  # so has the MLP
    causal: bool = False  # a query sees no later key
    windows: tuple[int | None, ...] = ()  # of each layer: the farthest key seen; None: all; (): so
    offset: int = 0  # row of the position table that the first token reads
    sinusoids: bool = False  # the position table is computed, not learned (Marian)
    n_buckets: int = 0  # rows of W_rel, for distances of key and query (T5); 0: there is none
    max_distance: int = 0  # all distances from here on are in the last bucket
    alibi: bool = False  # scores fall with the distance (BLOOM)
    pos_terms: tuple[str, ...] = ()  # of the scores beside q.k: "c2p", "p2c" (DeBERTa)
    n_distances: int = 0  # rows of W_dist, for distances of query and key; 0: there is none
    log_distances: bool = False  # far ones share rows, up to max_distance (DeBERTa v2)
    own_distances: bool = True  # layers have W_Q_pos, W_K_pos; False: W_Q, W_K read W_dist too
    norm_distances: bool = False  # rows of W_dist are normed
    rotary: tuple[Rotary | None, ...] = ()  # of each layer; (): queries and keys are not turned
    no_position_id: int | None = None  # token id that takes no position (RoBERTa's padding)
    pad_id: int = 0  # token id that fills up a batch
    default_type: int | None = None  # token type where none is given; None: nothing is added
    d_kv: int = 0  # width of a head; 0: d_model / n_heads
    d_embed: int = 0  # width of the embeddings, which W_map maps (ALBERT); 0: d_model, no W_map
    shared_layers: tuple[tuple[int, ...], ...] = ()  # numbers of each layer's tensors; (): its own
    kv_heads: int = 0  # heads of keys and values, each for several of queries; 0: n_heads
    embed_scale: float = 1.0  # factor on rows of the word embedding
    unembed_scale: float = 1.0  # factor on the stream before W_U
    write_scale: float = 1.0  # factor in what is written to the stream; arrays have it (Granite)
    qkv_limit: float = 0.0  # no number of queries, keys, values is beyond it (OLMo); 0: none
    scale_attn: bool = True  # scores are divided by sqrt(d_head)
    d_scale: float = 0.0  # the number in place of d_head there (Gemma 2); 0: d_head
    score_cap: float = 0.0  # scores are cap tanh(scores / cap) (Gemma 2); 0: as they are
    logit_cap: float = 0.0  # so are the logits over the vocabulary
    scale_by_layer: bool = False  # scores are divided by layer + 1
    tied: bool = True  # W_U is W_E transposed where the file has no output embedding
    architecture: str = ""  # the class name that the checkpoint was saved from
    task_head: str | None = None  # a name in heads.py, such as "masked"; known from the tensors
    labels: tuple[str, ...] = ()  # of the head's classes; (): they have numbers
    no_head: str = ""  # why a head that the file holds is not read
    mean_pooled: bool = False  # a head for a whole text reads the mean of its tokens
    read_at: str = (
        ""  # which token such a head reads, of heads.READ_AT; "": last if causal, or first
    )
    read_id: int | None = None  # the id that determines it: of padding, or of the end
    head_reads: tuple[str, ...] = ()  # what a head for a picture reads, of heads.READS; (): class
    picture: Picture | None = None  # how pictures are cut up; None: the model reads token ids
    text: "Config | None" = None  # of a model of pictures and texts (CLIP): its text side
    encoder: "Config | None" = None  # of an encoder-decoder; the other fields are the decoder's
    start_id: int | None = None  # the decoder's first token
    end_id: int | None = None  # ends a text that is generated
    generation: Generation = NOTHING_SET  # the folder's settings of generating
    _summary = show.config

    @cached_property
    def d_head(self) -> int:
        """Width of a head."""
        return self.d_kv or self.d_model // self.n_heads

    @property
    def n_kv(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.n_heads

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """How a token's position enters, by the names of positions.py; (): not at all."""
        table = "sinusoidal" if self.sinusoids else "learned"
        kinds = {table: self.n_pos, "rotary": self.rotary, "buckets": self.n_buckets}
        kinds |= {"alibi": self.alibi, "disentangled": self.n_distances}
        return tuple(name for name, present in kinds.items() if present)

    @property
    def own_c2p(self) -> bool:
        """Whether layers have W_K_pos."""
        return self.own_distances and "c2p" in self.pos_terms

    @property
    def own_p2c(self) -> bool:
        """Whether layers have W_Q_pos."""
        return self.own_distances and "p2c" in self.pos_terms

    def attn_scale(self, layer: int) -> float:
        """The factor on q.k in a layer: 1/sqrt(d_head) (Vaswani et al. 2017, 3.2.1)."""
        scale = (self.d_scale or self.d_head) ** -0.5 if self.scale_attn else 1.0
        return scale / (layer + 1) if self.scale_by_layer else scale
