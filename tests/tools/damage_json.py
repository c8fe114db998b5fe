"""Damage to JSON: to files of it, and to the header of a safetensors file.

Each kind is two functions: `draw_…(dice, folder, name)` gives what `do_…(folder, …)` takes, or
None; the second changes the folder.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

from folders import content


class Kind(NamedTuple):
    reads: Callable  # (name, folder) -> whether it can be done to that file
    draw: Callable  # (dice, folder, name) -> what `do` takes, or None
    do: Callable  # (folder, *what was drawn): changes the folder


# values as they are written; "@nest 9" and the like are written out by `literal`
VALUES = (
    *("null", "true", "false", "0", "1", "-1", "2", "3", "1.5", "-0.0", "1e400", "-1e400", "NaN"),
    *("Infinity", "1e-320", "1e9", "4294967296", "9223372036854775807", "18446744073709551616"),
    *('""', '"x"', '"1"', '"None"', '"\\ud800"', '"\\u0000"', '"\\u001b[2J"', '"../x"', "[]"),
    *("{}", "[1]", "[null]", '["x"]', '{"a": 1}', "[[]]", "[[1]]", "[1, 2, 3]", '{"1": "x"}'),
    *("@nest 60", "@nest 100000", "@braces 3000", "@digits 400", "@digits 5000"),
    *("@string 100000", "@keys 10000", "bad", '"open', "@numbers 10000"),
)
WORDS = (
    *("bert", "roberta", "gpt2", "bart", "marian", "t5", "distilbert", "llama", "camembert"),
    *("gelu", "gelu_new", "relu", "tanh", "swish", "gated-gelu", "gated-", "gelu_fast", "silu"),
    *("F64", "F32", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "float16", "fp32"),
    *("BertForMaskedLM", "GPT2LMHeadModel", "T5ForConditionalGeneration", "BartModel"),
    *("RobertaForSequenceClassification", "MarianMTModel", "BertJapaneseTokenizer", "mecab"),
    *("WordPiece", "BPE", "Unigram", "WordLevel", "ByteLevel", "Whitespace", "Metaspace"),
    *("model.safetensors", "config.json", "/etc/passwd", "../config.json", ".", "/dev/zero"),
    *("basic", "character", "ipadic", "unidic", "[UNK]", "<unk>", "relative_key", "absolute"),
)
KEYS = (
    *("model_type", "hidden_size", "vocab_size", "architectures", "tie_word_embeddings", "n_embd"),
    *("layer_norm_eps", "pad_token_id", "eos_token_id", "decoder_start_token_id", "is_decoder"),
    *("bad_words_ids", "forced_bos_token_id", "do_lower_case", "strip_accents", "add_prefix_space"),
    *("word_tokenizer_type", "mecab_kwargs", "separate_vocabs", "extra_ids", "weight_map", "dtype"),
    *("__metadata__", "data_offsets", "shape", "added_tokens", "normalizer", "post_processor"),
    *("eos_token", "unk_token", "added_tokens_decoder", "additional_special_tokens", "cls_token"),
    *("tokenizer_class", "scale_embedding", "n_inner", "d_kv", "generation", "", "quantization"),
)
FILES = (  # that are made anew
    *("generation_config.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.json", "config.json", "model.safetensors.index.json"),
)


class Pairs(list):
    """A JSON object as a list of [key, value], in which a key may stand twice."""


def pairs(members):
    return Pairs(map(list, members))


class Literal(str):
    """A value as it is written."""


LONG = {
    "@nest": lambda n: "[" * n + "]" * n,
    "@braces": lambda n: '{"a":' * n + "1" + "}" * n,
    "@digits": lambda n: "9" * n,
    "@string": lambda n: '"' + "a" * n + '"',
    "@keys": lambda n: "{" + ",".join(f'"k{i}": {i}' for i in range(n)) + "}",
    "@numbers": lambda n: "[" + ",".join(map(str, range(n))) + "]",
}


def literal(text):
    """What a value of VALUES stands for: nested lists, long numbers, strings and objects."""
    kind, _, size = text.partition(" ")
    return LONG[kind](int(size)) if kind in LONG else text


def dump(value):
    """JSON of Pairs, lists, plain values and Literals."""
    if isinstance(value, Literal):
        return literal(value)
    if isinstance(value, Pairs):
        inside = ", ".join(f"{json.dumps(key)}: {dump(part)}" for key, part in value)
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(dump, value))}]"
    return json.dumps(value)


def is_json(name, folder):
    return name.endswith((".json", ".safetensors"))


def text_of(folder, name):
    """The bytes of a JSON file, or of a header."""
    data = content(folder, name)
    if not name.endswith(".safetensors"):
        return data
    return data[8 : 8 + int.from_bytes(data[:8], "little")]


def tree(folder, name):
    """The JSON of a file, or of a header; None where there is none any more."""
    try:
        return json.loads(text_of(folder, name), object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None


def put_tree(folder, name, value):
    """Replace the JSON of a file or of a header, whose length is then right."""
    text = dump(value).encode()
    if name.endswith(".safetensors"):
        behind = content(folder, name)[8 + len(text_of(folder, name)) :]
        text += b" " * (-len(text) % 8)
        text = len(text).to_bytes(8, "little") + text + behind
    folder[name] = text


def draw_path(dice, value):
    """The keys that lead to some place inside; at each step further down with odds of 2 to 1."""
    path = []
    while isinstance(value, list) and value and (not path or dice.random() < 0.67):
        key = dice.below(len(value))
        path.append(value[key][0] if isinstance(value, Pairs) else key)
        value = inside(value, path[-1:])  # of a key that stands twice the first
    return path


def inside(value, path):
    """The value at a path."""
    for key in path:
        value = member(value, key)[1] if isinstance(value, Pairs) else value[key]
    return value


def member(value, key):
    """The first [key, value] with a key."""
    return next(pair for pair in value if pair[0] == key)


def draw_value(dice, old):
    """A value as it is written: near to the old one, of its kind, or any."""
    if type(old) is int and abs(old) < 2**64 and dice.random() < 0.5:
        near = old - 1, old + 1, 2 * old, old // 2, -old, 1000 * old, old + 0.5, float(old)
        return str(dice.pick(near))
    if isinstance(old, str) and dice.random() < 0.5:
        return json.dumps(dice.pick(WORDS))
    return dice.pick(VALUES)


def draw_set(dice, folder, name):
    value = tree(folder, name)
    if value is None:
        return None
    path = draw_path(dice, value) if dice.random() < 0.97 else []
    return [name, path, draw_value(dice, inside(value, path))]


def do_set(folder, name, path, text):
    value = tree(folder, name)
    if not path:
        return put_tree(folder, name, Literal(text))
    *above, last = path
    parent = inside(value, above)
    if isinstance(parent, Pairs):
        member(parent, last)[1] = Literal(text)
    else:
        parent[last] = Literal(text)
    return put_tree(folder, name, value)


def draw_path_only(dice, folder, name):
    value = tree(folder, name)
    path = draw_path(dice, value)
    return [name, path] if path else None


def do_drop(folder, name, path):
    """A key or a member of a list is gone."""
    value = tree(folder, name)
    *above, last = path
    parent = inside(value, above)
    if isinstance(parent, Pairs):
        parent.remove(member(parent, last))
    else:
        parent.pop(last)
    put_tree(folder, name, value)


def draw_add(dice, folder, name):
    value = tree(folder, name)
    path = draw_path(dice, value)[: dice.pick([0, 0, 9])]
    while path and not isinstance(inside(value, path), Pairs):
        path.pop()
    parent = inside(value, path)
    if not isinstance(parent, Pairs) or not parent:
        return None
    known = [pair[0] for pair in parent]
    key = dice.pick(known if dice.random() < 0.5 else KEYS)
    return [name, path, key, draw_value(dice, dict(parent).get(key, ""))]


def do_add(folder, name, path, key, text):
    """One more key at the end of an object, which then may have it twice."""
    value = tree(folder, name)
    inside(value, path).append([key, Literal(text)])
    put_tree(folder, name, value)


def draw_new(dice, folder, name):
    keys = dice.pick(KEYS), dice.pick(KEYS), dice.pick(KEYS)
    values = [draw_value(dice, "") for _ in keys]
    return [dice.pick(FILES), [*map(list, zip(keys, values))]]


def do_new(folder, name, members):
    """A new file with an object of a few keys."""
    folder[name] = dump(Pairs([key, Literal(text)] for key, text in members)).encode()


def draw_rename(dice, folder, name):
    drawn = draw_path_only(dice, folder, name)
    if drawn is None or not isinstance(drawn[1][-1], str):
        return None
    key = drawn[1][-1]
    return [*drawn, dice.pick([dice.pick(KEYS), key.upper(), key + ".", key[:-1], "x." + key])]


def do_rename(folder, name, path, new):
    value = tree(folder, name)
    *above, last = path
    member(inside(value, above), last)[0] = new
    put_tree(folder, name, value)


KINDS = {
    "set": Kind(is_json, draw_set, do_set),
    "drop": Kind(is_json, draw_path_only, do_drop),
    "add": Kind(is_json, draw_add, do_add),
    "new": Kind(is_json, draw_new, do_new),
    "rename": Kind(is_json, draw_rename, do_rename),
}
