"""What is asked of a model: pairs of texts that differ in the answer, and both answers.

By default words are drawn at random and said twice: which one comes next, or is hidden, the second
time? In the corrupt text another word came behind the same one. A pair of a file is a line, all as
it stands, blanks too:

    When he came|When she came| he| she

Order: pairs, where they come from, what is measured of them. N pairs.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from minitx.circuits.measure import mask_id, places
from minitx.circuits.repeated import RandomTexts
from minitx.circuits.texts import read_pairs, read_texts

from ..maths import nulls
from ..runner import verdict
from ..runner.registry import Answer, NotApplicable
from ..texts import corpus, formats
from . import position_sizes

N_PAIRS = 24  # of random words
SAID = 9  # words that are said twice
RIGHT, APART = 4, 3  # places among them: of the right answer, and how far behind the wrong one is
WANTED = "wanted clean|corrupt, or clean|corrupt|right|wrong"


class Asked(NamedTuple):
    """Texts, or rows of token ids, and the right and the wrong token of each pair."""

    clean: list
    corrupt: list
    answers: list  # [N] of (right, wrong), ids or texts

    def some(self, start, end=None, step=1):
        """Some of the pairs, as a slice takes them."""
        return Asked(*(side[start:end:step] for side in self))

    def groups(self, size):
        """The pairs, this many at a time."""
        return [self.some(start, start + size) for start in range(0, len(self.clean), size)]


def asked(model, name, pairs="", measure="", n=0, seed=0):
    """What the options of an experiment ask: pairs and measure as the user gave them.

    n: how many pairs (0: all of a file, N_PAIRS of random words). Raises NotApplicable for a model
    that tells no words, ValueError for pairs that cannot be compared.
    """
    check(model, name)
    if not pairs:
        if measure:
            raise ValueError(f"measure is {measure!r}, but of no pairs; wanted pairs, too")
        return repeats(model, n or N_PAIRS, seed)
    lines = [("the pair", pairs)] if "|" in pairs else [*_lines(pairs)]
    if not lines:
        raise ValueError(f"{formats.shown(pairs)} holds no pairs; wanted a line for each")
    answer = _two(measure, "measure") if measure else None
    rows = [_pair(line, where, answer) for where, line in lines[: n or None]]
    given = Asked(*(list(column) for column in zip(*rows)))
    read_pairs(model, given.clean, given.corrupt)  # raises for the first that does not align
    return given


def check(model, name):
    """Raise NotApplicable unless a model tells words, and by itself."""
    position_sizes.check_head(model, name)
    if not model.config.causal and mask_id(model.tokenizer) < 0:
        raise NotApplicable(f"{name} hides words, and this model's vocabulary has no mask")


def _lines(pairs):
    """(where it stands, line) of every line of a file that is not empty."""
    path = formats.place(pairs)
    for number, line in formats.decoded(path):
        if line.strip():
            yield f"{path.name}, line {number}", line.rstrip("\r\n")


def _pair(line, where, answer):
    """(clean, corrupt, (right, wrong)) of a line."""
    fields = line.split("|")
    if len(fields) == 4:
        return fields[0], fields[1], tuple(fields[2:])
    if len(fields) != 2:
        raise ValueError(f"{where} has {len(fields)} fields; {WANTED}")
    if answer is None:
        raise ValueError(
            f"{where} does not say what is asked; {WANTED}, or --measure 'right|wrong'"
        )
    return *fields, answer


def _two(text, name):
    """The two tokens of right|wrong."""
    parts = text.split("|")
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"{name} is {text!r}; wanted 'right|wrong', two tokens")
    return tuple(parts)


def repeats(model, n, seed):
    """Pairs of random words that are said twice, the second time up to the one that is asked for.

    Of the first time a b … c d … the corrupt text makes c b … a d …: behind a then comes d. Both
    texts have the same words. A masked model reads one word behind its mask, too, and so these are
    exchanged as well. Raises NotApplicable for a model that reads too few tokens.
    """
    try:
        texts = RandomTexts(model, n, SAID, np.random.default_rng(seed))
    except ValueError as error:
        raise NotApplicable(f"no room to say {SAID} words twice: {error}") from None
    said = texts.repeated[:, texts.first : texts.first + SAID]
    before, after = texts.repeated[:, : texts.first], texts.repeated[:, texts.first + 2 * SAID :]
    exchanged, second = [RIGHT - 1], said[:, :RIGHT]
    if not model.config.causal:
        hidden = np.full((n, 1), mask_id(model.tokenizer))
        second = np.hstack([second, hidden, said[:, RIGHT + 1 : RIGHT + 2], after])
        exchanged = [RIGHT - 1, RIGHT + 1]
    order = np.arange(SAID)
    for place in exchanged:
        order[[place, place + APART]] = place + APART, place
    clean, corrupt = (np.hstack([before, first, second]) for first in (said, said[:, order]))
    answers = zip(said[:, RIGHT].tolist(), said[:, RIGHT + APART].tolist())
    return Asked(list(clean), list(corrupt), list(answers))


def pieces(model, text):
    """The tokens of a text, or of ids, as words of a figure."""
    ids = model.tokenizer.encode(text) if isinstance(text, str) else text
    return np.array(corpus.labels(model, np.asarray(ids)))


def place(model, text):
    """Where a text asks for a word: its last place, or that of its mask."""
    return int(places(model, read_texts(model, text))[0])


def likelier(clean, corrupt):  # [N], [N]
    """{name: number}: in how many pairs the clean text makes the right answer likelier."""
    N = len(clean)
    null = np.ceil(special.bdtrik(nulls.CHANCE, N, 0.5)) / N
    return {"told": (clean > corrupt).mean(), "told_null": null, "n_pairs": N}


def answer(r, kind, measure, value, chance):
    """The Answer of a verdict; undecided where the model does not tell the answers."""
    is_told = verdict.of(r, "told").verdict == "yes"
    return Answer(kind if is_told else "undecided", measure, value, chance)


TOLD = {
    "told": "share of the pairs whose clean text makes the right answer likelier than the corrupt "
    "one does",
    "told_null": "99 % quantile of fair coins",
    "n_pairs": "pairs of texts",
}
