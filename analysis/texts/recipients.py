"""Prompts that ask which of two people is given something: the one who was named once.

    When Mary and John went to the shop, John gave a book to

The form is that of Wang et al. 2022: two names, in either order, then one of them again, who gives
(A B B, or B A B); the sentences are others. Names are tokens of their own; where a vocabulary has
too few, people have initials.
"""

from typing import NamedTuple

import numpy as np

NAMES = (
    "Adam Alex Alice Amy Andrew Anna Anthony Ben Brian Charles Chris Daniel David Elizabeth Emily "
    "Emma Eric George Henry Jack James Jason John Joseph Kate Kevin Laura Lisa Mark Martin Mary "
    "Matthew Michael Paul Peter Rachel Richard Robert Ryan Sam Sarah Scott Simon Steven Susan "
    "Thomas Tom William"
).split()
INITIALS = list("BCDFGHJKLMNPRSTW")
LEAST = 8  # names of one token, from which they are taken
SENTENCES = (
    "When {first} and {second} went to the {place}, {giver} gave a {thing} to",
    "Then {first} and {second} met at the {place}, and {giver} handed a {thing} to",
    "After {first} and {second} had been to the {place}, {giver} brought a {thing} to",
    "Yesterday {first} and {second} sat in the {place} for hours, until {giver} gave a {thing} to",
    "While {first} and {second} were waiting at the {place}, {giver} offered a {thing} to",
    "Old friends, {first} and {second} found the {place}, where {giver} passed a {thing} to",
)
PLACES = "shop school house garden park station office church".split()
THINGS = "book ring letter ball drink coat key picture".split()


class Prompt(NamedTuple):
    """A prompt, the same sentence with three other people, and both names of the first."""

    clean: str
    corrupt: str
    recipient: str  # with the blank before it
    giver: str


def names_of(tokenizer):
    """Names, or initials, that are tokens of their own; [] where there are too few of both."""
    for names in (NAMES, INITIALS):
        whole = [name for name in names if is_token(tokenizer, f" {name}")]
        if len(whole) >= LEAST:
            return whole
    return []


def is_token(tokenizer, text):
    """Whether a text is one token of its own: not one that stands for all unknown words."""
    ids = tokenizer.encode(text, special=False)
    return len(ids) == 1 and tokenizer.decode(ids).strip().lower() == text.strip().lower()


def drawn(names, n, seed) -> list[Prompt]:
    """n prompts with names of this list."""
    rng = np.random.default_rng(seed)
    return [_prompt(names, rng) for _ in range(n)]


def _prompt(names, rng):
    """One prompt; in half of them the giver is named first."""
    recipient, giver, *others = rng.choice(names, 5, replace=False).tolist()
    sentence, place, thing = (str(rng.choice(x)) for x in (SENTENCES, PLACES, THINGS))
    two = [recipient, giver]
    if rng.random() < 0.5:
        two.reverse()
    texts = []
    for first, second, third in ((*two, giver), others):
        people = {"first": first, "second": second, "giver": third}
        texts.append(sentence.format(**people, place=place, thing=thing))
    return Prompt(*texts, f" {recipient}", f" {giver}")
