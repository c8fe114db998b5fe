"""Does attention keep what a fixed context vector loses?

Five bundled encoder-decoders copy random sequences, shorter and longer than those that they were
trained on. The decoder gets of the source its encoder's last state alone (`fixed`, and `fixed-wide`
with twice the width), or all of its states, weighted by attention: asked for by the state before
the step (`bahdanau`), or by the state that the step leads to (`additive`, `dot`).

n models, A of them with attention, N lengths, B sequences, S places. Order: the experiment, its
parts; the words; the picture; how it is run, since it needs no model and so is on no list.
"""

from typing import Annotated

import numpy as np

from ..contract import options, registry, results
from ..contract.registry import Answer
from ..drawing import draw
from ..maths import logistic, stats
from ..running import settings
from . import gru

TRAINED = 20  # the longest sequences of the training
MOST = 0.9  # of the symbols right: the context holds a sequence
# of the steps that look at the right place: as large a share does so on another sequence too, where
# a map counts its steps more than it compares
COUNTS = 0.5
DRAWN = 12  # places of the sequence whose maps are drawn
LETTERS = "abcdefghijklmnop"  # names of the symbols
ATTENTION = "bahdanau", "additive", "dot"
STYLES = {
    "fixed": {"color": draw.VERMILION, "linestyle": "-"},
    "fixed-wide": {"color": draw.VERMILION, "linestyle": "--"},
    "bahdanau": {"color": draw.ORANGE, "linewidth": 5},  # below the next ones, as high
    "additive": {"color": draw.SKY, "linewidth": 3},
    "dot": {"color": draw.BLUE, "linestyle": "-"},
}
WHAT = {
    "fixed": "fixed vector: last state",
    "fixed-wide": "fixed vector, twice as wide",
    "bahdanau": "additive attention, state before asks",
    "additive": "additive attention, new state asks",
    "dot": "dot-product attention, new state asks",
}


def recurrent(
    *,
    sequences: options.Count = 200,
    longest: Annotated[int, options.AtLeast(TRAINED)] = 2 * TRAINED,
    seed: options.Seed = 0,
):
    """Share of symbols copied right by length and by place, and the maps of attention.

    sequences: random sequences of each length
    longest: length of the longest ones (trained: 2 to 20)
    seed: seed of the sequences
    """
    models = gru.load()
    lengths = np.arange(2, longest + 1)
    result = {"models": np.array([*STYLES]), "lengths": lengths, "sequences": sequences}
    result["attention"] = np.array(ATTENTION)
    result["parameters"] = np.array([gru.n_parameters(models[name]) for name in STYLES])
    result["right_longest_null"] = 1 / len(LETTERS)
    by_length = []
    for S in lengths:
        source = draw_sequences(sequences, S, seed)
        decoded = {name: gru.decode(name, models[name], source) for name in STYLES}
        by_length.append(_accuracy(decoded, source) | _looks(models, decoded, source))
        if S == TRAINED:
            result |= _by_place(decoded, source)
    result |= {name: x.swapaxes(0, 1) for name, x in stats.stacked(by_length).items()}
    return result | _summary(result) | _maps(models, seed)


def draw_sequences(n, S, seed):
    """n random sequences of S symbols: [n S].

    The training draws with seeds of two numbers, this with three: no batch of it is here.
    """
    return np.random.default_rng([seed, S, 1]).integers(0, len(LETTERS), (n, S))


def _accuracy(decoded, source):
    """Share of symbols, and of whole sequences, that are right [n], with 95% intervals."""
    right = np.array([(decoded[name].output == source).mean(axis=1) for name in STYLES])
    record = {"right": right.mean(axis=1), "exact": (right == 1).mean(axis=1)}
    record["right_low"], record["right_high"] = stats.interval(right.T).clip(0, 1)
    record["exact_low"], record["exact_high"] = logistic.wilson(right.T == 1)
    return record


def _by_place(decoded, source):
    """Share of the sequences whose symbol is right, at each place of the longest trained [n S]."""
    right = np.stack([decoded[name].output == source for name in STYLES], axis=1)
    low, high = logistic.wilson(right)
    return {"place": right.mean(axis=0), "place_low": low, "place_high": high}


def _looks(models, decoded, source):
    """Share of steps [A] whose strongest source place is that of the symbol to copy.

    Null: what the same decoder states see in the encoder's states of another sequence. Its map
    could be right by counting alone; by chance it is right once in S steps.
    """
    looks = []
    null = []
    for name in ATTENTION:
        looks.append(_on_place(decoded[name].pattern))
        others = np.roll(source, 1, axis=0)
        null.append(_on_place(crossed(name, models[name], decoded[name], others)))
    return {"looks_by_length": np.array(looks), "looks_crossed_by_length": np.array(null)}


def _on_place(pattern):
    """Share of steps whose strongest source place is the step's own: [B T S] -> a number."""
    return (pattern.argmax(axis=-1) == np.arange(pattern.shape[1])).mean()


def crossed(name, w, decoded, others):
    """Maps [B T S] of these queries over other sequences [B S] than those they copied."""
    keys = gru.encode(w, others)
    maps = [gru.KINDS[name](w, query, keys) for query in decoded.queries.swapaxes(0, 1)]
    return np.stack(maps, axis=1)


def _maps(models, seed):
    """A sequence, what each model makes of it, and its maps [A S S]."""
    source = draw_sequences(1, DRAWN, seed)
    decoded = {name: gru.decode(name, models[name], source) for name in STYLES}
    written = ["".join(LETTERS[i] for i in decoded[name].output[0]) for name in STYLES]
    record = {"source": "".join(LETTERS[i] for i in source[0]), "written": np.array(written)}
    return record | {"maps": np.array([decoded[name].pattern[0] for name in ATTENTION])}


def _summary(r):
    """Headline numbers: at the longest trained length, at the longest, and how far each holds."""
    lengths = r["lengths"]
    trained = lengths.tolist().index(TRAINED)
    record = {"right_beyond": r["right"][:, -1], "looks_beyond": r["looks_by_length"][:, -1]}
    for name in ("right", "exact"):
        record[f"{name}_longest"] = r[name][:, trained]
    record["looks"] = r["looks_by_length"][:, trained]
    record["looks_null"] = r["looks_crossed_by_length"][:, trained]
    fails = np.column_stack([r["right"] < MOST, np.ones(len(r["models"]), bool)])
    record["holds"] = fails.argmax(axis=1) + lengths[0] - 1
    return record


def says(r):
    """What the numbers show, in plain words."""
    right, holds, parameters = (_named(r, key) for key in ("right_longest", "holds", "parameters"))
    beyond = _named(r, "right_beyond")
    times = parameters["fixed-wide"] / parameters["fixed"]
    return (
        f"With the encoder's last state alone {MOST:.0%} of the symbols are right up to "
        f"{holds['fixed']} symbols, and with {times:.1f} times the parameters up to "
        f"{holds['fixed-wide']}: after as many steps of training more width moves the limit and "
        f"does not take it away. At {TRAINED} symbols, the longest of the training, it is "
        f"{right['fixed']:.0%} and {right['fixed-wide']:.0%}. With attention it is "
        f"{right['bahdanau']:.0%} where the state before the step asks (Bahdanau et al.), "
        f"{right['additive']:.0%} with an additive score where the new state asks, and "
        f"{right['dot']:.0%} with a dot product, which has no more parameters than the fixed "
        f"vector. At {r['lengths'][-1]} symbols the shares are {beyond['fixed']:.0%}, "
        f"{beyond['fixed-wide']:.0%}, {beyond['bahdanau']:.0%}, {beyond['additive']:.0%} and "
        f"{beyond['dot']:.0%}. {_describe_maps(r)}"
    )


def _describe_maps(r):
    """Where attention looks, and whether that is by counting."""
    looks, crossed_looks = (_listed(r[name]) for name in ("looks", "looks_null"))
    counts = r["looks_null"] > COUNTS * r["looks"]
    groups = {"by what stands there": ~counts, "by counting its steps": counts}
    ways = [
        f"{' and '.join(r['attention'][members])} mostly {how}"
        for how, members in groups.items()
        if members.any()
    ]
    return (
        f"In the same order, attention has its strongest place on the symbol to copy in {looks} of "
        f"the steps at {TRAINED} symbols, and with the encoder's states of another sequence in "
        f"{crossed_looks}, where a place at random is right in {1 / TRAINED:.0%}. So the place is "
        f"identified in {', in '.join(ways)}. A fixed vector has no map."
    )


def _listed(values):
    """Shares in words: 97%, 100% and 100%."""
    *first, last = [f"{value:.0%}" for value in values]
    return f"{', '.join(first)} and {last}"


def _named(r, key):
    """{model's name: value} of a result [n]."""
    return dict(zip(r["models"].tolist(), r[key].tolist()))


def answer(r):
    """Yes if attention holds the longest trained sequences and no fixed vector does.

    Partly if attention gets more of them right, beyond the intervals; one sequence has none.
    """
    trained = r["lengths"].tolist().index(TRAINED)
    with_attention = np.isin(r["models"], ATTENTION)
    low = r["right_low"][with_attention, trained].min()
    high = r["right_high"][~with_attention, trained].max()
    verdict = "undecided" if np.isnan(low) else "no"
    if low > high:
        verdict = "yes" if low >= MOST > high else "partly"
    right = _named(r, "right_longest")
    measure = f"symbols right at {TRAINED}, the longest trained length, with attention"
    with_fixed = f"fixed vector {right['fixed']:.2f}, twice as wide {right['fixed-wide']:.2f}"
    value = f"{right['additive']:.2f} and {right['dot']:.2f} ({with_fixed})"
    return Answer(verdict, measure, value, f"{r['right_longest_null']:.2f}")


def plot(r):
    """Accuracy against length; below it by place, and a map of each kind of attention."""
    figure = draw.figure(12.5, 9)
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1))
    axes = above.subplots()
    _draw_curves(axes, r, r["lengths"], "right")
    axes.axvline(TRAINED + 0.5, color="black", linewidth=0.7)
    axes.text(TRAINED + 0.9, 0.1, "longer than trained →", va="center")
    axes.set(xlabel="length of the sequence (symbols)", ylabel="share of symbols right")
    axes.legend(**draw.ABOVE)
    places, *maps = below.subplots(1, 1 + len(ATTENTION), width_ratios=(1.5, 1, 1, 1))
    _draw_curves(places, r, np.arange(1, TRAINED + 1), "place")
    title = f"a fixed vector has no map: what it holds of {TRAINED} symbols"
    places.set_xticks([1, *range(5, TRAINED + 1, 5)])
    places.set(xlabel="position in the sequence", ylabel="share of sequences right", title=title)
    for axis, name, pattern in zip(maps, ATTENTION, r["maps"]):
        image = _draw_map(axis, r, name, pattern)
    below.colorbar(image, ax=maps, label="attention", shrink=0.8)
    return figure


def _draw_curves(axes, r, x, key):
    """A curve of each model with its interval, and what chance gives."""
    for i, (name, style) in enumerate(STYLES.items()):
        label = f"{WHAT[name]} ({r['parameters'][i]:,} parameters)"
        axes.plot(x, r[key][i], label=label, **style)
        interval = r[f"{key}_low"][i], r[f"{key}_high"][i]
        axes.fill_between(x, *interval, color=style["color"], alpha=0.15, linewidth=0)
    chance = float(r["right_longest_null"])
    axes.axhline(chance, color=draw.GREY, linestyle=":", label="chance")
    axes.set(ylim=(0, 1.04))


def _draw_map(axes, r, name, pattern):
    """Attention of each step to each source place; labels: what is written, and the source."""
    source = str(r["source"])
    written = _named(r, "written")[name]
    image = axes.imshow(pattern, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(source)), source)
    axes.set_yticks(range(len(written)), written)
    axes.set(xlabel="source", ylabel="written, from top to bottom")
    axes.set_title(WHAT[name].replace(", ", ",\n"))
    return image


EXPERIMENT = registry.experiment(
    recurrent,
    draw=plot,
    says=says,
    answer=answer,
    numbers="""
        right_longest by models: share of symbols right at {TRAINED}, the longest trained length
            null: a symbol at random
        exact_longest by models: share of whole sequences right there
            no null: a sequence at random is never right
        right_beyond by models: share of symbols right at the longest length
            no null: a symbol at random is as often right at every length
        holds by models: length up to which {MOST:.0%} of the symbols are right
            no null: a symbol at random is right too rarely at every length
        looks by attention: share of steps whose strongest source place is that of the symbol to
            copy
            null: the same decoder states on another sequence
        fact parameters by models: learned parameters
    """,
)


def run(**given):
    """Run the toy -> Result; `given` are the options of `minitx toy`.

    >>> from minitx.analysis.toys import recurrent
    >>> result = recurrent.run(sequences=20, longest=20)
    >>> result.answer.verdict
    'yes'
    """
    given = EXPERIMENT.checked(given)
    values = {option.name: option.default for option in EXPERIMENT.options} | given
    stated = {"experiment": EXPERIMENT.name, "model": gru.FOLDER.name}
    stated |= {"weights": settings.hashes(gru.FOLDER), "options": values}
    stated["versions"] = settings.versions(())
    return results.explained(EXPERIMENT, recurrent(**values), stated)
