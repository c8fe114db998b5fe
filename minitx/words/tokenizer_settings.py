"""What the settings beside a tokenizer change in it, as the reference library has it.

tokenizer_config.json may say something else than tokenizer.json, and other files add tokens to
both. Most classes of the library build their tokenizers anew from a vocabulary, so that there the
settings, or their defaults, count for more than tokenizer.json: tokenizer_kinds.py.

Order: `settled`, the class, added tokens, the ends of a text.
"""

import warnings

from ..loading.files import read_json
from . import japanese, tokenizer_kinds

BLANKS = "XLMRobertaTokenizer", "CamembertTokenizer"  # a blank is a piece of its own
# a text that is cut in another way by most classes: blanks, capitals, accents, a special token
PROBE = " The  Café É naïve,\n\nI'll go 12 東{}the dog"
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
NAMING = "tokenizer_config.json, special_tokens_map.json"  # files in which tokens have names
ADDED = "added_tokens_decoder of tokenizer_config.json, or added_tokens.json"
FLAGS = "lstrip", "rstrip", "normalized", "single_word", "special"


def settled(tokenizer, folder, settings, model_type):
    """The tokenizer of a tokenizer.json, or of a vocabulary, with what the settings change in it.

    settings: of config.json and tokenizer_config.json. Raises ValueError for those that no token
    can follow.
    """
    name = class_of(tokenizer, settings, model_type)
    if name in BLANKS and settings.get("add_prefix_space", True) is not True:
        raise ValueError(f"add_prefix_space is off in {folder}; a {name} is supported only with it")
    if getattr(tokenizer.model, "dropout", None):
        text = f"the BPE in {folder} has dropout {tokenizer.model.dropout}"
        raise ValueError(f"{text}: its ids would be random; set dropout to null in tokenizer.json")
    kind = tokenizer_kinds.KINDS.get(name)
    from_vocabulary = not (folder / "tokenizer.json").is_file()
    named = _with_defaults(named_tokens(folder, settings), kind, settings)
    if name == "RobertaTokenizer" and from_vocabulary:  # as these models were trained
        named["mask_token"] = {"lstrip": True} | named["mask_token"]
    if kind is not None:
        before = _probed(tokenizer)
        tokenizer_kinds.rebuild(tokenizer, kind, settings, named)
        if not from_vocabulary and _probed(tokenizer) != before:
            _warn(folder, name)
    keep = not (from_vocabulary or "added_tokens_decoder" in settings)
    _add_missing(tokenizer, added(folder, settings), keep)
    _add_named(tokenizer, added(folder, settings), named, from_vocabulary)
    _set_ends(tokenizer, kind, named, settings, from_vocabulary)
    tokenizer.encode_special_tokens = bool(settings.get("split_special_tokens", False))
    return tokenizer


def class_of(tokenizer, settings, model_type):
    """Name of the library's class that builds this tokenizer anew; FILE: none does."""
    if japanese.splits(settings):
        return tokenizer_kinds.FILE
    of_bytes = "ByteLevel" in str(tokenizer.pre_tokenizer)
    name = tokenizer_kinds.of(settings, model_type, of_bytes)
    kind = tokenizer_kinds.KINDS.get(name)
    fits = kind is not None and type(tokenizer.model).__name__ == kind.model
    return name if fits else tokenizer_kinds.FILE


def _with_defaults(named, kind, settings):
    """{key: fields} with the special tokens that a class has where no setting names others."""
    defaults = {} if kind is None else kind.tokens
    fields = {key: value | {"special": True} for key, value in defaults.items()}
    fields = {key: value for key, value in fields.items() if settings.get(key, "") is not None}
    for key, value in named.items():
        same = fields.get(key, {}).get("content") == value["content"]
        fields[key] = fields[key] | value if same else value
    order = [*(key for key in NAMED if key in fields), *(key for key in fields if key not in NAMED)]
    return {key: fields[key] for key in order}


def _probed(tokenizer):
    """Ids of PROBE, with a special token in it if there is one."""
    known = tokenizer.get_added_tokens_decoder().values()
    special = next((token.content for token in known if token.special), "")
    return tokenizer.encode(PROBE.format(special), add_special_tokens=False).ids


def _warn(folder, name):
    warnings.warn(
        f"the tokenizer.json in {folder} cuts texts otherwise than {name}, the class of this "
        "folder, which transformers 5 builds from its vocabulary and settings alone; ids here are "
        'the class\'s. "tokenizer_class": "PreTrainedTokenizerFast" in tokenizer_config.json '
        "takes the file's",
        stacklevel=2,
    )


# --- added tokens


def added(folder, settings):
    """{id: fields} of the tokens that a folder adds to its vocabulary, in the order of ids."""
    entries = settings.get("added_tokens_decoder")
    if entries is None:
        by_text = _object(folder / "added_tokens.json")
        entries = {number: {"content": text} for text, number in by_text.items()}
        special = {fields["content"] for fields in named_tokens(folder, settings).values()}
        for fields in entries.values():
            is_special = fields["content"] in special
            fields |= {"normalized": not is_special, "special": is_special}
    wrong = [number for number in entries if not str(number).isdecimal()]
    if wrong:
        text = f"an added token of {folder} has the id {wrong[0]!r:.80}; wanted a number"
        raise ValueError(f"{text} ({ADDED})")
    return {int(n): _fields(entries[n], f"token {n} ({ADDED})") for n in sorted(entries, key=int)}


def _object(path):
    """The object in a file; an empty one where there is no file."""
    return read_json(path) if path.is_file() else {}


def _fields(value, name):
    """Fields of a token that is given as a text or as an object; name: of the token, for errors."""
    if isinstance(value, str):
        value = {"content": value, "special": True}
    content = value.get("content") if isinstance(value, dict) else None
    if not _is_text(content):
        text = f"{name} is {value!r:.80}"
        raise ValueError(f"{text}; wanted a text, or an object with content")
    return {"content": content} | {flag: value[flag] for flag in FLAGS if flag in value}


def _is_text(value):
    """Whether a value is a text without halves of characters (lone surrogates)."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def named_tokens(folder, settings):
    """{key: fields} of special tokens: cls_token, …; those without a name are extra_0, …"""
    if "added_tokens_decoder" not in settings:
        settings = settings | _object(folder / "special_tokens_map.json")
    extra = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or []
    extra = extra.values() if isinstance(extra, dict) else extra
    given = {key: settings[key] for key in NAMED if settings.get(key) is not None}
    given |= {f"extra_{i}": value for i, value in enumerate(extra)}
    named = {key: _fields(value, f"{key} ({NAMING})") for key, value in given.items()}
    return {key: fields | {"special": True} for key, fields in named.items()}


def _add_missing(tokenizer, entries, keep):
    """Add tokens by their ids; keep: those that are there stay as they are."""
    from tokenizers import AddedToken

    for fields in entries.values():
        token = AddedToken(**fields)
        present = _present(tokenizer, token.content)
        if present is None or (not keep and repr(token) != repr(present)):
            tokenizer.add_tokens([token])


def _add_named(tokenizer, entries, named, from_vocabulary):
    """Add special tokens that are not there, or that a folder without tokenizer.json describes."""
    from tokenizers import AddedToken

    of_ids = {fields["content"] for fields in entries.values()}
    for fields in named.values():
        is_described = from_vocabulary and bool(fields.keys() - {"content", "special"})
        is_new = _present(tokenizer, fields["content"]) is None
        if is_new or (is_described and fields["content"] not in of_ids):
            tokenizer.add_tokens([AddedToken(**fields)])


def _present(tokenizer, text):
    """The added token that a text already is, or None."""
    return tokenizer.get_added_tokens_decoder().get(tokenizer.token_to_id(text))


def check_ids(tokenizer, folder, settings):
    """Raise ValueError for an added token that has another id than its folder says."""
    for number, fields in added(folder, settings).items():
        text = fields["content"]
        if tokenizer.token_to_id(text) != number:
            given = tokenizer.token_to_id(text)
            raise ValueError(
                f"the tokenizer in {folder} adds {text!r} as {number}, but "
                f"{'has no such token' if given is None else f'its id here is {given}'}; fix "
                "added_tokens_decoder of tokenizer_config.json, or added_tokens.json"
            )


# --- the ends of a text


def _set_ends(tokenizer, kind, named, settings, from_vocabulary):
    """What stands before and after a text: of the class, of the settings, or of the file."""
    from tokenizers.processors import BertProcessing, RobertaProcessing, TemplateProcessing

    ends = "file" if kind is None else kind.ends
    begin, end = ("bos_token", "eos_token") if ends == "clip" else ("cls_token", "sep_token")
    if ends in ("bert", "roberta", "clip"):
        pair = [(text, tokenizer.token_to_id(text)) for text in _contents(named, end, begin)]
        if ends == "bert":
            tokenizer.post_processor = BertProcessing(*pair)
        elif kind.model == "Unigram":
            (end, _), (begin, _) = pair
            both = f"{begin} $A {end} {end} $B {end}"
            tokenizer.post_processor = TemplateProcessing(f"{begin} $A {end}", both, pair)
        else:
            prefix = bool(settings.get("add_prefix_space", False))
            tokenizer.post_processor = RobertaProcessing(*pair, ends != "clip", prefix)
    elif from_vocabulary:
        _bos_and_eos(tokenizer, named, settings)
    elif ends == "none":
        tokenizer.post_processor = TemplateProcessing("$A", "$A $B:1", [])


def _contents(named, *keys):
    return [named[key]["content"] for key in keys]


def _bos_and_eos(tokenizer, named, settings):
    """GPT-2: the tokens before and after a text, which its settings switch on."""
    from tokenizers.processors import TemplateProcessing

    keys = [key for key in ("bos_token", "eos_token") if settings.get(f"add_{key}")]
    if not keys:
        return
    tokens = {key: named[key]["content"] for key in keys if key in named}
    whole = [tokens.get("bos_token"), "{}", tokens.get("eos_token")]
    text = " ".join(part for part in whole if part)
    numbers = [(token, tokenizer.token_to_id(token)) for token in set(tokens.values())]
    pair = f"{text.format('$A:0')} {text.format('$B:1')}"
    tokenizer.post_processor = TemplateProcessing(text.format("$A"), pair, special_tokens=numbers)
