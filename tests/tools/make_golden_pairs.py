"""Makes the encoder-decoders of tests/golden, as make_golden.py makes the models of one stack.

Read downward: the table of variants, a random model, its files, what the library computes, claims.
Folders hold what those of make_golden.py do; text `i` has a `i.source` beside its `i.tokens`, and
what the variant gives: `i.source_valid i.valid` (hidden tokens), `i.mask i.enc_mask i.cross_mask`.
Names of points are those of minitx.POINTS: `enc_…` in the encoder, `cross_…` in cross-attention.

The library takes the statistics of T5's norms in float32, even in a float64 model, which moves the
outputs by 1e-6. The reference is made with these in float64; unpatched.safetensors has the outputs
of the library as it is, in float32.
"""

import contextlib
import re

import make_golden as single
import numpy as np
import torch
import transformers
from transformers.models.bart.modeling_bart import BartEncoder
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention, T5LayerNorm

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
    """Random values on the scale at which scores have a deviation near 2 and logits near 4."""
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


def without_shared(tensors, *_):
    """Only the copies."""
    return {name: t for name, t in tensors.items() if not name.endswith("shared.weight")}


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


def without_logits_bias(tensors, *_):
    """Files in which the bias of the logits, a buffer, is left out: it is zero."""
    return {name: t for name, t in tensors.items() if name != "final_logits_bias"}


DISK = {
    "F16": single.DISK["F16"],
    "BF16": single.DISK["BF16"],
    "own-head": with_own_head,
    "copies": with_copies,
    "no-shared": without_shared,
    "positions": with_positions,
    "cross-bias": with_cross_bias,
    "old-config": with_old_config,
    "generation": with_generation,
    "no-logits-bias": without_logits_bias,
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
    """Hooks that file what passes through the modules in `seen` under names of points."""
    heads = {side: n_heads(model.config, side) for side in STACKS}

    def file(side, point, layer, x):
        name = point if side == "decoder" or is_alone(model) else f"enc_{point}"
        if x.dim() == 3:  # Marian's positions come without a batch
            x = x[0]
        if point.removeprefix("cross_") in BY_HEADS:
            x = single.heads(x[None], heads[side])
        ending = f".{layer}" if layer else ""
        seen[name + ending] = x

    def hook(module, args, out, side, ends, layer):
        for point, x in zip(ends, (args[0], out)):
            if point:
                file(side, point, layer, x)
        if "norm" in type(module).__name__.lower():
            for what, x in statistics(module, args[0]).items():
                file(side, f"{ends[1]}_{what}", layer, x[0])

    for name, module in model.named_modules():
        side = "decoder" if "decoder" in name else "encoder"
        for end, *ends in HOOKS + MORE_HOOKS * every:
            if match := re.search(rf"(?:^|\.){end}$", name):
                layer = match[1] if match.groups() else ""
                module.register_forward_hook(
                    lambda m, args, out, given=(side, ends, layer): hook(m, args, out, *given)
                )
    if every:
        watch_first(model, seen)


def watch_first(model, seen):
    """What a stack begins with: rows of its word embedding, scaled, and T5's bias by distance."""
    for side in STACKS:
        stack = getattr(get_base(model), side, None)
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


def get_base(model):
    """The model without its head."""
    return getattr(model, "model", model)


def n_heads(config, side):
    """Heads of one of the two stacks."""
    return getattr(config, "num_heads", None) or getattr(config, f"{side}_attention_heads")


def statistics(module, x):
    """{"scale" and, in a LayerNorm, "mean": tensor} of a norm's input."""
    if isinstance(module, T5LayerNorm):
        return {"scale": (x.pow(2).mean(-1) + module.variance_epsilon).rsqrt()}
    scale = (x.var(-1, unbiased=False) + module.eps).rsqrt()
    return {"mean": x.mean(-1), "scale": scale}


def float64_norm(self, x):
    """T5's norm with its statistics in the precision of x (the library's are in float32)."""
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
    return self.weight * (x * scale)


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
    """A folder as the reference library reads it. AssertionError if it misses a tensor."""
    config = transformers.AutoConfig.from_pretrained(folder)
    saved_from = config.architectures[0]
    model, report = class_of(READ_AS.get(saved_from, saved_from)).from_pretrained(
        folder, config=config, dtype=dtype, attn_implementation="eager", output_loading_info=True
    )
    missing = report["missing_keys"] - {"final_logits_bias"}
    missing = [name for name in missing if not computed(config, name)]
    assert not missing and not report["mismatched_keys"], (folder, report)
    assert {p.dtype for p in model.parameters()} == {getattr(torch, dtype)}
    return model.eval()


def patched(model):
    """T5 with the statistics of its norms in float64, from now on."""
    for module in model.modules():
        if isinstance(module, T5LayerNorm):
            module.forward = float64_norm.__get__(module)
    return contextlib.nullcontext()


def is_alone(model):
    """Whether a model is an encoder alone."""
    return type(model).__name__ in ("BartEncoder", "T5EncoderModel", "T5ForTokenClassification")


def hidden_by(model, visible, *hidden):
    """The library's mask [1 1 T S]: 0 where a query sees a key, else the lowest number."""
    for x in hidden:
        visible = visible if x is None else visible & x
    lowest = torch.finfo(model.dtype).min
    return torch.zeros(visible.shape, dtype=model.dtype).masked_fill(~visible, lowest)


def run(model, text, seen):
    """{point: tensor without batch axis} of one text, alone and unpadded, by the library."""
    given = {name: torch.tensor(value)[None] for name, value in text.items()}
    if is_alone(model):
        out = model(given["tokens"], attention_mask=given.get("valid"), **OUTPUTS)
        tensors = seen | layers("hidden", out.hidden_states) | layers("pattern", out.attentions)
        return tensors | logits_of(model, out)
    out = run_pair(model, given)
    tensors = seen | layers("hidden", out.decoder_hidden_states)
    tensors |= layers("pattern", out.decoder_attentions)
    tensors |= layers("cross_pattern", out.cross_attentions)
    tensors |= layers("enc_hidden", out.encoder_hidden_states)
    tensors |= layers("enc_pattern", out.encoder_attentions)
    return tensors | logits_of(model, out)


def logits_of(model, out):
    """{"logits": what a task head gives}, empty without a head."""
    logits = single.logits_of(model, out)
    return {} if logits is None else {"logits": logits[0]}


OUTPUTS = {"output_hidden_states": True, "output_attentions": True, "return_dict": True}


def run_pair(model, given):
    """The library's outputs; the stacks one after the other, so that each mask reaches its own."""
    S, T = given["source"].shape[1], given["tokens"].shape[1]
    padding = given.get("source_valid")
    all_seen = torch.ones(1, 1, T, S, dtype=torch.bool)
    before = torch.ones(1, 1, T, T, dtype=torch.bool).tril()
    own = torch.ones(1, 1, S, S, dtype=torch.bool)
    enc_mask = hidden_by(model, own, padding, given.get("enc_mask"))
    cross_mask = hidden_by(model, all_seen, padding, given.get("cross_mask"))
    mask = hidden_by(model, before, given.get("valid"), given.get("mask"))
    more = {"encoder_outputs": model.get_encoder()(given["source"], enc_mask, **OUTPUTS)}
    more |= {"decoder_input_ids": given["tokens"], "decoder_attention_mask": mask}
    # a classifier looks in the source for the end token
    return model(given["source"], cross_mask, **more, **OUTPUTS)


def layers(name, tensors):
    """{"name.0": the first of these, without its batch axis, ...}."""
    return {f"{name}.{n}": x[0] for n, x in enumerate(tensors)}


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
STEPS = {"inside": patched, "watch": watch, "inputs": inputs, "run": run}
MAKER = single.Maker(SIZES, DISK, **MODEL, **STEPS, more=more, files=files)
