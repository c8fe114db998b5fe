"""Checks of lesson 20: a merge by hand, tokens without merges, a word with two cuts."""

from functools import cache

import minitx

from . import NOT_YET, Wrong
from .arrays import needs_function

MERGES = (  # tokens, pair -> with 9 in place of the pair
    ([1, 2, 3, 1, 2], (1, 2), [9, 3, 9]),
    ([1, 1, 1], (1, 1), [9, 1]),
    ([1, 1, 1, 1, 2], (1, 1), [9, 9, 2]),
    ([2, 1, 3], (1, 2), [2, 1, 3]),
    ([], (1, 2), []),
)
TEXTS = "a cat", "naïve", "吾輩は猫", ""
SHORTEST = 5  # letters of a word


def check_merge(answer):
    """From left to right each pair becomes one token."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda tokens, pair, number: tokens")
    for tokens, pair, wanted in MERGES:
        given = answer([*tokens], pair, 9)
        if not isinstance(given, list | tuple):
            raise Wrong(f"wanted a list, this gives a value ({type(given).__name__})")
        if [*given] != wanted:
            raise Wrong(
                f"{tokens}, pair {pair}: wanted {wanted}, got {[*given]}{why(given, tokens)}"
            )
    return "right: each token belongs to one pair at most"


def why(given, tokens):
    """A hint about what a wrong merge did."""
    if [*given] == tokens:
        return "; the pair is still there"
    if tokens == [1, 1, 1]:
        return "; after a pair go on behind it: its second token is used up"
    if len(given) == len(tokens) + tokens.count(1):
        return "; both tokens of the pair go"
    return ""


def check_bytes(answer):
    """The bytes of a text in UTF-8."""
    if answer is ...:
        return NOT_YET
    needs_function(answer, "lambda text: len(text)")
    for text in TEXTS:
        given, wanted = answer(text), len(text.encode("utf-8"))
        if given == wanted:
            continue
        if given == len(text):
            raise Wrong(
                f"{text!r} has {given} characters, but {wanted} bytes: it starts from bytes"
            )
        if given == len(text.split()):
            raise Wrong(f"{text!r}: these are words; without merges not even a letter is one token")
        raise Wrong(f"{text!r}: wanted {wanted}, got {given}")
    return "right: one token for each byte"


@cache
def _encode():
    """The tokenizer of tiny-gpt2, loaded once."""
    return minitx.load("tiny-gpt2").tokenizer


def check_word(answer):
    """A word whose two cuts share no token."""
    if answer is ...:
        return NOT_YET
    is_lower = (
        isinstance(answer, str) and answer.isascii() and answer.isalpha() and answer.islower()
    )
    if not is_lower:
        raise Wrong(f"{answer!r}: wanted one English word in small letters, such as 'water'")
    if len(answer) < SHORTEST:
        raise Wrong(f"{answer!r} has {len(answer)} letters; wanted at least {SHORTEST}")
    tokenizer = _encode()
    first, behind = (set(tokenizer.encode(text).tolist()) for text in (answer, f" {answer}"))
    common = [tokenizer.decode([i]) for i in sorted(first & behind)]
    if common:
        raise Wrong(f"{answer!r}: both cuts have {common[0]!r}; look where each begins a new token")
    return f"right: {len(first)} and {len(behind)} tokens, none of them in both"
