"""Damage to tensors, bytes, lines and names of files; functions as in damage_json.py."""

import json
import math

import safetensors
from damage_json import Kind, text_of
from folders import Special, content
from tiny import pack

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
    return name.endswith(".safetensors") and folder[name] != b""


def tensors(folder, name):
    """{tensor: (dtype, shape, bytes)} of a sound file; None of any other."""
    data = content(folder, name)
    start = 8 + len(text_of(folder, name))
    try:
        safetensors.deserialize(data)
        entries = json.loads(text_of(folder, name))
        entries.pop("__metadata__", None)
    except (ValueError, safetensors.SafetensorError):
        return None
    parts = {}
    for key, entry in entries.items():
        begin, end = entry["data_offsets"]
        parts[key] = entry["dtype"], entry["shape"], data[start + begin : start + end]
    return parts


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
        same = [shape[::-1], [math.prod(shape)], [1, *shape], [*shape, 1]]
        return [dice.pick([*same, longer, [0], []])]

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
    near = 0, 1, 2, n - 8, n - 1, n + 1, n + 8
    return [name, dice.pick([*near, 10**8, 2**31, 2**63, 2**64 - 1])]


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


def draw_grow(dice, folder, name):
    n = dice.pick([1 << 10, 1 << 16, 1 << 20, 40 << 20])
    return [name, n, dice.pick(["00", "20", "0a", "61", "c3a9", "e4ba8c", "5b", "610a"])]


def do_grow(folder, name, n, piece):
    """The file goes on for n bytes: a piece again and again."""
    piece = bytes.fromhex(piece)
    folder[name] = content(folder, name) + piece * (n // len(piece))


def is_lines(name, folder):
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
    return True


def draw_gone(dice, folder, name):
    return [name]


def do_gone(folder, name):
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


KINDS = {
    "recast": Kind(is_tensors, draw_recast, do_recast),
    "reshape": Kind(is_tensors, draw_reshape, do_reshape),
    "fill": Kind(is_tensors, draw_fill, do_fill),
    "lose": Kind(is_tensors, draw_lose, do_lose),
    "twin": Kind(is_tensors, draw_twin, do_twin),
    "length": Kind(is_tensors, draw_length, do_length),
    "cut": Kind(is_file, draw_cut, do_cut),
    "bytes": Kind(is_file, draw_bytes, do_bytes),
    "grow": Kind(is_file, draw_grow, do_grow),
    "line": Kind(is_lines, draw_line, do_line),
    "gone": Kind(is_any, draw_gone, do_gone),
    "moved": Kind(is_any, draw_moved, do_moved),
    "copied": Kind(is_any, draw_moved, do_copied),
    "special": Kind(is_any, draw_special, do_special),
}
