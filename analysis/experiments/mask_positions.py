"""Positions by mask: how well a model predicts when a mask by distance stands in for its position embeddings.

N documents, C conditions compared, M meanings of a mask, F tokens of one sentence.
Order: the picture, the words, the experiment; what is compared, the sentence, the losses, the search, the results.
"""

from functools import partial

import numpy as np

from minitx import forward

from .. import corpus, draw, losses, masking, masks, stats, stream
from ..registry import Unfit, experiment

SEARCH = 3   # every third document is for the search, the others are for the report
SHOWN = 12   # tokens of the sentence, at most
SAME = 1e-4  # nats: losses of two float32 runs that do the same in another order are nearer
LINEAR, ALONE = masks.named("linear"), masks.named("window", 1)  # of the hypothesis
SEES = ", sees the token that it is to guess: no prediction"
KEPT, DEALT = "positions kept, no mask", "the best, its distances dealt at random"


def plot(r):
    """Above, what each meaning of one mask does to attention; below, the loss under every condition."""
    C = len(r["conditions"])
    figure = draw.figure(10, 5.6 + 0.25 * C)
    maps, bars = figure.subfigures(2, 1, height_ratios=(4.8, 0.8 + 0.25 * C))
    panels = [("mask", str(r["shown"]), r["mask"]), ("no mask", "softmax(s)", r["unmasked"])]
    panels += [(name, masks.MEANINGS[name].says, pattern) for name, pattern in zip(r["meanings"], r["effective"])]
    grid = maps.subplots(2, -(-len(panels) // 2), squeeze=False, sharex=True, sharey=True)
    for axes, (name, formula, values) in zip(grid.flat, panels):
        image = axes.imshow(values, cmap="Blues", vmin=0, vmax=1)
        axes.set_title(f"{name}\n{formula}", fontsize=8)
    for axes in grid.flat[len(panels):]:
        axes.axis("off")
    _pieces(grid, [draw.label(piece) for piece in r["pieces"]])
    maps.colorbar(image, ax=grid, shrink=0.7, label="attention, or the mask's value")
    _bars(bars.subplots(), r)
    return figure


def _pieces(grid, labels):
    """The tokens along the outer axes."""
    for axes in grid[:, 0]:
        axes.set_yticks(range(len(labels)), labels, fontsize=6.5)
        axes.set_ylabel("query")
    for axes in grid[-1]:
        axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=6.5)
        axes.set_xlabel("key")


def _bars(axes, r):
    """Loss by condition with its interval; the nulls as lines."""
    y, loss, names = np.arange(len(r["conditions"])), r["losses"], r["conditions"]
    axes.barh(y, loss, color=[_color(name, r["best"]) for name in names], height=0.7)
    axes.errorbar(loss, y, xerr=abs(r["intervals"].T - loss), fmt="none", ecolor="black", elinewidth=1, capsize=2)
    for at, value in zip(y, loss):
        axes.text(0.015 * loss.max(), at, f"{value:.3f}   perplexity {np.exp(value):.5g}", va="center", fontsize=7)
    axes.axvline(r["loss_null"], color="black", linestyle=":", label="null: frequencies of the text's tokens")
    axes.axvline(r["loss_off"], color=draw.GREY, linestyle="--", label="null: the same positions, no mask")
    axes.set_yticks(y, [f"best found: {name}" if name == r["best"] else name for name in names], fontsize=8)
    axes.set(xlabel="loss (nats per token), 95 % of bootstraps over documents",
             xlim=(0, 1.04 * max(r["intervals"].max(), r["loss_null"])))
    axes.invert_yaxis()
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.12 - 0.6 / len(y)), ncols=2, borderaxespad=0)


def _color(name, best):
    """Grey without a mask, or where it tells nothing of the order."""
    return draw.GREY if "no mask" in name or name == DEALT else draw.ORANGE if name == best else draw.SKY


def says(r):
    """What the numbers show, in plain words."""
    unit = "pseudo-perplexity" if r["pseudo"] else "perplexity"
    masked = ", ".join(f"{np.exp(loss):.4g} ({name}{SEES if sees else ''})" for name, loss, sees in
                       zip(r["meanings"], r["loss_by_meaning"], r["sees"]))
    verdict = "confirmed" if r["hypothesis"] < SAME else "not confirmed"
    verdict = verdict if r["hypothesis_null"] > SAME else "something that cannot be told here"
    left = ", ".join(f"{n} {reason}" for reason, n in zip(r["skipped_reasons"], r["skipped"]) if n)
    return (
        f"{unit.capitalize()} per token on {r['documents']} documents ({r['n_tokens']} tokens predicted): "
        f"{np.exp(r['loss']):.4g} as the model is, {np.exp(r['loss_off']):.4g} with positions {r['positions']} and no "
        f"mask; then with {r['shown']}, by what its values mean: {masked}. That library-2023 makes of a linear mask a "
        f"model in which each token sees itself alone is {verdict}: no token's loss differs from window(1)'s by more "
        f"than {r['hypothesis']:.2g} nats (without a mask: by up to {r['hypothesis_null']:.2g}). {_says_best(r, unit)}"
        + (f" Left out: {left}." if left else ""))


def _says_best(r, unit):
    """The mask that the search found and what it is worth, where its loss is a prediction."""
    text = (f"The mask with the least loss on the {r['documents_searched']} search documents is {r['best']}: on the "
            f"others its {unit} is {np.exp(r['loss_best']):.4g}")
    if r["best_sees"]:
        return f"{text}{SEES}."
    (low, high), lost = r["gain_interval"], r["loss_off"] - r["loss"]
    share = ", an interval that holds 0" if low <= 0 <= high else \
        f", {r['gain'] / lost:.0%} of what positions are worth" if low > 0 and lost > 0.01 else ""
    return (f"{text}, a gain of {_with_interval(r, 'gain')} nats per token over no mask{share}. With its distances "
            f"dealt at random it gains {r['gain_null']:.3f}, so the order of the keys is worth "
            f"{_with_interval(r, 'order')}.")


def _with_interval(r, name):
    """0.579 (0.499 to 0.638)."""
    low, high = r[f"{name}_interval"]
    return f"{r[name]:.3f} ({low:.3f} to {high:.3f})"


@experiment(
    asks="Can an attention mask stand in for positions?",
    draw=plot,
    look="The maps show one mask and the attention of the first layer, mean over its heads, under each meaning of the "
         "mask's values: they part so far that a number about a mask means nothing without its meaning. A mask stands "
         "in for positions where its bar ends left of the dashed line (the same positions, no mask) and of the bar of "
         "the same distances dealt at random. Under library-now a causal model also sees the token that it is to "
         "guess, so that its loss is no prediction; library-now-2d changes nothing unless the mask has zeros.",
    published="GPT-2's perplexity: 111.2409 with positions, 712014.3125 without, 11897.4824 without but with a linear "
              "mask from 1 to 0.1. The slides name TruthfulQA as the text of the masks, and give the first two numbers "
              "for IMDB reviews too (Hirata's slides).",
    figure="slides, masks",
    says=says,
    numbers={
        "loss": "loss of the model as it is, in nats per token (masked models: pseudo-loss)",
        "loss_null": "loss of the frequencies of these documents' tokens",
        "loss_off": "loss with positions as asked for (zero) and no mask",
        "meanings": "meanings of the mask shown",
        "loss_by_meaning": "loss with that mask in each",
        "hypothesis": "largest distance of a token's loss, linear mask as library-2023, from window(1)'s, in nats",
        "hypothesis_null": "the same without a mask",
        "best": "the mask with the least loss on the search documents",
        "loss_best": "its loss on documents that the search did not see",
        "gain": "loss without a mask less loss with that one, in nats per token",
        "gain_null": "the same for that mask with each query's distances dealt anew among the keys that it sees",
        "gain_interval": "95 % interval of the gain over bootstraps of the documents",
        "order": "the gain less its null: what the order of the keys is worth, in nats per token",
        "order_interval": "95 % interval of that",
        "perplexity": "exp of the loss per token: as it is, without a mask, with that one",
        "bits": "the same three losses in bits per token",
        "mean_perplexity": "mean over the documents of each one's perplexity, of the same three",
        "n_tokens": "tokens predicted under each condition",
        "documents": "documents they stand in",
        "documents_searched": "documents of the search"})
def mask_positions(model, *, text: str = "sample", documents: int = 36, tokens: int = 64, column: str = "",
                   family: str = "all", parameter: str = "", meaning: str = "all", positions: str = "zero",
                   sentence: str = corpus.SENTENCE, evaluations: int = 12, every: int = 8, seed: int = 0):
    """Losses without position embeddings under masks by distance, in every meaning of a mask's values.

    text: file or folder with one document or paragraph a line, .csv, .jsonl, - for standard input, or sample
    documents: documents to read (0: all); every third is for the search
    tokens: only the first so many of each document (0: all of it)
    column: columns of a .csv or keys of a .jsonl file with the text
    family: linear, exponential, power, alibi or window; all: linear is shown, all are tried
    parameter: the family's parameters in order, as 8 or 8,0.1 (without: its own)
    meaning: scores, weights, weights_raw, library-2023, library-now or library-now-2d; all
    positions: the position table under the masks: zero or kept
    sentence: a sentence whose attention is drawn
    evaluations: masks that the search tries in each family
    every: masked models: every so manyth token is hidden, one at a time
    seed: seed of the bootstrap and of the dealt distances
    """
    shown, families, meanings, main = _asked(family, parameter, meaning)
    corpus.at_least("every", every, 1)
    corpus.within("evaluations", evaluations, 8, 1000)
    if model.config.head not in ("masked", "causal"):
        raise Unfit("mask-positions needs a masked or causal language model; "
                    f"this checkpoint's head is {model.config.head}")
    conditions = _conditions(_pairs(shown, families, meanings, main), positions)
    read = corpus.texts(model, text, documents, tokens, column)
    corpus.at_least("documents", len(read), SEARCH)
    pictures = _pictures(model, sentence, shown, meanings, positions)
    best, sought = _sought(model, [*read][::SEARCH], families, main, positions, evaluations, every)
    conditions |= {_name(best, main): masking.condition(best, main, positions),
                   DEALT: masking.condition(best, main, positions, seed)}
    others = [document for i, document in enumerate(read) if i % SEARCH]
    measured = _measured(model, others, conditions, every)
    result = _results(measured, [*conditions], _off(positions), _name(best, main), seed)
    sees = {name: model.config.causal and masks.MEANINGS[name].bare for name in (*meanings, main)}
    by_meaning = [result["losses"][[*conditions].index(_name(shown, name))] for name in meanings]
    return pictures | sought | result | {
        "loss_by_meaning": np.array(by_meaning), "sees": np.array([sees[name] for name in meanings]),
        "best_sees": sees[main], "shown": masks.words(shown), "positions": positions,
        "pseudo": not model.config.causal, "skipped": [*read.skipped.values()], "skipped_reasons": [*read.skipped]}


def _asked(family, parameter, meaning):
    """The mask shown, families tried, meanings of the one shown, meaning of the others; ValueError for what is not."""
    if parameter and family == "all":
        raise ValueError(f"--parameter {parameter!r} goes with one --family; there are: {', '.join(masks.FAMILIES)}")
    try:
        values = [float(value) for value in parameter.split(",")] if parameter else []
    except ValueError:
        raise ValueError(f"--parameter {parameter!r}: wanted numbers joined by commas, as 8 or 8,0.1") from None
    families = [*masks.FAMILIES] if family == "all" else [family]
    meanings = [*masks.MEANINGS] if meaning == "all" else [meaning]
    return masks.named(families[0], *values), families, meanings, "weights" if meaning == "all" else meaning


def _name(mask, meaning):
    """linear(low=0.1) as weights."""
    return f"{masks.words(mask)} as {meaning}"


def _off(positions):
    """The condition without a mask."""
    return f"positions {positions}, no mask"


def _pairs(shown, families, meanings, main):
    """(mask, meaning) to compare: the one shown in each meaning, the two of the hypothesis, families by default."""
    return [*((shown, name) for name in meanings), (LINEAR, "library-2023"), (ALONE, "weights"),
            *((masks.named(name), main) for name in families)]


def _conditions(pairs, positions):
    """{name: condition}, those without a mask first."""
    plain = {KEPT: None, _off(positions): masking.condition(positions=positions)}
    return plain | {_name(*pair): masking.condition(*pair, positions) for pair in pairs}


def _pictures(model, sentence, shown, meanings, positions):
    """The mask [F F], and the first layer's attention without it [F F] and in each meaning [M F F]."""
    tokens = model.tokenizer.encode(sentence)[:SHOWN]
    if len(tokens) < 2:
        raise ValueError(f"--sentence {sentence!r} has {len(tokens)} tokens; wanted 2 or more")
    mask = masks.made(shown, len(tokens), model.config.n_heads, model.config.causal)
    conditions = [masking.condition(shown, name, positions) for name in meanings]
    return {"mask": mask.mean(axis=0), "meanings": meanings, "pieces": model.tokenizer.pieces(tokens),
            "unmasked": _attention(model, tokens, masking.condition(positions=positions)),
            "effective": np.array([_attention(model, tokens, condition) for condition in conditions])}


def _attention(model, tokens, condition):
    """What layer 0 multiplies values by under a condition, mean over heads [F F]; its input is the same in all."""
    tap, found = condition(model), []

    def at(name, x, layer=None):
        x = tap(name, x, layer)
        if name == "pattern" and layer == 0:
            found.append(x[0].mean(axis=0))
        return x
    forward(model, tokens, at=at)
    return found[0]


def _measured(model, documents, conditions, every):
    """Of every document: its losses summed [N C], how many there are [N], the farthest of them from window(1)'s [N C].

    Of all: how often each token of the vocabulary is there [V].
    """
    names, (before, after) = [*conditions], map(len, corpus.specials(model))
    causal, beside = model.config.causal, names.index(_name(ALONE, "weights")) if KEPT in names else 0

    def measure(index, document):
        ordinary = document[before or causal:len(document) - after]  # nothing predicts a causal model's first
        how = {} if causal else {"every": every, "start": index % min(every, len(ordinary))}
        of = losses.causal if causal else losses.masked
        found = np.array([of(model, document, condition=condition, **how) for condition in conditions.values()])
        return {"losses": found.sum(axis=1), "n": found.shape[1], "apart": abs(found - found[beside]).max(axis=1),
                "counts": np.bincount(ordinary, minlength=model.config.n_vocab)}
    return stream.gather(measure, documents, "documents", keep=("losses", "n", "apart"))


def _sought(model, documents, families, main, positions, evaluations, every):
    """The mask with the least loss on these documents, and what was found in each family."""
    def loss(name, *values):
        condition = masking.condition(masks.named(name, *values), main, positions)
        measured = _measured(model, documents, {"": condition}, every)
        return measured["losses"].sum() / measured["n"].sum()
    found = {name: masks.search(partial(loss, name), [masks.BOUNDS[p] for p in masks.parameters(name)], evaluations)
             for name in families}
    best, least = [masks.named(name, *one.best) for name, one in found.items()], [one.loss for one in found.values()]
    return best[np.argmin(least)], {"found": [*map(masks.words, best)], "found_losses": np.array(least),
                                    "documents_searched": np.array(len(documents))}


def _results(measured, names, off, best, seed):
    """What follows from the losses of every document under every condition."""
    sums, n, apart = measured["losses"], measured["n"], measured["apart"].max(axis=0)
    loss, counts, at = sums.sum(axis=0) / n.sum(), measured["counts"], {name: i for i, name in enumerate(names)}
    three, p = [at[KEPT], at[off], at[best]], counts[counts > 0] / counts.sum()
    worth = stats.bootstrap(sums[:, [at[off], at[DEALT]]] - sums[:, [at[best]]], n, seed=seed)
    return {"conditions": names, "losses": loss, "intervals": stats.bootstrap(sums, n, seed=seed).T, "best": best,
            "loss": loss[at[KEPT]], "loss_null": -(p * np.log(p)).sum(), "loss_off": loss[at[off]],
            "loss_best": loss[at[best]], "gain": loss[at[off]] - loss[at[best]], "gain_interval": worth[:, 0],
            "gain_null": loss[at[off]] - loss[at[DEALT]], "order": loss[at[DEALT]] - loss[at[best]],
            "order_interval": worth[:, 1], "hypothesis": apart[at[_name(LINEAR, "library-2023")]],
            "hypothesis_null": apart[at[off]], "perplexity": np.exp(loss[three]), "bits": loss[three] / np.log(2),
            "mean_perplexity": np.exp(sums[:, three] / n[:, None]).mean(axis=0), "n_tokens": int(n.sum()),
            "documents": len(n)}
