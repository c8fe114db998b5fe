"""Makes tests/golden: tiny random models and what the reference library computes with them.

    python tests/tools/make_golden.py [VARIANT ...]    all, or those whose names begin so

The variants stand in variants.json, by their maker; a file make_golden_*.py has what its makers do
otherwise than the models of one stack here. Everything about a model is drawn at random, biases and
norms too: a zero bias or a unit norm hides a swapped name. Weights are scaled so that attention is
neither flat nor saturated.

A folder holds config.json and the safetensors as a checkpoint would, and reference.safetensors: per
text `i` the inputs `i.tokens` (`i.types i.positions i.valid i.mask`), and float64 outputs without a
batch axis: `i.logits`, `i.hidden.n` and `i.pattern.n` as the library returns them, and by hooks on
its modules `i.q.n i.k.n i.v.n`; where the variant asks for `every` point, the others too, under
their names in `minitx.POINTS`.

losses.safetensors holds documents `i.tokens` and the library's loss of each, `i.window.stride`, in
nats per token; `batch`: its loss of all that fit one window, padded.
"""

import contextlib
import copy
import importlib
import json
import re
import shutil
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

GOLDEN = Path(__file__).parents[1] / "golden"

BERT = dict(
    vocab_size=61,
    hidden_size=18,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=30,
    max_position_embeddings=12,
    type_vocab_size=2,
    layer_norm_eps=1e-12,
    pad_token_id=0,
)
ROBERTA = BERT | dict(
    max_position_embeddings=14, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1
)
DISTILBERT = dict(
    vocab_size=61, dim=18, n_layers=2, n_heads=3, hidden_dim=30, max_position_embeddings=12
)
GPT2 = dict(
    vocab_size=61,
    n_embd=18,
    n_layer=2,
    n_head=3,
    n_positions=12,
    n_inner=30,
    eos_token_id=60,
    bos_token_id=60,
)
ELECTRA = BERT | dict(embedding_size=18)
MPNET = {key: x for key, x in ROBERTA.items() if key != "type_vocab_size"}
SIZES = {"Bert": BERT, "DistilBert": DISTILBERT, "GPT2": GPT2, "Electra": ELECTRA, "MPNet": MPNET}
SIZES |= dict.fromkeys(("Roberta", "XLMRoberta", "Camembert"), ROBERTA)
INPUTS = ("tokens", "types", "positions", "valid", "mask")
INPUTS += ("source", "source_valid", "enc_mask", "cross_mask")  # of an encoder-decoder
# positions begin in row pad + 1 and skip pads
PADS_TAKE_NO_ROW = ("roberta", "xlm-roberta", "camembert", "mpnet")


# What config.json of the oldest files on the hub says; what it leaves out a reader has to know.
HUB_CONFIG = """
    architectures model_type vocab_size pad_token_id layer_norm_eps hidden_act hidden_size
    num_hidden_layers num_attention_heads intermediate_size max_position_embeddings type_vocab_size
    activation dim hidden_dim n_layers n_heads sinusoidal_pos_embds
    activation_function layer_norm_epsilon n_embd n_layer n_head n_positions
    embedding_size num_hidden_groups inner_group_num
""".split()


# --- a random model


def build(class_name, changes, rng, maker):
    """A model of the library with every parameter random; `architectures` is set."""
    cls = maker.class_of(class_name)
    family = max((name for name in maker.sizes if class_name.startswith(name)), key=len)
    config = cls.config_class(**copy.deepcopy(maker.sizes[family] | changes))
    config.architectures = [class_name]
    model = cls(config).eval()
    for name, x in maker.learned(model):
        x.data = torch.tensor(maker.draw(name, x.shape, config, rng), dtype=torch.float32)
    return model


def class_of(name):
    return getattr(transformers, name)


def learned(model):
    """(name, tensor) of what is drawn of a model."""
    return model.named_parameters()


def draw(name, shape, config, rng):
    """Random values on the scale at which scores have a deviation near 2 and logits near 4."""
    if re.search(r"(?i)(layer_?norm|ln_\w+)\.\w+$", name):
        return rng.normal(1.0 if name.endswith("weight") else 0.0, 0.2, shape)
    if len(shape) == 1:
        return rng.normal(0.0, 0.3, shape)
    if re.search(r"embeddings\.weight|wte|wpe", name):
        return rng.normal(0.0, 0.8, shape)
    gain = 1.4 if getattr(config, "scale_attn_weights", True) else 0.8
    # few outputs: keep them off zero
    gain *= 3 if re.match("classifier|score|qa_outputs|discriminator", name) else 1
    # Conv1D is stored [in, out]
    fan_in = shape[0] if re.search(r"c_attn|c_proj|c_fc", name) else shape[1]
    return rng.normal(0.0, gain / fan_in**0.5, shape)


def drawn(name, shape, config, rng, *, norm, words, head, gains=(1.4, 3)):
    """The same, by how the names of norms, embeddings and heads, with the second gain, look."""
    if re.search(norm, name):
        middle = name.endswith("weight") and not config.model_type.startswith("gemma")
        return rng.normal(float(middle), 0.2, shape)
    if len(shape) == 1:
        return rng.normal(0.0, 0.3, shape)
    if re.search(words, name):
        return rng.normal(0.0, 0.8, shape)
    gain = gains[bool(re.match(head, name))]
    return rng.normal(0.0, gain / shape[1] ** 0.5, shape)


# --- its files


def save(model, folder, disk, rng, changes):
    """Save as the library does, then change the files as the words of `disk` say.

    changes: {word: change}.
    """
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    words = disk.split()
    for word in words:
        if word in changes:
            tensors = changes[word](tensors, config, rng)
    tensors = {name: t.contiguous() for name, t in tensors.items()}
    if "hub-config" in words:
        config = {key: config[key] for key in HUB_CONFIG if key in config}
    else:
        first = words[0] if words else ""
        config["dtype"] = {"F16": "float16", "BF16": "bfloat16"}.get(first, "float32")
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    write_shards(folder, tensors, 3 if "shards" in words else 1)


def write_shards(folder, tensors, n):
    """One model.safetensors, or n of them with the index that names each tensor's file."""
    if n == 1:
        return save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    weight_map = {}
    for i in range(n):
        part, file = sorted(tensors)[i::n], f"model-{i + 1:05}-of-{n:05}.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    index = {
        "metadata": {"total_size": sum(t.nbytes for t in tensors.values())},
        "weight_map": weight_map,
    }
    (folder / "model.safetensors.index.json").write_text(
        json.dumps(index, indent=1, sort_keys=True) + "\n"
    )


def renamed(old, new):
    return lambda tensors, *_: {re.sub(old, new, name): t for name, t in tensors.items()}


def without(names):
    """A change of files that leaves tensors of these names out."""
    return lambda tensors, *_: {k: t for k, t in tensors.items() if not re.search(names, k)}


# of a head's output matrix, its bias, and the word embedding that it is tied to
WORDS = "embeddings.word_embeddings.weight"
HEAD_NAMES = {
    "bert": ("cls.predictions.decoder.weight", "cls.predictions.bias", f"bert.{WORDS}"),
    "roberta": ("lm_head.decoder.weight", "lm_head.bias", f"roberta.{WORDS}"),
    "distilbert": ("vocab_projector.weight", None, f"distilbert.{WORDS}"),
    "gpt2": ("lm_head.weight", None, "transformer.wte.weight"),
}


def with_decoder(tensors, config, _):
    """The tied output matrix written out a second time."""
    decoder, _, words = HEAD_NAMES[config["model_type"]]
    return tensors | {decoder: tensors[words].clone()}


def with_own_decoder(tensors, config, rng):
    """An output matrix of its own in a file whose config calls it tied: the file wins."""
    decoder, _, words = HEAD_NAMES[config["model_type"]]
    values = rng.normal(0, 0.3, tensors[words].shape)
    return tensors | {decoder: torch.tensor(values, dtype=torch.float32)}


def with_bias_alias(tensors, config, _):
    decoder, bias, _ = HEAD_NAMES[config["model_type"]]
    return tensors | {decoder.replace("weight", "bias"): tensors[bias].clone()}


def only_bias_alias(tensors, config, _):
    tensors = with_bias_alias(tensors, config, _)
    del tensors[HEAD_NAMES[config["model_type"]][1]]
    return tensors


def with_buffers(tensors, config, _):
    """What old files hold that is no weight; GPT-2's causal mask is even called `attn.bias`."""
    if config["model_type"] != "gpt2":
        name = f"{config['model_type']}.embeddings.position_ids"
        return tensors | {name: torch.arange(config["max_position_embeddings"])[None]}
    n = config["n_positions"]
    prefix = "transformer." if "transformer.wte.weight" in tensors else ""
    mask = torch.ones(n, n).tril()[None, None]
    layers = [f"{prefix}h.{i}.attn." for i in range(config["n_layer"])]
    masks = {layer + "bias": mask.clone() for layer in layers}
    return tensors | masks | {layer + "masked_bias": torch.tensor(-1e4) for layer in layers}


def with_gamma(tensors, *_):
    """A norm's arrays by their first names."""
    tensors = renamed(r"(LayerNorm)\.weight$", r"\1.gamma")(tensors)
    return renamed(r"(LayerNorm)\.bias$", r"\1.beta")(tensors)


DISK = {
    "F16": lambda tensors, *_: {name: t.half() for name, t in tensors.items()},
    "BF16": lambda tensors, *_: {name: t.bfloat16() for name, t in tensors.items()},
    "gamma": with_gamma,
    "prefix": renamed(r"^", "bert."),
    "no-prefix": renamed(r"^transformer\.", ""),
    "no-pooler": without("pooler"),  # that nothing here reads
    "decoder": with_decoder,
    "own-decoder": with_own_decoder,
    "bias-alias": with_bias_alias,
    "only-alias": only_bias_alias,
    "buffers": with_buffers,
}


# --- what the reference library computes

# end of a module's name, the layer in brackets, and the point that its output is
LAYER = r"(?:layer|h)\.(\d+)\."
HOOKS = [
    (LAYER + r"attention\.(?:self\.query|q_lin|attn\.q)", "q"),
    (LAYER + r"attention\.(?:self\.key|k_lin|attn\.k)", "k"),
    (LAYER + r"attention\.(?:self\.value|v_lin|attn\.v)", "v"),
    (LAYER + r"attn\.c_attn", "qkv"),
]
MORE_HOOKS = [
    (r"relative_attention_bias", "pos_bias"),
    (r"word_embeddings|wte", "embed"),
    (r"position_embeddings|wpe", "pos_embed"),
    (r"token_type_embeddings", "type_embed"),
    (r"embeddings\.LayerNorm", "ln_embed"),
    (LAYER + r"(?:attention\.(?:output\.dense|out_lin|attn\.o)|attn\.c_proj)", "attn_out"),
    (LAYER + r"(?:attention\.(?:output\.)?LayerNorm|sa_layer_norm|ln_1)", "ln1"),
    (LAYER + r"(?:output\.LayerNorm|output_layer_norm|ln_2)", "ln2"),
    (LAYER + r"(?:intermediate\.dense|ffn\.lin1|mlp\.c_fc)", "pre"),
    (LAYER + r"(?:intermediate|ffn\.activation|mlp\.act)", "post"),
    (LAYER + r"(?:output\.dense|ffn\.lin2|mlp\.c_proj)", "mlp_out"),
    (r"ln_f", "ln_final"),
]


def by_root(x):
    """As the models of one stack have it: torch.rsqrt may round otherwise."""
    return 1 / x.sqrt()


def statistics(module, x, inverse=torch.rsqrt):
    """{"scale" and, in a LayerNorm, "mean": tensor} of a norm's input."""
    kind = type(module).__name__
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", 1e-5))  # Olmo's has no name
    if "RMS" in kind or kind == "T5LayerNorm":
        return {"scale": (x.pow(2).mean(-1) + eps).rsqrt()}
    if kind == "DebertaLayerNorm":
        inverse = torch.rsqrt
    return {"mean": x.mean(-1), "scale": inverse(x.var(-1, unbiased=False) + eps)}


def file_statistics(module, x, point, ending, seen, inverse=torch.rsqrt):
    """The numbers of a norm, if the module is one, of its input x."""
    if "norm" in type(module).__name__.lower():
        numbers = statistics(module, x, inverse)
        seen.update({f"{point}_{what}{ending}": number for what, number in numbers.items()})


def heads(x, n_heads):
    """[1 T D] -> [H T d]."""
    return x[0].unflatten(-1, (n_heads, -1)).transpose(0, 1)


def watch(model, every, seen):
    """Hooks that file what passes through the modules in `seen` under names of points."""
    n_heads = model.config.num_attention_heads

    def file(_, points, ending, module, args, out):
        (point,) = points
        if point == "qkv":
            for p, part in zip("qkv", out.chunk(3, -1)):
                seen[p + ending] = heads(part, n_heads)
        elif point in ("q", "k", "v"):
            seen[point + ending] = heads(out, n_heads)
        else:
            seen[point + ending] = out.permute(2, 0, 1) if point == "pos_bias" else out[0]
            file_statistics(module, args[0][0], point, ending, seen, by_root)
            if point == "attn_out":
                seen[f"z{ending}"] = heads(args[0], n_heads)

    hooked(model, HOOKS + MORE_HOOKS * every, file)


def hooked(model, rows, file):
    """Hooks file(name, points, ending, module, args, out) on modules whose names end so."""
    handles = []
    for name, module in model.named_modules():
        for end, *points in rows:
            if match := re.search(rf"(?:^|\.)(?:{end})$", name):
                ending = f".{match[1]}" if match.groups() else ""
                hook = partial(file, name, points, ending)
                handles.append(module.register_forward_hook(hook))
    return handles


def pad_id(config):
    """The id that takes no position where there is one; in MPNet it is 1, whatever the config."""
    return 1 if config.model_type == "mpnet" else getattr(config, "pad_token_id", None)


def inputs(model, words, rng):
    """Two texts, one as long as the model can read, and what the variant gives besides tokens."""
    config = model.config
    pad = pad_id(config)
    n_ctx = config.max_position_embeddings
    if config.model_type in PADS_TAKE_NO_ROW:
        n_ctx -= pad + 1
    texts = [dict(tokens=rng.integers(5, 60, n)) for n in (n_ctx, 7)]
    if "pads" in words:
        # in the middle of a text; for RoBERTa they take no position
        texts[1]["tokens"][[2, 3]] = pad
    return given(config, texts, words, rng, lambda n: n_ctx)


def given(config, texts, words, rng, n_places):
    """The texts with what the variant gives besides tokens; n_places: of n tokens."""
    for text in texts:
        n = len(text["tokens"])
        if "types" in words:
            text["types"] = rng.integers(0, getattr(config, "type_vocab_size", 60), n)
        if "positions" in words:
            text["positions"] = rng.permutation(n_places(n))[:n]
        if "holes" in words:  # hidden tokens inside a text; the library lets them keep their places
            text["valid"] = ~np.isin(np.arange(n), (2, 3))
            if config.model_type != "bloom":  # which counts valid tokens
                text["positions"] = np.arange(n)
        if "mask" in words:  # which keys each query may see, itself always
            text["mask"] = (rng.random((n, n)) < 0.6) | np.eye(n, dtype=bool)
    return texts


def library_model(folder, dtype):
    """A folder as the reference library reads it."""
    config = transformers.AutoConfig.from_pretrained(folder)
    if dtype == "float64":  # only another order of arithmetic, and for float32: refused here
        config.reorder_and_upcast_attn = False
    cls = getattr(transformers, (config.architectures or [""])[0], transformers.AutoModel)
    return loaded(cls, folder, "pooler", config=config, dtype=dtype)


def loaded(cls, folder, missing, **more):
    """A model of a class. AssertionError if it lacks tensors but for names that match missing."""
    how = {"attn_implementation": "eager", "output_loading_info": True}
    model, report = cls.from_pretrained(folder, **how, **more)
    lacking = [name for name in report["missing_keys"] if not re.search(missing, name)]
    assert not lacking and not report["mismatched_keys"], (folder, report)
    return model.eval()


@torch.no_grad()
def reference(folder, words, rng, maker):
    """{name: array} of every input and output, of the very files that minitx will read."""
    model = maker.load(folder, "float64")
    seen, arrays = {}, {}
    with maker.inside(model):
        maker.watch(model, "every" in words, seen)
        for i, text in enumerate(maker.inputs(model, words, rng)):
            seen.clear()
            arrays |= {f"{i}.{name}": value for name, value in text.items()}
            outputs = maker.run(model, text, seen)
            arrays |= {f"{i}.{name}": x.numpy().copy() for name, x in outputs.items()}
    return arrays if "every" in words else {k: x for k, x in arrays.items() if maker.keeps(k)}


@torch.no_grad()
def unpatched(folder, arrays, maker):
    """The outputs of the library as it is, in float32, for the same inputs."""
    model = maker.load(folder, "float32")
    outputs = {}
    for i in range(2):
        begins = f"{i}."
        own = {name.removeprefix(begins): x for name, x in arrays.items() if name[:2] == begins}
        text = {name: x for name, x in own.items() if name in INPUTS}
        for name, x in maker.run(model, text, {}).items():
            if re.fullmatch(r"logits|(enc_)?hidden\.\d+", name):
                outputs[begins + name] = x.numpy().copy()
    return outputs


def visible(given, causal, dtype):
    """The library's mask [1 1 T T] of a text."""
    T = given["tokens"].shape[1]
    seen = torch.ones(1, 1, T, T, dtype=torch.bool)
    seen = seen.tril() if causal else seen
    return hiding(dtype, seen, given.get("valid"), given.get("mask"))


def hiding(dtype, seen, *others):
    """The library's mask: 0 where a query sees a key by all of these, else the lowest number."""
    for x in others:
        seen = seen if x is None else seen & x
    return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)


OUTPUTS = {"output_hidden_states": True, "output_attentions": True, "return_dict": True}


def run(model, text, seen):
    """{point: tensor without batch axis} of one text, alone and unpadded, by the library."""
    given = {name: torch.tensor(value)[None] for name, value in text.items()}
    offset = pad_id(model.config) + 1 if model.config.model_type in PADS_TAKE_NO_ROW else 0
    extra = {"token_type_ids": given["types"]} if "types" in given else {}
    if "positions" in given:
        extra["position_ids"] = given["positions"] + offset  # the library wants rows of the table
    if "valid" in given or "mask" in given:
        extra["attention_mask"] = visible(given, model.config.model_type == "gpt2", model.dtype)
    if type(model).__name__.endswith("ForMultipleChoice"):  # [B choices T]
        given["tokens"] = given["tokens"][None]
        extra |= {"token_type_ids": given["types"][None]} if "types" in given else {}
    return seen | of_output(model, model(given["tokens"], **extra, **OUTPUTS))


def of_output(model, out):
    """{point: tensor without batch axis} of what the library gives."""
    return (
        layers("hidden", out.hidden_states) | layers("pattern", out.attentions) | head(model, out)
    )


def layers(name, tensors):
    """{"name.0": the first of these, without its batch axis, ...}."""
    return {f"{name}.{n}": x[0] for n, x in enumerate(tensors)}


def head(model, out):
    """{"logits": what a task head gives}, empty without a head."""
    logits = logits_of(model, out)
    return {} if logits is None else {"logits": logits[0]}


def logits_of(model, out):
    """What a task head gives, classes last: start and end of an answer side by side."""
    if "start_logits" in out:
        return torch.stack([out.start_logits, out.end_logits], dim=-1)
    if type(model).__name__.startswith("ElectraForPreTraining"):
        return out.logits[..., None]
    return getattr(out, "prediction_logits", getattr(out, "logits", None))


# --- losses of documents longer than a window

LONG = "gpt2-causal"  # the folder of the model that reads them
WINDOWS = ((12, 6), (12, 11), (12, 1), (8, 3), (5, 4))  # tokens of a window, tokens to the next
LENGTHS = (41, 12, 7, 2)  # of the documents


@torch.no_grad()
def losses(folder):
    """{name: array}: the library's loss of documents by strided windows and in a padded batch."""
    model = library_model(folder, "float64")
    rng = np.random.default_rng(zlib.crc32(b"losses"))
    texts = [torch.tensor(rng.integers(0, 60, n)) for n in LENGTHS]
    tensors = {f"{i}.tokens": text for i, text in enumerate(texts)}
    for i, text in enumerate(texts):
        for window, stride in WINDOWS:
            loss = strided(model, text, window, stride)
            tensors[f"{i}.{window}.{stride}"] = torch.tensor(loss, dtype=torch.float64)
    short = [text for text in texts if len(text) <= model.config.n_positions]
    tokens = torch.nn.utils.rnn.pad_sequence(short, batch_first=True)
    labels = torch.nn.utils.rnn.pad_sequence(short, batch_first=True, padding_value=-100)
    out = model(tokens, attention_mask=(labels >= 0).long(), labels=labels)
    return tensors | {"batch": out.loss.double()}


def strided(model, text, window, stride):
    """Mean loss as the library's guide to perplexity has it.

    A window counts the tokens that no window before it held.
    """
    total = 0.0
    end = 0
    for begin in range(0, len(text), stride):
        before, end = end, min(begin + window, len(text))
        labels = text[begin:end].clone()
        if begin:
            labels[: before - begin] = -100
        new = end - max(before, 1)  # the first token of all has nothing before it
        total += model(text[None, begin:end], labels=labels[None]).loss.item() * new
        if end == len(text):
            return total / (len(text) - 1)


# --- the claims that a golden folder meets


def check(name, arrays):
    """Whole, finite, float64; attention neither flat nor saturated; logits of order 1 to 10."""
    strongest = {}
    for key, x in arrays.items():
        i, point = key.split(".")[:2]
        assert point in INPUTS or (x.dtype == np.float64 and np.isfinite(x).all()), (name, key)
        if point.endswith("pattern"):
            assert point != "pattern" or {*x.shape[1:]} == {len(arrays[f"{i}.tokens"])}, key
            assert abs(x.sum(-1) - 1).max() < 1e-12, key
            strongest.setdefault(point, []).append(x[:, 1:].max(-1).mean())
    on_one_key = {point: np.mean(values) for point, values in strongest.items()}
    logits = [abs(x).max() for key, x in arrays.items() if key.endswith(".logits")]
    top = max(logits, default=None)
    assert all(0.25 < share < 0.9 for share in on_one_key.values()), (name, on_one_key)
    assert top is None or 0.5 < top < 40, f"{name}: the largest logit is {top:.2f}"


def save_arrays(arrays, path):
    tensors = {key: torch.from_numpy(np.ascontiguousarray(x)) for key, x in arrays.items()}
    save_file(tensors, path)


def make(folder, row, maker):
    """One golden folder from one row of the table; its random numbers depend on its name alone."""
    name, class_name, changes, disk, words = row
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    save(build(class_name, changes, rng, maker), folder, disk, rng, maker.disk)
    arrays = reference(folder, words.split(), rng, maker)
    check(name, arrays)
    save_arrays(arrays, folder / "reference.safetensors")
    if more := maker.more(folder, arrays, maker):
        save_arrays(more, folder / "unpatched.safetensors")
    print(name)


@torch.no_grad()
def files(golden):
    """Losses, and what the library makes of fractions in a mask: float-masks/masks.safetensors.

    Inputs `VARIANT.tokens`, `.keys` [T] (given as 2-D), `.rows` [H T T] and `.linear` [1 T T] (as
    4-D: a row for each query, that of the slides without the later keys); for each of the three
    `.logits` and `.pattern.n`, in float64.
    """
    rng = np.random.default_rng(zlib.crc32(b"float-masks"))
    T = 9
    arrays = {}
    for variant in ("gpt2-causal", "bert-masked"):
        model = library_model(golden / variant, "float64")
        tokens = rng.integers(5, 60, T)
        arrays[f"{variant}.tokens"] = tokens
        for name, mask in fractions(rng, T, model.config.num_attention_heads).items():
            key = f"{variant}.{name}"
            given = torch.tensor(tokens)[None], torch.tensor(mask)[None]
            out = model(given[0], attention_mask=given[1], output_attentions=True)
            arrays |= {key: mask, f"{key}.logits": out.logits[0].numpy()}
            arrays |= {f"{key}.pattern.{n}": x[0].numpy() for n, x in enumerate(out.attentions)}
    (golden / "float-masks").mkdir(exist_ok=True)
    save_arrays(arrays, golden / "float-masks" / "masks.safetensors")
    save_file(losses(golden / LONG), golden / "losses.safetensors")


def fractions(rng, T, n_heads):
    """The three masks of `files`; drawn in this order."""
    keys = rng.uniform(0.1, 1, T) * ~np.isin(np.arange(T), (4, T - 1))
    rows = rng.uniform(0, 1, (n_heads, T, T))
    linear = np.zeros((1, T, T))
    for t in range(1, T + 1):
        linear[0, t - 1, :t] = np.linspace(0.1, 1, t)
    # the first query's own key: of one number linspace gives the lower end
    linear[0, 0, 0] = 1
    return {"keys": keys, "rows": rows, "linear": linear}


# --- makers


def nothing(*given):
    """Where a maker has no more to do."""
    return {}


class Maker(NamedTuple):
    """How a maker's models are made and read; by default as those of one stack with a table."""

    sizes: dict = SIZES  # {how names of classes begin: config}
    disk: dict = DISK  # {word of a variant: change of its files}
    class_of: Callable = class_of
    learned: Callable = learned
    draw: Callable = draw
    load: Callable = library_model
    inside: Callable = contextlib.nullcontext  # context in which the library computes in float64
    watch: Callable = watch
    inputs: Callable = inputs
    run: Callable = run
    keeps: Callable = bool  # whether an array is stored of a variant that does not ask for `every`
    more: Callable = nothing  # arrays of unpatched.safetensors
    files: Callable = nothing  # writes what is no variant


MAKER = Maker(files=files)
MAKERS = "", "pairs", "places", "decoders", "shared", "distances"  # make_golden_NAME.MAKER


def variants(kind):
    """Rows of a maker: folder, class, changes of its config, files (`disk`), inputs and outputs."""
    name = f"make_golden_{kind}".rstrip("_")
    return json.loads(Path(__file__).with_name("variants.json").read_text())[name]


def main(begins):
    """Make every variant, or those whose names begin so, in place of the folder that was there."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    packages = {"numpy": np, "torch": torch, "transformers": transformers}
    versions = {"python": sys.version.split()[0]}
    versions |= {name: package.__version__ for name, package in packages.items()}
    for kind in MAKERS:
        maker = importlib.import_module(f"make_golden_{kind}".rstrip("_")).MAKER
        rows = [row for row in variants(kind) if row[0].startswith(begins)]
        for row in rows:
            make(GOLDEN / row[0], row, maker)
        if rows == variants(kind):
            maker.files(GOLDEN)
        if rows:
            file = GOLDEN / f"versions-{kind}.json".replace("-.", ".")
            file.write_text(json.dumps(versions, indent=1) + "\n")


if __name__ == "__main__":
    import make_golden  # the module that the others know

    make_golden.main(tuple(sys.argv[1:] or [""]))
