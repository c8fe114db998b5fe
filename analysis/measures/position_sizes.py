"""Positions at other sizes: in their own place, or a table added again before every later layer.

What a model predicts and where its heads look at each size, with the table's rows (or turned by the
angles, biased by the numbers of the tokens' positions) and, beside it, with these rows or positions
in an order drawn for each document: as large, but they tell no position.

N documents, T tokens, D width, 2 tables (the rows in order, shuffled), S sizes, L layers, H heads,
R offsets, n tokens that count.
"""

import numpy as np

from ..drawing import draw
from ..drawing.panels import Line, lines
from ..drawing.sentences import When
from ..maths import profiles, stats
from ..running import passes
from . import heads, losses, position_edits, position_tables

SIZES = 0.0, 0.25, 0.5, 1.0, 2.0, 4.0
NAMES = "0", "1/4", "1/2", "1", "2", "4"
LEARNED = SIZES.index(1.0)
EVERY = 8  # of a masked model's ordinary tokens one in so many is hidden, all in one pass


def scaled(rows, size):
    """The condition in which `rows` [T D], times size, replace the position table."""
    return position_tables.stand_in(size * rows)


def scaled_in_scores(config):
    """`scaled` where positions enter the scores; its rows are the numbers [T] of positions.

    Angles of the turns and biases by distance are those of these positions, times size; terms that
    compare content with distances (DeBERTa) are of the distances of these positions.
    """

    def put(places, size):
        moved = position_edits.moved(config, places)
        rows = {point: moved.pop(point) for point in ("pos_row",) if point in moved}
        edits = {point: lambda x, edit=edit: size * edit(x) for point, edit in moved.items()}
        terms = dict.fromkeys(config.pos_terms, lambda x: size * x)
        return position_edits.condition(edits | rows | terms)

    return put


def injected(rows, size):
    """The condition in which `rows` [T D], times size, are added before each layer but the first.

    They are as large there as positions are where layer 0 reads the stream: a norm of the
    embeddings (BERT) centres them, and multiplies them by its 1/sigma on this text and its gain.
    They are added to `resid_post` of the layer before.
    """
    rows = size * rows

    def condition(model):
        gain = model.weights.ln_embed_w
        last = model.config.n_layers - 1
        of_norm = {}  # the norm's 1/sigma in this pass

        def hook(name, x, layer=None):
            if name == "ln_embed_scale":
                of_norm["scale"] = x[..., None]
            if name != "resid_post" or layer == last:
                return x
            if gain is None:
                return x + rows[: x.shape[1]]
            centred = rows - rows.mean(axis=-1, keepdims=True)
            moved = centred[: x.shape[1]] * of_norm["scale"] * gain
            W_map = model.weights.W_map
            return x + (moved if W_map is None else moved @ W_map)

        return hook

    return condition


def conditions(put, rows, seed):
    """`put` of the rows [T D] and of the same rows shuffled, at every size: 2 lists of S."""
    shuffled = np.random.default_rng(seed).permutation(rows)
    return [[put(table, size) for size in SIZES] for table in (rows, shuffled)]


def measure(model, document, by_table, start):
    """Losses, as sum and number [2 S 2], and attention profiles [2 S L H R] on one document [T].

    by_table: as `conditions` gives them. start: the first token of a masked model that is hidden.
    """
    costs = [[cost(model, document, way, start) for way in ways] for ways in by_table]
    looks = [[head_profiles(model, document, way) for way in ways] for ways in by_table]
    return {"losses": np.array(costs), "attention": np.array(looks)}


def cost(model, document, condition, start):
    """Sum of the losses of one document [T] under a condition, in nats, and their number."""
    if model.config.task_head == "masked":
        of_tokens = losses.gaps(model, document, condition, EVERY, start % EVERY)
    else:
        of_tokens = losses.causal(model, document, condition=condition)
    return of_tokens.sum(), len(of_tokens)


def head_profiles(model, document, condition):
    """Attention profile of every head on one document [T] under a condition: [L H R]."""
    reading = heads.profiles_read(model, document)
    return passes.value(reading._replace(hook=losses.tap(model, condition)))


def changes(costs, base):
    """Losses by size, and their change from size number `base`, from [N 2 S 2].

    The interval is over documents; `_null` is of the shuffled rows.
    """
    total, n = np.moveaxis(costs, -1, 0)  # [N 2 S]
    own, shuffled = total.sum(axis=0) / n.sum(axis=0)
    from_base = (total - total[..., base, None])[:, 0]
    result = {"sizes": np.array(SIZES), "size_names": np.array(NAMES)}
    result |= {"losses": own, "losses_null": shuffled, "loss": own[base]}
    result |= {"change": own - own[base], "change_null": shuffled - shuffled[base]}
    result["change_interval"] = stats.interval(from_base, n[:, 0]).T
    return result | {"n_predicted": int(n[:, 0, base].sum())}


def measures(model, sums, documents, base):
    """What follows from the sums over documents: loss and heads by size, and what they are of."""
    N, T = len(documents), documents.T
    result = {"T": T, "documents": N, "loss_null": stats.entropy(sums["counts"])}
    result["predicts"] = position_tables.PREDICTS[model.config.task_head]
    result |= changes(sums["losses"], base)
    return result | directions(sums["attention"], N, T, model.config.causal, base)


def directions(total, N, T, causal, base):
    """Attention of every head at its own offset at every size, from sums of profiles [2 S L H R].

    A head's own offset is that, other than 0, with most attention at size number `base`. Means are
    over the heads that have a direction there; without one there are none.
    """
    attention = profiles.mean_attention(total / N, T)
    away = profiles.offsets() != 0
    best = np.where(away, attention[0, base], -1).argmax(axis=-1)  # [L H]
    place = best[None, None, ..., None]
    at_offset = np.take_along_axis(attention, place, axis=-1)[..., 0]  # [2 S L H]
    directed = profiles.directed(attention, T, causal=causal)
    result = {"offset_of_heads": profiles.offsets()[best], "directed": directed[0, base]}
    result |= {"sharp_of_heads": at_offset[0], "sharp_of_heads_null": at_offset[1]}
    result["n_directed"], result["n_directed_null"] = directed.sum(axis=(2, 3))
    if directed[0, base].any():
        means = at_offset[..., directed[0, base]].mean(axis=-1)  # [2 S]
        result["sharp"], result["sharp_null"] = means
    return result


def by_size(*by_name, **labels):
    """Panel of lines over the sizes."""
    return lines(*by_name, xticks="size_names", legend=draw.STACKED, **labels)


def losses_by_size(*more, **labels):
    """Panel: the loss by size, beside that with shuffled rows and that of the frequencies."""
    labels |= {"ylim": (0, None), "ylabel": "{predicts} (nats per token)"}
    return by_size(LOSSES, SHUFFLED_LOSSES, *more, FREQUENCIES, **labels)


def heads_by_size(**labels):
    """Panel: attention to its own offset, of every head with a direction, their mean, the null."""
    labels |= {"ylim": (-0.02, 1.02), "ylabel": "attention to the head's own offset"}
    title = When("sharp", "", "no head has a direction")
    return by_size(HEADS, MEAN, SHUFFLED_MEAN, title=title, **labels)


SHUFFLED = "null: rows shuffled", "--", draw.GREY
IN_ORDER = "rows in order (change: 95% over documents)"
LOSSES = Line(
    "losses", IN_ORDER, color=draw.VERMILION, band=lambda r: r["loss"] + r["change_interval"]
)
SHUFFLED_LOSSES = Line("losses_null", *SHUFFLED)
FREQUENCIES = Line("loss_null", "frequencies of the tokens", ":", "black")
HEADS = Line(lambda r: r["sharp_of_heads"][:, r["directed"]], None, "-", draw.SKY, 0.7)  # [S n]
MEAN = Line("sharp", "mean of the heads (thin lines)")
SHUFFLED_MEAN = Line("sharp_null", *SHUFFLED)
