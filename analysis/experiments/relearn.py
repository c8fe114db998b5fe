"""If words are spread apart and only the position table is retrained, do heads follow?

Every word is followed by fillers and the position table is learned anew, all else frozen. A head
that looked at the word before, one token back, has to look 1 + fillers tokens back: with the old
queries and keys, and new positions. N documents, L layers, H heads, R offsets, S steps.
"""

from functools import partial
from typing import Annotated

import numpy as np

from ..contract import Asks, NotApplicable, Of, Without, options, register
from ..drawing import Part, draw, figures
from ..machine import progress
from ..maths import profiles
from ..measures import heads, losses, position_tables
from ..running.stream import UNSAVED
from ..texts import corpus
from ..tuning import batches, training
from . import _relearn_table

REACH = 3  # words to either side
LOOKED_AT = 16  # documents whose attention is read: held-out ones
MOST = 6  # heads that are drawn
STYLES = {
    "learned": {"color": draw.VERMILION, "label": "table learned anew", "marker": "o"},
    "kept": {"color": draw.BLUE, "label": "old table"},
    "fresh": {"color": draw.GREY, "label": "null: random table", "linestyle": "--"},
}
FOLLOWS = 0.5  # share of the heads with a direction from which the answer is yes


def relearn(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 0,
    tokens: options.Tokens = 0,
    fillers: Annotated[int, options.Within(1, 7)] = 3,
    steps: options.Count = 200,
    batch: options.Count = 4,
    rate: Annotated[float, options.Within(0, 1)] = 0.02,
    seed: options.Seed = 0,
):
    """Attention by offset before and after a new position table is learned on spread documents.

    documents: documents to read, a fifth of them held out (0: as many as the text holds, at most
    400)
    tokens: length of each when it is spread (0: 128, or the model's longest if that is less)
    fillers: unknown tokens after every word
    steps: steps of the optimizer
    batch: documents in each
    rate: peak learning rate
    """
    _check(model)
    n_words = _relearn_table.n_words(model, fillers, tokens)
    size = n_words + sum(map(len, corpus.specials(model)))
    rows = np.array([*corpus.documents(model, text, documents, size, most=400)])
    spread = _relearn_table.Spread(model, rows, fillers)
    copy, arrays = _relearn_table.fresh(model, seed)
    table = arrays["W_pos"]
    first = table.copy()
    how = training.How(steps, batch, rate, decay=0.0, held_out=0.2, every=steps, seed=seed)
    learning = training.Training(copy, {"W_pos": table}, _Data(spread), how)
    with progress.Line("steps", steps) as line:
        learning.go_on(lambda learning: line.update(learning.done))
    tables = {"kept": model.weights.W_pos, "fresh": first, "learned": table}
    result = _attention(model, tables, spread, learning.parts.held_out, fillers)
    result |= {"losses": np.array(learning.losses), "fillers": fillers, "steps": steps}
    by_table = zip(("loss_null", "loss"), learning.curve)
    result |= {name: loss for name, (_, loss) in by_table}
    learning.model = position_tables.with_table(model, tables["kept"])
    return result | {"loss_kept": learning.held_out()} | _moved(result)


def _check(model):
    """Raise NotApplicable for a model without a table, or one that fills no gaps."""
    needs = "relearn needs a masked language model with a position table"
    if model.config.task_head != "masked":
        raise NotApplicable(f"{needs}; this checkpoint's head is {model.config.task_head}")
    if model.weights.W_pos is None:
        raise NotApplicable(f"{needs}; this model ({model.config.model_type}) has no such table")
    losses.token_of(model.tokenizer, _relearn_table.FILLERS)


class _Data:
    """What the loop asks for."""

    classes = ()

    def __init__(self, spread):
        self.spread, self.groups = spread, spread.groups

    def batch(self, numbers, rng):
        tokens, targets = self.spread.batch(numbers, rng)
        return batches.Batch(tokens, targets, np.ones(tokens.shape, bool))


def _attention(model, tables, spread, held_out, fillers):
    """Attention by offset: in plain documents, and with each table in spread ones [L H R]."""
    few = held_out[:LOOKED_AT]
    before = len(corpus.specials(model)[0])
    plain = before + np.arange(len(spread.words))
    result = {"plain": _relearn_table.attention(model, spread.plain[few], plain, REACH)}
    reach = REACH * (1 + fillers)
    for name, table in tables.items():
        other = position_tables.with_table(model, table)
        result[name] = _relearn_table.attention(other, spread.rows[few], spread.words, reach)
    result["T"] = spread.rows.shape[1]
    return result


def _moved(result):
    """Heads with a direction in plain documents, and where they look in spread ones."""
    plain = result["plain"]
    step = apart(result)
    is_directed = profiles.directed(plain, result["T"] // step, REACH)
    offset = plain.argmax(axis=-1) - REACH
    record = {"directed": is_directed, "offset": offset, "n_directed": int(is_directed.sum())}
    record["heads"] = np.array([heads.name(*pair) for pair in np.argwhere(is_directed)])
    for table, suffix in (("learned", ""), ("fresh", "_null"), ("kept", "_kept")):
        profile = result[table]
        expected = offset * step + profile.shape[-1] // 2  # its index
        follows = profile.argmax(axis=-1) == expected
        weight = np.take_along_axis(profile, expected[..., None], axis=-1)[..., 0]
        record[f"follow{suffix}"] = _mean(follows[is_directed])
        record[f"weight{suffix}"] = _mean(weight[is_directed])
        record[f"follows_{table}"], record[f"weight_at_{table}"] = follows, weight
    return record


def _mean(x):
    """The mean; 0 of nothing."""
    return x.mean() if x.size else 0.0


def apart(r):
    """How far apart words stand in spread documents, in tokens."""
    return 1 + int(r["fillers"])


def n_follow(r, table="learned"):
    """How many heads with a direction attend as many words away with a table."""
    return np.count_nonzero(r[f"follows_{table}"] & r["directed"])


def n_fresh(r):
    """As many with the random table."""
    return n_follow(r, "fresh")


def n_kept(r):
    """As many with the old table."""
    return n_follow(r, "kept")


def _of_heads(r):
    """A figure for each head with a direction, those that attend most first."""
    pairs = np.argwhere(r["directed"])
    order = np.argsort(-r["plain"].max(axis=-1)[r["directed"]], kind="stable")
    pairs = [tuple(pair) for pair in pairs[order][:MOST]]
    return [Part(partial(_draw_pair, pair=pair), height=2.8) for pair in pairs or [None]]


def _draw_pair(figure, r, pair):
    """Attention by offset of one head: bars in plain documents, a line of each table in spread."""
    if pair is None:
        draw.nothing(figure.subplots(), "no head has a direction")
        return
    left, right = figure.subplots(1, 2)
    left.set(title="plain documents, old table", xlabel="offset of the key (tokens)")
    right.set_xlabel("offset of the key (tokens; words stand apart)")
    left.bar(profiles.offsets(REACH), r["plain"][pair], color=draw.GREY)
    left.set(ylabel=f"{heads.name(*pair)}, attention", ylim=(0, 1))
    offsets = profiles.offsets(r["learned"].shape[-1] // 2)
    for name, style in STYLES.items():
        right.plot(offsets, r[name][pair], markersize=3, **style)
    right.set(ylim=(0, 1))
    right.set_xticks(offsets[:: apart(r)])
    right.legend(**draw.ABOVE)


register(
    relearn,
    draw=figures(_of_heads),
    look="On the left a head with a direction in plain text. On the right the same head where "
    "words stand apart: with the old table its peak stays where it was, on a filler; with one that "
    "learned, a peak at the next word shows that the frozen queries and keys read the new waves as "
    "they read the old ones. The random table that it began from is the null.",
    published="RoBERTa-base with three unknown tokens after every token and a re-learned table "
    "(8,645 samples) attends to offsets -4, -8, … where it attended to -1, -2, … (EMNLP 2023, "
    "appendix E).",
    figure="EMNLP, appendix E",
    numbers="""
        follow: share of heads with a direction that attend as many words away as before
            null: that share with the random table that learning began from
        follow_kept: that share with the old table
            no null: a control, whose null is that of follow
        weight: their mean attention to the key there
            null: that weight with the random table
        weight_kept: that weight with the old table
            no null: a control, whose null is that of weight
        loss: loss of hidden words on held-out spread documents, in nats
            null: that loss with the random table
        loss_kept: that loss with the old table
            no null: a control, whose null is that of loss
        fact n_directed: heads with a direction in plain documents: {profiles.DIRECTION}
        fact steps: steps of the optimizer
        fact fillers: unknown tokens after every word
    """,
    answer=Asks(
        "heads with a direction that attend {apart} times as far after the table was relearned",
        value="{n_follow} of {n_directed}",
        chance="{n_fresh}, random table",
        rule=Of("follow", enough=FOLLOWS),
        without=Without("n_directed", "0 heads with a direction", "0 heads"),
    ),
    says="With {fillers} fillers after every word and a position table relearned for {steps} "
    "steps, {n_follow} of the {n_directed} heads with a direction attend {apart} times as far "
    "({n_fresh} with the random table before it learned, {n_kept} with the old table). The key "
    "there gets {weight:.2f} of their attention ({weight_null:.2f} and {weight_kept:.2f}). The "
    "loss of hidden words on held-out documents goes from {loss_null:.2f} to {loss:.2f} nats; with "
    "the old table it is {loss_kept:.2f}.",
    per_head=("weight_at_learned", "weight_at_kept"),
    least_documents=2,
)
