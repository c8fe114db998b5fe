"""minitx verify: a model beside a reference, point by point in the order of the forward pass.

Read downward: bounds, `verify`, one batch, one array, what the outcome says.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

import minitx
from minitx.loading.files import read_json
from minitx.points import name_of

from ..contract import sides
from ..machine.files import finite
from ..machine.language import filled, translated
from ..running import settings
from . import reference

# largest difference, as a share of the largest value, by the dtype of (model, reference): in
# float64 what two orders of adding up come to, in float32 what rounding comes to in deep models
BOUNDS = {
    ("float64", "float64"): 1e-10,
    ("float64", "float32"): 1e-5,
    ("float32", "float64"): 1e-4,
    ("float32", "float32"): 1e-4,
}


# keys of config.json that change no number
NO_MATTER = {"transformers_version", "_name_or_path", "dtype", "torch_dtype", "use_cache"}
# of the table
COLUMNS = tuple("resid_pre ln1 q k v pattern attn_out cross_pattern pre mlp_out".split())


class Row(NamedTuple):
    """One point of one batch: how far it is, and where it is farthest."""

    point: tuple | str
    batch: int
    far: float  # largest |difference|
    size: float  # largest |reference|
    values: tuple[float, float]  # the model's and the reference's, where they are farthest apart
    place: dict  # {"text": 0, "head": 3, "token": 5, …}, or a shape that is another

    @property
    def share(self):
        """The difference as a share of the largest value."""
        if self.far == 0:
            return 0.0
        if self.size in (0, math.inf):
            return math.inf
        return self.far / self.size

    @property
    def name(self):
        """As one writes it: q.L3."""
        return self.point if isinstance(self.point, str) else f"{self.point[0]}.L{self.point[1]}"


class Parity(NamedTuple):
    """The outcome: rows in the order of the forward pass, and what else differs.

    bound: of Row.share. notes: lines on ids, files and config.json that differ. labels: for each
    batch its tokens as text [B T].
    """

    rows: list
    bound: float
    notes: list
    labels: list

    @property
    def differing(self):
        """The rows over the bound; NaN counts as over it."""
        return [row for row in self.rows if not row.share <= self.bound]

    @property
    def agrees(self):
        """Whether no row is over the bound."""
        return not self.differing


def verify(model, recorded, bound=None):
    """The Parity of a Model and a Reference.

    bound: of a point's largest difference, as a share of its largest value; by default by dtype,
    see BOUNDS. Raises ValueError if the model cannot read the recorded ids, or lacks a recorded
    point.
    """
    bound = bound_for(bound, (str(model.weights.W_E.dtype), recorded.about["dtype"]))
    rows, labels = [], []
    for i, inputs in enumerate(recorded.batches):
        trace = run(model, inputs, recorded.arrays[i])
        for order, (point, x) in enumerate(trace.items()):
            stored = recorded.arrays[i][point]
            row = row_of(point, i, x, stored, (inputs, recorded.samples[i]))
            rows.append((order, i, row))
        labels.append(labels_of(trace))
    rows.sort(key=lambda entry: entry[:2])
    notes = notes_on(model, recorded)
    return Parity([row for _, _, row in rows], bound, notes, labels)


def bound_for(bound, dtypes):
    """The bound, or that of the dtypes. Raises ValueError unless it is finite and not negative."""
    if bound is None:
        return BOUNDS[dtypes]
    if not (math.isfinite(bound) and bound >= 0):
        raise ValueError(f"bound is {bound}; wanted a finite number of at least 0")
    return bound


def run(model, inputs, points):
    """The Trace of one batch, of the recorded points."""
    source = {}
    if inputs.source is not None:
        source = {"source": inputs.source, "source_valid": inputs.source_valid}
    with np.errstate(invalid="ignore"):  # NaN is a difference to report
        return minitx.run(model, inputs.tokens, [*points], valid=inputs.valid, **source)


def row_of(point, batch, x, stored, how):
    """The Row of one array; how: the batch's Inputs, and its samples."""
    inputs, samples = how
    row = reference.flat(point, x, inputs)
    places = samples.get(row.size, ())
    if len(places) != len(stored):
        shape = f"[{' '.join(map(str, x.shape))}], the reference has another"
        return Row(point, batch, math.inf, math.inf, (math.nan, math.nan), {"shape": shape})
    return farthest(point, batch, (row[places], stored), (places, x.shape, inputs))


def farthest(point, batch, arrays, how):
    """The Row of two arrays of values [N].

    how: the places of the values in `reference.flat`, the shape of the whole array, the Inputs.
    """
    ours, theirs = arrays
    places, shape, inputs = how
    far = np.abs(ours - theirs)
    worst = int(np.argmax(np.where(np.isnan(far), np.inf, far)))
    values = float(ours[worst]), float(theirs[worst])
    whole = (len(inputs.tokens), *shape[1:])
    place = reference.place(point, places[worst], whole, inputs)
    return Row(point, batch, float(far[worst]), float(np.abs(theirs).max()), values, place)


def labels_of(trace):
    """The tokens of a trace as text [B T]; as numbers where there is no tokenizer."""
    try:
        return trace.labels
    except (FileNotFoundError, ValueError):
        return np.char.add("<", np.char.add(trace.tokens.astype(str), ">"))


# --- beside the numbers


def notes_on(model, recorded):
    """Lines on what else differs: ids of the texts, config.json, bytes of the weights."""
    folder = Path(model.tokenizer.folder)
    about = recorded.about
    notes = of_texts(sides.reader(model), recorded)
    before, now = about["config"], read_json(folder / "config.json")
    unlike = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    for key in sorted(set(unlike) - NO_MATTER):
        both = {"now": now.get(key), "before": before.get(key)}
        notes.append(filled("config.json: {key} is {now!r}, recorded {before!r}", key=key, **both))
    if settings.hashes(folder) != about["weights"]:
        notes.append(translated("the weights are other bytes than those recorded"))
    return notes


def of_texts(reader, recorded):
    """A line on texts whose ids differ from those that the library's tokenizer gave."""
    unlike = []
    for text, inputs in zip(recorded.about["texts"] or (), recorded.batches):
        ids = inputs.tokens if inputs.source is None else inputs.source
        try:
            ours = reader.tokenizer.encode(text)
        except (FileNotFoundError, ValueError) as error:
            return [filled("the texts were not read again: {error}", error=error)]
        if not np.array_equal(ours, ids[0]):
            pairs = enumerate(zip(ours, ids[0]))
            where = next((n for n, (a, b) in pairs if a != b), min(len(ours), len(ids[0])))
            unlike.append((where, text))
    if not unlike:
        return []
    (where, text), counts = unlike[0], {"some": len(unlike), "n": len(recorded.about["texts"])}
    return [filled(TOKENIZERS, where=where, text=text, **counts)]


TOKENIZERS = (
    "the tokenizers differ: {some} of {n} texts have other ids, the first from token {where} on: "
    "{text!r}"
)


# --- as text


EQUAL = (
    "equal: {arrays} arrays of {n} batches; farthest is {name}, by {share:.1e} of its largest "
    "value (bound {bound:.0e})"
)
DIFFERENT = (
    "first difference: {name}, by {far:.3g}, {share:.1e} of its largest value (bound {bound:.0e})",
    "  at {where}: here {here:.6g}, there {there:.6g}",
    "  before it {before} arrays are equal{last}",
    "  in all {over} of {arrays} arrays of {n} batches differ",
)


def says(parity):
    """The outcome in words: the first point that differs, where, and how much agrees before it."""
    rows, over = parity.rows, parity.differing
    values = {"arrays": len(rows), "n": len(parity.labels), "bound": parity.bound}
    if not over:
        worst = max(rows, key=lambda row: row.share)
        return filled(EQUAL, name=worst.name, share=worst.share, **values)
    first = over[0]
    before = rows[: rows.index(first)]
    last = filled(", the last {name}", name=before[-1].name) if before else ""
    values |= {"name": first.name, "far": first.far, "share": first.share, "over": len(over)}
    values |= {"where": where(first, parity), "before": len(before), "last": last}
    values |= dict(zip(("here", "there"), first.values))
    return "\n".join(filled(line, **values) for line in DIFFERENT)


def where(row, parity):
    """A row's place in words, with the decoder's tokens as text."""
    words = [filled("batch {n}", n=row.batch)]
    of_source = name_of(row.point).startswith(("enc_", "cross_k", "cross_v"))
    for name, n in row.place.items():
        words.append(f"{translated(name)} {n}")
        if name == "token" and not of_source:
            words[-1] += f" ({str(parity.labels[row.batch][row.place['text'], n])!r})"
    return ", ".join(words)


def table(parity):
    """The largest share of each of COLUMNS over all batches, a line for each layer."""
    largest = {}
    for row in parity.rows:
        largest[row.point] = max(largest.get(row.point, 0.0), row.share)
    lines = []
    for stack in ("enc_", ""):
        names = [stack + name for name in COLUMNS if (stack + name, 0) in largest]
        if names:
            lines.append(" ".join([f"{translated('layer'):6}", *(f"{name:>13}" for name in names)]))
            lines += lines_of(largest, names)
    once = [f"{point} {share:.1e}" for point, share in largest.items() if isinstance(point, str)]
    return "\n".join([*lines, "   ".join(once)])


def lines_of(largest, names):
    """A line for each layer."""
    layers = {point[1] for point in largest if name_of(point) in names}
    for layer in sorted(layers):
        cells = [largest.get((name, layer), math.nan) for name in names]
        yield " ".join([f"{layer:<6}", *(f"{cell:13.1e}" for cell in cells)])


def as_dict(parity):
    """The outcome for a program to read; NaN and infinities become None."""
    arrays = []
    for row in parity.rows:
        entry = {"point": row.name, "batch": row.batch, "place": row.place}
        entry |= {"difference": row.far, "share": row.share, "largest": row.size}
        entry |= dict(zip(("here", "there"), row.values))
        arrays.append(entry | {"equal": row.share <= parity.bound})
    first = parity.differing[0].name if parity.differing else None
    stated = {"equal": parity.agrees, "first": first, "bound": parity.bound}
    return finite(stated | {"notes": parity.notes, "arrays": arrays})
