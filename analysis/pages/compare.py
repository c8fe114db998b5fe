"""One experiment on two models of the same shape, head by head: before and after training, say.

Compared are the arrays [L H] that an experiment names in per_head. L layers, H heads.
"""

from html import escape
from textwrap import wrap

import numpy as np

from ..contract import registry, results
from ..contract.sides import model_of
from ..drawing import draw
from ..machine import escapes
from ..machine.files import as_json, writable, write
from ..machine.language import filled, translated
from ..measures import heads
from ..running import single
from . import report, section

PERMUTATIONS = 1000  # of the heads, for the null
SIGNED = "RdBu_r"  # blue below 0, white at 0, red above, as in every figure
DRAWN = 8  # measures, at most, in the figure
WIDE = 24  # characters of a line above a map
OFFSET = "strongest offset, tokens"
NAMES = {  # result -> what it is, where not its own name says it
    "aligned": "steps at which the strongest source token is of the token's own part",
    "attention_of_heads": "attention to the strongest offset",
    "best_attention": "attention to the strongest offset",
    "best_offset": OFFSET,
    "c": "scale c",
    "carried": "share of queries and keys that positions make",
    "columns_by_head_pca": "columns that hold positions, principal components",
    "columns_by_head_raw": "columns that hold positions, as they are",
    "columns_by_head_svd": "columns that hold positions, singular vectors",
    "copied": "steps at which the strongest source token is the piece that is said",
    "copying_of_heads": "copying",
    "correlation": "correlation of products and distances, moved and scaled",
    "correlation_before": "correlation of products and distances, before",
    "correlation_moved": "correlation of products and distances, moved alone",
    "diagonal": "correlation of step and strongest source token",
    "duplicate_of_heads": "attention to the earlier occurrence",
    "entropy": "entropy of attention",
    "first": "strongest keys that are nearest, moved and scaled",
    "first_before": "strongest keys that are nearest, before",
    "first_of_heads": "attention to the first token",
    "first_plane": "strongest keys that are nearest in the plane, moved and scaled",
    "first_plane_before": "strongest keys that are nearest in the plane, before",
    "heads": "contribution to the logit",
    "height_of_heads": "height of the kernel's peak",
    "induction_of_heads": "attention to the token after the earlier occurrence",
    "itself_of_heads": "attention to the token itself",
    "keys_of_heads": "effective number of keys",
    "lag_of_heads": "lag of the highest score, tokens",
    "least_kept": "attention kept without the band that matters most",
    "lost_by_heads": "answer lost by the reverse patch",
    "mrr": "mean 1/rank of the strongest key, moved and scaled",
    "mrr_before": "mean 1/rank of the strongest key, before",
    "mrr_plane": "mean 1/rank of the strongest key in the plane, moved and scaled",
    "mrr_plane_before": "mean 1/rank of the strongest key in the plane, before",
    "next_of_heads": "attention to the next token",
    "offset": OFFSET,
    "offset_of_heads": OFFSET,
    "others_of_heads": "change of attention without another head's slice",
    "own_of_heads": "change of attention without the head's own slice",
    "position_lag": "lag of the highest score by positions, tokens",
    "position_share_of_heads": "share of the peak that positions make",
    "position_variance_of_heads": "share of the scores' variance that positions make",
    "previous_of_heads": "attention to the previous token",
    "purity_by_head_pca": "share of positions in these columns, principal components",
    "purity_by_head_raw": "share of positions in these columns, as they are",
    "purity_by_head_svd": "share of positions in these columns, singular vectors",
    "ranks": "effective rank of W_Q W_Kᵀ",
    "restored_by_direct": "answer restored on the direct path",
    "restored_by_heads": "answer restored by the patch",
    "restored_by_through": "answer restored through later layers",
    "share_periodic": "share of columns that are periodic",
    "shares": "share of W_Q W_Kᵀ between positions",
    "sharpness_of_heads": "sharpness of the peak",
    "slopes": "tokens that the offset moves for each that keys move",
    "spearman": "rank correlation of products and distances, moved and scaled",
    "spearman_before": "rank correlation of products and distances, before",
    "toeplitz_of_heads": "share of the scores' variance that the lag makes",
    "weight_at_kept": "attention to the words spread apart, table as it was",
    "weight_at_learned": "attention to the words spread apart, table learned anew",
}


def comparable():
    """Names of the experiments that give a number for each head."""
    return [experiment.name for experiment in registry.EXPERIMENTS.values() if experiment.per_head]


def check(experiment):
    """Raise ValueError for an experiment that has no number per head."""
    if not experiment.per_head:
        raise ValueError(
            f"{experiment.name} has no number per head, and cannot be compared head by "
            f"head; these can: {', '.join(comparable())}"
        )


def per_head(experiment, result, shape):
    """Arrays of a result with one number for each head: {name: [L H]} in float64.

    Raises ValueError if these options have left none.
    """
    measures = {}
    for name, x in result.items():
        if name in experiment.per_head and _is_per_head(x, shape):
            measures[name] = np.asarray(x, np.float64)
    if not measures:
        raise ValueError(f"{experiment.name} has no number per head with these options")
    return measures


def _is_per_head(x, shape):
    x = np.asarray(x)
    return x.shape == tuple(shape) and x.dtype.kind in "iuf"


def compared(a, b, seed=0):
    """How models A and B differ in one measure, from its values a and b [L H].

    "change" is the mean of |B - A|, "alike" the correlation of A and B over the heads. The null of
    each has the heads of B permuted; for "alike" it is the 95% quantile. "up" and "down" are the
    shares of heads with B above and below A; "head" is the one with the largest |B - A|.
    """
    rng = np.random.default_rng(seed)
    permuted = [rng.permutation(b.ravel()).reshape(b.shape) for _ in range(PERMUTATIONS)]
    difference = b - a
    most = np.unravel_index(abs(difference).argmax(), b.shape)
    record = {"mean_a": a.mean(), "mean_b": b.mean()}
    record["up"] = (difference > 0).mean()
    record["down"] = (difference < 0).mean()
    record["change"] = abs(difference).mean()
    record["change_null"] = np.mean([abs(x - a).mean() for x in permuted])
    record["alike"] = _correlation(a, b)
    record["alike_null"] = np.quantile([_correlation(a, x) for x in permuted], 0.95)
    record["head"] = heads.name(*map(int, most))
    record["largest"] = difference[most]
    return record


def _correlation(a, b):
    """Pearson's correlation over all entries; 0 if a or b is constant."""
    x, y = a - a.mean(), b - b.mean()
    norm = np.sqrt((x * x).sum() * (y * y).sum())
    rounding = 1e-12 * np.sqrt((a * a).sum() * (b * b).sum())
    return float((x * y).sum() / norm) if norm > rounding else 0.0


def differences(experiment, sides, only=""):
    """Each measure of both models: {name: (A [L H], B [L H], record of `compared`)}.

    sides holds what `per_head` gives of A and of B. only: names of measures, joined by commas.
    Raises ValueError for a name that the two do not have in common.
    """
    common = [name for name in sides[0] if name in sides[1]]
    names = [name.strip() for name in only.split(",") if name.strip()] or common
    unknown = [name for name in names if name not in common]
    if unknown:
        raise ValueError(
            f"--of {', '.join(unknown)}: {experiment.name} has, per head, {', '.join(common)}"
        )
    pairs = {name: [side[name] for side in sides] for name in names}
    return {name: (*pair, compared(*pair)) for name, pair in pairs.items()}


def same_shape(models, names):
    """Layers and heads (L, H) of two models; raises ValueError if they differ."""
    shapes = [(model.config.n_layers, model.config.n_heads) for model in models]
    if shapes[0] != shapes[1]:
        sizes = [f"{name} {L} layers x {H} heads" for name, (L, H) in zip(names, shapes)]
        raise ValueError(
            "only models of the same shape can be compared head by head; "
            f"these have: {' and '.join(sizes)}"
        )
    return shapes[0]


TITLES = (
    "measure",
    "A",
    "B",
    "mean change",
    "mean change, heads permuted",
    "alike",
    "alike, heads permuted",
    "up",
    "down",
    "most",
)


def markdown(measures, experiment, names):
    """The differences as two tables: a row for each measure, then a row for each head."""
    a, b = map(escapes.in_markdown, names)
    heading = f"# {experiment.name}: {translated(experiment.question)}\n\nA: {a}\nB: {b}"
    tables = [escapes.table(_measure_rows(measures)), escapes.table(_head_rows(measures))]
    return "\n\n".join([heading, *_warning(measures), *tables]) + "\n"


UNLIKE = (
    "No more alike than heads in any order: {names} (models trained separately order their heads "
    "differently, so differences mean nothing)."
)


CHANGED = (
    "From A to B it changes by {change:.3g} on average (heads in any order: {change_null:.3g}), "
    "most in {head}: {largest:+.3g}. Its heads are alike by {alike:.2f} (up to {alike_null:.2f} "
    "by chance)."
)


def _warning(measures):
    """A line on the measures in which heads with the same name are no more alike than any two."""
    unlike = [f"`{name}`" for name, measure in measures.items() if _is_unlike(measure)]
    if not unlike:
        return []
    return [filled(UNLIKE, names=", ".join(unlike))]


def _is_unlike(measure):
    *_, record = measure
    return record["alike"] <= record["alike_null"]


def name_of(measure):
    """A measure in words."""
    return translated(NAMES.get(measure, measure.replace("_", " ")))


def _measure_rows(measures):
    """Titles, then one row for each measure."""
    rows = [[translated(title) for title in TITLES]]
    for name, (_, _, record) in measures.items():
        columns = "mean_a", "mean_b", "change", "change_null", "alike", "alike_null"
        numbers = [f"{record[column]:.4g}" for column in columns]
        percent = [f"{record['up']:.0%}", f"{record['down']:.0%}"]
        most = f"{record['head']}: {record['largest']:+.4g}"
        rows.append([f"`{name}`", *numbers, *percent, most])
    return rows


def _head_rows(measures):
    """Titles, then one row for each head, with A, B and B - A of every measure."""
    rows = [[translated("head"), *(f"`{name}`" for name in measures)]]
    shape = next(iter(measures.values()))[0].shape
    for place in np.ndindex(shape):
        row = [heads.name(*place)]
        for a, b, _ in measures.values():
            row.append(f"{a[place]:.4g} → {b[place]:.4g} ({b[place] - a[place]:+.3g})")
        rows.append(row)
    return rows


def page(measures, experiment, names):
    """One HTML document: for each measure, at its address #NAME, words and maps; then all heads."""
    title = f"{translated(experiment.question)}  (A: {names[0]}, B: {names[1]})"
    links = ", ".join(f'<a href="#{name}">{name_of(name)}</a>' for name in measures)
    body = f"<h1>{escape(title)}</h1><p>{links}, <a href='#heads'>{translated('heads')}</a></p>"
    for name, measure in measures.items():
        said = filled(CHANGED, **measure[2])
        if _is_unlike(measure):
            said = f"{said} {filled(UNLIKE, names=name_of(name))}"
        with draw.style():
            picture = draw.svg(plot({name: measure}))
        body += f'<h2 id="{name}">{name_of(name)} <code>{name}</code></h2><p>{escape(said)}</p>'
        body += section.image(picture, said)
    head, *rows = _head_rows(measures)
    titles = "".join(f"<th>{x}</th>" for x in [head[0], *map(name_of, measures)])
    table = f"<thead><tr>{titles}</tr></thead>"
    for name, *cells in rows:
        table += f"<tr><th>{name}</th>{''.join(f'<td>{x}</td>' for x in cells)}</tr>"
    body += f'<h2 id="heads">{translated("heads")}</h2><table class="across">{table}</table>'
    return report.plain(f"{experiment.name}, {' | '.join(names)}", body)


def plot(measures):
    """A row for each measure: a map of all heads of A, of B, and of B - A."""
    drawn = dict([*measures.items()][:DRAWN])
    L, H = next(iter(drawn.values()))[0].shape
    side = np.clip(2.2 / max(L, H), 0.16, 0.4)
    figure = draw.figure(3 * (side * H + 1.3) + 0.4, len(drawn) * (side * L + 0.75) + 0.3)
    rows = figure.subplots(len(drawn), 3, squeeze=False)
    for row, (name, (a, b, _)) in zip(rows, drawn.items()):
        low, high = min(a.min(), b.min()), max(a.max(), b.max())
        far, most = max(-low, high), abs(b - a).max() or 1.0
        colors = (SIGNED, (-far, far)) if low < 0 else ("Blues", (low, high))
        _map(row[0], a, "\n".join(wrap(f"{name_of(name)}: A", WIDE)), *colors)
        _map(row[1], b, "B", *colors)
        _map(row[2], b - a, "B − A", SIGNED, (-most, most))
    return figure


def _map(axes, x, title, colours, limits):
    """Draw x [L H] as an image with a colour bar."""
    L, H = x.shape
    image = axes.imshow(x, cmap=colours, vmin=limits[0], vmax=limits[1])
    axes.set(title=title, xlabel="head", ylabel="layer", xticks=_ticks(H), yticks=_ticks(L))
    axes.figure.colorbar(image, ax=axes, shrink=0.9)


def _ticks(n):
    """Every number below n or, where there is no room for all, every second or fourth."""
    if n <= 6:
        return range(n)
    return range(0, n, 2 if n <= 12 else 4)


def make(experiment, models, names, options, out, only="", resume=False, format="svg"):
    """Compare two models in one experiment, write the results to a folder, return the table.

    The folder `out` receives what `minitx run` writes of each model, in A/ and B/, and
    compare.html, compare.md, compare.json and compare.svg, or .png where that is the format.
    """
    results.check_format(format)
    shape = same_shape([model_of(experiment, model, options) for model in models], names)
    out = writable(out)
    outcomes, sides = [], []
    for model, name, side in zip(models, names, "AB"):
        folder = writable(out / side)
        outcome = single.produce(experiment, model, name, options, folder, resume, format)
        outcomes.append(outcome)
        sides.append(per_head(experiment, outcome.result, shape))
    measures = differences(experiment, sides, only)
    table = markdown(measures, experiment, names)
    record = _as_json(experiment, outcomes, measures)
    title = f"{translated(experiment.question)}  (A: {names[0]}, B: {names[1]})"
    with draw.style():
        picture = draw.exported(plot(measures), title, format)
    for other in {*results.FORMATS} - {format}:
        (out / f"compare.{other}").unlink(missing_ok=True)
    write(out / "compare.md", table)
    write(out / "compare.html", page(measures, experiment, names))
    write(out / "compare.json", record)
    write(out / f"compare.{format}", picture)
    return table


def _as_json(experiment, outcomes, measures):
    """The content of compare.json: settings and headlines of both models, and every measure."""
    record = {"experiment": experiment.name}
    record["A"] = outcomes[0].settings
    record["B"] = outcomes[1].settings
    record["headline"] = {side: outcome.headline for side, outcome in zip("AB", outcomes)}
    record["measures"] = {name: _lists(*measure) for name, measure in measures.items()}
    return as_json(record) + "\n"


def _lists(a, b, record):
    """One measure as JSON has it: the record of `compared` with the values of all heads."""
    numbers = {key: x if isinstance(x, str) else float(x) for key, x in record.items()}
    values = {"a": a.tolist(), "b": b.tolist(), "difference": (b - a).tolist()}
    return numbers | values
