"""What is asked of a model: pairs of texts that differ in the answer, and both answers.

By default words are drawn at random and said twice: which one comes next, or is hidden, the second
time? In the corrupt text another word came behind the same one. A pair of a file is a line, all as
it stands, spaces included; of an encoder-decoder with what the decoder has said:

    When he came|When she came| he| she
    3 May 1912=>191|3 May 1915|2|5

N pairs.
"""

from functools import partial
from string import ascii_lowercase

import numpy as np

from minitx.circuits import repeated
from minitx.circuits.measure import mask_id, places, read_measure
from minitx.circuits.stream import require_sum
from minitx.circuits.texts import read_pairs, read_texts
from minitx.weights.stories import KINDS

from ..contract.nothing import Nothing
from ..contract.registry import NotApplicable
from ..contract.rules import Every, Of, Provided
from ..maths import nulls
from ..texts import corpus, formats
from . import position_tables, ready_pairs
from .patch_effects import TOGETHER
from .ready_pairs import APART, RIGHT, SAID, Asked

N_PAIRS = 24  # that are drawn
WANTED = "wanted clean|corrupt, or clean|corrupt|right|wrong"
SAYS = "=>"  # between a source and what the decoder has said of it
READY = {"names": ready_pairs.names, "dates": ready_pairs.dates}
READY |= {kind: partial(ready_pairs.stories, kind) for kind in KINDS}


def asked(model, name, pairs="", measure="", n=0, seed=0):
    """What the options of an experiment ask: pairs and measure as the user gave them.

    n: how many pairs (0: all of a file, N_PAIRS of drawn ones). Raises NotApplicable for a model
    that tells no words, Nothing if it answers both sides alike, ValueError for pairs that cannot be
    compared.
    """
    check(model, name)
    given = _given(model, pairs, measure, n, seed)
    _check_differ(model, given)
    return given.with_unrelated(model, seed)


def _given(model, pairs, measure, n, seed):
    """The pairs of a file, the one that is written out, or drawn ones."""
    if pairs and pairs not in READY:
        return _written(model, pairs, measure, n)
    if measure:
        raise ValueError(f"measure is {measure!r}, but there are no pairs; wanted pairs, too")
    return READY.get(pairs, repeats)(model, n or N_PAIRS, seed)


def _check_differ(model, given):
    """Raise Nothing where the model answers all clean texts as it does their corrupt ones.

    It may read too few tokens back, or have no layer that attends to the word that differs.
    """
    for group in given.groups(TOGETHER):
        pairs = read_pairs(model, group.clean, group.corrupt, group.prefix)
        number = read_measure(model, group.answers, pairs.clean)
        clean, corrupt = (number.values(side.run(model, ["logits"])["logits"]) for side in pairs)
        if (clean != corrupt).any():
            return
    raise Nothing("nothing to restore: clean and corrupt texts get the same answer")


def _written(model, pairs, measure, n):
    """The pairs of a file, or the one that is written out."""
    lines = [("the pair", pairs)] if "|" in pairs else [*_lines(pairs)]
    if not lines:
        raise ValueError(f"{formats.shown(pairs)} has no pairs; wanted one line for each")
    answer = _two(measure) if measure else None
    rows = [_pair(line, where, answer) for where, line in lines[: n or None]]
    given = Asked(*(list(column) for column in zip(*rows)))
    if model.encoder is not None:
        given = _with_prefixes(given, [where for where, _ in lines])
    read_pairs(model, given.clean, given.corrupt, given.prefix)  # raises if one does not align
    return given


def _with_prefixes(given, where):
    """Sources alone, and what the decoder has said of each pair; what was said of both is one."""
    sides = [[said_of(text) for text in side] for side in (given.clean, given.corrupt)]
    prefixes = []
    for (_, said), (_, other), place in zip(*sides, where):
        if said and other and said != other:
            raise ValueError(
                f"{place} has prefixes {said!r} and {other!r}; wanted the same in both"
            )
        prefixes.append(said or other)
    clean, corrupt = ([source for source, _ in side] for side in sides)
    return given._replace(clean=clean, corrupt=corrupt, prefix=prefixes)


def said_of(text):
    """A source, and what the decoder has said of it; "" for nothing."""
    source, _, said = text.partition(SAYS)
    return source, said


def check(model, name):
    """Raise NotApplicable unless a model tells words."""
    position_tables.check_head(model, name)
    if not model.config.causal and mask_id(model.tokenizer) < 0:
        raise NotApplicable(f"{name} masks words, and this model's vocabulary has no mask")


def check_sum(model):
    """Raise NotApplicable for a model whose heads do not add to the stream one by one."""
    try:
        require_sum(model)
    except ValueError as reason:
        raise NotApplicable(str(reason)) from None


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
        raise ValueError(f"{where} does not give the answers; {WANTED}, or --measure 'right|wrong'")
    return *fields, answer


def _two(text):
    """The two tokens of right|wrong."""
    parts = text.split("|")
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"measure is {text!r}; wanted 'right|wrong', two tokens")
    return tuple(parts)


def repeats(model, n, seed):
    """Pairs of random words that occur twice, the second time up to the one that is asked for.

    The decoder of an encoder-decoder says its source again.

    Of the first time a b … c d … the corrupt text makes c b … a d …: behind a then comes d. Both
    texts have the same words. A masked model reads one word behind its mask, too, and so these are
    exchanged as well. Raises NotApplicable for a model that reads too few tokens.
    """
    if model.encoder is not None:
        return ready_pairs.copied(model, n, seed)
    before, after = (np.tile(x, (n, 1)) for x in repeated.frame(model))
    said = repeated.drawn(repeated.words(model), n, SAID, np.random.default_rng(seed))
    exchanged, second = [RIGHT - 1], said[:, :RIGHT]
    if not model.config.causal:
        hidden = np.full((n, 1), mask_id(model.tokenizer))
        second = np.hstack([second, hidden, said[:, RIGHT + 1 : RIGHT + 2], after])
        exchanged = [RIGHT - 1, RIGHT + 1]
    order = np.arange(SAID)
    for place in exchanged:
        order[[place, place + APART]] = place + APART, place
    clean, corrupt = (np.hstack([before, first, second]) for first in (said, said[:, order]))
    T, most = clean.shape[1], model.config.n_ctx
    if T > most:
        reads = f"that takes {T} tokens, and this model reads at most {most}"
        raise NotApplicable(f"no room to repeat {SAID} words: {reads}")
    answers = zip(said[:, RIGHT].tolist(), said[:, RIGHT + APART].tolist())
    return Asked(list(clean), list(corrupt), list(answers))


def pieces(model, text):
    """The tokens of a text, or of ids, as words of a figure."""
    ids = model.tokenizer.encode(text) if isinstance(text, str) else text
    return np.array(corpus.labels(model, np.asarray(ids)))


def named(model, texts, letters=None):
    """The tokens of the first of some texts as words; those of drawn words as letters.

    letters: {id: letter}, filled here, for the next call to go on with; None: no word is drawn.
    Drawn is what differs from text to text.
    """
    words = pieces(model, texts[0])
    if letters is not None:
        for i in np.flatnonzero((np.array(texts) != texts[0]).any(axis=0)).tolist():
            words[i] = letters.setdefault(int(texts[0][i]), ascii_lowercase[len(letters)])
    return words


def read_by_heads(model, text, prefix=None):
    """The pieces that heads read, and those that cross-attention reads: {component: [T]}."""
    inputs = read_texts(model, text, prefix)
    by_component = {"head": pieces(model, inputs.batch.tokens[0])}
    if inputs.source is not None:
        by_component["cross_head"] = pieces(model.encoder, inputs.source.tokens[0])
    return by_component


def place(model, text, prefix=None):
    """Where a text asks for a word: its last position, that of its mask, or a decoder's last."""
    return int(places(model, read_texts(model, text, prefix))[0])


def likelier(clean, corrupt):  # [N], [N]
    """{name: number}: in how many pairs the clean text makes the right answer likelier."""
    N = len(clean)
    null = nulls.count(N, 0.5) / N
    return {"told": (clean > corrupt).mean(), "told_null": null, "n_pairs": N}


def if_told(*rules):
    """The rule of several of equal weight; undecided where the model does not tell the answers."""
    return Provided(Of("told"), Every(*rules))


TELLS = (
    "In {told:.0%} of {n_pairs} pairs the right answer is more likely in the clean text (fair "
    "coins: up to {told_null:.0%}). "
)
TOLD = """
    told: share of the pairs whose clean text makes the right answer more likely than the corrupt
        one does
        null: 99% quantile of fair coins
    fact n_pairs: pairs of texts
"""
