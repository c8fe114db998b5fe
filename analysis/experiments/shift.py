"""Does it matter to a model where in its window a text stands?

What a model predicts when all positions are moved by k. N documents, T tokens, K shifts. Order: the
experiment, its parts; the words; the picture.
"""

from typing import Annotated

import numpy as np

from ..maths import nulls, stats
from ..measures import losses, position_tables
from ..runner import draw, options, verdict
from ..runner.registry import Answer, NotApplicable, register
from ..runner.stream import UNSAVED
from ..texts import corpus

AGAINST = "zero", "shuffled"  # tables of the comparison: nothing left of positions
# Places matter where a shift costs a tenth or more of what positions at zero cost: less is seldom
# seen beside other changes. It is a convention.
MATTERS = 0.1


def shift(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: Annotated[int, options.OrZero(options.AtLeast(2))] = 20,
    tokens: options.Size = 0,
    column: str = "",
    steps: Annotated[int, options.Within(2, 64)] = 7,
    every: options.Count = 32,
    seed: options.Seed = 0,
):
    """Loss against a shift of all positions, from none to as far as the table goes.

    text: file or folder with one document or paragraph a line, .csv, .jsonl, - for standard input,
    or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: half of the model's longest input)
    column: columns of a .csv or keys of a .jsonl file that hold the text
    steps: how many shifts, the shift by 0 among them
    every: of a masked model, hide one token in this many
    seed: seed of the shuffled table and of the null
    """
    _check_head(model)
    document_set = _load_documents(model, text, documents, tokens, column)
    T = document_set.T
    shifts = np.unique(np.linspace(0, model.config.n_ctx - T, steps).round().astype(int))
    ways = _ways(model, shifts, T, seed)

    def measure(i, document):
        ordinary = document[document_set.ordinary(len(document))]
        start = i % min(every, len(ordinary))
        counts = np.bincount(ordinary, minlength=model.config.n_vocab)
        costs = [_cost(model, document, start, every, way) for way in ways]
        return {"counts": counts, "costs": np.array(costs)}

    sums = run.gather(measure, document_set, "documents", keep=("costs",))
    result = {"T": T, "documents": len(document_set), "shifts": shifts}
    result["loss_null"] = stats.entropy(sums["counts"])
    result["predicts"] = position_tables.PREDICTS[model.config.task_head]
    total, n = np.moveaxis(sums["costs"], 2, 0)
    return result | _changes(total, n, shifts, seed)


def _check_head(model):
    """Raise NotApplicable if the model predicts no tokens."""
    head = model.config.task_head
    if head not in position_tables.PREDICTS:
        raise NotApplicable(
            f"shift needs a masked or causal language model; this checkpoint's head is {head}"
        )


def _load_documents(model, text, documents, tokens, column):
    """Documents that leave room for a shift; raises ValueError if they do not."""
    longest = model.config.n_ctx
    document_set = corpus.documents(model, text, documents, tokens or longest // 2, column=column)
    options.several(document_set)
    if document_set.T == longest:
        raise ValueError(
            f"--tokens {tokens}: documents as long as the model reads leave no room for a shift"
        )
    return document_set


def _ways(model, shifts, T, seed):
    """Keywords of the losses for each shift of T positions, then for each table of AGAINST."""
    ways = [{"positions": k + np.arange(T)} for k in shifts]
    tables = position_tables.tables(model, seed)
    ways += [{"condition": position_tables.stand_in(tables[name])} for name in AGAINST]
    return ways


def _cost(model, document, start, every, way):
    """Sum of the losses of one document, and their number."""
    if model.config.task_head == "masked":
        costs = losses.masked(model, document, every=every, start=start, **way)
    else:
        costs = losses.causal(model, document, **way)
    return costs.sum(), len(costs)


def _changes(total, n, shifts, seed):
    """Losses, their changes from the first, intervals and null, from sums and numbers [N K+2]."""
    K = len(shifts)
    loss = total.sum(axis=0) / n.sum(axis=0)
    change = total - total[:, :1]
    by_shift = (loss - loss[0])[:K]
    interval = stats.bootstrap(change[:, :K], n[:, :K]).T
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


def says(r):
    """What the numbers show, in plain words."""
    low, high = r["worst_interval"]
    verdict = "more than" if abs(r["worst"]) > r["worst_null"] else "no more than"
    return (
        f"When all positions together are moved by up to {r['shifts'][-1]} tokens, the "
        f"{r['predicts']} of {r['loss']:.3f} nats per token changes most at {r['worst_at']}: by "
        f"{r['worst']:+.3f} ({low:+.3f} to {high:+.3f}), {verdict} chance makes of these "
        f"documents in 99 of 100 cases ({r['worst_null']:.3f}). Positions at zero change it by "
        f"{r['change_zero']:+.3f}, and rows in random order by {r['change_shuffled']:+.3f}."
    )


def answers(r):
    """No within chance; yes from MATTERS of what positions at zero cost on; partly between.

    Undecided where positions at zero cost nothing: the model does not use them.
    """
    cost = abs(r["change_zero"])
    worst = verdict.beside(
        abs(r["worst"]), r["worst_null"], enough=MATTERS * cost, most=np.inf, margin=verdict.NATS
    )
    measure = (
        f"largest change of the {r['predicts']} in nats per token, all positions moved together"
    )
    value = f"{r['worst']:+.3f} (positions at zero: {r['change_zero']:+.2f})"
    is_used = cost > r["worst_null"] + verdict.NATS
    return Answer(
        worst.verdict if is_used else "undecided", measure, value, f"{r['worst_null']:.3f}"
    )


def plot(r):
    """The loss against the shift, beside that without positions; its change with the null."""
    figure = draw.figure(11.5, 4.8)
    left, right = figure.subplots(1, 2)
    _draw_losses(left, r)
    _draw_changes(right, r)
    for axes, columns in ((left, 2), (right, 1)):
        axes.set_xlabel(f"shift of all positions (tokens; documents of {r['T']})")
        axes.legend(**draw.ABOVE | {"ncols": columns})
    return figure


def _draw_losses(axes, r):
    """The loss at every shift, with the tables of AGAINST, and of a guess by frequencies."""
    label = "all positions moved"
    axes.plot(r["shifts"], r["losses"], "o-", markersize=3, color=draw.VERMILION, label=label)
    for name, loss in zip(AGAINST, r["losses_against"]):
        color = position_tables.COLORS[name]
        axes.axhline(loss, color=color, linestyle="--", label=f"positions: {name}")
    label = "null: frequencies of the tokens"
    axes.axhline(r["loss_null"], color="black", linestyle=":", label=label)
    axes.set(ylim=(0, None), ylabel=f"{r['predicts']} (nats per token)")


def _draw_changes(axes, r):
    """The change of the loss with its interval, on the band that chance alone reaches."""
    line = r["worst_null"]
    label = "null: signs of the changes drawn at random, 99 %"
    axes.axhspan(-line, line, color=draw.GREY, alpha=0.3, linewidth=0, label=label)
    low, high = r["change_interval"].T
    band = {"color": draw.VERMILION, "alpha": 0.25, "linewidth": 0}
    axes.fill_between(r["shifts"], low, high, label="95 % over documents", **band)
    change = r["losses"] - r["losses"][0]
    axes.plot(r["shifts"], change, "o-", markersize=3, color=draw.VERMILION)
    axes.set_ylabel("change from no shift (nats per token)")


register(
    shift,
    draw=plot,
    says=says,
    look=(
        "A flat line means that the model uses how far apart tokens are, and that it does not "
        "matter where the text begins. The dashed lines show what it costs to lose positions "
        "altogether. On the right is the change by itself: outside the grey band it is more than "
        "chance."
    ),
    published=(
        "Models with learned absolute positions predict worse when the positions of a whole text "
        "are moved: they depend on where it begins (Sinha et al. 2022)."
    ),
    answer=answers,
    numbers={
        "worst": (
            "largest change of the loss in nats per token, over all shifts (masked models: of the "
            "pseudo-loss)"
        ),
        "worst_null": (
            "99 % quantile of the largest change when each document's sign is drawn at random"
        ),
        "worst_at": "shift at which the largest change comes, in tokens",
        "change_zero": "change of the loss in nats per token with the position table at zero",
        "change_shuffled": "change of the loss in nats per token with the table's rows shuffled",
        "loss": "mean loss in nats per token without a shift (masked models: pseudo-loss)",
        "loss_null": "loss of the frequencies of the tokens in the documents measured",
        "worst_interval": "95 % interval of the largest change, documents drawn anew",
        "perplexity": (
            "perplexity (masked models: pseudo-), e to the mean loss per token, by shift in tokens"
        ),
        "n_predicted": "tokens whose loss is measured, at each shift",
        "documents": "documents measured",
    },
    labels={"perplexity": "shifts", "worst_interval": ("from", "to")},
    least_documents=2,
)
