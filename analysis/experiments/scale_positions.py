"""Does the model need its positions at the size they were learned?

The position table times 0, 1/4, 1/2, 1, 2 and 4: what the model predicts, and how much of its
attention every head gives to its own offset. Beside it the table's rows in random order, scaled
alike. N documents, T tokens, S sizes, L layers, H heads. Order: the experiment, the words, the
picture.
"""

from typing import Annotated

import numpy as np

from ..maths import stats
from ..measures import inputs, position_sizes, position_tables
from ..runner import draw, options, verdict
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED
from ..texts import corpus

LEARNED = position_sizes.LEARNED
NEXT = {"half": LEARNED - 1, "double": LEARNED + 1}  # the sizes on both sides of the learned one
# A size matters where the loss rises by a tenth or more of what positions at zero cost: less is
# seldom seen beside other changes. It is a convention.
MATTERS = 0.1


def scale_positions(
    model,
    run=UNSAVED,
    *,
    text: str = "sample",
    documents: Annotated[int, options.OrZero(options.AtLeast(2))] = 20,
    tokens: options.Size = 0,
    column: str = "",
    seed: options.Seed = 0,
):
    """Loss and attention of every head against the size of the position table.

    text: file or folder with one document or paragraph a line, .csv, .jsonl, - for standard input,
    or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    column: columns of a .csv or keys of a .jsonl file that hold the text
    seed: seed of the shuffled rows
    """
    position_sizes.check_head(model, "scale-positions")
    table = inputs.reachable(model)
    document_set = corpus.documents(model, text, documents, tokens, column=column)
    options.several(document_set)
    rows = table[: document_set.T]

    def measure(i, document):
        ways = position_sizes.conditions(position_sizes.scaled, rows, (seed, i))
        ordinary = document[document_set.ordinary(len(document))]
        counts = np.bincount(ordinary, minlength=model.config.n_vocab)
        return {"counts": counts, **position_sizes.measure(model, document, ways, i)}

    sums = run.gather(measure, document_set, "documents", keep=("losses",))
    N, T = len(document_set), document_set.T
    result = {"T": T, "documents": N, "loss_null": stats.entropy(sums["counts"])}
    result["predicts"] = position_tables.PREDICTS[model.config.task_head]
    result |= position_sizes.changes(sums["losses"], LEARNED)
    causal = model.config.causal
    result |= position_sizes.directions(sums["attention"], N, T, causal, LEARNED)
    return result | _least(result)


def _least(r):
    """The size with the least loss, and the smaller rise of the two sizes beside the learned."""
    beside = [*NEXT.values()]
    result = {"rise": r["change"][beside].min(), "rise_null": r["change_null"][beside].min()}
    result["rise_interval"] = r["change_interval"][beside[r["change"][beside].argmin()]]
    result["best_size"] = r["sizes"][r["losses"].argmin()]
    result["best_size_null"] = r["sizes"][r["losses_null"].argmin()]
    return result


def says(r):
    """What the numbers show, in plain words."""
    by_size = ", ".join(f"{x:.2f}" for x in r["losses"])
    shuffled = ", ".join(f"{x:.2f}" for x in r["losses_null"])
    low, high = r["rise_interval"]
    return (
        f"With the position table times {', '.join(r['size_names'])} the {r['predicts']} is "
        f"{by_size} nats per token (rows shuffled: {shuffled}; frequencies of the tokens: "
        f"{r['loss_null']:.2f}). It is least at size {r['best_size']:g}; with shuffled rows at "
        f"size {r['best_size_null']:g}. Half and double the size change it by "
        f"{r['change'][NEXT['half']]:+.2f} and {r['change'][NEXT['double']]:+.2f}, the smaller of "
        f"them within {low:+.3f} to {high:+.3f}. {_describe_heads(r)}"
    )


def _describe_heads(r):
    """Sentences on the heads with a direction."""
    if "sharp" not in r:
        return "No head has a direction at the learned size."
    by_size = ", ".join(f"{x:.2f}" for x in r["sharp"])
    counts = ", ".join(map(str, r["n_directed"]))
    return (
        f"The {r['directed'].sum()} heads that have a direction at the learned size give "
        f"{by_size} of their attention to their offset; rows shuffled, at most "
        f"{r['sharp_null'].max():.2f}. Heads with a direction: {counts}."
    )


def answer(r):
    """Yes if both half and double the size raise the loss by MATTERS of what zero costs or more.

    Partly if one of them does. No if shuffled rows rise as much. Undecided if positions at zero
    cost nothing, or if the loss is not below that of the tokens' frequencies.
    """
    worth = MATTERS * r["change"][0]
    findings = [_finding(r, i, worth) for i in NEXT.values()]
    is_used = r["change_interval"][0, 0] > verdict.NATS
    has_learned = r["loss_null"] - r["loss"] > verdict.NATS
    kind = verdict.every(*findings) if is_used and has_learned else "undecided"
    measure = (
        f"rise of the {r['predicts']} with positions of half and of double the size, nats per token"
    )
    half, double = (r["change"][i] for i in NEXT.values())
    value = f"{half:+.2f} and {double:+.2f} (at zero: {r['change'][0]:+.2f})"
    return Answer(kind, measure, value, f"the smaller: {r['rise_null']:+.2f}")


def _finding(r, i, worth):
    """The rise of the loss at one size, beside that with shuffled rows of this size."""
    by_chance = max(r["change_null"][i], 0)
    low = r["change_interval"][i, 0]
    rise = r["change"][i] if low > 0 else low
    return verdict.beside(rise, by_chance, most=np.inf, margin=max(worth, verdict.NATS))


def plot(r):
    """The loss, the attention of heads to their offset, and how many have one, by size."""
    figure = draw.figure(12.5, 4.8)
    loss, sharp, count = figure.subplots(1, 3, width_ratios=(1, 1, 0.8))
    _draw_losses(loss, r)
    _draw_heads(sharp, r)
    x = np.arange(len(r["sizes"]))
    count.plot(x, r["n_directed"], "o-", color=draw.BLUE, label="rows in order")
    count.plot(x, r["n_directed_null"], "--", color=draw.GREY, label="null: rows shuffled")
    count.set(ylim=(-0.02 * r["directed"].size, None))
    count.set_ylabel(f"heads with a direction, of {r['directed'].size}")
    for axes in (loss, sharp, count):
        axes.axvline(LEARNED, color="black", linewidth=0.7, linestyle=":")
        axes.set_xticks(x, r["size_names"])
        axes.set_xlabel("size of the position table (1: as learned)")
        axes.legend(**draw.ABOVE | {"ncols": 1})
    return figure


def _draw_losses(axes, r):
    """The loss at every size, with its interval, that of shuffled rows, and of frequencies."""
    x = np.arange(len(r["sizes"]))
    low, high = (r["loss"] + r["change_interval"]).T
    axes.fill_between(x, low, high, color=draw.VERMILION, alpha=0.25, linewidth=0)
    label = "rows in order (change: 95 % over documents)"
    axes.plot(x, r["losses"], "o-", color=draw.VERMILION, label=label)
    axes.plot(x, r["losses_null"], "--", color=draw.GREY, label="null: rows shuffled")
    label = "frequencies of the tokens"
    axes.axhline(r["loss_null"], color="black", linestyle=":", label=label)
    axes.set(ylim=(0, None), ylabel=f"{r['predicts']} (nats per token)")


def _draw_heads(axes, r):
    """Attention of every head with a direction to its own offset, their mean, and the null."""
    x = np.arange(len(r["sizes"]))
    for line in r["sharp_of_heads"][:, r["directed"]].T:
        axes.plot(x, line, color=draw.SKY, linewidth=0.7, alpha=0.7)
    if "sharp" in r:
        axes.plot(x, r["sharp"], "o-", color=draw.BLUE, label="mean of the heads (thin lines)")
        axes.plot(x, r["sharp_null"], "--", color=draw.GREY, label="null: rows shuffled")
    else:
        axes.plot([], [], color=draw.SKY, label="no head has a direction")
    axes.set(ylim=(-0.02, 1.02), ylabel="attention to the head's own offset")


register(
    scale_positions,
    draw=plot,
    says=says,
    answer=answer,
    look=(
        "On the left, a curve with its lowest point at 1 says that the model works best with "
        "positions as large as they were learned; the grey curve is what rows of that size do "
        "that tell no place. In the middle, heads may look more sharply at their offset when "
        "positions are larger, although the loss rises: words then weigh less. Where a norm "
        "follows the sum of words and positions, positions twice as large are the same as words "
        "half as large."
    ),
    published=(
        "The blog post asks how the size of the position signal changes from layer to layer, as "
        "norms scale it; what other sizes would do is not published."
    ),
    numbers={
        "rise": (
            "rise of the loss in nats per token with positions of half or of double the learned "
            "size, the smaller of the two (masked models: of the pseudo-loss)"
        ),
        "rise_null": "the smaller rise of both sizes with the rows of the table shuffled",
        "loss": "mean loss in nats per token at the learned size (masked models: one in "
        f"{position_sizes.EVERY} tokens hidden)",
        "loss_null": "loss of the frequencies of the tokens in the documents measured",
        "change": "change of the loss from the learned size, in nats per token, by size",
        "change_null": "change of the loss from size 1 with the rows of the table shuffled",
        "best_size": "size with the least loss",
        "best_size_null": "size with the least loss when the rows of the table are shuffled",
        "sharp": (
            "attention to its own offset, mean of the heads with a direction at the learned size"
        ),
        "sharp_null": "attention of those heads to that offset with the rows shuffled",
        "n_directed": "heads with a direction, by size",
        "n_directed_null": "heads with a direction when the rows of the table are shuffled",
        "rise_interval": "95 % interval of the smaller rise, documents drawn anew",
        "n_predicted": "tokens whose loss is measured, at each size",
        "documents": "documents measured",
    },
    labels={
        **dict.fromkeys(("change", "sharp", "n_directed"), "size_names"),
        "rise_interval": ("from", "to"),
    },
    per_head=("offset_of_heads",),
    least_documents=2,
)
