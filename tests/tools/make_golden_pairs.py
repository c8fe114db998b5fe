"""Makes the encoder-decoders of tests/golden, as make_golden.py makes the models of one stack.

Folders hold what those of make_golden.py do; text `i` has a `i.source` beside its `i.tokens`, and
what the variant gives: `i.source_valid i.valid` (hidden tokens), `i.mask i.enc_mask i.cross_mask`.
Names of points are those of minitx.POINTS: `enc_…` in the encoder, `cross_…` in cross-attention.

The library takes the statistics of T5's norms in float32, even in a float64 model, which moves the
outputs by 1e-6. The reference is made with these in float64; unpatched.safetensors has the outputs
of the library as it is, in float32.
"""

import re

import make_golden as single
import numpy as np
import torch
import transformers
from make_golden_places import in_float64
from transformers.models.bart.modeling_bart import BartEncoder
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

BART = dict(
    vocab_size=61,
    d_model=18,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=3,
    encoder_ffn_dim=30,
    decoder_ffn_dim=26,
    max_position_embeddings=12,
    pad_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=2,
)
MARIAN = BART | dict(
    activation_function="swish",
    scale_embedding=True,
    pad_token_id=52,
    eos_token_id=0,
    decoder_start_token_id=52,
)
T5 = dict(
    vocab_size=61,
    d_model=18,
    d_kv=5,
    num_heads=3,
    d_ff=30,
    num_layers=2,
    relative_attention_num_buckets=8,
    relative_attention_max_distance=9,
    decoder_start_token_id=0,
)
SIZES = {"Bart": BART, "Marian": MARIAN, "T5": T5}
LENGTHS = {"bart": ((12, 9), (5, 8)), "marian": ((12, 9), (5, 8)), "t5": ((16, 13), (6, 11))}


# --- a random model


def class_of(name):
    """A class of the library; BART's encoder is not among those that it exports."""
    return getattr(transformers, name, BartEncoder)


def learned(model):
    """(name, tensor) of all parameters, and of the bias of the logits, which is a buffer."""
    tensors = *model.named_parameters(), *model.named_buffers()
    return [(name, x) for name, x in tensors if not computed(model.config, name)]


def computed(config, name):
    """Whether an array is not learned: Marian's positions."""
    return config.model_type == "marian" and "embed_positions" in name


def draw(name, shape, config, rng):
    if "norm" in name:
        return rng.normal(1.0 if name.endswith("weight") else 0.0, 0.2, shape)
    if len(shape) == 1 or "relative_attention_bias" in name or "final_logits_bias" in name:
        return rng.normal(0.0, 1.0 if config.model_type == "t5" else 0.3, shape)
    if re.search(r"shared|embed_", name):
        return rng.normal(0.0, 0.8, shape)
    gain = 3 if "classification_head" in name else 1.4
    if config.model_type == "t5" and re.search(r"\.[qk]\.weight", name):
        gain = 0.9  # scores are not divided by the root of the width
    if re.search(r"encoder_attn\.[qk]|EncDecAttention\.[qk]", name):
        gain *= 1.4  # an encoder's last streams are more alike than words
    return rng.normal(0.0, gain / shape[1] ** 0.5, shape)


# --- its files

STACKS = ("encoder", "decoder")


def with_copies(tensors, config, _):
    """The shared word embedding written out again under the names of all that are tied to it."""
    shared = next(name for name in tensors if name.endswith("shared.weight"))
    prefix = shared.removesuffix("shared.weight")
    class_name = config["architectures"][0]
    stacks = STACKS[:1] if class_name == "T5EncoderModel" else STACKS
    copies = [f"{prefix}{stack}.embed_tokens.weight" for stack in stacks]
    if re.search("Generation|MT", class_name) and "lm_head.weight" not in tensors:
        copies.append("lm_head.weight")
    return tensors | {name: tensors[shared].clone() for name in copies}


def with_positions(tensors, config, _):
    """Marian's computed positions, as files of older versions hold them."""
    sizes = config["max_position_embeddings"], config["d_model"]
    table = MarianSinusoidalPositionalEmbedding(*sizes).create_weight()
    names = (f"model.{stack}.embed_positions.weight" for stack in STACKS)
    return tensors | {name: table.clone() for name in names}


def with_cross_bias(tensors, config, rng):
    """A bias of cross-attention, which the first version of T5 had and nothing uses."""
    values = rng.normal(size=(config["relative_attention_num_buckets"], config["num_heads"]))
    name = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    return tensors | {name: torch.tensor(values, dtype=torch.float32)}


def with_own_head(tensors, config, rng):
    """An output embedding of its own, as in T5 v1.1."""
    values = rng.normal(0, 0.5, (config["vocab_size"], config["d_model"]))
    return tensors | {"lm_head.weight": torch.tensor(values, dtype=torch.float32)}


def with_old_config(tensors, config, _):
    """How an untied T5 was described before `scale_decoder_outputs`."""
    del config["scale_decoder_outputs"]
    config["tie_word_embeddings"] = False
    return tensors


def with_generation(tensors, config, _):
    """How to generate, as the configs of old files say it."""
    more = dict(num_beams=4, max_length=62, length_penalty=2.0, early_stopping=True)
    more |= dict(forced_bos_token_id=7, bad_words_ids=[[5]], no_repeat_ngram_size=3)
    config |= more | dict(task_specific_params={"summarization": {"num_beams": 4}})
    return tensors


DISK = {
    "F16": single.DISK["F16"],
    "BF16": single.DISK["BF16"],
    "own-head": with_own_head,
    "copies": with_copies,
    "no-shared": single.without(r"shared\.weight$"),  # only the copies
    "positions": with_positions,
    "cross-bias": with_cross_bias,
    "old-config": with_old_config,
    "generation": with_generation,
    "no-logits-bias": single.without("final_logits_bias"),  # it is zero
}


# --- what the reference library computes

# End of a module's name, and the points that come in and go out (None: neither); in brackets the
# layer. Its stack is the word "encoder" or "decoder" in the name.
LAYER = r"(?:layers|block)\.(\d+)\."
HOOKS = [
    (LAYER + r"(?:self_attn\.q_proj|layer\.0\.SelfAttention\.q)", None, "q"),
    (LAYER + r"(?:self_attn\.k_proj|layer\.0\.SelfAttention\.k)", None, "k"),
    (LAYER + r"(?:self_attn\.v_proj|layer\.0\.SelfAttention\.v)", None, "v"),
    (LAYER + r"(?:encoder_attn\.q_proj|layer\.1\.EncDecAttention\.q)", None, "cross_q"),
    (LAYER + r"(?:encoder_attn\.k_proj|layer\.1\.EncDecAttention\.k)", None, "cross_k"),
    (LAYER + r"(?:encoder_attn\.v_proj|layer\.1\.EncDecAttention\.v)", None, "cross_v"),
]
MORE_HOOKS = [
    (r"embed_positions", None, "pos_embed"),
    (r"layernorm_embedding", None, "ln_embed"),
    (LAYER + r"(?:self_attn\.out_proj|layer\.0\.SelfAttention\.o)", "z", "attn_out"),
    (LAYER + r"(?:encoder_attn\.out_proj|layer\.1\.EncDecAttention\.o)", "cross_z", "cross_out"),
    (LAYER + r"self_attn_layer_norm", None, "ln1"),
    (LAYER + r"encoder_attn_layer_norm", None, "ln_cross"),
    (LAYER + r"final_layer_norm", None, "ln2"),
    (LAYER + r"layer\.0\.layer_norm", None, "ln1"),
    (r"decoder\." + LAYER + r"layer\.1\.layer_norm", "resid_mid", "ln_cross"),
    (r"decoder\." + LAYER + r"layer\.2\.layer_norm", "resid_cross", "ln2"),
    (r"encoder\." + LAYER + r"layer\.1\.layer_norm", "resid_mid", "ln2"),
    (r"(?:en|de)coder\.final_layer_norm", None, "ln_final"),
    (LAYER + r"(?:fc1|layer\.\d\.DenseReluDense\.(?:wi|wi_0))", None, "pre"),
    (LAYER + r"layer\.\d\.DenseReluDense\.wi_1", None, "pre_linear"),
    (LAYER + r"(?:fc2|layer\.\d\.DenseReluDense\.wo)", "post", "mlp_out"),
]
BY_HEADS = ("q", "k", "v", "z")


def watch(model, every, seen):
    heads = {side: n_heads(model.config, side) for side in STACKS}

    def file(name, points, ending, module, args, out):
        side = "decoder" if "decoder" in name else "encoder"
        begins = "" if side == "decoder" or is_alone(model) else "enc_"
        for point, x in zip(points, (args[0], out)):
            if point and point.removeprefix("cross_") in BY_HEADS:
                seen[begins + point + ending] = single.heads(x, heads[side])
            elif point:
                # Marian's positions come without a batch
                seen[begins + point + ending] = x[0] if x.dim() == 3 else x
        single.file_statistics(module, args[0][0], begins + points[1], ending, seen)

    single.hooked(model, HOOKS + MORE_HOOKS * every, file)
    if every:
        watch_first(model, seen)


def watch_first(model, seen):
    """What a stack begins with: rows of its word embedding, scaled, and T5's bias by distance."""
    for side in STACKS:
        stack = getattr(getattr(model, "model", model), side, None)
        begins = "enc_" if side == "encoder" and not is_alone(model) else ""
        if stack is None:
            continue
        factor = getattr(stack, "embed_scale", 1.0)  # Marian multiplies outside of the module

        def rows(module, args, out, name=f"{begins}embed", factor=factor):
            seen[name] = out[0] * factor

        def bias(module, args, out, name=f"{begins}pos_bias"):
            seen[name] = out[1][0]

        stack.embed_tokens.register_forward_hook(rows)
        if model.config.model_type == "t5":
            stack.block[0].layer[0].SelfAttention.register_forward_hook(bias)


def n_heads(config, side):
    return getattr(config, "num_heads", None) or getattr(config, f"{side}_attention_heads")


def inputs(model, words, rng):
    """Two pairs of texts, the first as long as the model can read, and what is given besides."""
    config = model.config
    n_vocab = getattr(config, "decoder_vocab_size", None) or config.vocab_size
    texts = []
    for S, T in LENGTHS[config.model_type]:
        text = dict(source=rng.integers(5, config.vocab_size - 1, S))
        text["tokens"] = rng.integers(5, n_vocab - 1, T)
        text["tokens"][0] = config.decoder_start_token_id
        if "pads" in words:  # inside a text: here a token like any other
            text["source"][[1, 3]] = text["tokens"][[2, 5]] = config.pad_token_id
        if "classes" in words:  # the library's own target: the source, shifted
            text["source"][-1] = config.eos_token_id
            start = [config.decoder_start_token_id]
            text["tokens"] = np.concatenate([start, text["source"][:-1]])
        if "holes" in words:  # hidden tokens inside; T5 counts distances in columns
            text["source_valid"] = ~np.isin(np.arange(S), (1, 4))
            text["valid"] = ~np.isin(np.arange(T), (3, 4))  # not the first, which sees itself alone
        if "masks" in words:
            text |= masks(T, S, rng)
        texts.append(text)
    return [*map(alone, texts)] if is_alone(model) else texts


def masks(T, S, rng):
    """Which keys each query may see: in self-attention itself always, of a source its token 2."""
    given = {}
    for name, n in (("mask", T), ("enc_mask", S)):
        given[name] = (rng.random((n, n)) < 0.6) | np.eye(n, dtype=bool)
    given["cross_mask"] = rng.random((T, S)) < 0.5
    given["cross_mask"][:, 2] = True
    return given


def alone(text):
    """The texts of an encoder alone: sources are its tokens."""
    names = {"source": "tokens", "source_valid": "valid"}
    return {ours: text[name] for name, ours in names.items() if name in text}


# published BARTs are saved without the head that they were trained with, and used with it
READ_AS = {"BartModel": "BartForConditionalGeneration"}


def library_model(folder, dtype):
    """A folder as the reference library reads it."""
    config = transformers.AutoConfig.from_pretrained(folder)
    saved_from = config.architectures[0]
    missing = "^final_logits_bias$" + "|embed_positions" * (config.model_type == "marian")
    cls = class_of(READ_AS.get(saved_from, saved_from))
    model = single.loaded(cls, folder, missing, config=config, dtype=dtype)
    assert {p.dtype for p in model.parameters()} == {getattr(torch, dtype)}
    return model


def is_alone(model):
    return type(model).__name__ in ("BartEncoder", "T5EncoderModel", "T5ForTokenClassification")


def run(model, text, seen):
    given = {name: torch.tensor(value)[None] for name, value in text.items()}
    if is_alone(model):
        out = model(given["tokens"], attention_mask=given.get("valid"), **single.OUTPUTS)
        return seen | single.of_output(model, out)
    out = run_pair(model, given)
    tensors = seen | single.layers("hidden", out.decoder_hidden_states)
    tensors |= single.layers("pattern", out.decoder_attentions)
    tensors |= single.layers("cross_pattern", out.cross_attentions)
    tensors |= single.layers("enc_hidden", out.encoder_hidden_states)
    tensors |= single.layers("enc_pattern", out.encoder_attentions)
    return tensors | single.head(model, out)


def run_pair(model, given):
    """The library's outputs; the stacks one after the other, so that each mask reaches its own."""
    S, T = given["source"].shape[1], given["tokens"].shape[1]
    padding = given.get("source_valid")
    all_seen = torch.ones(1, 1, T, S, dtype=torch.bool)
    own = torch.ones(1, 1, S, S, dtype=torch.bool)
    enc_mask = single.hiding(model.dtype, own, padding, given.get("enc_mask"))
    cross_mask = single.hiding(model.dtype, all_seen, padding, given.get("cross_mask"))
    mask = single.visible(given, True, model.dtype)
    encoded = model.get_encoder()(given["source"], enc_mask, **single.OUTPUTS)
    more = {"encoder_outputs": encoded, "decoder_input_ids": given["tokens"]}
    # a classifier looks in the source for the end token
    return model(given["source"], cross_mask, **more, decoder_attention_mask=mask, **single.OUTPUTS)


# --- what depends on positions alone

BUCKETS = (32, 128), (8, 9), (13, 11), (32, 40), (64, 500), (4, 100)  # how many, largest distance
DISTANCES = torch.arange(-600, 601)  # key - query
TABLES = (12, 18), (12, 15), (600, 8), (3, 1)  # positions, width


def files(golden):
    """positions.safetensors: buckets of distances "N.MAX.encoder|decoder", tables "N.WIDTH"."""
    arrays = {}
    for n, largest in BUCKETS:
        for side in STACKS:
            rows = T5Attention._relative_position_bucket(
                DISTANCES, bidirectional=side == "encoder", num_buckets=n, max_distance=largest
            )
            arrays[f"{n}.{largest}.{side}"] = rows.numpy().astype(np.uint8)
    for n, width in TABLES:
        table = MarianSinusoidalPositionalEmbedding(n, width).create_weight()
        arrays[f"{n}.{width}"] = table.numpy()
    (golden / "positions").mkdir(exist_ok=True)
    single.save_arrays(arrays, golden / "positions/positions.safetensors")


def more(folder, arrays, maker):
    """What the library rounds: T5 alone."""
    return single.unpatched(folder, arrays, maker) if folder.name.startswith("t5") else {}


MODEL = {"class_of": class_of, "learned": learned, "draw": draw, "load": library_model}
STEPS = {"inside": in_float64, "watch": watch, "inputs": inputs, "run": run}
MAKER = single.Maker(SIZES, DISK, **MODEL, **STEPS, more=more, files=files)
