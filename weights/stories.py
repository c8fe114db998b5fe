"""Short stories whose every regularity is known: pairs of texts, their answers, and chance.

>>> item = draw("other", 1)[0]
>>> item.clean
'While Kevin and Julia met at the school in the evening, Julia gave the green rope to'
>>> item.corrupt
'While Kevin and Julia met at the school in the evening, Kevin gave the green rope to'
>>> item.right, item.wrong, item.chance
('Kevin', 'Julia', 0.5)

A kind says by what the asked word is told: by looking back, by agreement, by counting, by the class
of the word, or from a closed list that must be memorised. Clean and corrupt text have the same
number of words, each of them one token, and differ in what tells the answer.

Read downward: kinds, frames, items, stories, the tokenizer. Words and frames are in grammar.py.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from . import grammar

END, UNKNOWN, MASK = "<|endoftext|>", "<unk>", "<mask>"
ENDS = ".", "?", "!"
MARKS = ". , ? ! : ; ' \" -".split()
CONTEXT = 96  # tokens that tiny-stories reads
MOSTLY = {"plain": 6.0, "repeated": 0.0}  # weights of kinds in a text for people


class Kind(NamedTuple):
    """What is asked: how it is told, and what should be answered."""

    by: str
    answer: str


KINDS = {
    "other": Kind("looking back", "the name that was said once: the other one gives"),
    "holder": Kind("looking back", "the name in the sentence of the same thing"),
    "thing": Kind("looking back", "the thing in the sentence of the same name"),
    "colour": Kind("looking back", "the colour in the sentence of the same thing"),
    "room": Kind("looking back", "the room in the sentence of the same name or thing"),
    "owner": Kind("looking back", "the name in the sentence of the same thing"),
    "relation": Kind("looking back", "the opposite of the relation that was said"),
    "answer": Kind("looking back", "yes, if the same was said before"),
    "changed": Kind("looking back", "the word at the same point of the sentence before"),
    "repeated": Kind("looking back", "the word that followed the last one before"),
    "agreement": Kind("agreement", "the verb's form that fits the first noun, not the nearer one"),
    "pronoun": Kind("agreement", "he for a man's name, she for a woman's"),
    "count": Kind("counting", "a full stop after as many words as were asked for"),
    "class": Kind("word class", "any word of the class that the verb wants"),
    "opposites": Kind("memorised", "the opposite"),
    "days": Kind("memorised", "the next day, month or number"),
    "facts": Kind("memorised", "the capital, or its country"),
    "sums": Kind("memorised", "the sum of two numbers up to nine"),
}


VERBS = {verb: forms for forms in (("is", "was"), ("are", "were")) for verb in forms}


class Item(NamedTuple):
    """A question: two texts that differ in what tells the answer, and both answers."""

    clean: str
    corrupt: str
    right: str  # the answer of the clean text
    wrong: str  # that of the corrupt one
    accepted: tuple  # words that count as right
    candidates: tuple  # words among which a guess would choose
    text: str  # the clean text with its answer, to its end

    @property
    def answers(self) -> tuple[str, str]:
        """The right and the wrong answer as they go on from a text: a word has a blank in front."""
        right, wrong = (x if x in MARKS else f" {x}" for x in (self.right, self.wrong))
        return right, wrong

    @property
    def chance(self) -> float:
        """Probability that a guess among the candidates is right."""
        return len({*self.accepted} & {*self.candidates}) / len({*self.candidates})


# ---- frames


class Slot(NamedTuple):
    """A word of a table; slots of one group with the same number are drawn together."""

    table: str
    group: str
    number: int


class Part(NamedTuple):
    """A word of a frame: a Slot, or a word as it stands, in the clean and the corrupt text."""

    clean: Slot | str
    corrupt: Slot | str
    is_told: bool


PARTS = re.compile(r"\{[^}]*\}|=|\w+|[^\w\s]")


@cache
def tables() -> dict[str, list[str]]:
    """{table: its words}."""
    return grammar.tables()


@cache
def parsed(frame: str) -> tuple[Part, ...]:
    """The parts of a frame."""
    parts, is_told = [], False
    for piece in PARTS.findall(frame):
        if piece == "=":
            is_told = True
            continue
        clean, _, corrupt = piece.strip("{}").partition("/")
        if piece.startswith("{"):
            parts.append(Part(_slot(clean), _slot(corrupt or clean), is_told))
        else:
            parts.append(Part(piece, piece, is_told))
        is_told = False
    return tuple(parts)


def _slot(name):
    """The Slot of a name that ends in a number; any other word stands for itself."""
    match = re.fullmatch(r"([a-z]+)(\d+)", name)
    if not match:
        return name
    table = match[1]
    group = next((line for line in grammar.PARALLEL if table in line.split()), table)
    return Slot(table, group, int(match[2]))


def _in_slots(parts, rng):
    """{slot: its word}, drawn for all slots of a frame; in a group no word twice."""
    slots = {ref for part in parts for ref in part[:2] if isinstance(ref, Slot)}
    numbers: dict[str, set] = {}
    for slot in slots:
        numbers.setdefault(slot.group, set()).add(slot.number)
    rows = {}
    for group in sorted(numbers):
        n = len(tables()[group.split()[0]])
        rows[group] = dict(zip(sorted(numbers[group]), rng.permutation(n).tolist()))
    return {slot: tables()[slot.table][rows[slot.group][slot.number]] for slot in slots}


class Filled(NamedTuple):
    """A frame whose slots are filled: words of both texts, and which of them the text tells."""

    clean: list
    corrupt: list
    is_told: list
    asked: tuple  # the last word that is told, as the frame has it: clean, corrupt


def filled(frame: str, rng: np.random.Generator) -> Filled:
    """A frame with words drawn for its slots; in half of the cases the texts change sides."""
    parts = parsed(frame)
    words = _in_slots(parts, rng)
    refs = list(zip(*parts))
    sides = [refs[0], refs[1]]
    if rng.random() < 0.5:
        sides.reverse()
    last = max((i for i, part in enumerate(parts) if part.is_told), default=0)
    clean, corrupt = ([words.get(ref, ref) for ref in side] for side in sides)
    return Filled(clean, corrupt, list(refs[2]), (sides[0][last], sides[1][last]))


# ---- items


def frames_of(kind: str) -> list[str]:
    """The frames of a kind. Raises ValueError for an unknown one."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of story; available: {', '.join(KINDS)}")
    return grammar.FRAMES[kind]


def draw(kind: str, n: int, seed: int = 0) -> list[Item]:
    """n items of a kind, each from a frame drawn at random. Raises ValueError for an unknown kind.

    >>> item = draw("room", 1, seed=1)[0]
    >>> item.text
    'William is in the shed. Tom is in the lounge. Where is Tom? In the lounge.'
    >>> item.right, item.wrong, item.chance
    ('lounge', 'shed', 0.5)
    """
    frames = frames_of(kind)
    rng = np.random.default_rng((seed, *kind.encode()))
    items: list[Item] = []
    while len(items) < n:
        item = _item(kind, frames[rng.integers(len(frames))], rng)
        if item.right != item.wrong:  # two sums may be one
            items.append(item)
    return items


def _item(kind, frame, rng):
    """An Item of a frame: what stands before the last word that is told, and that word."""
    drawn = filled(frame, rng)
    end = max(np.flatnonzero(drawn.is_told).tolist())
    right, wrong = drawn.clean[end], drawn.corrupt[end]
    accepted, candidates = _choices(kind, drawn.asked, drawn.clean[:end], right, wrong)
    clean, corrupt = joined(drawn.clean[:end]), joined(drawn.corrupt[:end])
    return Item(clean, corrupt, right, wrong, accepted, candidates, joined(drawn.clean))


def _choices(kind, asked, before, right, wrong):
    """What counts as right, and the words among which a guess would choose."""
    of = [tables()[ref.table] if isinstance(ref, Slot) else [ref] for ref in asked]
    if kind == "class":
        return tuple(of[0]), (*of[0], *of[1])
    if kind == "agreement":  # in either tense
        return VERBS[right], (*VERBS[right], *VERBS[wrong])
    if KINDS[kind].by == "memorised":
        return (right,), tuple(sorted(set(of[0])))
    if right not in before or wrong not in of[0]:
        return (right,), (right, wrong)
    return (right,), tuple(dict.fromkeys(word for word in before if word in of[0]))


def words_of(text: str) -> list[str]:
    """Words and marks of a text, as they are written.

    >>> words_of("So come, John!")
    ['So', 'come', ',', 'John', '!']
    """
    return PARTS.findall(text)


def joined(words: Sequence[str]) -> str:
    """Words as a text: a blank before each but marks, and sentences that begin with a capital.

    >>> joined(["so", "come", ",", "John", "!"])
    'So come, John!'
    """
    text = ""
    for before, word in zip((".", *words), words):
        begun = word[:1].upper() + word[1:] if before in ENDS else word
        text += begun if word in MARKS else f" {begun}"
    return text.strip()


# ---- stories


def story(n: int = 10, seed: int = 0) -> str:
    """A text of n sentences or small stories of all kinds, plain sentences most often.

    >>> story(2, seed=3)
    'Six and three make nine. The lamp is black. Is the lamp black? Yes.'
    """
    rng = np.random.default_rng((seed, 0, 1))
    return " ".join(joined(filled(frame, rng).clean) for frame in mixed(n, rng, MOSTLY))


def mixed(n: int, rng: np.random.Generator, weights: dict[str, float] | None = None) -> list[str]:
    """n frames, of kinds drawn with these weights (of plain sentences: `plain`); 1 where absent."""
    every = grammar.FRAMES | grammar.MORE | {"plain": grammar.PLAIN}
    kinds = [*every]
    size = np.array([(weights or {}).get(kind, 1.0) for kind in kinds])
    drawn = rng.choice(len(kinds), n, p=size / size.sum())
    frames = [every[kinds[k]] for k in drawn]
    return [of[int(share * len(of))] for of, share in zip(frames, rng.random(n))]


# ---- the tokenizer


@cache
def vocabulary() -> tuple[str, ...]:
    """Every token, in the order of its id: two special ones, marks, words in small letters.

    >>> vocabulary()[:5], "capybara" in vocabulary()
    (('<|endoftext|>', '<unk>', '.', ',', '?'), True)
    """
    frames = chain(grammar.PLAIN, *grammar.FRAMES.values())
    refs = {ref for frame in frames for part in parsed(frame) for ref in part[:2]}
    words = {ref.lower() for ref in refs if isinstance(ref, str)}
    words |= {word.lower() for word in tables()["any"]}
    return END, UNKNOWN, *MARKS, *sorted(words - {*MARKS})


def tokenizer_files(is_masked: bool = False) -> dict[str, bytes]:
    """{name: bytes} of the tokenizer: a token a word, capitals as small letters.

    is_masked: with a token, the last, that hides another one.

    >>> sorted(tokenizer_files())
    ['tokenizer.json', 'tokenizer_config.json']
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

    special = END, UNKNOWN, *[MASK] * is_masked
    words = dict.fromkeys((*vocabulary(), *special))
    new = Tokenizer(models.WordLevel({x: i for i, x in enumerate(words)}, unk_token=UNKNOWN))
    new.add_special_tokens([AddedToken(x, special=True, normalized=False) for x in special])
    new.normalizer = normalizers.Lowercase()
    new.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    new.decoder = decoders.WordPiece()
    settings: dict[str, str | int] = {"bos_token": END, "eos_token": END, "unk_token": UNKNOWN}
    settings |= {"model_max_length": CONTEXT, "tokenizer_class": "PreTrainedTokenizerFast"}
    if is_masked:
        settings |= {"mask_token": MASK}
    text = json.dumps(settings, indent=2, sort_keys=True) + "\n"
    return {"tokenizer.json": new.to_str().encode(), "tokenizer_config.json": text.encode()}
