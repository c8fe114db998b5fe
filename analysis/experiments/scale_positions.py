"""Does the model need its positions at their learned scale?

The position table times 0, 1/4, 1/2, 1, 2 and 4, or the angles by which queries and keys are
turned, or the bias by distance: what the model predicts, and how much of its attention every head
gives to its own offset. Beside it the table's rows, or positions, in random order, scaled alike. N
documents, T tokens, S sizes, L layers, H heads.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..contract import NATS, Asks, Below, Each, Of, Provided, options, register, verdict
from ..drawing import Line, When, draw, row
from ..measures import by_mechanism, inputs, position_sizes, position_tables
from ..running.stream import UNSAVED
from ..texts import corpus

LEARNED = position_sizes.LEARNED
HALF, DOUBLE = LEARNED - 1, LEARNED + 1  # the sizes on both sides of the learned one
# A size matters where the loss rises by a tenth or more of what positions at zero cost: less is
# seldom seen beside other changes. It is a convention.
MATTERS = 0.1


def scale_positions(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 20,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Loss and attention of every head against the size of its positions."""
    position_tables.check_head(model, "scale-positions")
    sized = by_mechanism.of_model(model, SIZED)
    document_set = corpus.documents(model, text, documents, tokens)
    options.several(document_set)
    rows = sized.rows(model)[: document_set.T]
    put = sized.put(model)

    def measure(i, document):
        ways = position_sizes.conditions(put, rows, (seed, i))
        ordinary = document[document_set.ordinary(len(document))]
        counts = np.bincount(ordinary, minlength=model.config.n_vocab)
        return {"counts": counts, **position_sizes.measure(model, document, ways, i)}

    sums = run.gather(measure, document_set, "documents", keep=("losses",))
    result = position_sizes.measures(model, sums, document_set, LEARNED)
    return result | {"scaled": sized.words, "of": sized.of} | _least(result)


class Sized(NamedTuple):
    """What is scaled of a mechanism: in words, with what tells no position, and how."""

    words: str
    of: str
    rows: Callable  # of a model -> what is scaled, by place
    put: Callable  # of a model -> the condition of these rows at a size


def _in_scores(words):
    """The Sized of a mechanism that enters the scores."""
    numbers = lambda model: np.arange(model.config.n_ctx)  # noqa: E731
    return Sized(
        words, "places", numbers, lambda model: position_sizes.scaled_in_scores(model.config)
    )


SIZED = by_mechanism.entries(
    table=Sized("the position table", "rows", inputs.reachable, lambda _: position_sizes.scaled),
    rotary=_in_scores("the angle of each turn"),
    bias=_in_scores("the bias by distance"),
    terms=_in_scores("the terms of content with distances"),
    none=f"nothing to scale: {by_mechanism.NO_PLACES}",
)


def _least(r):
    """The size with the lowest loss, and the smaller rise of the two sizes beside the learned."""
    beside = [HALF, DOUBLE]
    result = {"rise": r["change"][beside].min(), "rise_null": r["change_null"][beside].min()}
    result["rise_interval"] = r["change_interval"][beside[r["change"][beside].argmin()]]
    result["best_size"] = r["sizes"][r["losses"].argmin()]
    result["best_size_null"] = r["sizes"][r["losses_null"].argmin()]
    return result


def rises(r):
    """Rises of the loss at half and double the size."""
    return r["change"][[HALF, DOUBLE]]


def rises_ends(r):
    """Their intervals."""
    return r["change_interval"][[HALF, DOUBLE]]


def rises_by_chance(r):
    """Rises of the loss with shuffled rows of half and of double the size, 0 where it falls."""
    return np.maximum(r["change_null"], 0)[[HALF, DOUBLE]]


def marked(panel):
    """A panel by size, with a line at the learned one."""

    def with_line(axes, r):
        panel(axes, r)
        axes.axvline(LEARNED, color="black", linewidth=0.7, linestyle=":")

    return with_line


SIZE = "size of positions (1: as learned)"
OF_ALL = "heads with a direction, of {directed.size}"
COUNTS = (
    Line("n_directed", "rows in order"),
    Line("n_directed_null", "null: rows shuffled", "--", draw.GREY),
)

register(
    scale_positions,
    look="On the left, a curve with its lowest point at 1 means that the model works best with "
    "positions at their learned size; the grey curve is the effect of shuffled rows of the same "
    "size. In the middle, heads may attend more sharply to their offset when positions are "
    "larger, although the loss rises: words then have less weight. If a norm follows the sum of "
    "words and positions, doubling positions is the same as halving words.",
    published="The blog post asks how the size of the position signal changes from layer to "
    "layer, as norms scale it; the effect of other sizes has not been published.",
    numbers="""
        rise: rise of the loss in nats per token with positions of half or of double the learned
            size, the smaller of the two (masked models: of the pseudo-loss)
            null: the smaller rise of both sizes with the rows of the table shuffled
        loss: mean loss in nats per token at the learned size (masked models: one in
            {position_sizes.EVERY} tokens hidden)
            null: unigram loss of the documents read
        change by size_names: change of the loss from the learned size, in nats per token, by size
            null: change of the loss from size 1 with the rows of the table shuffled
        best_size: size with the lowest loss
            null: size with the lowest loss when the rows of the table are shuffled
        sharp by size_names: attention to its own offset, mean of the heads with a direction at the
            learned size
            null: attention of those heads to that offset with the rows shuffled
        n_directed by size_names: heads with a direction, by size
            null: heads with a direction when the rows of the table are shuffled
        fact rise_interval by from, to: 95% interval over documents of the smaller rise
        fact n_predicted: tokens whose loss is measured, at each size
        fact documents: documents measured
    """,
    per_head=("offset_of_heads",),
    least_documents=2,
    answer=Asks(
        "rise of the {predicts} in nats per token, with positions at half and at double their "
        "scale",
        value="{change[HALF]:+.2f} and {change[DOUBLE]:+.2f} (at zero: {change[0]:+.2f})",
        chance="{rise_null:+.2f}, shuffled rows",
        rule=Provided(
            Of("change[0]", null=0, interval="change_interval[0]", **NATS),
            Below("loss", **NATS),
            Each(
                "rises",
                null="rises_by_chance",
                interval="rises_ends",
                most=np.inf,
                margin=lambda r: max(MATTERS * r["change"][0], verdict.NATS),
            ),
        ),
    ),
    says=[
        "With {scaled} times {size_names} the {predicts} is {losses:.2f} nats per token "
        "({of} shuffled: {losses_null:.2f}; unigram: {loss_null:.2f}). It is lowest at size "
        "{best_size:g}; with shuffled {of} at size {best_size_null:g}. Half and "
        "double the size change it by {change[HALF]:+.2f} and {change[DOUBLE]:+.2f}, the smaller "
        "of them within {rise_interval:to +.3f}. ",
        When(
            "sharp",
            "The {directed.sum} heads that have a direction at the learned size give {sharp:.2f} "
            "of their attention to their offset; {of} shuffled, at most {sharp_null.max:.2f}. "
            "Heads with a direction: {n_directed}.",
            "No head has a direction at the learned size.",
        ),
    ],
    draw=row(
        marked(position_sizes.losses_by_size(xlabel=SIZE)),
        marked(position_sizes.heads_by_size(xlabel=SIZE)),
        marked(position_sizes.by_size(*COUNTS, ylabel=OF_ALL, xlabel=SIZE)),
        widths=(1, 1, 0.8),
        height=4.8,
    ),
)
