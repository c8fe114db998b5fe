"""Damage to a checkpoint folder, as data: ["set", "config.json", ["hidden_size"], "1e400"].

A folder is {name: Path of a file, its bytes, or a Special}; a mutation is a list whose first word
is a function of `KINDS`, which says how it is drawn and how it is done. What is drawn depends on
`random()` alone, whose sequence for a seed is the same in every version of Python.

Order: the folders that are damaged, drawing, the kinds of damage (JSON, safetensors, bytes, lines,
files), writing a folder.
"""

import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
PIECES = GOLDEN / "pieces"
BUNDLED = "tiny-bart", "tiny-bert", "tiny-gpt2", "tiny-roberta"
NOT_READ = "reference", "internals", "unpatched"  # files of a golden folder that are not loaded
MECAB = b'{"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "mecab"}'
# folder: the golden variant that its model is from, and the folder of its tokenizer
WITH_TEXT = {
    "roberta-merges": ("roberta-masked", PIECES / "bart"),
    "gpt2-merges": ("gpt2-causal", PIECES / "bart"),
    "marian-pieces": ("marian-shared", PIECES / "marian"),
    "marian-pieces-separate": ("marian-separate", PIECES / "separate"),
    "t5-pieces": ("t5-gated", PIECES / "t5"),
    "t5-json": ("t5-relu", PIECES / "t5-json"),
}


class Special(NamedTuple):
    """A name in a folder that is no ordinary file: "folder", "fifo" or "link" to a target."""

    kind: str
    target: str = ""


def golden(variant):
    """The files of a golden variant that are loaded."""
    files = (GOLDEN / variant).iterdir()
    return {path.name: path for path in files if path.stem not in NOT_READ}


def bases():
    """{name: folder}: every golden variant, those with a tokenizer's files, the bundled ones."""
    variants = sorted(path.parent.name for path in GOLDEN.glob("*/config.json"))
    folders = {variant: golden(variant) for variant in variants}
    for name, (variant, text) in WITH_TEXT.items():
        folders[name] = golden(variant) | {path.name: path for path in text.iterdir()}
    vocab = {"vocab.txt": GOLDEN / "japanese" / "vocab.txt"}
    folders["bert-wordpiece"] = golden("bert-masked") | vocab
    settings = {"tokenizer_config.json": MECAB}
    folders["bert-japanese"] = golden("bert-untied") | vocab | settings
    for name in BUNDLED:
        files = (ROOT / "weights" / name).iterdir()
        folders[name] = {path.name: path for path in files if path.suffix != ".md"}
    return folders


class Case(NamedTuple):
    """A base folder's name, and the mutations that are done to it, in order."""

    base: str
    mutations: list


class Dice:
    """Random choices that are the same in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, n):
        return int(self.random() * n)

    def pick(self, options):
        """A member of a sequence, all as likely."""
        return options[self.below(len(options))]


def draw(seed, number, folders):
    """Case `number` of a seed: up to three mutations, most often one."""
    dice = Dice(f"{seed} {number}")
    with_text = [*WITH_TEXT, *BUNDLED, "bert-wordpiece", "bert-japanese"]
    name = dice.pick(with_text if dice.random() < 0.5 else sorted(folders))
    folder, mutations = dict(folders[name]), []
    wanted = 1 + (dice.random() < 0.35) + (dice.random() < 0.15)
    while len(mutations) < wanted:
        kind = dice.pick(OFTEN)
        files = sorted(file for file in folder if KINDS[kind].reads(file, folder))
        drawn = KINDS[kind].draw(dice, folder, dice.pick(files)) if files else None
        if drawn is not None:
            mutations.append([kind, *drawn])
            folder = mutated(folder, mutations[-1])
    return Case(name, mutations)


def damaged(case, folders):
    """The folder of a case."""
    folder = dict(folders[case.base])
    for mutation in case.mutations:
        folder = mutated(folder, mutation)
    return folder


def mutated(folder, mutation):
    """A copy of a folder after one mutation."""
    kind, *given = mutation
    folder = dict(folder)
    KINDS[kind].do(folder, *given)
    return folder


def content(folder, name):
    """The bytes of a file; none of what is no file."""
    value = folder[name]
    if isinstance(value, Path):
        return value.read_bytes()
    return b"" if isinstance(value, Special) else value


# --- JSON: the files, and the header of a safetensors file

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
    *("tokenizer_class", "scale_embedding", "n_inner", "d_kv", "generation", "", "quantization"),
)


class Pairs(list):
    """A JSON object as a list of [key, value], in which a key may stand twice."""


def pairs(members):
    """What the parser gives of an object, as Pairs."""
    return Pairs(map(list, members))


class Literal(str):
    """A value as it is written."""


def literal(text):
    """What a value of VALUES stands for: nested lists, long numbers, strings and objects."""
    kind, _, size = text.partition(" ")
    if not kind.startswith("@"):
        return text
    n = int(size)
    return {
        "@nest": lambda: "[" * n + "]" * n,
        "@braces": lambda: '{"a":' * n + "1" + "}" * n,
        "@digits": lambda: "9" * n,
        "@string": lambda: '"' + "a" * n + '"',
        "@keys": lambda: "{" + ",".join(f'"k{i}": {i}' for i in range(n)) + "}",
        "@numbers": lambda: "[" + ",".join(map(str, range(n))) + "]",
    }[kind]()


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
    """Whether a name is that of a file with JSON in it."""
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
        value = value[key][1] if isinstance(value, Pairs) else value[key]
    return path


def inside(value, path):
    """The value at a path."""
    for key in path:
        value = dict(value)[key] if isinstance(value, Pairs) else value[key]
    return value


def draw_value(dice, old):
    """A value as it is written: near to the old one, of its kind, or any."""
    if type(old) is int and dice.random() < 0.5:
        near = old - 1, old + 1, 2 * old, old // 2, -old, 1000 * old, old + 0.5
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
    """Another value at a path."""
    value = tree(folder, name)
    if not path:
        return put_tree(folder, name, Literal(text))
    *above, last = path
    parent = inside(value, above)
    if isinstance(parent, Pairs):
        next(pair for pair in parent if pair[0] == last)[1] = Literal(text)
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
        parent.remove(next(pair for pair in parent if pair[0] == last))
    else:
        parent.pop(last)
    put_tree(folder, name, value)


def draw_add(dice, folder, name):
    value = tree(folder, name)
    if not isinstance(value, Pairs) or not value:
        return None
    known = [pair[0] for pair in value]
    return [name, dice.pick(known if dice.random() < 0.5 else KEYS), draw_value(dice, "")]


def do_add(folder, name, key, text):
    """One more key at the end of the object, which then may have it twice."""
    value = tree(folder, name)
    value.append([key, Literal(text)])
    put_tree(folder, name, value)


def draw_rename(dice, folder, name):
    drawn = draw_path_only(dice, folder, name)
    if drawn is None or not isinstance(drawn[1][-1], str):
        return None
    key = drawn[1][-1]
    return [*drawn, dice.pick([dice.pick(KEYS), key.upper(), key + ".", key[:-1], "x." + key])]


def do_rename(folder, name, path, new):
    """A key has another name."""
    value = tree(folder, name)
    *above, last = path
    next(pair for pair in inside(value, above) if pair[0] == last)[0] = new
    put_tree(folder, name, value)


# --- safetensors, beyond the header

NUMBERS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
FILLS = {  # little-endian bytes of a float32
    "nan": "0000c07f",
    "inf": "0000807f",
    "largest": "ffff7f7f",
    "1e20": "8c78ad60",
    "tiny": "01000000",
    "zero": "00000000",
}


def is_tensors(name, folder):
    """Whether a name is that of a safetensors file."""
    return name.endswith(".safetensors") and folder[name] != b""


def tensors(folder, name):
    """{tensor: (dtype, shape, bytes)} of a sound file; None of any other."""
    data = content(folder, name)
    start = 8 + len(text_of(folder, name))
    try:
        entries = json.loads(text_of(folder, name))
        entries.pop("__metadata__", None)
        return {
            key: (entry["dtype"], entry["shape"], data[start:][slice(*entry["data_offsets"])])
            for key, entry in entries.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def pack(parts):
    """The bytes of a safetensors file."""
    entries, end = {}, 0
    for key, (dtype, shape, raw) in parts.items():
        begin, end = end, end + len(raw)
        entries[key] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(raw for *_, raw in parts.values())


def draw_tensor(dice, folder, name, more):
    """[file, tensor, *what `more` gives for its dtype, shape and bytes]."""
    parts = tensors(folder, name)
    if not parts:
        return None
    key = dice.pick([*parts])
    return [name, key, *more(*parts[key])]


def draw_recast(dice, folder, name):
    return draw_tensor(dice, folder, name, lambda *_: [dice.pick([*NUMBERS])])


def do_recast(folder, name, key, dtype):
    """Stored as another kind of number: as many of them, the first bytes of the old."""
    parts = tensors(folder, name)
    _, shape, raw = parts[key]
    parts[key] = dtype, shape, sized(raw, math.prod(shape) * NUMBERS[dtype])
    folder[name] = pack(parts)


def sized(raw, n):
    """n bytes: the first, and then zeros."""
    return raw[:n] + bytes(n - len(raw[:n]))


def draw_reshape(dice, folder, name):
    def shapes(dtype, shape, raw):
        longer = [max(0, size + dice.below(3) - 1) for size in shape]
        options = [shape[::-1], [math.prod(shape)], [1, *shape], [*shape, 1], longer, [0], []]
        return [dice.pick(options)]

    return draw_tensor(dice, folder, name, shapes)


def do_reshape(folder, name, key, shape):
    """Another shape, with as many bytes as it needs."""
    parts = tensors(folder, name)
    dtype, _, raw = parts[key]
    parts[key] = dtype, shape, sized(raw, math.prod(shape) * NUMBERS.get(dtype, 4))
    folder[name] = pack(parts)


def draw_fill(dice, folder, name):
    def numbers(dtype, shape, raw):
        size = NUMBERS.get(dtype, 4)
        return [dice.pick([*FILLS]), dice.pick(["all", dice.below(1 + len(raw) // size)])]

    return draw_tensor(dice, folder, name, numbers)


def do_fill(folder, name, key, value, place):
    """A number in place of all of a tensor's, or of the one at a place."""
    parts = tensors(folder, name)
    dtype, shape, raw = parts[key]
    number = bytes.fromhex(FILLS[value])[-NUMBERS.get(dtype, 4) :]
    if place == "all":
        new = (number * (1 + len(raw) // len(number)))[: len(raw)]
    else:
        begin = place * len(number)
        new = raw[:begin] + number + raw[begin + len(number) :]
    parts[key] = dtype, shape, new[: len(raw)]
    folder[name] = pack(parts)


def draw_lose(dice, folder, name):
    return draw_tensor(dice, folder, name, lambda *_: [])


def do_lose(folder, name, key):
    """A tensor is gone, header and bytes."""
    parts = tensors(folder, name)
    del parts[key]
    folder[name] = pack(parts)


def draw_twin(dice, folder, name):
    prefix = dice.pick(["roberta.", "bert.", "model.", "x.", "transformer.", ""])
    return draw_tensor(dice, folder, name, lambda *_: [prefix])


def do_twin(folder, name, key, prefix):
    """A tensor that is there twice, behind another prefix."""
    parts = tensors(folder, name)
    folder[name] = pack(parts | {f"{prefix}{key.partition('.')[2]}": parts[key]})


def draw_length(dice, folder, name):
    n = len(text_of(folder, name))
    sizes = 0, 1, 2, n - 8, n - 1, n + 1, n + 8, 10**8, 2**31, 2**63, 2**64 - 1
    return [name, dice.pick(sizes)]


def do_length(folder, name, n):
    """What the file says of the length of its header."""
    folder[name] = max(n, 0).to_bytes(8, "little") + content(folder, name)[8:]


# --- bytes and lines of any file


def is_file(name, folder):
    """Whether a name is still that of a file with something in it."""
    return bool(content(folder, name))


def draw_cut(dice, folder, name):
    n = len(content(folder, name))
    return [name, dice.pick([0, 1, 7, 8, 9, n // 2, n - 1, dice.below(n)])]


def do_cut(folder, name, n):
    """The file ends early."""
    folder[name] = content(folder, name)[:n]


HEX = "00", "ff", "0a", "0d0a", "efbbbf", "1b5b324a", "22", "5c", "edA080", "e280ae", "ffff7f7f"


def draw_bytes(dice, folder, name):
    n = len(content(folder, name))
    place = dice.below(min(n, dice.pick([16, 1024, n])))
    return [name, place, dice.pick([0, 1, 4, n]), dice.pick(HEX)]


def do_bytes(folder, name, place, n, new):
    """n bytes are replaced by others."""
    data = content(folder, name)
    folder[name] = data[:place] + bytes.fromhex(new) + data[place + n :]


def is_lines(name, folder):
    """Whether a name is that of a file that is read by lines."""
    return name.endswith(".txt") and is_file(name, folder)


LINES = "", " ", "a", "##a", "[UNK]", "a b", "a b c", "\u3000", "\x1b[2J", "\x00", "#version: 9"


def draw_line(dice, folder, name):
    n = content(folder, name).count(b"\n") + 1
    place = dice.below(min(n, dice.pick([6, n])))
    return [name, place, dice.below(2), dice.pick([*LINES, None])]


def do_line(folder, name, place, n, new):
    """n lines are replaced by another; None: a copy of the first line."""
    lines = content(folder, name).split(b"\n")
    text = lines[0] if new is None else new.encode()
    folder[name] = b"\n".join([*lines[:place], text, *lines[place + n :]])


# --- the names in a folder

NAMES = (
    *("config.json", "generation_config.json", "model.safetensors", "model.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "vocab.txt"),
    *("source.spm", "target.spm", "spiece.model", "target_vocab.json", "added_tokens.json"),
    *("special_tokens_map.json", "pytorch_model.bin", "model-00001-of-00003.safetensors", "x\n.md"),
)
SPECIALS = (
    *(["folder", ""], ["fifo", ""], ["link", "no-such-file"], ["link", "."], ["link", "/dev/null"]),
    *(["link", "/dev/zero"], ["link", "config.json"], ["link", "itself"], ["link", "/etc/passwd"]),
)


def is_any(name, folder):
    """Every name."""
    return True


def draw_gone(dice, folder, name):
    return [name]


def do_gone(folder, name):
    """A name is gone."""
    del folder[name]


def draw_moved(dice, folder, name):
    return [name, dice.pick(NAMES)]


def do_moved(folder, name, new):
    """A file is under another name; one that was there is now under the first."""
    if name == new:
        return
    moved = folder.pop(name)
    if new in folder:
        folder[name] = folder[new]
    folder[new] = moved


def do_copied(folder, name, new):
    """A file is there under another name too."""
    folder[new] = folder[name]


def draw_special(dice, folder, name):
    return [dice.pick([name, dice.pick(NAMES)]), *dice.pick(SPECIALS)]


def do_special(folder, name, kind, target):
    """A folder, a pipe or a link in place of a file; "itself": a link to its own name."""
    folder[name] = Special(kind, name if target == "itself" else target)


class Kind(NamedTuple):
    """One kind of damage."""

    reads: Callable  # (name, folder) -> whether it can be done to that file
    draw: Callable  # (dice, folder, name) -> what `do` takes, or None
    do: Callable  # (folder, *what was drawn): changes the folder


KINDS = {
    "set": Kind(is_json, draw_set, do_set),
    "drop": Kind(is_json, draw_path_only, do_drop),
    "add": Kind(is_json, draw_add, do_add),
    "rename": Kind(is_json, draw_rename, do_rename),
    "recast": Kind(is_tensors, draw_recast, do_recast),
    "reshape": Kind(is_tensors, draw_reshape, do_reshape),
    "fill": Kind(is_tensors, draw_fill, do_fill),
    "lose": Kind(is_tensors, draw_lose, do_lose),
    "twin": Kind(is_tensors, draw_twin, do_twin),
    "length": Kind(is_tensors, draw_length, do_length),
    "cut": Kind(is_file, draw_cut, do_cut),
    "bytes": Kind(is_file, draw_bytes, do_bytes),
    "line": Kind(is_lines, draw_line, do_line),
    "gone": Kind(is_any, draw_gone, do_gone),
    "moved": Kind(is_any, draw_moved, do_moved),
    "copied": Kind(is_any, draw_moved, do_copied),
    "special": Kind(is_any, draw_special, do_special),
}

OFTEN = [*KINDS, *["set"] * 6, "add", "bytes", "line"]  # what is drawn, some of it more often


# --- on disk


def write(folder, path):
    """Write a folder; what is unchanged is a link to the original."""
    path.mkdir()
    for name, value in folder.items():
        file = path / name
        if isinstance(value, Path):
            file.symlink_to(value)
        elif isinstance(value, bytes):
            file.write_bytes(value)
        elif value.kind == "folder":
            file.mkdir()
        elif value.kind == "fifo":
            os.mkfifo(file)
        else:
            file.symlink_to(value.target)
