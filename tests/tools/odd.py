"""Small models of every family and of odd shapes, each with a tokenizer of few words.

Families are found in tests/golden: the first folder of a model type with a language model's head,
or one for pictures, and else the first. Odd shapes are cut from two of them, or put together.
"""

import json
from dataclasses import replace
from functools import cache, partial

import numpy as np
import tiny
import tokenizers

import minitx
from minitx.words.text import Wrapped

# what an architecture is called that says most; the families' own folders, by choice
TELLING = "LM", "ConditionalGeneration", "MTModel", "PreTraining", "ImageClassification", ""
FEW = ["llama-grouped", "olmo2-biases", "gemma2-uncapped", "gemma3-all", "bert-sequence"]
FEW += ["bert-sequence-one", "bart-sequence", "smollm3-listed", "gpt_neo-local", "marian-separate"]
SPECIAL = "[UNK]", "[MASK]"


@cache
def folders():
    """{name: folder} of every golden model."""
    paths = [*tiny.GOLDEN.glob("*/config.json"), *tiny.GOLDEN.glob("images/*/config.json")]
    whole = [x.parent for x in sorted(paths) if x.with_name("model.safetensors").is_file()]
    return {folder.name: folder for folder in whole}


@cache
def families():
    """The name of one folder of each model type, and those of FEW."""
    by_type = {}
    for name, folder in folders().items():
        settings = json.loads((folder / "config.json").read_text())
        architecture = str(settings.get("architectures"))
        rank = next(i for i, word in enumerate(TELLING) if word in architecture)
        by_type.setdefault(settings["model_type"], []).append((rank, name))
    return sorted({min(names)[1] for names in by_type.values()} | {*FEW})


def golden(name):
    return with_words(minitx.load(folders()[name]))


def with_words(model):
    """A model whose tokenizer knows as many words as the model has ids; pictures have none."""
    if model.config.picture is not None:
        text = model.text and with_words(model.text)
        return replace(model, text=text)
    encoder = model.encoder and with_words(model.encoder)
    return replace(model, tokenizer=words(model.config), encoder=encoder)


def words(config):
    """The tokenizer: w0, w1, ..., the last two ids [UNK] and [MASK]; no special tokens around."""
    names = [f"w{i}" for i in range(config.n_vocab - len(SPECIAL))] + [*SPECIAL]
    vocabulary = {name: i for i, name in enumerate(names)}
    new = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=SPECIAL[0]))
    new.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    new.add_special_tokens([SPECIAL[1]])
    return Wrapped(new, config.model_type)


def sized(model, n_ctx):
    """A model with a table of positions that reads n_ctx tokens."""
    cfg, table = model.config, np.random.default_rng(n_ctx)
    n_pos = cfg.offset + n_ctx
    W_pos = table.normal(0, 0.3, (n_pos, cfg.d_embed or cfg.d_model)).astype(np.float32)
    model = tiny.with_weights(model, W_pos=W_pos)
    return replace(model, config=replace(cfg, n_ctx=n_ctx, n_pos=n_pos))


def of_layers(model, change, **changes):
    """A model with other arrays in each layer, change(w) -> {name: array}, and other settings."""
    layers = {w.index: change(w) for w in model.layers}
    return replace(tiny.with_weights(model, layers), config=replace(model.config, **changes))


def grouped(model, n):
    """Twice as many heads, which share n heads of keys and values."""
    cfg = model.config
    width = n * cfg.d_head
    shared = [f"{x}_{letter}" for x in "Wb" for letter in "KV"]

    def change(w):
        arrays = {name: getattr(w, name)[..., :width] for name in shared}
        for name, axis in (("W_Q", 1), ("b_Q", 0), ("W_O", 0)):
            x = getattr(w, name)
            arrays[name] = np.concatenate([x, np.flip(x, axis)], axis)
        return arrays

    return of_layers(model, change, kv_heads=n, n_heads=2 * cfg.n_heads, d_kv=cfg.d_head)


def normed(model, together=False):
    """Norms of queries and keys, of each head or of all together."""
    cfg = model.config
    size = cfg.n_heads * cfg.d_head if together else cfg.d_head
    stem = "ln_all" if together else "ln"
    gains = np.random.default_rng(1).uniform(0.5, 1.5, (2, size)).astype(np.float32)
    names = f"{stem}_q_w", f"{stem}_k_w"
    changes = {"qk_norm_all" if together else "qk_norm": True, "rms_norm": True}
    return of_layers(model, lambda w: dict(zip(names, gains)), **changes)


def pruned(model):
    """The first head of the first layer pruned, its arrays zero, and all heads of the last."""
    d = model.config.d_head

    def change(w):
        own = slice(None) if w.index else slice(d)
        names = "W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V", "W_O"
        arrays = {name: getattr(w, name).copy() for name in names}
        for name, x in arrays.items():
            features = x if name == "W_O" else x.T
            features[own] = 0
        return arrays

    return of_layers(model, change)


def one_head(model):
    cfg = model.config
    d = cfg.d_head

    def change(w):
        arrays = {f"{x}_{y}": getattr(w, f"{x}_{y}")[..., :d] for x in "Wb" for y in "QKV"}
        return arrays | {"W_O": w.W_O[:d]}

    return of_layers(model, change, n_heads=1, d_kv=d)


def one_layer(model):
    return replace(model, layers=model.layers[:1], config=replace(model.config, n_layers=1))


def few_words(model, n=12):
    w = model.weights
    b_U = None if w.b_U is None else w.b_U[:n]
    model = tiny.with_weights(model, W_E=w.W_E[:n], W_U=w.W_U[:, :n], b_U=b_U)
    return with_words(replace(model, config=replace(model.config, n_vocab=n)))


def texts(model, folder, n):
    """A file of n documents of token ids, or a folder of n pictures."""
    path, picture = folder / "texts", model.config.picture
    if picture is not None:
        from PIL import Image

        path.mkdir()
        for i in range(min(n, 4)):
            size = *picture.size, 3
            pixels = np.random.default_rng(i).integers(0, 256, size, dtype=np.uint8)
            Image.fromarray(pixels).save(path / f"{i}.png")
        return path
    cfg = (model.encoder or model).config
    known = np.setdiff1d(np.arange(min(cfg.n_vocab, 40)), [cfg.no_position_id or 0])
    rows = np.random.default_rng(n).choice(known, (n, min(cfg.n_ctx, 40)))
    path.write_text("\n".join(" ".join(map(str, row)) for row in rows))
    return path


CUT = {
    "grouped keys": partial(grouped, n=3),
    "one key head": partial(grouped, n=1),
    "norms of queries and keys": normed,
    "norms of all queries and keys": partial(normed, together=True),
    "pruned head": pruned,
    "one layer": one_layer,
    "one head": one_head,
    "16 positions": partial(sized, n_ctx=16),
    "40 positions": partial(sized, n_ctx=40),
    "vocabulary of 12": few_words,
}
BASES = {"gpt2": "gpt2-causal", "roberta": "roberta-masked"}
NARROW = "albert-masked"  # embeddings


def shapes():
    named = [f"{base}: {cut}" for base in BASES for cut in CUT]
    return [
        *named,
        "albert: 40 positions",
        "two documents",
        "no tokenizer",
        "pictures and texts: texts",
    ]


def model(name):
    if name in folders():
        return golden(name)
    base, _, cut = name.partition(": ")
    if base in BASES:
        return CUT[cut](sized(golden(BASES[base]), 40))
    if base == "albert":
        return sized(golden(NARROW), 40)
    if base == "no tokenizer":
        return minitx.load(folders()["llama-grouped"])
    if base == "two documents":
        return sized(golden("gpt2-causal"), 40)
    return golden("clip-both").text
