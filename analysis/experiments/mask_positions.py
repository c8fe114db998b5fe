"""Can an attention mask stand in for positions?

A mask by distance takes the place of the position embeddings: the losses of the same documents are
compared under every condition. A condition is a mask with a meaning of its values, or no mask, and
what becomes of the position table. The best mask is searched for on other documents.

N documents, C conditions compared, M meanings of a mask, F tokens of one sentence.
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, NamedTuple

import numpy as np

from minitx import forward

from ..contract import NATS, Asks, Below, Of, Provided, Without, options, register, verdict
from ..drawing import Part, Rows, When, draw, figures, row, token_ticks
from ..machine.language import filled, label, translated
from ..maths import masks, stats
from ..measures import losses, mask_tap, perplexities, position_tables
from ..running.stream import UNSAVED
from ..texts import corpus, formats, joined

SEARCH = 3  # every third document is for the search, the others are for the report
GAPS = 8  # the search hides at most one in so many tokens of a masked model, as in its training
ABREAST = 3  # maps of a figure
SHOWN = 12  # tokens of the sentence, at most
SAME = 1e-4  # nats: two float32 runs that do the same in another order differ by less
# the two masks of the hypothesis
LINEAR = masks.family("linear")
ALONE = masks.family("window", 1)
SEES = ", sees the token that it is to guess: no prediction"
KEPT = "positions kept, no mask"
SHUFFLED = "the best, its distances shuffled"
# A mask stands in for positions if it gives back 0.9 of what they are worth, in nats. Where they
# are worth less than LEAST nats per token there is nothing to stand in for.
STANDS_IN = 0.9
LEAST = 0.01


def mask_positions(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 36,
    tokens: options.Tokens = 64,
    family: Literal["linear", "exponential", "power", "alibi", "window", "all"] = "all",
    parameter: str = "",
    meaning: Literal[mask_tap.Meaning, "all"] = "all",
    positions: Literal["zero", "kept"] = "zero",
    sentence: options.Said = corpus.SENTENCE,
    evaluations: Annotated[int, options.OrZero(options.Within(8, 1000))] = 12,
    every: options.Count = 8,
    seed: options.Seed = 0,
):
    """Losses without position embeddings under masks by distance, in every meaning of a mask's
    values.

    documents: documents to read (0: all); every third is for the search
    tokens: how many first tokens of each document to read (0: all)
    family: masks to try; all: all are tried, linear is shown
    parameter: the family's parameters in order, as 8 or 8,0.1 (if left out: the family's own)
    meaning: what the values of a mask do; all: each of these, one after another
    positions: the position table under the masks
    sentence: a sentence whose attention is drawn (with --ids: the first document)
    evaluations: masks that the search tries in each family (0: no search; the mask shown is the
    best, and all documents are for the report)
    every: masked models: every n-th token is hidden, one at a time (in the search together, every
    8th at most)
    """
    plan = _plan(family, parameter, meaning, positions)
    position_tables.check_head(model, "mask-positions")
    conditions = _conditions(plan)
    texts = corpus.texts(model, text, documents, tokens)
    options.at_least("documents", len(texts), SEARCH if evaluations else 2)
    shown = joined.of(texts.first()) if formats.is_ids(text) else _encode(model, sentence)
    result = _pictures(model, shown.cut(SHOWN), plan)

    searched, reported = _split(texts, evaluations)
    best, search = _sought(model, searched, plan, evaluations, every, run)
    name = _name(best, plan.meaning)
    conditions[name] = mask_tap.condition(best, plan.meaning, positions)
    conditions[SHUFFLED] = mask_tap.condition(best, plan.meaning, positions, seed)

    measured = _measured(model, reported, conditions, every, run, "documents")
    result |= search
    result |= _results(measured, [*conditions], _off(positions), name)
    result |= _by_meaning(model, plan, dict(zip(conditions, result["losses"])))
    result["positions"] = positions
    result["pseudo"] = not model.config.causal
    result["skipped"] = [*texts.skipped.values()]
    result["skipped_reasons"] = [*texts.skipped]
    return result


class Plan(NamedTuple):
    """What is compared."""

    shown: Callable  # the mask that is drawn
    families: list  # names of the families that are tried
    meanings: list  # of the mask that is drawn
    meaning: str  # of the other masks
    positions: str  # the position table under the masks


def _plan(family, parameter, meaning, positions):
    """The options as a Plan.

    Raises ValueError for a family that does not exist, or parameters that it does not take.
    """
    if parameter and family == "all":
        names = ", ".join(masks.FAMILIES)
        raise ValueError(
            f"--parameter {parameter!r} needs exactly one --family; available: {names}"
        )
    values = _numbers(parameter) if parameter else []
    families = [*masks.FAMILIES] if family == "all" else [family]
    shown = masks.family(families[0], *values)
    if meaning == "all":
        return Plan(shown, families, [*masks.MEANINGS], "weights", positions)
    return Plan(shown, families, [meaning], meaning, positions)


def _numbers(parameter):
    """'8,0.1' -> [8.0, 0.1]."""
    try:
        return [float(value) for value in parameter.split(",")]
    except ValueError:
        raise ValueError(
            f"--parameter {parameter!r}: wanted numbers joined by commas, such as 8 or 8,0.1"
        ) from None


def _conditions(plan):
    """{name: condition}: without a mask, then the masks to compare."""
    pairs = [(plan.shown, meaning) for meaning in plan.meanings]
    pairs += [(LINEAR, "library-2023"), (ALONE, "weights")]
    pairs += [(masks.family(name), plan.meaning) for name in plan.families]
    conditions = {KEPT: None, _off(plan.positions): mask_tap.condition(positions=plan.positions)}
    for mask, meaning in pairs:
        conditions[_name(mask, meaning)] = mask_tap.condition(mask, meaning, plan.positions)
    return conditions


def _name(mask, meaning):
    """linear(low=0.1) as weights."""
    return f"{masks.words(mask)} as {meaning}"


def _named(name, is_best):
    """The name of a condition for readers, in the current language."""
    mask, as_, meaning = name.partition(" as ")
    named = f"{draw.spelled(mask)}: {label(masks.meaning(meaning).label)}" if as_ else label(name)
    return filled("best found: {mask}", mask=named) if is_best else named


def _off(positions):
    """Name of the condition without a mask."""
    return f"positions {positions}, no mask"


def _split(texts, evaluations):
    """The documents of the search and those of the report: all of them if nothing is sought."""
    if not evaluations:
        return [], texts
    documents = [*texts]
    return documents[::SEARCH], [x for i, x in enumerate(documents) if i % SEARCH]


def _encode(model, sentence):
    """The sentence, or pair, as a Joined; raises ValueError if it has fewer than two tokens."""
    text = joined.encoding(model, sentence)
    if len(text.ids) < 2:
        raise ValueError(f"--sentence {sentence!r} has {len(text.ids)} tokens; wanted 2 or more")
    return text


def _pictures(model, text, plan):
    """The mask [F F]; the first layer's attention without it [F F] and in each meaning [M F F]."""
    mask = masks.build_mask(plan.shown, len(text.ids), model.config.n_heads, model.config.causal)
    unmasked = mask_tap.condition(positions=plan.positions)
    masked = [mask_tap.condition(plan.shown, name, plan.positions) for name in plan.meanings]
    result = {"mask": mask.mean(axis=0), "meanings": plan.meanings}
    result["pieces"] = corpus.labels(model, text.ids)
    if text.second:
        result["second"] = text.second
    result["unmasked"] = _attention(model, text, unmasked)
    result["effective"] = np.array([_attention(model, text, condition) for condition in masked])
    return result


def _attention(model, text, condition):
    """What layer 0 multiplies values by under a condition, mean over heads [F F].

    The input of layer 0 is the same under all masks.
    """
    tap = condition(model)
    patterns = []

    def hook(name, x, layer=None):
        x = tap(name, x, layer)
        if name == "pattern" and layer == 0:
            patterns.append(x[0].mean(axis=0))
        return x

    forward(model, text.ids, hook=hook, **text.options)
    return patterns[0]


def _sought(model, documents, plan, evaluations, every, run):
    """The mask with the least loss on these documents, and the best one of each family. Without
    evaluations there is no search: it is the mask shown.

    A masked model's tokens are hidden together: one pass a document instead of one a token, as the
    masks are only compared with each other here.
    """
    if not evaluations:
        return plan.shown, {"found": [], "found_losses": np.zeros(0), "documents_searched": 0}
    trials = itertools.count(1)

    def loss(name, *values):
        what = f"documents: search, {name}, trial {next(trials)}"
        mask = masks.family(name, *values)
        condition = mask_tap.condition(mask, plan.meaning, plan.positions)
        apart = max(every, GAPS)
        measured = _measured(model, documents, {"": condition}, apart, run, what, losses.gaps)
        return measured["losses"].sum() / measured["n"].sum()

    best, least = [], []
    for name in plan.families:
        bounds = [masks.BOUNDS[parameter] for parameter in masks.parameters(name)]
        search = masks.search(partial(loss, name), bounds, evaluations)
        best.append(masks.family(name, *search.best))
        least.append(search.loss)
    result = {"found": [*map(masks.words, best)], "found_losses": np.array(least)}
    result["documents_searched"] = np.array(len(documents))
    return best[np.argmin(least)], result


def _measured(model, documents, conditions, every, run, what, masked=losses.masked):
    """The losses of each document under each condition, as a dict of arrays.

    masked: how a masked model's losses are measured. losses: sum over the tokens [N C]. n: tokens
    predicted [N]. costs: what the conventions of perplexity need [N 5 C]. apart: largest distance
    of a token's loss from that under window(1) [N C]. counts: how often each token of the
    vocabulary occurs in all documents [V].
    """
    causal = model.config.causal
    # the search has a single condition and no use for `apart`
    reference = [*conditions].index(_name(ALONE, "weights")) if KEPT in conditions else 0

    def measure(index, document):
        before, after = losses.ends(model, document)
        first = before or int(causal)  # nothing predicts a causal model's first token
        ordinary = document[first : len(document) - after]
        if causal:
            loss_of = partial(losses.causal, model, document)
        else:
            start = index % min(every, len(ordinary))
            loss_of = partial(masked, model, document, every=every, start=start)
        by_token = np.array([loss_of(condition=condition) for condition in conditions.values()])
        sums = {"losses": by_token.sum(axis=1), "n": by_token.shape[1]}
        sums["costs"] = perplexities.sums(by_token)
        sums["apart"] = abs(by_token - by_token[reference]).max(axis=1)
        sums["counts"] = np.bincount(ordinary, minlength=model.config.n_vocab)
        return sums

    return run.gather(measure, documents, what, keep=("losses", "n", "costs", "apart"))


def _results(measured, names, off, best):
    """What follows from the losses of every document under every condition.

    names: of the conditions; off: the one without a mask; best: the one with the best mask.
    """
    sums, n = measured["losses"], measured["n"]
    apart = measured["apart"].max(axis=0)
    loss = sums.sum(axis=0) / n.sum()
    column = {name: i for i, name in enumerate(names)}
    result = {"conditions": names, "best": best, "documents": len(n), "n_tokens": int(n.sum())}
    result["losses"] = loss
    result["intervals"] = stats.interval(sums, n).T
    result["loss_null"] = stats.entropy(measured["counts"])
    result["hypothesis"] = apart[column[_name(LINEAR, "library-2023")]]
    result["hypothesis_null"] = apart[column[off]]
    by_convention = perplexities.by_convention(measured["costs"])
    result["conventions"] = [*perplexities.CONVENTIONS.values()]
    result["perplexities"] = np.array([*by_convention.values()])
    result |= _units(sums, n, [column[KEPT], column[off], column[best]])
    return result | _gains(sums, n, column[off], column[best], column[SHUFFLED])


def _units(sums, n, columns):
    """Losses of three conditions in three units: as the model is, without a mask, the best mask."""
    loss = (sums.sum(axis=0) / n.sum())[columns]
    result = {"loss": loss[0], "loss_off": loss[1], "loss_best": loss[2]}
    result["perplexity"] = np.exp(loss)
    result["bits"] = loss / np.log(2)
    result["mean_perplexity"] = np.exp(sums[:, columns] / n[:, None]).mean(axis=0)
    return result


def _gains(sums, n, off, best, shuffled):
    """What the best mask gains over none, and over itself with its distances shuffled."""
    loss = sums.sum(axis=0) / n.sum()
    differences = sums[:, [off, shuffled]] - sums[:, [best]]
    intervals = stats.interval(differences, n)
    gains = {"gain": loss[off] - loss[best], "gain_interval": intervals[:, 0]}
    gains["gain_null"] = loss[off] - loss[shuffled]
    gains["order"] = loss[shuffled] - loss[best]
    gains["order_interval"] = intervals[:, 1]
    return gains


def _by_meaning(model, plan, losses_by_name):
    """Losses of the mask shown by meaning, and whether tokens see what they are to guess."""

    def sees(meaning):
        return model.config.causal and masks.MEANINGS[meaning].bare

    by_meaning = [losses_by_name[_name(plan.shown, name)] for name in plan.meanings]
    result = {"shown": masks.words(plan.shown), "loss_by_meaning": np.array(by_meaning)}
    result["sees"] = np.array([sees(name) for name in plan.meanings])
    result["best_sees"] = sees(plan.meaning)
    return result


def by_meaning(r):
    """Perplexities with the mask shown, by the meaning of its values, in words."""
    rows = zip(r["meanings"], r["loss_by_meaning"], r["sees"])
    return [
        f"{np.exp(loss):.4g} ({name}{translated(SEES) * bool(sees)})" for name, loss, sees in rows
    ]


def worth(r):
    """What positions are worth, in nats per token."""
    return r["loss_off"] - r["loss"]


def _of_worth(r, name):
    """A result as a share of what positions are worth."""
    return f"{100 * r[name] / worth(r):z.0f}%"


def gained(r):
    """The gain as a share of what positions are worth, where both are above chance."""
    low, high = r["gain_interval"]
    if low <= 0 <= high:
        return translated(", an interval that holds 0")
    if low > 0 and worth(r) > LEAST:
        return filled(", {share} of the loss due to missing positions", share=_of_worth(r, "gain"))
    return ""


def beside_frequencies(r):
    """Where a model with the best mask predicts no better than the frequencies of the tokens do."""
    low, high = r["intervals"][np.argmin(abs(r["losses"] - r["loss_best"]))]
    if high < r["loss_null"]:
        return ""
    if low > r["loss_null"]:
        return translated("worse than frequency")
    return translated("no better than frequency")


def is_of_no_use(r):
    """Whether it predicts no better."""
    return bool(beside_frequencies(r))


def can_stand_in(r):
    """Whether something is lost without positions, and no token sees what it is to guess."""
    return not r["best_sees"] and worth(r) > verdict.NATS


def _meanings(r):
    """The mask, attention without it, and attention under each of its meanings, by threes."""
    of_masks = [masks.meaning(str(name)) for name in r["meanings"]]
    names = [label("mask"), label("no mask"), *(label(each.label) for each in of_masks)]
    formulas = [draw.spelled(str(r["shown"])), "softmax(s)", *(label(x.says) for x in of_masks)]
    maps = [*zip(names, formulas, [r["mask"], r["unmasked"], *r["effective"]])]
    paints = [partial(_maps, maps=maps[i : i + ABREAST]) for i in range(0, len(maps), ABREAST)]
    return [Part(paint, height=4.8) for paint in paints]


def _maps(figure, r, maps):
    """Up to ABREAST maps side by side, on the scale of all."""
    from matplotlib.colors import PowerNorm

    grid = figure.subplots(1, ABREAST, squeeze=False, sharex=True, sharey=True)
    for axes, (name, formula, values) in zip(grid.flat, maps):
        image = axes.imshow(values, cmap="Blues", norm=PowerNorm(0.5, 0, 1))  # small ones are seen
        draw.border(axes, r.get("second"), "xy")
        draw.of_tokens(axes.set_title(f"{name}\n{formula}", fontsize=10))
    for axes in grid.flat[len(maps) :]:
        axes.axis("off")
    for axes in grid[:, 0]:
        token_ticks(axes.set_yticks, r["pieces"])
        axes.set_ylabel("query")
    for axes in grid[-1]:
        token_ticks(axes.set_xticks, r["pieces"], rotation=90)
        axes.set_xlabel("key")
    figure.colorbar(image, ax=grid, shrink=0.7, label="attention, or the mask's value")


def _bars(axes, r):
    """Loss by condition with its interval; the nulls as lines."""
    loss, names = r["losses"], r["conditions"]
    y = np.arange(len(names))
    axes.barh(y, loss, color=[_color(name, r["best"]) for name in names], height=0.7)
    ends = abs(r["intervals"].T - loss)
    axes.errorbar(loss, y, xerr=ends, fmt="none", ecolor="black", elinewidth=1, capsize=2)
    for height, value in zip(y, loss):
        text = f"{value:.3f}: {np.exp(value):.4g}"
        axes.text(0.015 * loss.max(), height, text, va="center", fontsize=10)
    null = {"color": "black", "linestyle": ":", "label": "null: frequencies of the text's tokens"}
    axes.axvline(r["loss_null"], **null)
    null = {"color": draw.GREY, "linestyle": "--", "label": "null: the same positions, no mask"}
    axes.axvline(r["loss_off"], **null)
    axes.set_yticks(y, [_named(name, name == r["best"]) for name in names.tolist()])
    axes.set_xlabel(
        "mean loss (nats per token; whiskers: 95% intervals over documents)\n"
        "in the bars: that loss, and the perplexity, e to it"
    )
    axes.set_xlim(0, 1.04 * np.nanmax([*loss, *np.ravel(r["intervals"]), r["loss_null"]]))
    axes.invert_yaxis()
    below = (0, -0.12 - 1.2 / len(y))
    axes.legend(loc="upper left", bbox_to_anchor=below, ncols=2, borderaxespad=0)


def _color(name, best):
    """Grey without a mask, or where it tells nothing of the order."""
    if "no mask" in name or name == SHUFFLED:
        return draw.GREY
    return draw.ORANGE if name == best else draw.SKY


SOUGHT = [
    "The mask with the least loss on the {documents_searched} search documents",
    When("pseudo", " (whose tokens are hidden together)"),
    " is {best}: on the others its ",
]
LEFT_OUT = Rows("{skipped} {skipped_reasons}", where="skipped", join=", ")

register(
    mask_positions,
    draw=figures(row(_bars, height=lambda r: 1.4 + 0.32 * len(r["conditions"])), _meanings),
    look="The maps show one mask and the attention of the first layer, mean over its heads, "
    "under each meaning of the mask's values: they differ so much that a number about a mask means "
    "nothing without the meaning of its values. A mask stands in for positions where its bar ends "
    "left of the dashed line (the same positions, no mask) and of the bar of the same distances in "
    "random order. With Hugging Face's 4-D mask (library-now) a causal model also sees the token "
    "that it is to guess, so that its loss is no prediction; the 2-D mask (library-now-2d) changes "
    "nothing unless it has zeros.",
    published="GPT-2's perplexity: 111.2409 with positions, 712014.3125 without, 11897.4824 "
    "without but with a linear mask from 1 to 0.1. The slides name TruthfulQA as the text of the "
    "masks, and give the first two numbers for IMDB reviews too (Hirata's slides).",
    figure="slides, masks",
    numbers="""
        gain: loss without a mask less loss with the best mask, in nats per token
            null: gain of the best mask with each query's distances shuffled among the keys that it
            sees
        loss: mean loss of the model as it is, in nats per token (masked models: pseudo-loss)
            null: unigram loss of the documents read
        loss_off: mean loss with positions as asked for (zero) and no mask, in nats per token
            no null: the gain is measured from it
        loss_by_meaning by meanings: mean loss with the mask shown, in nats per token, by the
            meaning of its values
            no null: the gain of the best mask has one
        hypothesis: largest distance of a token's loss, linear mask as library-2023, from
            window(1)'s, in nats
            null: largest distance of a token's loss without a mask from window(1)'s
        fact best: the mask with the least loss on the search documents (without a search: the mask
            shown)
        loss_best: mean loss with the best mask on documents that the search did not see, in nats
            per token
            no null: its gain has one
        fact gain_interval by from, to: 95% interval of the gain over documents
        order: the gain less its null: what the order of the keys is worth, in nats per token
            no null: 0 is, and its interval stands beside it
        fact order_interval by from, to: 95% interval of what the order of the keys is worth
        [perplexity|bits|mean_perplexity] by as it is, without a mask, with the best mask:
            [perplexity (masked models: pseudo-), e to the mean loss per token|mean loss in bits per
            token|perplexity (masked models: pseudo-), mean over documents of e to each one's mean
            loss]
            no null: the losses in another unit
        fact n_tokens: tokens predicted under each condition
        fact documents: documents measured
        fact documents_searched: documents of the search, in which a masked model's tokens are
            hidden together
    """,
    answer=Asks(
        When(
            "can_stand_in",
            "share of the loss due to missing positions that the best mask recovers",
            When(
                "best_sees",
                "nats per token that a mask gains, but each token sees itself: not a prediction",
                "nats per token that a mask gains over no mask (the loss without positions was no "
                "higher)",
            ),
        ),
        value=[partial(_of_worth, name="gain"), When("is_of_no_use", " ({beside_frequencies})")],
        chance=[partial(_of_worth, name="gain_null"), ", its distances shuffled"],
        rule=Provided(
            Below("loss", **NATS),
            Provided(
                Of("order", null=0, most=np.inf),
                Of("gain", out_of="worth", enough=STANDS_IN),
                otherwise="no",
            ),
        ),
        without=Without(
            "can_stand_in",
            When("best_sees", "{gain:.2f}", "{gain:.3f}"),
            When("best_sees", "0", "{gain_null:.3f}, distances shuffled"),
        ),
    ),
    says=[
        When("pseudo", "Pseudo-perplexity", "Perplexity"),
        ", e to the mean loss per token, on {documents} documents ({n_tokens} tokens predicted): "
        "{perplexity[0]:.4g} as the model is, {perplexity[1]:.4g} with positions {positions} and "
        "no mask; then with {shown}, by what its values mean: {by_meaning}. The hypothesis that a "
        "linear mask under library-2023 lets each token see only itself is ",
        When(
            "hypothesis_null > SAME",
            When("hypothesis < SAME", "confirmed", "not confirmed"),
            "one that cannot be told here",
        ),
        ": no token's loss differs from window(1)'s by more than {hypothesis:.2g} nats (without a "
        "mask: by up to {hypothesis_null:.2g}). ",
        When("documents_searched", SOUGHT, "No mask was sought; of {best} the "),
        When("pseudo", "pseudo-"),
        "perplexity (e to the mean loss per token) is {perplexity[2]:.4g}",
        When(
            "best_sees",
            "{SEES}.",
            ", a gain of {gain:.3f} ({gain_interval:to .3f}) nats per token over no mask{gained}. "
            "With its distances shuffled it gains {gain_null:.3f}, so the order of the keys is "
            "worth {order:.3f} ({order_interval:to .3f}).",
        ),
        When("is_of_no_use", " The best mask is {beside_frequencies} ({loss_null.exp:.4g})."),
        When("skipped", [" Left out: ", LEFT_OUT, "."]),
    ],
    least_documents=SEARCH,
)
