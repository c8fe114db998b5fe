"""Tokenizer folders in which one file says something of another: what they hold, by name.

Written by hand, so that the same folder is made wherever the tests run. make_tokenizer_folders.py
asks the reference library for the ids of TEXTS in each of FOLDERS.
"""

import json

from tokenizers import pre_tokenizers

TEXTS = (
    "The Café",
    "the tide had gone out",
    " the tide",
    "Hello <new> the<new>tide",
    "he [NEW] out, Hello",
    "the tide <mask> out [MASK].",
    "<s> the </s> [CLS] out [SEP] <|endoftext|>",
    "日本 the",
    "HELLO the TIDE",
    "he <new> out / x",
)
PAIR = "the tide", "Hello"
WORDS = "The", "Café", "tide", "hadgone", "out,"
PIECES = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the The tide had gone out hello Hello he caf cafe café Café "
    "##s ##e ##é < > new [ ] mask s / cls sep 日 本 日本 , . <mask> <s> </s>"
).split()
MERGES = "h e|l l|t he|Ġ t|Ġt he|i d|t id|tid e|Ġt id|Ġtid e|o u|ou t|Ġ out|H e|He ll|Hell o"
MERGES = MERGES.split("|")


def bpe(special):
    """{piece: id} of a byte-level BPE: special tokens, bytes, what merges make."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = [merge.replace(" ", "") for merge in MERGES]
    return {piece: i for i, piece in enumerate([*special, *alphabet, *merged])}


ROBERTA = bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
GPT2 = bpe(["<|endoftext|>"])


def added(content, number, special=True, **more):
    """An entry of added_tokens."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": not special}
    return {"id": number, "content": content, **flags, "special": special, **more}


def decoder(*entries):
    """The same entries as tokenizer_config.json has them."""
    numbered = {}
    for entry in entries:
        own = dict(entry)
        numbered[str(own.pop("id"))] = own
    return {"added_tokens_decoder": numbered}


def tokenizer_json(tokens, model, **parts):
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer"))
    rest = {"post_processor": None, "decoder": None}
    whole = {"version": "1.0", **empty, **rest, "added_tokens": tokens, "model": model, **parts}
    return {"tokenizer.json": json.dumps(whole)}


def byte_level(prefix, **more):
    level = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True}
    return {**level, "use_regex": True, **more}


def bert_json(lower=True):
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    normalizer |= {"strip_accents": None, "lowercase": lower}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    model |= {"max_input_chars_per_word": 100, "vocab": {p: i for i, p in enumerate(PIECES)}}
    tokens = [added(piece, i) for i, piece in enumerate(PIECES[:5])]
    processor = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    parts = {"normalizer": normalizer, "post_processor": processor}
    parts["pre_tokenizer"] = {"type": "BertPreTokenizer"}
    parts["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    return tokenizer_json(tokens, model, **parts)


def bpe_json(vocab, tokens, processor, prefix=False):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False}
    model |= {"continuing_subword_prefix": "", "end_of_word_suffix": "", "byte_fallback": False}
    model |= {"vocab": vocab, "merges": MERGES}
    parts = {"pre_tokenizer": byte_level(prefix), "decoder": byte_level(True)}
    return tokenizer_json(tokens, model, post_processor=processor, **parts)


def roberta_json(prefix=False):
    tokens = [added(p, i, lstrip=p == "<mask>") for p, i in ROBERTA.items() if i < 5]
    processor = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
    processor |= {"trim_offsets": True, "add_prefix_space": prefix}
    return bpe_json(ROBERTA, tokens, processor, prefix)


def gpt2_json(prefix=False):
    return bpe_json(GPT2, [added("<|endoftext|>", 0)], byte_level(True), prefix)


def bpe_files(vocab):
    merges = "#version: 0.2\n" + "".join(f"{merge}\n" for merge in MERGES)
    return {"vocab.json": json.dumps(vocab), "merges.txt": merges}


def vocab_txt(mark=""):
    return {"vocab.txt": mark + "".join(f"{piece}\n" for piece in PIECES)}


ENDS = {"<s>": 0, "</s>": 2}


def metaspace_json():
    """XLM-RoBERTa's tokenizer.json, of few pieces."""
    pieces = "<s> <pad> </s> <unk> ▁ ▁the the ▁tide tide ▁out out e t h o u i d <mask>".split()
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    ends = [{"SpecialToken": {"id": end, "type_id": 0}} for end in ENDS]
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    template = {"type": "TemplateProcessing", "single": [ends[0], first, ends[1]]}
    template["pair"] = [ends[0], first, ends[1], ends[1], second, ends[1]]
    numbered = [(end, {"id": end, "ids": [i], "tokens": [end]}) for end, i in ENDS.items()]
    template["special_tokens"] = dict(numbered)
    tokens = [added(piece, i) for i, piece in enumerate(pieces[:4])]
    tokens.append(added("<mask>", len(pieces) - 1, lstrip=True))
    scores = [[piece, -float(i)] for i, piece in enumerate(pieces)]
    model = {"type": "Unigram", "unk_id": 3, "vocab": scores}
    words = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]}
    parts = {"pre_tokenizer": words, "post_processor": template, "decoder": space}
    return tokenizer_json(tokens, model, **parts)


NEW_BERT = added("[NEW]", len(PIECES)), added("<new>", len(PIECES) + 1, special=False)
NEW_ROBERTA = (
    added("<new>", len(ROBERTA)),
    added("[NEW]", len(ROBERTA) + 1, False, lstrip=True),
    added("<mask>", 4, lstrip=True),
)
NEW_GPT2 = added("[NEW]", len(GPT2)), added("<new>", len(GPT2) + 1, special=False, rstrip=True)
MASK = {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False}
BASES = {  # base -> (model_type, files, its class, entries that are added)
    "bert-vocab": ("bert", vocab_txt(), "BertTokenizer", NEW_BERT),
    "bert-json": ("bert", bert_json(), "BertTokenizer", NEW_BERT),
    "bert-json-cased": ("bert", bert_json(lower=False), "BertTokenizer", NEW_BERT),
    "roberta-files": ("roberta", bpe_files(ROBERTA), "RobertaTokenizer", NEW_ROBERTA),
    "roberta-json": ("roberta", roberta_json(), "RobertaTokenizer", NEW_ROBERTA),
    "roberta-json-prefix": ("roberta", roberta_json(True), "RobertaTokenizer", NEW_ROBERTA),
    "gpt2-files": ("gpt2", bpe_files(GPT2), "GPT2Tokenizer", NEW_GPT2),
    "gpt2-json": ("gpt2", gpt2_json(), "GPT2Tokenizer", NEW_GPT2),
    "gpt2-json-prefix": ("gpt2", gpt2_json(True), "GPT2Tokenizer", NEW_GPT2),
    "plain-json": ("gpt2", gpt2_json(), "PreTrainedTokenizerFast", NEW_GPT2),
    "plain-roberta-json": ("roberta", roberta_json(), "PreTrainedTokenizerFast", NEW_ROBERTA),
    "metaspace-json": ("xlm-roberta", metaspace_json(), "XLMRobertaTokenizer", ()),
}
SETTINGS = {  # what a tokenizer_config.json says
    "nothing": {},
    "cased": {"do_lower_case": False},
    "lower": {"do_lower_case": True},
    "accents-kept": {"do_lower_case": True, "strip_accents": False},
    "accents-off": {"do_lower_case": False, "strip_accents": True},
    "chinese-together": {"do_lower_case": True, "tokenize_chinese_chars": False},
    "prefix": {"add_prefix_space": True},
    "no-prefix": {"add_prefix_space": False},
    "bos": {"add_bos_token": True, "bos_token": "<|endoftext|>"},
    "bos-and-eos": dict(add_bos_token=True, add_eos_token=True, bos_token="<s>", eos_token="</s>"),
    "no-bos": {"add_bos_token": False},
    "extra": {"additional_special_tokens": ["<new>", "[NEW]"]},
    "mask": {"mask_token": "<mask>"},
    "own-ends": {"cls_token": "<s>", "sep_token": "</s>"},
    "own-unknown": {"unk_token": "/"},
    "no-mask-before": {"mask_token": {"__type": "AddedToken", **MASK, "lstrip": False}},
    "split-special": {"split_special_tokens": True},
}
OF = {  # which of these a base is tried with: the beginning of its name
    "bert": "nothing cased lower accents-kept accents-off chinese-together extra mask own-ends bos "
    "own-unknown split-special",
    "roberta": "nothing prefix no-prefix no-mask-before bos-and-eos extra mask own-ends lower "
    "split-special",
    "gpt2": "nothing prefix no-prefix bos no-bos extra mask bos-and-eos split-special",
    "plain": "nothing prefix bos no-bos extra bos-and-eos split-special",
    "metaspace": "nothing prefix no-prefix",
}


OF_TYPES = [  # (model_type, files): without a class, as the type's own class builds them
    *((name, bpe_files(GPT2)) for name in "gptj opt phi gpt_neox qwen2 qwen3 clip".split()),
    *((name, gpt2_json(True)) for name in "gptj gpt_neox qwen2 clip bloom phi3 falcon".split()),
    *((name, vocab_txt()) for name in ("electra", "mpnet")),
    *((name, bert_json(lower=False)) for name in ("electra", "mpnet")),
    ("camembert", metaspace_json()),
    ("deberta", roberta_json(True)),
]


def config(**settings):
    return {"tokenizer_config.json": json.dumps(settings)}


def folders():
    """{name: {file: content}} of all of them."""
    named = {}
    for base, (model_type, own, name, new) in BASES.items():
        files = {"config.json": json.dumps({"model_type": model_type}), **own}
        for key in OF[base.partition("-")[0]].split():
            named[f"{base} {key}"] = files | config(tokenizer_class=name, **SETTINGS[key])
        named[f"{base} no-settings"] = files
        if new:
            named |= _with_added(base, files, name, new)
    for model_type, own in OF_TYPES:
        form = "json" if "tokenizer.json" in own else "files"
        settings = {"config.json": json.dumps({"model_type": model_type})}
        named[f"of {model_type} {form}"] = settings | own
    mark = {"config.json": '{"model_type": "bert"}', **vocab_txt("\ufeff")}
    return named | {"bert-vocab mark": mark}


def _with_added(base, files, name, new):
    """A base with tokens that are added in each of the three ways, and where they cannot be."""
    ids = {entry["content"]: entry["id"] for entry in new}
    by_text = {"added_tokens.json": json.dumps(ids), **config(tokenizer_class=name)}
    special = {"additional_special_tokens": [new[0]["content"]], "mask_token": MASK}
    by_map = {"special_tokens_map.json": json.dumps(special)}
    by_ids = config(tokenizer_class=name, **decoder(*new))
    elsewhere = decoder(added("<new>", 900), added("[NEW]", 7))
    more = {"added": by_text, "added-special": by_text | by_map, "added-decoder": by_ids}
    more["added-elsewhere"] = config(tokenizer_class=name, **elsewhere)
    return {f"{base} {kind}": files | others for kind, others in more.items()}


FOLDERS = folders()


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8", newline="")
    return folder
