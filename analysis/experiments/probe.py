"""Can a linear probe predict a token's position from the residual stream?

Ridge regression from the residual stream of every layer to the token's place, tested on documents
held out. The sums of ridge regression add up over documents, so memory does not grow with them.
Among the conditions: positions carried by the norm alone, x_t (1 + eps t), with the loss.

C conditions, L layers, T tokens, D width, Y targets: the place of a token, and as the null, a
random place of the same document.
"""

from functools import partial
from typing import Annotated

import numpy as np

from ..contract import Asks, Enough, Of, options, register, rules
from ..drawing import Part, Rows, When, draw, figures
from ..machine.language import filled
from ..maths import masks, stats
from ..measures import document_features, inputs, losses, mask_tap, position_probe, residual_stream
from ..running.stream import UNSAVED
from ..texts import corpus

ON = "positions on"
OFF = "positions off"
CAUSAL = "off, causal mask alone"
NORM = "off, norms grow"
RANDOM = "random weights, on"
RANDOM_OFF = "random weights, off"
COLORS = {
    ON: draw.BLUE,
    OFF: draw.VERMILION,
    CAUSAL: draw.PURPLE,
    NORM: "#8C564B",
    RANDOM: draw.SKY,
    RANDOM_OFF: draw.ORANGE,
}
FIRST = ON, OFF, RANDOM  # with the best mask, the conditions of the first figure
NONE = 0.01  # R² in all layers that a figure does not tell from 0
READ_OFF = 0.9  # R² of a readout that errs by a third of the places' deviation: a convention
ROOM = 1 << 26  # bytes for the sums of the conditions that are read in one pass
EVERY = 16  # for the loss so many of a masked model's tokens have one hidden, all in one pass


def probe(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: Annotated[int, options.OrZero(options.AtLeast(position_probe.LEAST))] = 60,
    tokens: options.Tokens = 0,
    mask: str = "linear,exponential,alibi,window",
    meaning: mask_tap.Meaning = "weights",
    eps: Annotated[float, options.Within(0, 1)] = 0.01,
    seed: options.Seed = 0,
):
    """Ridge regression from the residual stream to a token's place, with positions on, off, and off
    under masks.

    documents: documents to read (0: as many as the text holds, at most 100)
    mask: families of masks by distance, joined by commas, parameters after colons, as
    linear,window:8; or all
    meaning: what the values of a mask do
    eps: growth of the norm by token, where norms alone carry positions (0: left out)
    """
    streams = conditions(model, mask, meaning, eps, seed)
    texts = corpus.documents(model, text, documents, tokens)
    n_fit, n_choose, n_test = position_probe.parts(texts)
    records = {}
    for group in _groups(streams, model.config):
        records |= position_probe.scored(group, texts, seed, run)
    for group in _groups(of_random_weights(model, seed), model.config):
        records |= position_probe.scored(group, texts, seed, run)
    result = stats.stacked([*records.values()])
    result["conditions"] = np.array([*records])
    result["documents"] = np.array([n_fit, n_choose, n_test])
    result["n_tokens"] = n_test * texts.size
    result |= {"n_rows": n_fit * texts.size, "n_features": model.config.d_model}
    result["places"] = len(texts.before) + position_probe.binned(np.arange(texts.size))
    from_middle = np.arange(texts.size) - (texts.size - 1) / 2
    result["error_on_null"] = abs(from_middle).mean()
    result["eps"] = eps
    if eps and model.config.task_head in ("masked", "causal"):
        test = position_probe.Part(texts, n_fit + n_choose, len(texts))
        result |= _losses(model, test, eps, seed, run)
    return result | _headline(result, model.config.causal)


def _losses(model, documents, eps, seed, run):
    """Loss in nats per token with positions on, off, off with growing norms, and their null."""
    conditions = {
        "loss_on": None,
        "loss_off": mask_tap.condition(positions="zero"),
        "loss_norm": growing(eps),
        "loss_norm_null": growing(eps, seed),
    }
    loss_of = losses.causal if model.config.causal else partial(losses.gaps, every=EVERY)

    def measure(_, document):
        by_token = [loss_of(model, document, condition=x) for x in conditions.values()]
        return {"loss": np.sum(by_token, axis=1), "n": len(by_token[0])}

    sums = run.gather(measure, documents, "losses")
    return dict(zip(conditions, sums["loss"] / sums["n"]))


def _groups(streams, cfg):
    """The streams that are read in one pass: as many as have room for their sums."""
    size = 2 * (cfg.n_layers + 1) * cfg.d_model**2 * 8
    n, named = max(1, ROOM // size), [*streams.items()]
    return [dict(named[i : i + n]) for i in range(0, len(named), n)]


def conditions(model, names, meaning, eps, seed):
    """{condition: f(tokens) -> residual stream [L+1 T D]} of the model; names: masks as given.

    In a model that hides the future positions off is the causal mask alone.
    """
    inputs.check_table_alone(model)
    states = residual_stream.states_read
    off = mask_tap.condition(positions="zero")
    streams = {ON: partial(states, model)}
    streams[OFF] = partial(states, model, edits={"pos_embed": np.zeros_like})
    for mask in parse_masks(names):
        masked = mask_tap.condition(mask, meaning, "zero")
        streams[f"off, {masks.words(mask)}"] = partial(states, model, condition=masked)
    if eps:
        streams[NORM] = partial(states, model, condition=growing(eps))
    if not model.config.causal:
        streams[CAUSAL] = partial(states, model, condition=off, mask=lambda q, k: k <= q)
    return streams


def growing(eps, seed=None):
    """The condition in which the norm alone tells positions: layer 0 reads x_t (1 + eps t).

    Without positions; the change is made after the norm of the embeddings, which would undo it.
    seed: of the null, with the factors in random order.
    """

    def condition(model):
        without_positions = mask_tap.tap(model, positions="zero")

        def hook(name, x, layer=None):
            x = without_positions(name, x, layer)
            if name == "resid_pre" and layer == 0:
                return x * _factors(x.shape[1], eps, seed)[:, None].astype(x.dtype)
            return x

        return hook

    return condition


def _factors(T, eps, seed):
    """1 + eps t for every position t [T]; with a seed in random order."""
    t = np.arange(T)
    if seed is not None:
        t = np.random.default_rng((seed, T)).permutation(t)
    return 1 + eps * t


def of_random_weights(model, seed):
    """The same with random weights, positions on and off: made last, as they take much memory."""
    states = partial(residual_stream.states_read, document_features.random(model, seed))
    off = mask_tap.condition(positions="zero")
    return {RANDOM: states, RANDOM_OFF: partial(states, condition=off)}


def parse_masks(names):
    """'linear,window:8' -> masks of these families, parameters after colons; 'all': every family.

    Raises ValueError for a family or a parameter that does not exist.
    """
    if names == "all":
        wanted = [*masks.FAMILIES]
    else:
        wanted = [name for name in names.replace(" ", "").split(",") if name]
    return [_parse_mask(name) for name in wanted]


def _parse_mask(name):
    """'window:8' -> a mask."""
    family, *values = name.split(":")
    try:
        return masks.family(family, *map(float, values))
    except ValueError as error:
        raise ValueError(
            f"--mask {name!r}: {error}; wanted names joined by commas, parameters after colons, "
            "as linear,window:8, or all"
        ) from None


def _headline(r, causal):
    """The best layer's R² of every condition, beside what shuffled positions give."""
    names = r["conditions"].tolist()
    best = dict(zip(names, r["r2"].max(axis=1)))
    null = dict(zip(names, r["r2_shuffled"].max(axis=1)))
    ends = dict(zip(names, r["r2_interval"][np.arange(len(names)), r["r2"].argmax(axis=1)]))
    top = max(masked(r), key=best.get, default=OFF)
    shown = {
        "on": ON,
        "off": OFF,
        "causal": OFF if causal else CAUSAL,
        "random": RANDOM,
        "random_off": RANDOM_OFF,
        "best_mask": str(top),
    }
    if NORM in best:
        shown["norm"] = NORM
    result = {"best_mask": top, "r2_on_last": r["r2"][0, -1]}
    result["error_on"] = r["error"][0, r["r2"][0].argmax()]
    for key, name in shown.items():
        result[f"r2_{key}"] = best[name]
        result[f"r2_{key}_interval"] = ends[name]
    for key in ("on", "off", "causal"):
        result[f"r2_{key}_null"] = null[shown[key]]
    if NORM in best:
        result["r2_norm_null"] = null[NORM]
        result["r2_norm_last"] = r["r2"][names.index(NORM), -1]
    return result


def masked(r):
    """The conditions with a mask by distance."""
    return np.array([name for name in r["conditions"] if name not in COLORS])


def enough(r):
    """Rows of which so many features are fitted well."""
    return rules.ROWS * r["n_features"]


def are_few(r):
    """Whether there are fewer."""
    return r["n_rows"] < enough(r)


def others(r):
    """Whether a condition is not the first, positions on."""
    return r["conditions"] != ON


def best_layers(r):
    """What is read off under each condition in its best layer, in words."""
    texts = []
    for i, layer in enumerate(r["r2"].argmax(axis=1)):
        low, high = r["r2_interval"][i, layer]
        best = {"r2": r["r2"][i, layer], "low": low, "high": high}
        best |= {"error": r["error"][i, layer], "layer": layer}
        template = "R² {r2:.3f} ({low:.3f} to {high:.3f}), {error:.1f} tokens off, in layer {layer}"
        texts.append(filled(template, **best))
    return texts


def carriers(r):
    """The masks that carry more of positions than no mask does and than chance gives."""
    rows = np.arange(len(r["r2"])), r["r2"].argmax(axis=1)
    ends = dict(zip(r["conditions"].tolist(), r["r2_interval"][rows]))
    floor = max(ends[OFF][1], r["r2_on_null"])
    return np.array([name for name in masked(r) if ends[name][0] > floor])


def layer(r):
    """The best layer with positions on, of how many."""
    return f"{r['r2'][0].argmax()} of {r['r2'].shape[1] - 1}"


def _draw(figure, r, are_first):
    """R² and error by layer; the mean guess at every place, in each condition's best layer."""
    left, middle, right = figure.subplots(1, 3)
    layers = np.arange(r["r2"].shape[1])
    shown = np.flatnonzero(np.isin(r["conditions"], [*FIRST, r["best_mask"]]) == are_first)
    _draw_r2(left, r, layers, shown)
    _draw_lines(middle, r, "error", layers, shown, marker="o")
    line = {"color": "black", "linestyle": "-.", "linewidth": 1}
    middle.axhline(r["error_on_null"], label="null: always the middle", **line)
    middle.set(ylabel="mean absolute error (tokens)", ylim=(0, None))
    for axes in (left, middle):
        axes.set_xlabel("layer (0: the embeddings)")
        axes.set_xticks(layers[:: -(-len(layers) // 13)])
    _draw_lines(right, r, "guesses", r["places"], shown)
    ends = r["places"][[0, -1]]
    right.plot(ends, ends, color="black", linewidth=0.8, label="the position itself")
    right.set_xlabel("position of the token (tokens)")
    right.set_ylabel("mean guess in the best layer (tokens)")
    figure.legend(loc="outside lower center", ncols=3)


def _draw_lines(axes, r, name, x, shown, marker=None):
    """A line over x for each condition that is shown, by number; returns them."""
    colors = COLORS | {r["best_mask"].item(): draw.GREEN}
    lines = []
    for condition, y in zip(r["conditions"][shown], r[name][shown]):
        style = ":" if "random" in condition else "-"
        of_many = {"color": draw.GREY, "linewidth": 0.8, "zorder": 1}
        look = {"color": colors[condition]} if condition in colors else of_many
        lines += axes.plot(x, y, style, marker=marker, markersize=3, **look)
    return lines


def _draw_r2(axes, r, layers, shown):
    """R² by layer with its interval; the null as a dashed line."""
    lines = _draw_lines(axes, r, "r2", layers, shown, marker="o")
    curves = (r[name][shown] for name in ("conditions", "r2", "r2_interval"))
    for line, name, r2, ends in zip(lines, *curves):
        is_other = name in masked(r) and name != r["best_mask"]
        called = "off, other masks" if is_other else draw.spelled(name)
        if name == r["best_mask"]:
            called = called.replace("off, ", "off, best mask: ")
        is_first = called not in [other.get_label() for other in lines]
        called = called if is_other or abs(r2).max() > NONE else f"{called}: on the line at 0"
        line.set_label(called if is_first else "_")
        axes.fill_between(layers, *ends.T, color=line.get_color(), alpha=0.15, linewidth=0)
    null = r["r2_shuffled"][0]
    axes.plot(layers, null, "--", color="black", label="null: positions shuffled, on")
    axes.set_ylabel("R² on held-out documents")
    axes.set_ylim(min(-0.05, r["r2_interval"][shown].min()), 1.02)


register(
    probe,
    draw=figures(*(Part(partial(_draw, are_first=first), 5.2) for first in (True, False))),
    look="R² 1: a linear readout gives the place of every token of documents that it never saw; 0: "
    "no better than always predicting the middle. Positions off should be at 0 unless the "
    "future is hidden: then the number of tokens that a token sees tells where it stands. A "
    "mask carries positions where its line is above positions off; in a masked model it can "
    "do so by the special tokens at both ends, whose pull then depends on the distance. "
    "Random weights show what needs no training. Lines at 0 lie on one another, as do lines "
    "of the error at the line of the middle; the legend names them. The second figure has the "
    "other conditions; masks other than the best one are grey.",
    published="Models without position embeddings can learn positions from the causal mask alone "
    "(Haviv et al. 2022). Whether a fractional mask carries positions was left open, as there was "
    "no way to test it (Hirata's slides).",
    figure="slides, open questions",
    numbers="""
        r2_on: R² of a token's position on held-out documents, positions on, in the best layer
            null: R² when each document's places are shuffled
        error_on: mean absolute error in tokens with positions on, in the layer with the highest R²
            null: mean absolute error of always predicting the middle
        r2_off: R² with positions off, in the best layer
            null: R² with positions off when each document's places are shuffled
        r2_causal: R² with positions off under a causal mask, in the best layer
            null: R² under a causal mask when each document's places are shuffled
        r2_best_mask: R² with positions off under the mask that carries most position information,
            in the best layer
            no null: without a mask, r2_off is what there is to exceed
        r2_norm: R² with positions off and norms that grow, x_t (1 + eps t), in the best layer
            null: R² with growing norms when each document's places are shuffled
        r2_norm_last: R² with growing norms, in the last layer
            no null: that of the best layer has one
        loss_norm: loss with positions off and norms that grow, in nats per token (masked models: of
            one token in 16, all hidden together)
            null: loss with such norms in random order
        loss_[off|on]: loss with positions [off|on], in nats per token
            no null: the loss with growing norms is compared with it
        r2_random[|_off]: R² in a model of random weights with positions [on|off], in its best layer
            no null: it is a null
        r2_on_last: R² with positions on, in the last layer
            no null: that of the best layer has one
        fact best_mask: the mask that carries most position information
        fact r2_[on|off|causal]_interval by from, to: 95% interval over documents of R² with
            positions [on|off|off under a causal mask]
        fact r2_best_mask_interval by from, to: 95% interval of R² under the mask that carries most
            position information
        fact documents by to learn from, to choose the penalty, to test on: documents by their use
        fact n_tokens: tokens whose positions are predicted
        fact n_rows: tokens that the regression is fitted to
        fact n_features: width of the stream that it is fitted to
    """,
    answer=Asks(
        "R² of a token's position from the residual stream, on held-out documents, in the best "
        "layer",
        value="{r2_on:.2f} (layer {layer})",
        chance="{r2_on_null:.2f}; random weights: {r2_random:.2f}",
        rule=Enough(Of("r2_on", null=("r2_on_null", "r2_random_interval[1]"), enough=READ_OFF)),
    ),
    says=[
        "A linear probe predicts the position of a token with {best_layers[0]}, where positions "
        "are on. With shuffled positions R² is {r2_on_null:.3f} at most; always predicting the "
        "middle is {error_on_null:.1f} tokens off. The others, in their best layers: ",
        Rows("{conditions}: {best_layers}", where="others"),
        ". ",
        When(
            "are_few",
            "They were fitted to {n_rows:,} rows for {n_features} features, and may be too low: "
            "{enough:,} rows would do. ",
        ),
        When(
            "carriers.size",
            [
                "Masks that carry more position information than no mask does: ",
                Rows("{carriers}"),
                ".",
            ],
            When(
                "masked.size",
                [
                    "No mask carries more position information than there is without a mask",
                    When("are_few", ", as far as so few rows tell", ""),
                    ".",
                ],
            ),
        ),
        When(
            "loss_norm",
            " Norms that grow, x_t (1 + {eps:g} t), are decoded in the last layer with R² "
            "{r2_norm_last:.3f}; the loss is {loss_norm:.3f} nats per token with them, "
            "{loss_norm_null:.3f} with the same norms in random order, {loss_off:.3f} without, "
            "and {loss_on:.3f} with positions on.",
        ),
    ],
    least_documents=position_probe.LEAST,
    shares_passes=True,
)
