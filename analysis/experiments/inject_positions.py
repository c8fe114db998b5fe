"""Would adding positions again before every layer help?

The position table enters a model once, with the words. Here it is added to the stream again before
each later layer, at several sizes: what the model predicts, how much of its attention every head
gives to its own offset, and how much of the stream depends on the place alone. Beside it rows of
the table in random order, injected alike. N documents, T tokens, D width, S sizes, L layers, H
heads. Order: the experiment, the words, the picture.
"""

from typing import Annotated

import numpy as np

from ..maths import stats
from ..measures import inputs, position_sizes, position_tables, residual_stream
from ..runner import draw, options, verdict
from ..runner.registry import Answer, NotApplicable, register
from ..runner.stream import UNSAVED
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
    text: str = "sample",
    documents: Annotated[int, options.OrZero(options.AtLeast(2))] = 20,
    tokens: options.Size = 0,
    column: str = "",
    seed: options.Seed = 0,
):
    """Loss, attention and places in the stream when positions are added again before every layer.

    text: file or folder with one document or paragraph a line, .csv, .jsonl, - for standard input,
    or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    column: columns of a .csv or keys of a .jsonl file that hold the text
    seed: seed of the shuffled rows
    """
    position_sizes.check_head(model, "inject-positions")
    table = inputs.reachable(model)
    _check_layers(model)
    document_set = corpus.documents(model, text, documents, tokens, column=column)
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
    N, T = len(document_set), document_set.T
    result = {"T": T, "documents": N, "loss_null": stats.entropy(sums["counts"])}
    result["predicts"] = position_tables.PREDICTS[model.config.task_head]
    result |= position_sizes.changes(sums["losses"], AS_IS)
    result["without"] = sums["without"][0] / sums["without"][1] - result["loss"]
    causal = model.config.causal
    result |= position_sizes.directions(sums["attention"], N, T, causal, AS_IS)
    return result | _best(result) | _by_place(sums, N)


def _check_layers(model):
    """Raise NotApplicable for a model of one layer, which has no later one."""
    if model.config.n_layers < 2:
        raise NotApplicable("inject-positions needs two layers or more; this model has one")


def _centred(x):
    """Streams [L+1 T D] without their mean over the places, in float64."""
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
    """Share of the stream's variance that depends on the place alone, by layer: [L+1] each."""
    total = np.moveaxis(sums["streams"], (2, 3), (0, 1))  # [T D 3 L+1]
    share = stats.common_share(total, sums["squares"], N)
    names = [f"before layer {i}" for i in range(share.shape[-1] - 1)] + ["output"]
    return dict(zip(STREAMS, share)) | {"layer_names": np.array(names)}


def says(r):
    """What the numbers show, in plain words."""
    by_size = ", ".join(f"{x:.3f}" for x in r["losses"])
    shuffled = ", ".join(f"{x:.3f}" for x in r["losses_null"])
    low, high = r["gain_interval"]
    best = "falls most" if r["gain"] > 0 else "rises least"
    share, as_is, by_chance = (r[name][-1] for name in ("share", "share_as_is", "share_null"))
    return (
        f"With the position table added again before every layer but the first, times "
        f"{', '.join(r['size_names'])}, the {r['predicts']} is {by_size} nats per token (rows "
        f"shuffled: {shuffled}; frequencies of the tokens: {r['loss_null']:.2f}). It {best} at "
        f"size {r['gain_size']:g}: a change of {-r['gain']:+z.3f} ({-high:+z.3f} to {-low:+z.3f}), "
        f"where positions at zero make {r['without']:+z.2f}. Of the output's variance {share:.0%} "
        f"depends on the place alone, {as_is:.0%} as the model is, {by_chance:.0%} with rows "
        f"shuffled. {_describe_heads(r)}"
    )


def _describe_heads(r):
    """A sentence on the heads with a direction."""
    if "sharp" not in r:
        return "No head has a direction."
    own, by_chance = r["sharp"][ONCE], r["sharp_null"][ONCE]
    return (
        f"The {r['directed'].sum()} heads with a direction give {r['sharp'][AS_IS]:.2f} of their "
        f"attention to their offset as the model is, {own:.2f} at size 1, and {by_chance:.2f} with "
        "rows shuffled."
    )


def answer(r):
    """Yes if the loss falls by MATTERS of what it is below that of the tokens' frequencies.

    The fall is counted beyond that of shuffled rows; partly if it is smaller. Undecided if the
    loss is not below that of the frequencies.
    """
    by_chance = max(r["gain_null"], 0)
    learned = r["loss_null"] - r["loss"]
    enough = by_chance + MATTERS * learned
    gain = verdict.of(r, "gain", null=by_chance, enough=enough, most=np.inf, margin=verdict.NATS)
    measure = (
        f"largest fall of the {r['predicts']} in nats per token, positions added before every layer"
    )
    value = f"{r['gain']:+z.3f} (positions at zero: {-r['without']:+z.2f})"
    kind = gain.verdict if learned > verdict.NATS else "undecided"
    return Answer(kind, measure, value, f"{r['gain_null']:+z.3f}")


def plot(r):
    """The loss, the attention of heads to their offset by size, and places in the stream."""
    figure = draw.figure(12.5, 4.8)
    loss, sharp, share = figure.subplots(1, 3)
    _draw_losses(loss, r)
    _draw_heads(sharp, r)
    _draw_shares(share, r)
    for axes in (loss, sharp):
        axes.set_xticks(np.arange(len(r["sizes"])), r["size_names"])
        axes.set_xlabel("size of what is added (1: as at the start)")
    for axes in (loss, sharp, share):
        axes.legend(**draw.ABOVE | {"ncols": 1})
    return figure


def _draw_losses(axes, r):
    """The loss at every size, with shuffled rows, without positions, and of frequencies."""
    x = np.arange(len(r["sizes"]))
    low, high = (r["loss"] + r["change_interval"]).T
    axes.fill_between(x, low, high, color=draw.VERMILION, alpha=0.25, linewidth=0)
    label = "rows in order (change: 95 % over documents)"
    axes.plot(x, r["losses"], "o-", color=draw.VERMILION, label=label)
    axes.plot(x, r["losses_null"], "--", color=draw.GREY, label="null: rows shuffled")
    without = r["loss"] + r["without"]
    axes.axhline(without, color=draw.BLUE, linewidth=1, linestyle="-.", label="positions at zero")
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


def _draw_shares(axes, r):
    """Share of the stream that depends on the place alone, layer by layer."""
    x = np.arange(len(r["layer_names"]))
    axes.plot(x, r["share"], "o-", color=draw.VERMILION, label="positions added again, size 1")
    axes.plot(x, r["share_as_is"], "o-", color=draw.BLUE, markersize=3, label="as the model is")
    axes.plot(x, r["share_null"], "--", color=draw.GREY, label="null: rows shuffled")
    layers = x[: -1 : -(-len(x) // 16)]
    axes.set_xticks([*layers, x[-1]], [*map(str, layers), "out"])
    axes.set(ylim=(-0.03, 1.02), xlabel="layer that reads the stream")
    axes.set_ylabel("share of its variance by the place")


register(
    inject_positions,
    draw=plot,
    says=says,
    answer=answer,
    look=(
        "On the left, a curve that falls below its first point says that the model as it is "
        "trained would gain by positions in every layer; the grey curve adds as much that tells no "
        "place. In the middle, heads that read positions in later layers look more sharply when "
        "these are added again. On the right, how much of the stream is the same at a place "
        "whatever the text: where the blue line falls, positions fade on the way. A model that "
        "was trained with positions in every layer might gain where one that was not loses."
    ),
    published=(
        "The blog post asks whether positions had better enter every layer, not only the first; "
        "its own answer, that the residual stream carries them to the last layer anyway, is taken "
        "back there as too simple."
    ),
    numbers={
        "gain": (
            "largest fall of the loss in nats per token, over all sizes, with positions added "
            "again (masked models: of the pseudo-loss); negative: it rises at each"
        ),
        "gain_null": "largest fall of the loss with shuffled rows of the table added",
        "without": "rise of the loss in nats per token with the position table at zero",
        "loss": "mean loss in nats per token as the model is (masked models: one in "
        f"{position_sizes.EVERY} tokens hidden)",
        "loss_null": "loss of the frequencies of the tokens in the documents measured",
        "change": "change of the loss in nats per token, by size of what is added",
        "change_null": "change of the loss when shuffled rows of the table are added",
        "gain_size": "size at which the loss falls most, or rises least",
        "sharp": "attention to its own offset, mean of the heads with a direction, by size",
        "sharp_null": "attention of those heads to that offset, shuffled rows added",
        "n_directed": "heads with a direction, by size of what is added",
        "n_directed_null": "heads with a direction, shuffled rows added",
        "share": (
            "share of the stream's variance that depends on the place alone, positions added at "
            "size 1, by layer"
        ),
        "share_null": "share that depends on the place alone, shuffled rows added at size 1",
        "share_as_is": "share that depends on the place alone in the model as it is, by layer",
        "gain_interval": "95 % interval of the largest fall, documents drawn anew",
        "n_predicted": "tokens whose loss is measured, at each size",
        "documents": "documents measured",
    },
    labels={
        **dict.fromkeys(("change", "sharp", "n_directed"), "size_names"),
        **dict.fromkeys(("share", "share_as_is"), "layer_names"),
        "gain_interval": ("from", "to"),
    },
    per_head=("offset_of_heads",),
    least_documents=2,
)
