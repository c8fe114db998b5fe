"""One file a family: which keys of a config.json and which tensors of a file mean what.

To add a family is to write its file, to enter its model types here, and to add a golden variant.
"""

from ..config import Config
from ..files import one_line
from ..labels import labels_of
from . import (
    bart,
    bert,
    bloom,
    clip,
    deberta,
    dinov2,
    distilbert,
    electra,
    falcon,
    gemma,
    generation,
    gpt2,
    gpt_neo,
    gpt_neox,
    gptj,
    granite,
    llama,
    marian,
    mistral,
    modernbert,
    mpnet,
    olmo,
    olmo2,
    opt,
    phi,
    phi3,
    qwen,
    refused,
    roberta,
    smollm3,
    starcoder2,
    t5,
    vit,
)
from .check import check_config, check_sizes
from .family import REQUIRED, Key

FAMILIES = {  # model_type of a config.json -> family
    "bert": bert.FAMILY,
    "roberta": roberta.FAMILY,
    "xlm-roberta": roberta.FAMILY,
    "camembert": roberta.FAMILY,
    "distilbert": distilbert.FAMILY,
    "electra": electra.FAMILY,
    "mpnet": mpnet.FAMILY,
    "gpt2": gpt2.FAMILY,
    "bart": bart.FAMILY,
    "marian": marian.FAMILY,
    "t5": t5.FAMILY,
    "llama": llama.FAMILY,
    "mistral": mistral.FAMILY,
    "qwen2": qwen.QWEN2,
    "qwen3": qwen.QWEN3,
    "gpt_neox": gpt_neox.FAMILY,
    "bloom": bloom.FAMILY,
    "modernbert": modernbert.FAMILY,
    "opt": opt.FAMILY,
    "gptj": gptj.FAMILY,
    "phi3": phi3.FAMILY,
    "olmo2": olmo2.FAMILY,
    "falcon": falcon.FAMILY,
    "gemma": gemma.GEMMA,
    "gemma2": gemma.GEMMA2,
    "gemma3_text": gemma.GEMMA3,
    "gpt_neo": gpt_neo.FAMILY,
    "starcoder2": starcoder2.FAMILY,
    "phi": phi.FAMILY,
    "smollm3": smollm3.FAMILY,
    "olmo": olmo.FAMILY,
    "granite": granite.FAMILY,
    "vit": vit.VIT,
    "deit": vit.DEIT,
    "dinov2": dinov2.FAMILY,
    "clip": clip.FAMILY,
    "clip_vision_model": clip.VISION,
    "clip_text_model": clip.TEXT,
    "deberta": deberta.DEBERTA,
    "deberta-v2": deberta.DEBERTA2,
}
COMMON = {  # keys that mean the same in every family
    "n_vocab": Key("vocab_size"),
    "tied": Key("tie_word_embeddings", True),
}
# Options that would change the result and are not computed: key -> the only value accepted.
ONLY = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
WRONG = (
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    ArithmeticError,
)  # what a value of a wrong kind raises


def from_hf(raw, generated=None):
    """Config from the dictionary of a config.json in Hugging Face layout.

    generated: that of a generation_config.json.

    Raises ValueError if a key is missing, or if the model would be computed wrongly.
    """
    try:
        config = _config(generation.merged(raw, generated))
        check_config(config)
        generation.check(config)
        n = config.n_types
        if type(n) is not int or n < 0:
            raise ValueError(f"type_vocab_size is {n!r}; wanted a whole number of at least 0")
        return config
    except WRONG as error:
        wrong = "" if type(error) is ValueError else "a value is of the wrong kind: "
        raise ValueError(f"config.json: {wrong}{one_line(error, 900)}") from error


def _config(raw):
    model_type = raw.get("model_type")
    if model_type not in FAMILIES:
        text = f"model_type is {model_type!r:.80}; supported: {', '.join(FAMILIES)}"
        raise ValueError(text + refused.reason(model_type))
    refused.check(raw)
    family = FAMILIES[model_type]
    for key, only in (ONLY | family.only).items():
        if raw.get(key) not in (only, None):
            raise ValueError(f"{key} is {raw.get(key)!r:.80}; only {only!r} is supported")
    encoder = None if family.encoder is None else _stack(raw, family.encoder)
    text = None if family.text is None else _stack(raw, family.text)
    return _stack(raw, family, encoder=encoder, text=text)


def _stack(raw, family, **values):
    """The Config of one stack: a model's, or of an encoder-decoder's encoder or decoder."""
    raw = _keys(raw, family)
    values |= {
        "model_type": raw["model_type"],
        "architecture": _architecture(raw),
        "labels": labels_of(raw),
    }
    for field, key in (COMMON | family.config).items():
        values[field] = _value(raw, key)
    if isinstance(values.get("eps"), bool):  # which Python takes for 0 or 1
        raise ValueError(f"the norms' epsilon is {values['eps']}; wanted a number from 0 to 1")
    values |= family.fixed | family.sizes(raw)
    width = values["d_model"]  # others follow from it
    if type(width) is not int or width < 1:
        raise ValueError(f"d_model is {width!r}; wanted a whole number of at least 1")
    values |= family.derived(values)
    if values.get("pad_id") is None:
        values["pad_id"] = 0  # no id is named: padding is masked out, so any will do
    check_sizes(values)  # others follow from these too
    return Config(**values | family.places(raw, values))


def _keys(raw, family):
    """The keys of one stack, which may be an object inside config.json."""
    inside = raw.get(family.inside) or {}
    if not isinstance(inside, dict):
        raise ValueError(f"{family.inside} is {inside!r:.80}; wanted an object")
    return raw | {key: x for key, x in inside.items() if key not in ("model_type", "architectures")}


def _architecture(raw):
    """The class name that a checkpoint was saved from, or ""."""
    names = raw.get("architectures") or [""]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"architectures is {names!r:.80}; wanted a list of names")
    return names[0]


def _value(raw, key):
    """A value of config.json. Raises ValueError if the key is required and missing or null."""
    if isinstance(key.default, bool) and not isinstance(raw.get(key.name), bool | None):
        raise ValueError(f"{key.name} is {raw[key.name]!r:.80}; wanted true or false")
    if key.default is not REQUIRED:
        return raw.get(key.name, key.default)
    value = raw.get(key.name)
    if value is None:
        value = raw.get(key.other)
    if value is None:
        available = ", ".join(sorted(raw))
        raise ValueError(f"{key.name!r} is missing ({raw['model_type']}); available: {available}")
    return value
