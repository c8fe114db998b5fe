"""Pairs of texts that are drawn here, each with the right and the wrong token.

`dates`: dates of which a decoder has said the first digits of the year. `names`: which of two
people is given something. `stories`: a kind of minitx.weights.stories. `copied`: random words that
a decoder says again. N pairs.
"""

from typing import NamedTuple

import numpy as np

from minitx.circuits import repeated
from minitx.circuits.patching import unrelated_pairs
from minitx.circuits.texts import read_pairs
from minitx.weights import dates as written
from minitx.weights import stories as of_stories

from ..contract.registry import NotApplicable
from ..texts import recipients

SAID = 9  # random words
RIGHT, APART = 4, 3  # places among them: of the right answer, and how far behind the wrong one is
TRIED = 8  # stories for each that is kept, at most
UNRELATED = 2  # pairs that are patched as the null, for each
YEAR = written.ISO["year"].stop - 1  # the digit that is asked for


class Asked(NamedTuple):
    """Texts, or rows of token ids, and the right and the wrong token of each pair."""

    clean: list
    corrupt: list
    answers: list  # [N] of (right, wrong), ids or texts
    prefix: list | None = None  # what the decoder of an encoder-decoder has said
    unrelated: list | None = None  # [N] of UNRELATED (clean, corrupt): of the null

    def some(self, start, end=None, step=1):
        """Some of the pairs, as a slice takes them."""
        return Asked(*(None if side is None else side[start:end:step] for side in self))

    def groups(self, size):
        """The pairs, this many at a time."""
        return [self.some(start, start + size) for start in range(0, len(self.clean), size)]

    def options(self):
        """What patching takes beside the texts and the answers."""
        options = {} if self.prefix is None else {"prefix": self.prefix}
        if self.unrelated is None:
            return options
        sets = [tuple(list(side) for side in zip(*one_set)) for one_set in zip(*self.unrelated)]
        return options | {"unrelated": sets}

    def with_unrelated(self, model, seed):
        """The same with UNRELATED pairs for each, drawn from all of them.

        So they do not depend on how many pairs are run at once.
        """
        pairs = read_pairs(model, self.clean, self.corrupt, self.prefix)
        sets = []
        for number in range(UNRELATED):
            sides = []
            for side in unrelated_pairs(model, pairs, None, None, (seed, number)):
                tokens, valid, _ = side.texts
                sides.append([row[is_token] for row, is_token in zip(tokens, valid)])
            sets.append([*zip(*sides)])
        return self._replace(unrelated=[*zip(*sets)])


def dates(model, n, seed):
    """Dates that differ in the last digit of the year; the decoder has said the three before it."""
    if model.encoder is None:
        raise NotApplicable("dates are pairs for an encoder-decoder, which rewrites them")
    rng = np.random.default_rng(seed)
    pairs = []
    for date in written.draw(rng, n, held_out=True):
        end = date.spans["year"].stop
        right = date.iso[YEAR]
        wrong = str(rng.choice([digit for digit in "0123456789" if digit != right]))
        corrupt = date.text[: end - 1] + wrong + date.text[end:]
        pairs.append((date.text, corrupt, (right, wrong), date.iso[:YEAR]))
    return Asked(*(list(column) for column in zip(*pairs)))


def names(model, n, seed):
    """Prompts that ask which of two people is given something; the corrupt ones name others.

    Raises NotApplicable for a model that does not go on from a text, or has too few names.
    """
    _check_continues(model, "names")
    known = recipients.names_of(model.tokenizer)
    if not known:
        raise NotApplicable("this vocabulary has too few names, or initials, of one token")
    prompts = recipients.drawn(known, n, seed)
    clean, corrupt, *answers = (list(column) for column in zip(*prompts))
    return Asked(clean, corrupt, list(zip(*answers)))


def stories(kind, model, n, seed):
    """Stories of a kind, up to the word that is asked for; the corrupt ones tell another.

    Raises NotApplicable for a model that does not go on from a text, or lacks too many words.
    """
    _check_continues(model, f"stories of kind {kind}")
    items = of_stories.draw(kind, TRIED * n, seed)
    asked = [(item.clean, item.corrupt, item.answers) for item in items]
    fit = [row for row in asked if _is_whole(model.tokenizer, *row)]
    if len(fit) < n:
        text = f"of {len(asked)} stories of kind {kind} this vocabulary has {len(fit)} with answers"
        raise NotApplicable(f"{text} of one token and texts of equal length; needed {n}")
    return Asked(*(list(column) for column in zip(*fit[:n])))


def _is_whole(tokenizer, clean, corrupt, answers):
    """Whether answers are tokens, and clean and corrupt texts equally many."""
    lengths = {len(tokenizer.encode(text, special=False)) for text in (clean, corrupt)}
    return len(lengths) == 1 and all(recipients.is_token(tokenizer, word) for word in answers)


def _check_continues(model, name):
    """Raise NotApplicable unless a model goes on from a text."""
    if model.encoder is not None or not model.config.causal:
        raise NotApplicable(f"{name} are prompts for a causal model")


def copied(model, n, seed):
    """Random words, of which the decoder of an encoder-decoder has said the first.

    In the corrupt text the next word has changed positions with a later one. Raises NotApplicable
    if the decoder has a vocabulary of its own, in which an id is another word.
    """
    encoder, rng = model.encoder, np.random.default_rng(seed)
    n_read, n_said = encoder.config.n_vocab, model.config.n_vocab
    if n_read != n_said:
        text = f"{n_read} words that are read are not the {n_said} that are said"
        raise NotApplicable(f"random words cannot be said again: {text}; wanted pairs of a file")
    before, after = (np.tile(x, (n, 1)) for x in repeated.frame(encoder))
    said = repeated.drawn(repeated.words(encoder), n, SAID, rng)
    order = np.arange(SAID)
    order[[RIGHT, RIGHT + APART]] = RIGHT + APART, RIGHT
    clean, corrupt = (np.hstack([before, words, after]) for words in (said, said[:, order]))
    answers = zip(said[:, RIGHT].tolist(), said[:, RIGHT + APART].tolist())
    start = np.full((n, 1), model.config.start_id)
    prefix = np.hstack([start, said[:, :RIGHT]])
    return Asked(list(clean), list(corrupt), list(answers), list(prefix))
