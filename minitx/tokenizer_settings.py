"""What the settings beside a tokenizer change in it, as the reference library has it.

tokenizer_config.json may say something else than tokenizer.json, and other files add tokens to
both. The library builds the tokenizers of BERT, RoBERTa and GPT-2 anew from their vocabulary, so
that there the settings, or their defaults, count for more than tokenizer.json.

Order: `settled`, letter case and blanks, added tokens, the ends of a text.
"""

from .files import read_json

BERT = "BertTokenizer", "DistilBertTokenizer"
ROBERTA = "RobertaTokenizer", "BartTokenizer"
BYTES = *ROBERTA, "GPT2Tokenizer"
BLANKS = "XLMRobertaTokenizer", "CamembertTokenizer"  # a blank is a piece of its own
BY_FAMILY = {  # model_type -> the library's class
    "bert": "BertTokenizer",
    "distilbert": "DistilBertTokenizer",
    "roberta": "RobertaTokenizer",
    "bart": "BartTokenizer",
    "gpt2": "GPT2Tokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
}
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
NAMING = "tokenizer_config.json, special_tokens_map.json"  # files in which tokens have names
ADDED = "added_tokens_decoder of tokenizer_config.json, or added_tokens.json"
FLAGS = "lstrip", "rstrip", "normalized", "single_word", "special"


def settled(tokenizer, folder, settings, model_type):
    """The tokenizer of a tokenizer.json, or of a vocabulary, with what the settings change in it.

    settings: of config.json and tokenizer_config.json. Raises ValueError for those that no token
    can follow.
    """
    kind = _class(settings, model_type)
    if kind in BERT:
        _normalize(tokenizer, settings)
    if kind in BYTES:
        _prefix(tokenizer, settings)
    if kind in BLANKS and settings.get("add_prefix_space", True) is not True:
        raise ValueError(f"add_prefix_space is off in {folder}; a {kind} is supported only with it")
    named = named_tokens(folder, settings)
    from_vocabulary = not (folder / "tokenizer.json").is_file()
    keep = not (from_vocabulary or "added_tokens_decoder" in settings)
    _add_missing(tokenizer, added(folder, settings), keep)
    _add_named(tokenizer, added(folder, settings), named, from_vocabulary)
    if kind in (*BERT, *ROBERTA):
        _own_ends(tokenizer, kind, named)
    elif kind in BYTES and from_vocabulary:
        _bos_and_eos(tokenizer, named, settings)
    tokenizer.encode_special_tokens = bool(settings.get("split_special_tokens", False))
    return tokenizer


def _class(settings, model_type):
    """Name of the library's class."""
    named = settings.get("tokenizer_class") or BY_FAMILY.get(model_type, "")
    return str(named).removesuffix("Fast")


def _normalize(tokenizer, settings):
    """BERT: lower case and accents as the settings say."""
    from tokenizers.normalizers import BertNormalizer

    if not isinstance(tokenizer.normalizer, BertNormalizer):
        return
    chinese = settings.get("tokenize_chinese_chars", True)
    accents = settings.get("strip_accents")
    lower = settings.get("do_lower_case", True)
    tokenizer.normalizer = BertNormalizer(True, chinese, accents, lower)


def _prefix(tokenizer, settings):
    """Byte-level BPE: a blank before the first word only where the settings say so."""
    from tokenizers.pre_tokenizers import ByteLevel

    if isinstance(tokenizer.pre_tokenizer, ByteLevel):
        tokenizer.pre_tokenizer.add_prefix_space = settings.get("add_prefix_space", False)


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


def _own_ends(tokenizer, kind, named):
    """BERT, RoBERTa: what stands before and after a text, and BERT's unknown, where named."""
    from tokenizers.processors import BertProcessing, RobertaProcessing

    if kind in BERT and "unk_token" in named:
        tokenizer.model.unk_token = named["unk_token"]["content"]
    if not {"cls_token", "sep_token"} & named.keys():
        return
    usual = ("[CLS]", "[SEP]") if kind in BERT else ("<s>", "</s>")
    pairs = zip(("cls_token", "sep_token"), usual)
    begin, end = (named[key]["content"] if key in named else text for key, text in pairs)
    both = [(token, tokenizer.token_to_id(token)) for token in (end, begin)]
    processing = BertProcessing if kind in BERT else RobertaProcessing
    tokenizer.post_processor = processing(*both)


def _bos_and_eos(tokenizer, named, settings):
    """GPT-2: the tokens before and after a text, which its settings switch on."""
    from tokenizers.processors import TemplateProcessing

    keys = [key for key in ("bos_token", "eos_token") if settings.get(f"add_{key}")]
    if not keys:
        return
    tokens = {key: named.get(key, {"content": "<|endoftext|>"})["content"] for key in keys}
    whole = [tokens.get("bos_token"), "{}", tokens.get("eos_token")]
    text = " ".join(part for part in whole if part)
    numbers = [(token, tokenizer.token_to_id(token)) for token in set(tokens.values())]
    pair = f"{text.format('$A:0')} {text.format('$B:1')}"
    tokenizer.post_processor = TemplateProcessing(text.format("$A"), pair, special_tokens=numbers)
