"""The reference library's tokenizer classes: what each makes of a vocabulary.

Most of them build their tokenizer anew, so that the normalizer, the words and the decoder that a
tokenizer.json says do not count, only its vocabulary, its added tokens and, in some, its ends.
minitx gives the ids of these classes, as transformers 5.23 has them, and warns where the file asks
for others. A class that is not here, and the types in OWN_FILE, take the file as it is.

Order: the class of a folder, the parts of each class, the table.
"""

import base64
import json
from typing import Any, NamedTuple

FILE = ""  # no class: tokenizer.json counts as it is
OWN_FILE = "modernbert mistral phi3 olmo2 granite stablelm".split()  # whatever class is named
BY_FAMILY = {  # model_type -> class; others have none
    **dict.fromkeys(("bert", "distilbert", "electra"), "BertTokenizer"),
    **dict.fromkeys(("roberta", "bart"), "RobertaTokenizer"),
    **dict.fromkeys("gpt2 gptj gpt_neo opt phi starcoder2".split(), "GPT2Tokenizer"),
    **dict.fromkeys(("gpt_neox", "olmo"), "GPTNeoXTokenizer"),
    **dict.fromkeys(("qwen2", "qwen3"), "Qwen2Tokenizer"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "GemmaTokenizer"),
    "mpnet": "MPNetTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
    "clip": "CLIPTokenizer",
    "deberta": "DebertaTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
    "albert": "AlbertTokenizer",
}
ALIASES = {
    **dict.fromkeys(("DistilBertTokenizer", "ElectraTokenizer"), "BertTokenizer"),
    **dict.fromkeys(("BartTokenizer", "LongformerTokenizer"), "RobertaTokenizer"),
    "CodeLlamaTokenizer": "LlamaTokenizer",
}
QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CLIP = (
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
)


class Parts(NamedTuple):
    """What a class puts in the place of a tokenizer's own."""

    normalizer: Any
    words: Any
    decoder: Any


class Kind(NamedTuple):
    """One class of the reference library."""

    parts: Any  # (settings, the file's normalizer) -> Parts
    tokens: dict  # its special tokens, where no setting names them
    model: str  # what cuts a word into pieces: BPE, WordPiece, Unigram
    ends: str = "file"  # bert, roberta: cls and sep; clip: bos and eos; none; file: the file's own
    unknown: str = ""  # key of the token for what it does not know, if it has one
    fuse: bool = False  # BPE: several such become one, and bytes stand for them


def of(settings, model_type, of_bytes):
    """Name of the class that reads a folder, FILE for none; of_bytes: its file is byte-level."""
    own = BY_FAMILY.get(model_type, FILE)
    named = str(settings.get("tokenizer_class") or own).removesuffix("Fast")
    if model_type in OWN_FILE or (named == "LlamaTokenizer" and of_bytes):
        return FILE
    if model_type == "qwen2":  # those of its hub folders are known to be wrong
        return own
    named = ALIASES.get(named, named)
    return named if named in KINDS else FILE


def rebuild(tokenizer, kind, settings, named):
    """Put a Kind's parts in the place of a tokenizer's own; its pieces and merges stay."""
    if hasattr(tokenizer.model, "_clear_cache"):  # words that were cut in the old way
        tokenizer.model._clear_cache()
    normalizer, words, decoder = kind.parts(settings, tokenizer.normalizer)
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, words, decoder
    model = tokenizer.model
    if kind.unknown in named:
        model.unk_token = named[kind.unknown]["content"]
    if kind.model == "BPE":
        model.fuse_unk = model.byte_fallback = kind.fuse
        model.ignore_merges = False
        model.end_of_word_suffix = "</w>" if kind.ends == "clip" else ""


# --- parts


def _bytes(settings, _):
    from tokenizers import decoders, pre_tokenizers

    prefix = bool(settings.get("add_prefix_space", False))
    return Parts(None, pre_tokenizers.ByteLevel(prefix), decoders.ByteLevel())


def _composed_bytes(settings, own):
    from tokenizers import normalizers

    return _bytes(settings, own)._replace(normalizer=normalizers.NFC())


def _split_bytes(settings, own):
    """Qwen: cut by a pattern, then bytes."""
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(QWEN), "isolated")
    level = pre_tokenizers.ByteLevel(bool(settings.get("add_prefix_space")), use_regex=False)
    return _composed_bytes(settings, own)._replace(words=pre_tokenizers.Sequence([split, level]))


def _clip(settings, own):
    from tokenizers import Regex, normalizers, pre_tokenizers

    blanks = normalizers.Replace(Regex(r"\s+"), " ")
    lower = normalizers.Sequence([normalizers.NFC(), blanks, normalizers.Lowercase()])
    split = pre_tokenizers.Split(Regex(CLIP), "removed", invert=True)
    words = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False)])
    return Parts(lower, words, _bytes(settings, own).decoder)


def _bert(settings, _):
    """Lower case and accents as the settings say."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    chinese = settings.get("tokenize_chinese_chars", True)
    accents, lower = settings.get("strip_accents"), settings.get("do_lower_case", True)
    normalizer = normalizers.BertNormalizer(True, chinese, accents, lower)
    return Parts(normalizer, pre_tokenizers.BertPreTokenizer(), decoders.WordPiece("##"))


def _llama(settings, _):
    from tokenizers import decoders, pre_tokenizers

    prefix = settings.get("add_prefix_space")
    prefix = True if prefix is None else prefix
    scheme = "always" if settings.get("legacy", False) else "first"
    words = pre_tokenizers.Metaspace("▁", scheme if prefix else "never", split=False)
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    return Parts(None, words, decoders.Sequence([*_blanks(), *strip]))


def _blanks():
    """How pieces in which ▁ is a blank, and bytes, become a text."""
    from tokenizers import decoders

    return [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]


def _gemma(settings, _):
    from tokenizers import decoders, normalizers, pre_tokenizers

    words = pre_tokenizers.Split(" ", "merged_with_previous")
    return Parts(normalizers.Replace(" ", "▁"), words, decoders.Sequence(_blanks()))


def _deberta2(settings, _):
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers

    lower = [normalizers.Lowercase()] if settings.get("do_lower_case", False) else []
    blanks = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
    strip = normalizers.Strip(left=False, right=True)
    normalizer = normalizers.Sequence([*lower, blanks, normalizers.NFC(), strip])
    scheme = "always" if settings.get("add_prefix_space", True) else "first"
    cut = settings.get("split_by_punct", False)
    marks = [pre_tokenizers.Punctuation("isolated")] if cut else []
    words = pre_tokenizers.Sequence([*marks, pre_tokenizers.Metaspace("▁", scheme)])
    return Parts(normalizer, words, decoders.Metaspace("▁", scheme))


def _words(settings, own):
    """Words between blanks, each behind a ▁, as SentencePiece normalizes them."""
    from tokenizers import decoders, normalizers, pre_tokenizers

    charsmap = _charsmap(own)
    normalizer = None if charsmap is None else normalizers.Precompiled(charsmap)
    scheme = "always" if settings.get("add_prefix_space", True) else "never"
    space = pre_tokenizers.Metaspace("▁", scheme)
    words = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    return Parts(normalizer, words, decoders.Metaspace("▁", scheme))


def _albert(settings, own):
    from tokenizers import normalizers

    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not settings.get("keep_accents", False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if settings.get("do_lower_case", True):
        steps.append(normalizers.Lowercase())
    parts = _words(settings, own)
    steps += [parts.normalizer] if parts.normalizer is not None else []
    return parts._replace(normalizer=normalizers.Sequence(steps))


def _charsmap(normalizer):
    """SentencePiece's own table of characters in a normalizer, or None."""
    state = {} if normalizer is None else json.loads(normalizer.__getstate__())
    steps = [
        step for step in state.get("normalizers", [state]) if step.get("type") == "Precompiled"
    ]
    return base64.b64decode(steps[0]["precompiled_charsmap"]) if steps else None


# --- the table


def _named(text):
    """{key: fields} of "bos=<s> …"; a key that ends in ^ takes the blank before it."""
    pairs = [part.split("=", 1) for part in text.split()]
    more = {True: {"lstrip": True}, False: {}}
    return {
        f"{key.rstrip('^')}_token": {"content": value, **more[key.endswith("^")]}
        for key, value in pairs
    }


S = "bos=<s> eos=</s> unk=<unk> sep=</s> pad=<pad> cls=<s>"
CLS = "bos=[CLS] eos=[SEP] unk=[UNK] sep=[SEP] pad=[PAD] cls=[CLS]"
END = "<|endoftext|>"
ALL = f"bos={END} eos={END} unk={END}"
KINDS = {
    "GPT2Tokenizer": Kind(_bytes, _named(ALL), "BPE"),
    "RobertaTokenizer": Kind(_bytes, _named(f"{S} mask=<mask>"), "BPE", "roberta"),
    "DebertaTokenizer": Kind(_bytes, _named(f"{CLS} mask=[MASK]"), "BPE", "roberta"),
    "GPTNeoXTokenizer": Kind(_composed_bytes, _named(f"{ALL} pad=<|padding|>"), "BPE", "none"),
    "Qwen2Tokenizer": Kind(_split_bytes, _named(f"eos={END} unk={END} pad={END}"), "BPE"),
    "CLIPTokenizer": Kind(
        _clip,
        _named(f"bos=<|startoftext|> eos={END} unk={END} pad={END}"),
        "BPE",
        "clip",
        unknown="unk_token",
    ),
    "LlamaTokenizer": Kind(_llama, _named("bos=<s> eos=</s> unk=<unk>"), "BPE", fuse=True),
    "GemmaTokenizer": Kind(
        _gemma,
        _named("bos=<bos> eos=<eos> unk=<unk> pad=<pad> mask=<mask>"),
        "BPE",
        unknown="unk_token",
        fuse=True,
    ),
    "BertTokenizer": Kind(
        _bert,
        _named("unk=[UNK] sep=[SEP] pad=[PAD] cls=[CLS] mask=[MASK]"),
        "WordPiece",
        "bert",
        unknown="unk_token",
    ),
    "MPNetTokenizer": Kind(
        _bert,
        _named("bos=<s> eos=</s> unk=[UNK] sep=</s> pad=<pad> cls=<s> mask^=<mask>"),
        "WordPiece",
        "roberta",
        unknown="unk_token",
    ),
    "DebertaV2Tokenizer": Kind(_deberta2, _named(f"{CLS} mask=[MASK]"), "Unigram", "bert"),
    "XLMRobertaTokenizer": Kind(_words, _named(f"{S} mask=<mask>"), "Unigram", "roberta"),
    "CamembertTokenizer": Kind(_words, _named(f"{S} mask^=<mask>"), "Unigram", "roberta"),
    "AlbertTokenizer": Kind(
        _albert,
        _named("bos=[CLS] eos=[SEP] unk=<unk> sep=[SEP] pad=<pad> cls=[CLS] mask=[MASK]"),
        "Unigram",
        "bert",
    ),
}
