"""Does it matter where in its context window a text begins?

What a model predicts when all positions are moved by k. N documents, T tokens, K shifts.
"""

from typing import Annotated

import numpy as np

from ..contract import NATS, Asks, Below, Of, Provided, options, register
from ..drawing import Line, When, draw, lines, row
from ..maths import nulls, stats
from ..measures import losses, position_tables
from ..running.stream import UNSAVED
from ..texts import corpus

FEW = 8  # documents: 2 of 2^8 draws of signs are all alike, below 1%
AGAINST = "zero", "shuffled"  # tables of the comparison: nothing left of positions
# Places matter where a shift costs a tenth or more of what positions at zero cost: less is seldom
# seen beside other changes. It is a convention.
MATTERS = 0.1


def shift(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 20,
    tokens: options.Tokens = 0,
    steps: Annotated[int, options.Within(2, 64)] = 7,
    every: options.Every = 32,
    seed: options.Seed = 0,
):
    """Loss against a shift of all positions, from 0 to the end of the position table.

    tokens: length of each document (0: half of the model's longest input)
    steps: how many shifts, the shift by 0 among them
    """
    position_tables.check_head(model, "shift")
    document_set = _load_documents(model, text, documents, tokens)
    T = document_set.T
    shifts = np.unique(np.linspace(0, model.config.n_ctx - T, steps).round().astype(int))
    ways = _ways(model, shifts, T, seed)

    def measure(i, document):
        ordinary = document[document_set.ordinary(len(document))]
        start = i % min(every, len(ordinary))
        counts = np.bincount(ordinary, minlength=model.config.n_vocab)
        costs = [losses.total(model, document, every, start, **way) for way in ways]
        return {"counts": counts, "costs": np.array(costs)}

    sums = run.gather(measure, document_set, "documents", keep=("costs",))
    result = {"T": T, "documents": len(document_set), "shifts": shifts}
    result["loss_null"] = stats.entropy(sums["counts"])
    result["predicts"] = position_tables.PREDICTS[model.config.task_head]
    total, n = np.moveaxis(sums["costs"], 2, 0)
    return result | _changes(total, n, shifts, seed)


def _load_documents(model, text, documents, tokens):
    """Documents that leave room for a shift.

    Raises ValueError for tokens that do not, NotApplicable for a model that reads too few.
    """
    least, longest = corpus.shortest(model, text), model.config.n_ctx
    tokens = tokens or max(least, longest // 2)
    options.within("tokens", tokens, least, longest - 1)
    document_set = corpus.documents(model, text, documents, tokens)
    options.several(document_set)
    return document_set


def _ways(model, shifts, T, seed):
    """Keywords of the losses for each shift of T positions, then for each table of AGAINST."""
    ways = [{"positions": k + np.arange(T)} for k in shifts]
    tables = position_tables.tables(model, seed)
    ways += [{"condition": position_tables.stand_in(tables[name])} for name in AGAINST]
    return ways


def _changes(total, n, shifts, seed):
    """Losses, their changes from the first, intervals and null, from sums and numbers [N K+2]."""
    K = len(shifts)
    loss = total.sum(axis=0) / n.sum(axis=0)
    change = total - total[:, :1]
    by_shift = (loss - loss[0])[:K]
    interval = stats.interval(change[:, :K], n[:, :K]).T
    worst = abs(by_shift).argmax()
    by_chance = nulls.random_signs(change[:, :K], n[:, 0].sum(), seed).max(axis=1)
    result = {"losses": loss[:K], "losses_against": loss[K:], "change_interval": interval}
    result["loss"] = loss[0]
    result["worst"] = by_shift[worst]
    result["worst_null"] = np.quantile(by_chance, nulls.CHANCE)
    result["worst_at"] = shifts[worst]
    result["worst_interval"] = interval[worst]
    result["perplexity"] = np.exp(loss[:K])
    result["n_predicted"] = int(n[:, 0].sum())
    for name, loss_against in zip(AGAINST, loss[K:]):
        result[f"change_{name}"] = loss_against - loss[0]
    return result


class Signed(Of):
    """A change beside random signs of the documents; none is denied where these are few.

    Below FEW documents more than 1 draw in 100 gives all of them one sign: the change itself is
    its null.
    """

    def verdict(self, names):
        """By verdict.py, but undecided with few documents."""
        kind = super().verdict(names)
        return "undecided" if kind == "no" and names["documents"] < FEW else kind


def worst_ends(r):
    """The interval of the largest change, whatever its sign."""
    low, high = np.sort(abs(r["worst_interval"]))
    holds_0 = r["worst_interval"].prod() < 0
    return 0.0 if holds_0 else low, high


def changes(r):
    """Change of the loss from no shift, by shift."""
    return r["losses"] - r["losses"][0]


SHIFT = "shift of all positions (tokens; documents of {T})"
CHANCE = "null: signs of the changes drawn at random, 99%"

register(
    shift,
    look="A flat line means that the model uses relative distances only: it does not matter where "
    "the text begins. The dashed lines are the loss without positions. The right panel shows the "
    "change alone: outside the grey lines it exceeds chance.",
    published="Models with learned absolute positions predict worse when the positions of a whole "
    "text are moved: they depend on where it begins (Sinha et al. 2022).",
    numbers="""
        worst: largest change of the loss in nats per token, over all shifts (masked models: of the
            pseudo-loss)
            null: 99% quantile of the largest change when each document's sign is drawn at random
        fact worst_at: shift at which the largest change comes, in tokens
        change_[zero|shuffled]: change of the loss in nats per token with the [position table at
            zero|table's rows shuffled]
            no null: it is the scale of the largest change
        loss: mean loss in nats per token without a shift (masked models: pseudo-loss)
            null: unigram loss of the documents read
        fact worst_interval by from, to: 95% interval over documents of the largest change
        perplexity by shifts: perplexity (masked models: pseudo-), e to the mean loss per token, by
            shift in tokens
            no null: the loss has one
        fact n_predicted: tokens whose loss is measured, at each shift
        fact documents: documents measured
    """,
    least_documents=2,
    answer=Asks(
        "largest change of the {predicts} in nats per token, all positions shifted together",
        value="{worst:+.3f} (positions at zero: {change_zero:+.2f})",
        chance="{worst_null:.3f}",
        rule=Provided(
            Below("loss", **NATS),
            Of("change_zero.abs", null="worst_null", **NATS),
            Signed(
                "worst.abs",
                null="worst_null",
                interval="worst_ends",
                enough=lambda r: MATTERS * abs(r["change_zero"]),
                **NATS,
            ),
        ),
    ),
    says=[
        "When all positions are shifted by up to {shifts[-1]} tokens, the {predicts} of "
        "{loss:.3f} nats per token changes most at {worst_at}: by {worst:+.3f} "
        "({worst_interval:to +.3f}), ",
        When("worst.abs > worst_null", "more than", "no more than"),
        " chance produces from these documents in 99 of 100 cases ({worst_null:.3f}). Positions at "
        "zero change it by {change_zero:+.3f}, and rows in random order by {change_shuffled:+.3f}.",
        " The frequencies of the tokens alone give {loss_null:.3f}.",
    ],
    draw=row(
        lines(
            Line("losses", "all positions moved", color=draw.VERMILION),
            Line("losses_against[0]", f"positions: {AGAINST[0]}", "--"),
            Line("losses_against[1]", f"positions: {AGAINST[1]}", "--", draw.GREEN),
            Line("loss_null", "null: frequencies of the tokens", ":", "black"),
            x="shifts",
            ylim=(0, None),
            xlabel=SHIFT,
            ylabel="{predicts} (nats per token)",
        ),
        lines(
            Line("worst_null", CHANCE, "--", draw.GREY),
            Line("worst_null.minus", None, "--", draw.GREY),
            Line(changes, "95% over documents", color=draw.VERMILION, band="change_interval"),
            x="shifts",
            legend=draw.STACKED,
            xlabel=SHIFT,
            ylabel="change from no shift (nats per token)",
        ),
        height=4.8,
    ),
)
