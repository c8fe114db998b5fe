"""Would adding positions again before every layer improve predictions?

The position table enters a model once, with the words. Here it is added to the stream again before
each later layer, at several sizes: what the model predicts, how much of its attention every head
gives to its own offset, and how much of the stream depends only on the position. Beside it rows of
the table in random order, injected alike. N documents, T tokens, D width, S sizes, L layers, H
heads.
"""

import numpy as np

from ..contract import NATS, Asks, Below, NotApplicable, Of, Provided, options, register
from ..drawing import Line, When, draw, lines, row, stream_layers
from ..maths import stats
from ..measures import by_mechanism, inputs, position_sizes, position_tables, residual_stream
from ..running.stream import UNSAVED
from ..texts import corpus

AS_IS, ONCE = 0, position_sizes.LEARNED  # numbers of the sizes 0 and 1
STREAMS = {"share_as_is": (0, AS_IS), "share": (0, ONCE), "share_null": (1, ONCE)}
# Injecting helps where the loss falls by a tenth or more of what the model predicts better than the
# frequencies of the tokens do. It is a convention.
MATTERS = 0.1


def inject_positions(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 20,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """Loss, attention and positions in the stream when positions are added before every layer."""
    position_tables.check_head(model, "inject-positions")
    table = by_mechanism.of_model(model, TABLES)(model)
    if model.config.n_layers < 2:
        raise NotApplicable("inject-positions needs two layers or more; this model has one")
    document_set = corpus.documents(model, text, documents, tokens)
    options.several(document_set)
    rows = table[: document_set.T]
    inner = document_set.ordinary()

    def measure(i, document):
        ways = position_sizes.conditions(position_sizes.injected, rows, (seed, i))
        sums = position_sizes.measure(model, document, ways, i)
        sums["counts"] = np.bincount(document[inner], minlength=model.config.n_vocab)
        zero = position_sizes.scaled(rows, 0.0)
        sums["without"] = np.array(position_sizes.cost(model, document, zero, i))
        streams = [
            _centred(residual_stream.states(model, document, ways[table][size])[:, inner])
            for table, size in STREAMS.values()
        ]
        sums["streams"] = np.array(streams)
        sums["squares"] = np.square(sums["streams"]).sum(axis=(2, 3))
        return sums

    sums = run.gather(measure, document_set, "documents", keep=("losses",))
    result = position_sizes.measures(model, sums, document_set, AS_IS)
    result["without"] = sums["without"][0] / sums["without"][1] - result["loss"]
    return result | _best(result) | _by_place(sums, len(document_set))


EVERYWHERE = "positions enter every layer already, by"
TABLES = by_mechanism.entries(
    table=inputs.reachable,
    rotary=f"nothing to inject: {EVERYWHERE} turned queries and keys",
    bias=f"nothing to inject: {EVERYWHERE} a bias on the scores",
    terms=f"nothing to inject: {EVERYWHERE} terms of the scores",
    none=f"nothing to inject: {by_mechanism.NO_PLACES}",
)


def _centred(x):
    """Streams [L+1 T D] without their mean over the positions, in float64."""
    x = np.asarray(x, np.float64)
    return x - x.mean(axis=1, keepdims=True)


def _best(r):
    """The size other than 0 with the least loss, and by how much it is less than as is."""
    best = 1 + r["change"][1:].argmin()
    result = {"gain": -r["change"][best], "gain_null": -r["change_null"][1:].min()}
    result["gain_interval"] = -r["change_interval"][best, ::-1]
    result["gain_size"] = r["sizes"][best]
    return result


def _by_place(sums, N):
    """Share of the stream's variance that depends only on the position, by layer: [L+1] each."""
    total = np.moveaxis(sums["streams"], (2, 3), (0, 1))  # [T D 3 L+1]
    share = stats.common_share(total, sums["squares"], N)
    names = [f"before layer {i}" for i in range(share.shape[-1] - 1)] + ["output"]
    return dict(zip(STREAMS, share)) | {"layer_names": np.array(names)}


def enough(r):
    """From which fall on injecting helps, beyond that with shuffled rows."""
    return max(r["gain_null"], 0) + MATTERS * (r["loss_null"] - r["loss"])


SIZE = "size of what is added (1: as at the start)"
AT_ZERO = Line(lambda r: r["loss"] + r["without"], "positions at zero", "-.", width=1)

register(
    inject_positions,
    look="On the left, a curve that falls below its first point means that this trained model "
    "would benefit from positions in every layer; for the grey curve, vectors of the same size "
    "without position information are added. In the middle, heads that read positions in later "
    "layers attend more sharply when positions are added again. On the right, the share of the "
    "stream's variance that depends only on the position: where the blue line falls, position "
    "information fades. A model that is trained with positions in every layer might benefit even "
    "if this one does not.",
    published="The blog post asks whether positions should enter every layer, not only the "
    "first; it withdraws its own answer, that the residual stream carries them to the last layer "
    "anyway, as too simple.",
    numbers="""
        gain: largest fall of the loss in nats per token, over all sizes, with positions added again
            (masked models: of the pseudo-loss); negative: it rises at each
            null: largest fall of the loss with shuffled rows of the table added
        without: rise of the loss in nats per token with the position table at zero
            no null: it is the scale of the gain
        loss: mean loss in nats per token of the unchanged model (masked models: one in
            {position_sizes.EVERY} tokens hidden)
            null: unigram loss of the documents read
        change by size_names: change of the loss in nats per token, by size of what is added
            null: change of the loss when shuffled rows of the table are added
        fact gain_size: size at which the loss falls most, or rises least
        sharp by size_names: attention to its own offset, mean of the heads with a direction, by
            size
            null: attention of those heads to that offset, shuffled rows added
        n_directed by size_names: heads with a direction, by size of what is added
            null: heads with a direction, shuffled rows added
        share by layer_names: share of the stream's variance that depends only on the position,
            positions added at size 1, by layer
            null: share that depends only on the position, shuffled rows added at size 1
        share_as_is by layer_names: share that depends only on the position in the unchanged model,
            by layer
            no null: the share with positions added is compared with it
        fact gain_interval by from, to: 95% interval over documents of the largest fall
        fact n_predicted: tokens whose loss is measured, at each size
        fact documents: documents measured
    """,
    per_head=("offset_of_heads",),
    least_documents=2,
    answer=Asks(
        "largest fall of the {predicts} in nats per token, positions added before every layer",
        value="{gain:+z.3f} (positions at zero: {without.minus:+z.2f})",
        chance="{gain_null:+z.3f}",
        rule=Provided(
            Below("loss", **NATS), Of("gain", null=("gain_null", 0), enough=enough, **NATS)
        ),
    ),
    says=[
        "With the position table added again before every layer but the first, times "
        "{size_names}, the {predicts} is {losses:.3f} nats per token. Rows shuffled give "
        "{losses_null:.3f}, token frequencies {loss_null:.2f}. The loss ",
        When("gain > 0", "falls most", "rises least"),
        " at size {gain_size:g}: a change of {gain.minus:+z.3f} ({gain_interval[1].minus:+z.3f} to "
        "{gain_interval[0].minus:+z.3f}), while positions at zero change it by {without:+z.2f}. "
        "Of the output's variance {share[-1]:.0%} depends only on the position, "
        "{share_as_is[-1]:.0%} in the unchanged model, {share_null[-1]:.0%} with rows shuffled. ",
        When(
            "sharp",
            "The {directed.sum} heads with a direction give {sharp[AS_IS]:.2f} of their "
            "attention to their offset in the unchanged model, {sharp[ONCE]:.2f} at size 1, and "
            "{sharp_null[ONCE]:.2f} with rows shuffled.",
            "No head has a direction.",
        ),
    ],
    draw=row(
        position_sizes.losses_by_size(AT_ZERO, xlabel=SIZE),
        position_sizes.heads_by_size(xlabel=SIZE),
        lines(
            Line("share", "positions added again, size 1", color=draw.VERMILION),
            Line("share_as_is", "as the model is"),
            Line("share_null", "null: rows shuffled", "--", draw.GREY),
            xticks=stream_layers,
            legend=draw.STACKED,
            ylim=(-0.03, 1.02),
            xlabel="layer that reads the stream",
            ylabel="share of its variance by position",
        ),
        height=4.8,
    ),
)
