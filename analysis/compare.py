"""One experiment on two models of the same shape, head by head: before and after a training, say.

Compared is what an experiment names as per_head; where it names nothing, whatever of its result has one number for
each head, an array [L H]. NAME_null goes with NAME and is no measure of its own. L layers, H heads. Order: what is
compared, how, the table, the figure, the whole run.
"""

import numpy as np

from . import draw, heads, results

DEALS = 1000  # of the heads, as the null
DRAWN = 8     # measures, at most, in the figure


def per_head(experiment, result, shape):
    """The arrays of a result with a number for each head, nulls aside: {name: [L H]} in float64; ValueError if none."""
    found = {name: np.asarray(x, np.float64) for name, x in result.items()
             if np.shape(x) == tuple(shape) and np.asarray(x).dtype.kind in "iuf" and not name.endswith("_null")
             and name in (experiment.per_head or result)}
    if not found:
        raise ValueError(f"{experiment.name} gives no number for each head: its results have no array [layers heads]")
    return found


def compared(a, b, seed=0):
    """How two models differ in one measure, [L H] twice.

    "change": mean of |B - A|; "alike": correlation of A and B over the heads, 0 where one does not vary; each with
    its null, the heads of B dealt anew (of "alike" the 95 % quantile). "head": where |B - A| is largest.
    """
    rng, difference = np.random.default_rng(seed), b - a
    deals = [rng.permutation(b.ravel()).reshape(b.shape) for _ in range(DEALS)]
    most = np.unravel_index(abs(difference).argmax(), b.shape)
    return {"mean_a": a.mean(), "mean_b": b.mean(), "up": (difference > 0).mean(), "down": (difference < 0).mean(),
            "change": abs(difference).mean(), "change_null": np.mean([abs(deal - a).mean() for deal in deals]),
            "alike": _correlation(a, b), "alike_null": np.quantile([_correlation(a, deal) for deal in deals], 0.95),
            "head": heads.name(*map(int, most)), "largest": difference[most]}


def _correlation(a, b):
    x, y = a - a.mean(), b - b.mean()
    norm = np.sqrt((x * x).sum() * (y * y).sum())
    return float((x * y).sum() / norm) if norm > 1e-12 * np.sqrt((a * a).sum() * (b * b).sum()) else 0.0


def differences(experiment, sides, only=""):
    """{measure: (A [L H], B [L H], what `compared` says)} from what `per_head` gives of both models.

    only: names of measures, joined by commas; ValueError for one that is not there.
    """
    there = [name for name in sides[0] if name in sides[1]]
    chosen = [name.strip() for name in only.split(",") if name.strip()] or there
    if unknown := [name for name in chosen if name not in there]:
        raise ValueError(f"--of {', '.join(unknown)}: {experiment.name} has, for each head, {', '.join(there)}")
    return {name: (sides[0][name], sides[1][name], compared(sides[0][name], sides[1][name])) for name in chosen}


def same_shape(models, names):
    """Layers and heads of two models; ValueError unless they are the same."""
    shapes = [(model.config.n_layers, model.config.n_heads) for model in models]
    if shapes[0] != shapes[1]:
        said = " and ".join(f"{name} {L} layers x {H} heads" for name, (L, H) in zip(names, shapes))
        raise ValueError(f"only models of one shape can be compared head by head; these have: {said}")
    return shapes[0]


TITLES = ("measure", "A", "B", "mean change", "heads dealt anew", "alike", "heads dealt anew", "up", "down", "most")


def markdown(found, experiment, names):
    """The differences as tables: one row for each measure, then one for each head."""
    rows = [TITLES, ["---"] * len(TITLES)]
    for name, (_, _, says) in found.items():
        rows.append([f"`{name}`", *(f"{says[key]:.4g}" for key in (
            "mean_a", "mean_b", "change", "change_null", "alike", "alike_null")),
            f"{says['up']:.0%}", f"{says['down']:.0%}", f"{says['head']}: {says['largest']:+.4g}"])
    shape = next(iter(found.values()))[0].shape
    each = [["head", *(f"`{name}`" for name in found)], ["---"] * (1 + len(found))]
    for place in np.ndindex(shape):
        each.append([heads.name(*place), *(f"{a[place]:.4g} → {b[place]:.4g} ({b[place] - a[place]:+.3g})"
                                           for a, b, _ in found.values())])
    tables = ("\n".join(f"| {' | '.join(row)} |" for row in table) for table in (rows, each))
    return f"# {experiment.name}: {experiment.asks}\n\nA: {names[0]}\nB: {names[1]}\n\n" + "\n\n".join(tables) + "\n"


def plot(found):
    """A row for each measure: a map of all heads of A, of B, and of B - A."""
    shown = dict([*found.items()][:DRAWN])
    L, H = next(iter(shown.values()))[0].shape
    side = np.clip(2.2 / max(L, H), 0.16, 0.4)
    figure = draw.figure(3 * (side * H + 1.3) + 0.4, len(shown) * (side * L + 0.75) + 0.3)
    for row, (name, (a, b, _)) in zip(figure.subplots(len(shown), 3, squeeze=False), shown.items()):
        low, high = min(a.min(), b.min()), max(a.max(), b.max())
        most = abs(b - a).max() or 1.0
        for axes, x, title, colors, ends in ((row[0], a, f"{name}: A", "Blues", (low, high)),
                                             (row[1], b, "B", "Blues", (low, high)),
                                             (row[2], b - a, "B - A", "PuOr", (-most, most))):
            image = axes.imshow(x, cmap=colors, vmin=ends[0], vmax=ends[1])
            axes.set(title=title, xlabel="head", xticks=_ticks(H), yticks=_ticks(L), ylabel="layer" * (axes is row[0]))
            figure.colorbar(image, ax=axes, shrink=0.9)
    return figure


def _ticks(n):
    return range(0, n, 1 if n <= 6 else 2 if n <= 12 else 4)


def make(experiment, models, names, options, out, only="", resume=False):
    """Run an experiment on two models, write A/, B/ and compare.md, .json, .svg into the folder `out` -> Markdown."""
    shape, outcomes, sides, out = same_shape(models, names), [], [], results.writable(out)
    for model, name, side in zip(models, names, "AB"):
        outcomes.append(results.produce(experiment, model, name, options, results.writable(out / side), resume))
        sides.append(per_head(experiment, outcomes[-1].result, shape))
    found = differences(experiment, sides, only)
    table = markdown(found, experiment, names)
    stated = {"experiment": experiment.name, "A": outcomes[0].settings, "B": outcomes[1].settings,
              "headline": {side: outcome.headline for side, outcome in zip("AB", outcomes)},
              "measures": {name: {key: value if isinstance(value, str) else float(value) for key, value in says.items()}
                           | {"a": a.tolist(), "b": b.tolist(), "difference": (b - a).tolist()}
                           for name, (a, b, says) in found.items()}}
    with draw.style():
        title = f"{experiment.asks}  (A: {names[0]}, B: {names[1]})"
        picture = draw.titled(draw.svg(plot(found)), title)
    for ending, content in ((".md", table), (".json", results.as_json(stated) + "\n"), (".svg", picture)):
        results.write(out / ("compare" + ending), content)
    return table
