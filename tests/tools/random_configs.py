"""Random small configurations of every model type: minitx beside the reference library.

    python tests/tools/random_configs.py [--n 2000] [--seed N] [--types gpt2 t5]    (needs torch)

Each draws a class of the library, values of a few keys of keys.json, random weights (norms and
biases too), keys nobody knows, ids with padding and end tokens anywhere, and a mask; the library's
save is what both load. In float64, but for what the library rounds (see `make_golden_places.py`).
An outcome is equal, refused (with the reason), silent (another result), raw (no sentence of
minitx), or library (the library itself refuses or gives no numbers). Prints types × outcomes and
each reason once, Ctrl-C too; exit status 1 where one is silent or raw. A seed draws the same again.
Left out is what the library alone reads of padding: columns that it counts as positions (`masked`),
and a text that begins with padding, whose head reads it (`distance`).
"""

import argparse
import collections
import contextlib
import inspect
import json
import re
import shutil
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import make_golden as single
import make_golden_decoders as decoders
import make_golden_distances as distances
import make_golden_images as pictures
import make_golden_pairs as pairs
import make_golden_places as places
import make_golden_shared
import numpy as np
import torch
import transformers
from transformers.activations import ACT2FN
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import minitx
from minitx import images
from minitx.loading.families import FAMILIES, keys

BOUND = 1e-6  # of the largest; measured 3e-8 at most, Marian's sinusoids, which stay float32
SHARED = {"Albert": make_golden_shared.ALBERT}
DEBERTA = {"Deberta": distances.BOTH, "DebertaV2": distances.BOTH | distances.V3}
PICTURES = {"ViT": pictures.VIT, "DeiT": pictures.VIT, "Dinov2": pictures.DINO}
CLIP = {"CLIPText": pictures.TEXT, "CLIPVision": pictures.VIT}
CLIP["CLIP"] = {"vision_config": pictures.VIT, "text_config": pictures.TEXT, "projection_dim": 7}
SIZES = single.SIZES | places.SIZES | pairs.SIZES | decoders.SIZES | SHARED | DEBERTA
SIZES |= PICTURES | CLIP
ROPE = [None, decoders.YARN, decoders.LINEAR, dict(rope_type="dynamic", factor=2.0)]
ROPE += [places.SCALED["llama3"], dict(rope_type="default", rope_theta=7.0)]
ROPE += [{"type": "linear", "factor": 2.0}, dict(rope_type="su"), dict(rope_theta=50.0)]
NAMES = "full_attention", "sliding_attention"
VALUES = {  # what keys may say beside what follows from their default
    "attention_types": [[[["global"], 2]], [[["local"], 2]], [[["local", "global"], 1]]],
    "classifier_pooling": ["mean", "cls", "max"],
    "clip_qkv": [0.5, 2, 0, -1.0],
    "feed_forward_proj": ["relu", "gated-gelu", "gated-silu", "gelu", "gated-relu"],
    "hidden_size": [8, 16, 24],
    "layer_types": [None, [NAMES[0]] * 2, [*NAMES], [NAMES[1]] * 2],
    "is_causal": [False, True, None],
    "no_rope_layers": [None, [0, 1], [1, 1], [0, 0]],
    "norm_rel_ebd": ["layer_norm", "none"],
    "num_labels": [1, 2, 5],
    "pos_att_type": ["c2p|p2c", "c2p", ["p2c"], [], None, "p2c|c2p"],
    "position_buckets": [-1, 3, 6],
    "max_relative_positions": [-1, 3, 20],
    "qkv_bias": [False],
    "rope_parameters": ROPE,
    "rope_scaling": ROPE,
    "sliding_window": [None, 1, 3, 100],
    "summary_type": ["last", "first", "mean", "cls_index"],
    "type_vocab_size": [0, 1, 2, 5],
}
IDS = [None, 0, 1, 2, 3, 9, [1, 2], -1]
BY_COLUMN = "bart", "marian"
LATER = {  # keys of no class: written into the file behind the library's save
    "auto_map": [{"AutoModel": "x.Y"}],
    "id2label": [{"0": "no", "1": "yes"}, {"0": "one"}, {}],
    "label2id": [{"no": 0, "yes": 1}],
    "my_note": [3, None, ["a"]],
    "position_embedding_type": ["absolute", "relative_key"],
    "problem_type": ["regression", None],
    "torch_dtype": ["float16", "float32"],
    "transformers_version": ["4.1.0"],
    "use_cache": [True, False, None],
}


def choices(key, default):
    """Odd values of a key."""
    if key in VALUES:
        return VALUES[key]
    if key.endswith("_token_id"):
        return IDS
    if "act" in key.split("_")[-1] or key.startswith("activation_function"):
        return [*sorted(ACT2FN), "sin", None]
    if isinstance(default, bool):
        return [not default, None]
    if isinstance(default, int):
        return [1, 2, 3, 4, 6, 0]
    if isinstance(default, float):
        return [0.0, 1e-3, 0.3, 1, 2.5]
    return [default, 1, 2, 4, True, 0.5]


def name_of(model_type):
    """How the library's classes of a type begin."""
    return CONFIG_MAPPING[model_type].__name__.removesuffix("Config")


def classes(model_type):
    """Names of the library's classes of a type: the body and all heads."""
    tables = [x for name, x in vars(modeling_auto).items() if name.endswith("MAPPING_NAMES")]
    names = set()
    for name in [table.get(model_type) or () for table in tables]:
        names |= {name} if isinstance(name, str) else {*name}
    names |= {f"{name_of(model_type)}ModelWithProjection"} if "clip_" in model_type else set()
    return sorted(n for n in names if not n.endswith(("Config", "Backbone", "ImageModeling")))


def with_odd_keys(given, model_type, rng):
    """Sizes of a small model with odd values of up to five keys."""
    table = keys.library()["types"][model_type]
    for key in rng.choice([*table], min(len(table), rng.integers(0, 6)), replace=False):
        pool = choices(key, table[key])
        given[key] = pool[rng.integers(len(pool))]
    for side, kind in keys.SIDES.items():
        if isinstance(given.get(side), dict):
            given[side] = with_odd_keys(dict(given[side]), kind, rng)
    return given


def build(model_type, rng):
    """A class of the library with random weights, and what was given to its config."""
    names = classes(model_type)
    class_name = names[rng.integers(len(names))]
    given = with_odd_keys(json.loads(json.dumps(SIZES[name_of(model_type)])), model_type, rng)
    if rng.random() < 0.5:
        given["num_labels"] = int(rng.integers(1, 5))
    cls = getattr(transformers, class_name)
    config = CONFIG_MAPPING[model_type](**given)
    model = cls(config).eval()
    model.config.architectures = [class_name]
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.dtype.is_floating_point and not is_computed(name, config):
            tensor.data = torch.tensor(draw(name, tensor.shape, rng), dtype=torch.float32)
    return model


def is_computed(name, config):
    return pairs.computed(config, name) or re.search(r"inv_freq|masked_bias|embed_scale", name)


def draw(name, shape, rng):
    """Random values; norms and biases are not at their defaults."""
    if re.search(r"(?i)norm|ln_|lambda", name):
        return rng.normal(float(name.endswith("weight")), 0.2, shape)
    if len(shape) < 2 or "embed" in name or "shared" in name or "token" in name:
        return rng.normal(0.0, 0.5, shape)
    return rng.normal(0.0, 1.3 / max(1, np.prod(shape[1:])) ** 0.5, shape)


def save(model, folder, rng):
    """The library's files; then odd keys in config.json, left-out ones, and of generation."""
    model.save_pretrained(folder)
    path = folder / "config.json"
    raw = json.loads(path.read_text())
    defaults = keys.library()["types"][raw["model_type"]]
    for key in [key for key in raw if key in defaults and raw[key] == defaults[key]]:
        if rng.random() < 0.1:
            del raw[key]
    for key, pool in LATER.items():
        if rng.random() < 0.05:
            raw[key] = pool[rng.integers(len(pool))]
    path.write_text(json.dumps(raw))


def inputs(model, rng):
    """Keywords of the library: ids or pixels, and what goes with them."""
    config, accepted = model.config, {*inspect.signature(model.forward).parameters}
    if model.main_input_name == "pixel_values":
        return {"pixel_values": pixels(config, rng)}
    given = {"input_ids": ids(config, config.get_text_config(), rng)}
    if isinstance(model, transformers.CLIPModel):
        given["pixel_values"] = pixels(config.vision_config, rng)
    shape = given["input_ids"].shape
    mask = masked(given["input_ids"], config, rng)
    if mask is not None:
        given["attention_mask"] = mask
    types = getattr(config, "type_vocab_size", 0)
    if "token_type_ids" in accepted and types and rng.random() < 0.5:
        given["token_type_ids"] = torch.tensor(rng.integers(0, types, shape))
    if "decoder_input_ids" in accepted:
        given["decoder_input_ids"] = given["input_ids"].roll(1, 1)
        given["decoder_input_ids"][:, 0] = config.decoder_start_token_id or 0
    return given


def pixels(config, rng):
    """A picture of the size that a model reads."""
    size = config.image_size
    size = size if isinstance(size, list | tuple) else (size, size)
    return torch.tensor(rng.normal(0, 1, (2, config.num_channels, *size)))


def ids(config, text, rng):
    """Ids [2 T], padding and end tokens anywhere."""
    longest = getattr(text, "max_position_embeddings", 9) or 9
    T = int(rng.integers(1, max(2, min(9, longest - (text.pad_token_id or 0) - 1))))
    n = min(text.vocab_size, getattr(config, "decoder_vocab_size", None) or text.vocab_size)
    rows = rng.integers(0, n, (2, T))
    special = [text.pad_token_id, text.eos_token_id, getattr(config, "bos_token_id", None)]
    for token in [x for x in special if isinstance(x, int) and 0 <= x < n]:
        rows[rng.random((2, T)) < 0.12] = token
    return torch.tensor(rows)


def masked(rows, config, rng):
    """No mask, or one with padding on a side or with holes; padding has its id.

    The library's positions of RoBERTa go by ids, those of BART and Marian by column, which minitx
    counts without hidden tokens: these have padding on the right only.
    """
    kind = ["none", "none", "right", "left", "holes"][rng.integers(5)]
    T, n = rows.shape[1], int(rng.integers(0, rows.shape[1]))
    if kind == "none":
        return None
    mask, pad = torch.ones_like(rows), single.pad_id(config) or 0
    if kind == "holes" and config.model_type not in BY_COLUMN:
        mask[1, 1 : T - 1] = torch.tensor(rng.integers(0, 2, T))[1 : T - 1]
    else:
        right = kind != "left" or config.model_type in BY_COLUMN
        columns = slice(T - n, T) if right else slice(n)
        mask[1, columns] = 0
    if kind != "holes" or config.model_type in single.PADS_TAKE_NO_ROW:
        rows[mask == 0] = pad
    return mask


def expected(folder, class_name, given):
    """The library's result of a folder: the last stream and logits, by name."""
    cls = getattr(transformers, class_name)
    model, report = cls.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager", output_loading_info=True
    )
    missing = [name for name in report["missing_keys"] if "pooler" not in name]
    if missing or report["mismatched_keys"]:
        raise ValueError(f"the library has no values for {missing}")
    given = {k: x.double() if x.is_floating_point() else x for k, x in given.items()}
    is_choice = class_name.endswith("MultipleChoice")
    if is_choice:
        given = {name: x[None] for name, x in given.items()}
    with torch.no_grad(), decoders.in_float64(model.eval()):
        out = model(**given, output_hidden_states=True)
        if isinstance(model, transformers.CLIPModel):
            pixels = given["pixel_values"]
            out["image_embeds"] = model.get_image_features(pixel_values=pixels).pooler_output
    values = {name: x.numpy() for name, x in of_output(model, out).items()}
    return values | ({"logits": values["logits"].T} if is_choice else {})


def of_output(model, out):
    """The last stream of a model of words, and logits."""
    values = {"logits": single.logits_of(model, out)}
    for name in ("image_embeds", "text_embeds"):
        values["logits"] = values["logits"] if out.get(name) is None else out[name]
        if isinstance(model, transformers.CLIPModel):
            values["logits"] = out.image_embeds
    hidden = out.get("decoder_hidden_states") or out.get("hidden_states")
    if model.main_input_name == "pixel_values" or "clip" in model.config.model_type:
        values["ln_final"] = out.get("last_hidden_state")
        if "vision" in model.config.model_type:
            values["ln_final"] = out.get("pooler_output")
    elif hidden:
        values["x"] = hidden[-1]
    return {name: x for name, x in values.items() if x is not None}


def ours(folder, class_name, given):
    """The same of minitx; the mask's positions are columns, as in the library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", minitx.loading.checkpoint.UnreadWarning)
        model = minitx.load(folder, dtype=np.float64)
    x = {name: tensor.numpy() for name, tensor in given.items()}
    if "pixel_values" in x:
        tokens, options = images.rows_of(x["pixel_values"], model.config.picture), {}
    else:
        tokens, options = x["input_ids"], options_of(model, x)
        if model.encoder is not None:
            options |= {"source": tokens, "source_valid": options.pop("valid", None)}
            tokens = x["decoder_input_ids"]
    trace = minitx.run(model, tokens, keep_of(model), **options)
    result = {name: trace[name] for name in trace}
    stream = {k: v for k, v in options.items() if k not in ("mask",)}
    return model, result | {"x": minitx.forward(model, tokens, **stream)}


def keep_of(model):
    """Points of a model that are compared."""
    normed = ["ln_final"] if model.config.pre_norm and model.config.task_head is None else []
    return [*normed, *(["logits"] if model.config.task_head else [])] or ["resid_pre"]


def options_of(model, x):
    options = {"types": x["token_type_ids"]} if "token_type_ids" in x else {}
    if "attention_mask" in x:
        options["valid"] = x["attention_mask"].astype(bool)
        if counts_columns(model.config):
            options["positions"] = np.arange(x["input_ids"].shape[1])
    return options


def counts_columns(cfg):
    """Whether the library's positions are columns, hidden tokens among them."""
    of_ids = cfg.no_position_id is not None
    of_mask = cfg.model_type in ("opt", "bloom", "falcon") and (cfg.alibi or cfg.n_pos)
    return not (of_ids or of_mask or cfg.n_buckets or cfg.sinusoids)


def distance(a, b, valid, cfg):
    """max |difference| of two results in parts of the largest, at tokens that are no padding.

    Of a head for whole texts: of those that do not begin with padding, which the library reads.
    """
    if a.shape != b.shape:
        return np.inf
    if valid is not None:
        seen = valid if a.ndim > 2 else valid[:, 0] | (cfg.read_at == "last")
        a, b = a[seen], b[seen]
    if not a.size:
        return 0.0
    return abs(a - b).max() / max(abs(a).max(), 1e-9)


def outcome(model_type, rng):
    """(outcome, its reason) of one configuration."""
    folder = Path(tempfile.mkdtemp())
    try:
        try:
            model = build(model_type, rng)
            save(model, folder, rng)
            class_name, given = type(model).__name__, inputs(model, rng)
            reference = expected(folder, class_name, given)
            if not all(np.isfinite(x).all() for x in reference.values()):
                return "library", "numbers that are not finite"
        except Exception as error:
            return "library", f"{type(error).__name__}: {error}"
        return compared(folder, class_name, given, reference)
    finally:
        shutil.rmtree(folder)


def compared(folder, class_name, given, reference):
    """(outcome, its reason) of a folder that the library reads."""
    try:
        with np.errstate(all="ignore"):
            model, result = ours(folder, class_name, given)
    except ValueError as error:
        return ("raw" if is_raw(str(error)) else "refused"), f"{error}"
    except Exception:
        return "raw", traceback.format_exc().strip().splitlines()[-1]
    if not result.keys() & reference.keys():
        return "nothing", f"{class_name}: {[*result]} and {[*reference]}"
    mask = given.get("attention_mask")
    valid = None if mask is None else mask.numpy().astype(bool)
    both = {n: (reference[n], result[n]) for n in result.keys() & reference.keys()}
    far = {n: distance(*x, valid, model.config) for n, x in both.items()}
    wrong = {n: f"{x:.1e}" for n, x in far.items() if not x < BOUND}
    if wrong:
        return "silent", f"{class_name} {model.config.task_head}: {wrong}"
    return ("equal" if "logits" in far or "logits" not in reference else "equal body"), ""


RAW = "operands|broadcast|setting an array|not supported between|object is not|unhashable|axis "


def is_raw(text):
    """Whether a sentence is NumPy's or Python's."""
    return bool(re.search(RAW, text)) or "\n" in text


def main():
    parser = argparse.ArgumentParser(description="Random configurations beside the library.")
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=None, help="by default a fresh one")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--types", nargs="*", default=[*FAMILIES])
    asked = parser.parse_args()
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    start = int(np.random.SeedSequence().entropy % 10**9) if asked.seed is None else asked.seed
    counts, reasons = collections.defaultdict(collections.Counter), collections.Counter()
    with contextlib.suppress(KeyboardInterrupt):  # which ends with the report
        for i in range(asked.first, asked.n):
            model_type = asked.types[i % len(asked.types)]
            rng, kind = np.random.default_rng((start, i)), "library"
            while kind == "library":  # until it is a configuration that the library computes
                kind, reason = outcome(model_type, rng)
                counts[model_type][kind] += 1
            reasons[kind, re.sub(r"/\S+", "…", reason)[:200]] += 1
            if kind in ("silent", "raw", "nothing"):
                print(f"{kind}: {model_type} --seed {start} --first {i}: {reason}", flush=True)
    report(start, counts, reasons)
    total = sum(counts.values(), collections.Counter())
    sys.exit(bool(total["silent"] + total["raw"]))


def report(start, counts, reasons):
    kinds = sorted({kind for count in counts.values() for kind in count})
    print(f"seed {start}", *[f"{k:>10}" for k in kinds])
    for name, count in sorted(counts.items()):
        print(f"{name:18}", *[f"{count[k]:>10}" for k in kinds])
    total = sum(counts.values(), collections.Counter())
    print(f"{'all':18}", *[f"{total[k]:>10}" for k in kinds])
    for (kind, reason), n in sorted(reasons.items(), key=lambda x: (x[0][0], -x[1])):
        print(f"{kind} {n}: {reason}")


if __name__ == "__main__":
    main()
