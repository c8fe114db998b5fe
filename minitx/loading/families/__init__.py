"""One file a family: which keys of a config.json and which tensors of a file mean what.

CONTRIBUTING.md says how one is added.
"""

from dataclasses import replace

from ...config import Config
from ..files import one_line
from ..labels import labels_of
from . import (
    albert,
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
    keys,
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
    stablelm,
    starcoder2,
    t5,
    vit,
)
from .check import SIZES, check_config, check_sizes
from .family import REQUIRED, Key

FAMILIES = {  # model_type of a config.json -> family
    "bert": bert.FAMILY,
    "roberta": roberta.FAMILY,
    "xlm-roberta": roberta.FAMILY,
    "camembert": roberta.FAMILY,
    "distilbert": distilbert.FAMILY,
    "electra": electra.FAMILY,
    "albert": albert.FAMILY,
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
    "stablelm": stablelm.FAMILY,
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
# Options of older files that are not computed: key -> the only value accepted.
ONLY = {"position_embedding_type": "absolute"}
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
        config = replace(config, generation=generation.settings(raw, generated))
        generation.check(config)
        check_config(config)
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
    raw = keys.spelled(raw, model_type)
    _check_keys(raw, family)
    encoder = None if family.encoder is None else _stack(raw, family.encoder)
    text = None if family.text is None else _stack(raw, family.text)
    return _stack(raw, family, encoder=encoder, text=text)


def _check_keys(raw, family):
    """Raises ValueError for a key that would change the result and is not computed."""
    only = ONLY | family.only  # where these are null they say nothing
    said = {key: value for key, value in raw.items() if value is not None or key not in only}
    handled = keys.inert() | keys.known(family)
    for part in (family.encoder, family.text):
        handled |= set() if part is None else keys.known(part)
    keys.check(said, keys.library()["types"][raw["model_type"]] | only, handled - {*only})
    for part in (family, family.text):
        if part is not None and part.inside:
            side = _keys(raw, part) | {"model_type": keys.SIDES[part.inside]}
            _check_keys(side, part._replace(inside="", text=None))


def _stack(raw, family, **values):
    """The Config of one stack: a model's, or of an encoder-decoder's encoder or decoder."""
    raw = _keys(raw, family)
    model_type = raw["model_type"]
    values |= {"model_type": model_type, "architecture": _architecture(raw)}
    values["labels"] = labels_of(raw)
    for field, key in (COMMON | family.config).items():
        is_pad = field == "pad_id" and key.default is not REQUIRED
        own = is_pad or field in SIZES or field in generation.KEYS
        values[field] = _value(raw, key, None if own else keys.default(model_type, key.name))
    if isinstance(values.get("eps"), bool):  # which Python takes for 0 or 1
        raise ValueError(f"the norms' epsilon is {values['eps']}; wanted a number from 0 to 1")
    values |= family.fixed | family.sizes(raw)
    if values.get("causal"):
        values["causal"] = _is_causal(raw, family)
    width = values["d_model"]  # others follow from it
    if type(width) is not int or width < 1:
        raise ValueError(f"d_model is {width!r}; wanted a whole number of at least 1")
    values |= family.derived(values)
    values.setdefault("read_id", raw.get("pad_token_id", keys.default(model_type, "pad_token_id")))
    if values.get("pad_id") is None:
        values["pad_id"] = 0  # no id is named: padding is masked out, so any will do
    check_sizes(values)  # others follow from these too
    values |= family.places(raw, values)
    if family.fixed.get("causal") and not values["causal"]:
        windows = values.get("windows", ())  # on both sides they reach one key farther
        values["windows"] = tuple(None if size is None else size + 1 for size in windows)
    return Config(**values)


def _is_causal(raw, family):
    """Whether a decoder sees no later token; some models of embeddings say no."""
    value = raw.get("is_causal", True)
    if not isinstance(value, bool):
        raise ValueError(f"is_causal is {value!r:.80}; wanted true or false")
    if not value and family.cross is not None:
        raise ValueError("is_causal is False; an encoder-decoder is supported only with True")
    return value


def _keys(raw, family):
    """The keys of one stack, which may be an object inside config.json; an older one counts."""
    if not family.inside:
        return raw
    older = raw.get(f"{family.inside}_dict")
    inside = (raw.get(family.inside) or {}) if older is None else older
    if not isinstance(inside, dict):
        raise ValueError(f"{family.inside} is {inside!r:.80}; wanted an object")
    return inside | {key: raw.get(key) for key in ("model_type", "architectures")}


def _architecture(raw):
    """The class name that a checkpoint was saved from, or ""."""
    names = raw.get("architectures") or [""]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"architectures is {names!r:.80}; wanted a list of names")
    return names[0]


def _value(raw, key, default):
    """A value of config.json. Raises ValueError if the key is required and missing or null.

    default: what the reference library takes where the key is missing; None: it is not told.
    """
    if isinstance(key.default, bool) and not isinstance(raw.get(key.name), bool | None):
        raise ValueError(f"{key.name} is {raw[key.name]!r:.80}; wanted true or false")
    value = raw.get(key.name)
    if value is None and key.other:
        value = raw.get(key.other)
    if value is None and key.name not in raw:
        value = default
    if value is None and key.default is REQUIRED:
        available = ", ".join(sorted(raw))
        raise ValueError(f"{key.name!r} is missing ({raw['model_type']}); available: {available}")
    if value is None and key.name not in raw:
        value = key.default
    return value
