"""Does a decoder attend to the source token that its next token comes from?

Cross-attention of an encoder-decoder, at the step that says a token: is the source token that gets
most attention of the part that the token comes from (aligned), where that is known, or the same
piece (copied)? L layers, H heads, T steps, S tokens of the source, K permutations of its places.
"""

from typing import Annotated

import numpy as np

from ..contract import Asks, NotApplicable, Of, Without, options, register
from ..drawing import Part, When, draw, token_ticks
from ..maths import alignment as maths
from ..maths import nulls
from ..measures import decoder_texts, heads
from ..running.stream import UNSAVED
from ..texts import corpus
from ..texts import pairs as of_pairs

HALF = 0.5  # share of the steps from which a head is said to look at what is said
MOST = 40  # steps, and tokens of the source, that a map holds
MEASURES = {  # what the strongest source token is, the most telling first
    "aligned": "of the part that the token comes from",
    "copied": "the piece that is said",
}


def alignment(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    pairs: Annotated[str, options.Files(but=(of_pairs.DATES,))] = "",
    documents: options.Documents = 0,
    tokens: options.Tokens = 0,
    shuffles: options.Shuffles = 100,
    seed: options.Seed = 0,
):
    """Cross-attention of every head, step by step, and what it looks at.

    text: sources, one per line; the output is the model's own greedy output
    pairs: in place of a text, a file of pairs (JSON Lines with source, target and links), or dates
    documents: sources to read (0: as many as there are, at most 100)
    tokens: only the first of each source, this many (0: the model's longest input)
    shuffles: permutations of the source's positions, for the null
    """
    if model.config.task_head != "causal":
        head = model.config.task_head
        raise NotApplicable(f"alignment needs a decoder that predicts tokens; this head is {head}")
    given = decoder_texts.tasks(model, text, pairs, documents, tokens, seed)

    def measure(i, task):
        return _measure(model, task, shuffles, (seed, i))

    sums = run.gather(measure, given, "cross-attention")
    n_steps = sums["steps"]
    L, H = model.config.n_layers, model.config.n_heads
    result = {"documents": len(given), "steps": int(n_steps)}
    result["heads"] = np.array([heads.name(*pair) for pair in np.ndindex(L, H)])
    result["layers"] = np.array([f"L{layer}" for layer in range(L)])
    result["agree"] = sums["agree"] / n_steps
    result["entropy"] = sums["entropy"] / n_steps
    for name in ("diagonal", "diagonal_null"):
        result[name] = sums[name] / len(given)
    for name in MEASURES:
        result |= _by_head(name, sums)
    return result | _example(model, given[0], result)


def _wanted(model, task, said):
    """{measure: [T S] bool}, the source tokens that a step should look at."""
    is_own = decoder_texts.ordinary(model.encoder, said.source)
    wanted = {name: np.zeros((len(said.outputs), len(is_own)), bool) for name in MEASURES}
    if decoder_texts.shares_pieces(model):
        wanted["copied"] = (said.outputs[:, None] == said.source) & is_own
    if task.pair is not None and task.pair.links:
        of_source = model.encoder.tokenizer.spans(task.pair.source)
        of_said = model.tokenizer.spans(task.pair.target)
        for target, source in task.pair.links:
            wanted["aligned"] |= np.outer(_inside(of_said, target), _inside(of_source, source))
    return wanted


def _inside(spans, characters):
    """Which tokens [T], by their spans [T 2], have one of the characters first to end."""
    first, end = characters
    return (spans[:, 0] < end) & (spans[:, 1] > first)


def _measure(model, task, shuffles, seed):
    """Sums over the steps of one source; the mean over a layer's heads is one head more."""
    said = decoder_texts.of_task(model, task)
    pattern, y = _cross(model, said)
    orders = maths.permutations(decoder_texts.ordinary(model.encoder, said.source), shuffles, seed)
    own = pattern[:, :-1]
    sums = {"steps": len(said.outputs), "agree": (y.argmax(axis=-1) == said.outputs).sum()}
    sums["entropy"] = maths.evenness(own).sum(axis=-1)
    sums["diagonal"] = maths.diagonality(own)
    sums["diagonal_null"] = np.mean([maths.diagonality(own, order) for order in orders], axis=0)
    strongest = pattern.argmax(axis=-1)
    for name, wanted in _wanted(model, task, said).items():
        sums |= _counted(name, strongest, wanted, orders)
    return sums


def _cross(model, said):
    """Cross-attention [L H+1 T S], the mean over heads last, and the logits [T V]."""
    trace = decoder_texts.traced(model, said, ["cross_pattern", "logits"])
    pattern = trace.stack("cross_pattern")[:, 0]
    mean = pattern.mean(axis=1, keepdims=True)
    return np.concatenate([pattern, mean], axis=1), trace["logits"][0]


def _counted(name, strongest, wanted, orders):
    """Steps at which the strongest position [L H+1 T] is wanted, also with the positions permuted.

    "read" counts the step that reads the token in place of the one that says it.
    """
    sums = {
        f"{name}_steps": wanted.any(axis=1).sum(),
        f"{name}_hits": maths.hits(strongest, wanted),
    }
    sums[f"{name}_permuted"] = np.array([maths.hits(order[strongest], wanted) for order in orders])
    sums[f"{name}_read_steps"] = wanted[:-1].any(axis=1).sum()
    sums[f"{name}_read_hits"] = maths.hits(strongest[..., 1:], wanted[:-1])
    return sums


def _by_head(name, sums):
    """Shares of the steps that have something to look at; {} where none has."""
    n = sums[f"{name}_steps"]
    if not n:
        return {}
    share, permuted = sums[f"{name}_hits"] / n, sums[f"{name}_permuted"] / n  # [L H+1], [K L H+1]
    when_read = sums[f"{name}_read_hits"] / max(sums[f"{name}_read_steps"], 1)
    own = share[:, :-1]
    best = np.unravel_index(own.argmax(), own.shape)
    result = {name: own, f"{name}_null": permuted[..., :-1].mean(axis=0), f"{name}_steps": int(n)}
    result[f"{name}_best"] = own[best]
    result[f"{name}_best_null"] = np.quantile(permuted[..., :-1].max(axis=(1, 2)), nulls.CHANCE)
    result[f"{name}_best_head"] = heads.name(*map(int, best))
    result[f"{name}_best_read"] = when_read[:, :-1][best]
    result[f"{name}_mean"] = share[:, -1]
    result[f"{name}_mean_null"] = np.quantile(permuted[..., -1], nulls.CHANCE, axis=0)
    return result


def _example(model, task, result):
    """The maps of one source: of the head that looks best, and of its layer's mean."""
    head = _shown(result)
    [(layer, number)] = heads.parse(head, model.config)
    said = decoder_texts.of_task(model, task)
    pattern = _cross(model, said)[0][layer][:, :MOST, :MOST]
    wanted = _wanted(model, task, said)
    name = "aligned" if "aligned" in result else "copied"
    example = {"map_head": head, "map": np.array([pattern[number], pattern[-1]])}
    example["map_wanted"] = wanted[name][:MOST, :MOST]
    example["map_steps"] = np.array(decoder_texts.steps(model, said)[:MOST])
    example["map_source"] = np.array(corpus.labels(model.encoder, said.source[:MOST]))
    return example


def _shown(result):
    """The name of the head to draw: the one that looks best, or the sharpest."""
    for name in MEASURES:
        if name in result:
            return result[f"{name}_best_head"]
    return result["heads"][result["entropy"].argmin()]


def most_diagonal(r):
    """The head in which step and position go together most, and the null there."""
    i = r["diagonal"].argmax()
    return r["heads"][i], r["diagonal_null"].flat[i]


def _says_where(name):
    """A sentence on what the strongest source token is, where that is known."""
    return When(
        f"{name}_steps",
        f"{{{name}_best_head}} looks most at a source token that is {MEASURES[name]} at "
        f"{{{name}_best:.0%}} of {{{name}_steps}} steps (with the source's positions permuted, the "
        f"best head of all: {{{name}_best_null:.0%}}); at the step that reads the token it is "
        f"{{{name}_best_read:.0%}}. The mean over the heads of each layer in turn does so at "
        f"{{{name}_mean:.0%}}. ",
    )


NOTHING = "No token that is said stands in its source, so nothing can be copied. "


def _asks(name, without):
    """Whether a head looks there at half of the steps, more often than with permuted positions."""
    what = f"steps at which the strongest source token of the best head is {MEASURES[name]}"
    return Asks(
        When(f"{name}_steps", what, "steps whose token occurs in the source"),
        value=f"{{{name}_best:.0%}}",
        chance=f"{{{name}_best_null:.0%}} with positions permuted",
        rule=Of(f"{name}_best", enough=HALF),
        without=without,
    )


def _draw_all(figure, r):
    """Left a map of all heads, then two maps of one source."""
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 2, 2])
    _draw_heads(left, r)
    _draw_map(middle, r, r["map"][0], f"{r['map_head']}, first source")
    token_ticks(middle.set_yticks, r["map_steps"])
    middle.set_ylabel("read → said")
    image = _draw_map(right, r, r["map"][1], "mean over the heads of its layer")
    right.set_yticks([])
    figure.colorbar(image, ax=[middle, right], label="attention", shrink=0.7)


def _draw_heads(axes, r):
    """The share of steps of every head, or how even its attention is."""
    name = next((name for name in MEASURES if name in r), "entropy")
    axes.set_title(f"{name}: share of steps" if name in MEASURES else "entropy over even")
    axes.imshow(r[name], cmap="Blues", vmin=0, vmax=1)
    for (layer, head), value in np.ndenumerate(r[name]):
        color = "white" if value > HALF else "black"
        axes.text(head, layer, f"{value:.2f}", ha="center", va="center", color=color)
    axes.set_xticks(range(r[name].shape[1]))
    axes.set_yticks(range(r[name].shape[0]))
    axes.set(xlabel="head", ylabel="layer")


def _draw_map(axes, r, pattern, title):
    """One map [T S]; a dot stands where the strongest token should lie."""
    image = axes.imshow(pattern, cmap="Blues", vmin=0, vmax=max(pattern.max(), 1e-9))
    steps, places = np.nonzero(r["map_wanted"])
    axes.plot(places, steps, ".", color=draw.VERMILION, markersize=3)
    token_ticks(axes.set_xticks, r["map_source"], rotation=90)
    axes.set_title(title)
    axes.set_xlabel("source")
    axes.tick_params(length=0)
    return image


def _numbers(name):
    what = MEASURES[name]
    share = f"share of steps whose strongest source token is {what}"
    permuted = f"{share}, with the source's positions permuted: 99% quantile"
    return f"""
        {name}_best: {share}, best head
            null: {permuted} of the best head of all
        fact {name}_best_head: the head whose strongest source token is most often {what}
        {name}_best_read: {share}, that head at the step that reads the token
            no null: the head is chosen by the step that says the token
        {name}_mean by layers: {share}, mean over the heads of each layer
            null: {permuted}
        fact {name}_steps: steps that have a source token that is {what}
    """


register(
    alignment,
    look="Left every head, from never (white) to at each step. The maps show one source: a row for "
    "each step, with the token that it reads and the one it says; a dot stands where the token "
    "comes from. Dark spots on the dots are alignment.",
    published="Maps of this kind were first shown of a recurrent translator: mostly along the "
    "diagonal, out of it where the two languages have another order (Bahdanau, Cho and Bengio "
    "2015, figure 3).",
    sides=("cross",),
    per_head=("aligned", "copied", "entropy", "diagonal"),
    numbers=[
        *map(_numbers, MEASURES),
        """
        agree: share of the tokens that the model itself would say
            no null: it tells how far the pairs are the model's own words, and decides nothing
        fact documents: sources read
        fact steps: steps in all
        """,
    ],
    answer=_asks(
        "aligned",
        Without("aligned_steps", _asks("copied", Without("copied_steps", "0 of {steps}", ""))),
    ),
    says=[
        "{agree:.0%} of the {steps} tokens are those that the model itself says. ",
        *map(_says_where, MEASURES),
        When("aligned_steps", "", When("copied_steps", "", NOTHING)),
        "Attention has {entropy.min:.0%} to {entropy.max:.0%} of the entropy of even attention; "
        "step and position go together most in {most_diagonal[0]} (correlation {diagonal.max:.2f}, "
        "{most_diagonal[1]:.2f} with positions permuted).",
    ],
    draw=Part(_draw_all, height=5.2),
)
