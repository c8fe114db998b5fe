"""What one run of an experiment gives: a Result, and its files NAME.svg, NAME.npz and NAME.json.

The same inputs give the same bytes: nothing in these files tells the time or the machine.
"""

import base64
import io
import os
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from minitx.learning.saved import digest_of
from minitx.weights.writing import replaced_by

from ..drawing import draw
from ..machine.files import as_json, writable, write_all
from ..machine.language import filled, translated
from . import former, own_texts, registry, sensitivity, sides, wording

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = "svg", "png"  # of figures; each is a property of a Result
COLUMNS = "number", "label", "value", "null", "means", "null_means"  # of a Result's table
TITLES = "number", "this model", "by chance"  # of a table's columns
FEW = 8  # documents: an interval of fewer is said to be wide
SHOWN = 6  # numbers in a notebook's table; the others are folded
ENDINGS = ".svg", ".npz", ".json"  # of the files of a Result
FORMAT = 1  # of its JSON file


class Number(NamedTuple):
    """One headline number of a Result, or a list of them."""

    value: Any
    means: str
    null: Any = None  # what chance gives, where that was measured
    null_means: str = ""
    labels: list | None = None  # what the entries of a list belong to


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """The result of one run of an experiment; in a notebook it displays itself.

    `.arrays` {name: array}, `.numbers` {name: Number}, `.says` in plain words, `.answer` to the
    experiment's question, or None, `.settings`: all that the numbers depend on.

    The highest peak of the position table's spectrum, and what peaks of shuffled rows reach:

    >>> from minitx import analysis
    >>> result = analysis.run("positions", "tiny-roberta")
    >>> peak = result.numbers["peak"]
    >>> round(peak.value, 1), round(peak.null, 1)
    (1.3, 0.9)
    """

    experiment: str
    arrays: dict[str, np.ndarray]
    numbers: dict[str, Number]
    says: str
    answer: registry.Answer | None
    settings: dict[str, Any]
    _experiment: registry.Experiment = field(repr=False)

    @property
    def title(self) -> str:
        """The experiment's question and the model, with the side of an encoder-decoder."""
        side = f", {self.settings['side']}" if "side" in self.settings else ""
        return f"{translated(self._experiment.question)}  ({self.settings['model']}{side})"

    @property
    def headline(self) -> dict[str, Any]:
        """The numbers as the JSON file holds them, see registry.headline."""
        return registry.headline(self._experiment, self.arrays)

    @cached_property
    def drawn(self) -> tuple[tuple[str, ...], bytes]:
        """Its figures as SVG texts without a title, and the first as a small PNG."""
        with draw.style():
            pictures = self._experiment.figures(self.arrays)
            return tuple(map(draw.svg, pictures)), draw.thumbnail(pictures[0])

    @property
    def svg(self) -> str:
        """The figures below each other with the title, as one SVG text."""
        figures, _ = self.drawn
        return draw.titled(figures[0] if len(figures) == 1 else draw.below(figures), self.title)

    def figure(self) -> "Figure":
        """The figure with its title: a matplotlib Figure of your own, to change or to save."""
        with draw.style():
            return draw.headed(self._experiment.draw(self.arrays), self.title)

    @property
    def png(self) -> bytes:
        """The figure with its title, as PNG."""
        with draw.style():
            return draw.png(self._experiment.draw(self.arrays), self.title)

    def save(self, folder: str | os.PathLike[str], format: Literal["svg", "png"] = "svg") -> Path:
        """Write the three files that `minitx run` writes into a folder, and return its path.

        format: of the figure, svg or png; a figure of the other format, from an earlier run, is
        removed. Files of an earlier run stay until all are written under temporary names. Then the
        JSON file is removed first and renamed last, because `finished` takes it as the sign that
        the other files belong to its settings: whatever fails in between, arrays never stand
        beside settings that are not theirs. It holds their sha256, too.
        """
        check_format(format)
        out = writable(folder)
        arrays = io.BytesIO()
        np.savez_compressed(arrays, **self.arrays)  # type: ignore[arg-type]  # names are data
        answer = self.answer and self.answer._asdict()
        record: dict[str, Any] = {"format": FORMAT, "answer": answer}
        record["sensitivity"] = sensitivity.of(self._experiment.answer, self.arrays)
        record |= {"headline": self.headline, "says": self.says, "settings": self.settings}
        record["sha256"] = digest_of("", self.arrays, self.arrays.get)
        contents = {f".{format}": getattr(self, format), ".npz": arrays.getvalue()}
        contents[".json"] = as_json(record) + "\n"
        by_path = {out / (self.experiment + ending): x for ending, x in contents.items()}
        write_all(by_path, before=partial(self._remove_old, out, format))
        return out

    def table(self) -> dict[str, list]:
        """The numbers as columns of equal length, one row a number or an entry of a list.

        Columns: number, its name; label, what an entry belongs to ("" of a single number); value;
        null, what chance gives, None where it was not measured; means; null_means.
        pandas.DataFrame(result.table()) reads it, and so does polars with strict=False; xarray
        takes that frame (xarray.Dataset.from_dataframe).

        >>> from minitx import analysis
        >>> table = analysis.run("positions", "tiny-roberta").table()
        >>> list(table), table["number"][:2]
        (['number', 'label', 'value', 'null', 'means', 'null_means'], ['peak', 'peak_at'])
        """
        return columns(self.numbers)

    def _remove_old(self, out, format):
        """Remove an earlier record, and then its figure of the other format."""
        record = replaced_by(out / f"{self.experiment}.json")
        if record is not None:
            record.unlink(missing_ok=True)
        for other in {*FORMATS} - {format}:
            (out / f"{self.experiment}.{other}").unlink(missing_ok=True)

    def __repr__(self):
        answer = f"{self.answer.verdict}, {self.answer.value}; " if self.answer else ""
        counts = f"{len(self.numbers)} numbers, {len(self.arrays)} arrays"
        return f"<Result of {self.experiment} on {self.settings['model']}: {answer}{counts}>"

    def _repr_png_(self):
        """The figure alone, coarser than `png`, where no HTML can be shown: in LaTeX, in a PDF."""
        from PIL import Image  # which matplotlib brings

        with draw.style():
            picture = draw.png(self._experiment.draw(self.arrays), self.title, dots=100)
        small = io.BytesIO()
        Image.open(io.BytesIO(picture)).convert("RGB").quantize(64).save(small, "PNG")
        return small.getvalue()

    def _repr_html_(self):
        """Figure, answer, what the numbers say, and the numbers, each beside its null."""
        source = base64.b64encode(self.svg.encode()).decode()
        alt = escape(self.title)
        image = f'<img alt="{alt}" src="data:image/svg+xml;base64,{source}" style="width: 100%">'
        answer = f"<p><b>{_said(wording.sentence(self.answer))}</b></p>" if self.answer else ""
        says = f"<p>{_said(self.says)}</p>" if self.says else ""
        rows = [_row(number) for number in self.headline.values()]
        table = _table(rows[:SHOWN])
        if rows[SHOWN:]:
            more = filled("{n} more", n=len(rows) - SHOWN)
            folded = _table(rows[SHOWN:])
            table += f"<details><summary>{more}</summary>{folded}</details>"
        return f"<div>{image}{answer}{says}{table}</div>"


def columns(numbers):
    """{column: list} of the numbers of a Result, see `Result.table`."""
    rows = [row for name, number in numbers.items() for row in _rows(name, number)]
    return {column: [row[column] for row in rows] for column in COLUMNS}


def _rows(name, number):
    """The table's rows of one number, as dictionaries."""
    values = number.value if isinstance(number.value, list) else [number.value]
    labels = number.labels or [""] * len(values)
    has_own = isinstance(number.null, list) and len(number.null) == len(values)
    nulls = number.null if has_own else [number.null] * len(values)
    common = {"number": name, "means": number.means, "null_means": number.null_means}
    entries = zip(labels, values, nulls, strict=True)
    return [{"label": label, "value": x, "null": null} | common for label, x, null in entries]


def _said(text):
    """A text as HTML, with the signs of figures and pages."""
    return draw.signs(escape(text))


def _row(number):
    """A table's row of one headline number: what it means, its value, its null."""
    means, null = escape(number["means"]), ""
    if "null" in number:
        by_chance = filled("by chance: {null}", null=number["null_means"])
        means += f"<br><small>{escape(by_chance)}</small>"
        null = _said(wording.words(number["null"]))
    value = _said(wording.labelled(number))
    cells = (means, f"<b>{value}</b>", null)
    return "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells)


def _table(rows):
    titles = "".join(f"<th>{translated(title)}</th>" for title in TITLES)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in (titles, *rows))}</table>"


def check_format(format):
    """Raise ValueError unless figures have this format."""
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; wanted {' or '.join(FORMATS)}")


def of_few(arrays):
    """A sentence on intervals of few documents; "" where there are none, or of one document."""
    if not any("interval" in name for name in arrays):
        return ""
    of_intervals = arrays.get("interval_documents", arrays.get("documents", FEW))
    n = np.ravel(of_intervals)[-1]  # of those to learn from, to choose, to test: the last
    return filled("Intervals are of {n} documents: wide.", n=n) if 1 < n < FEW else ""


def explained(experiment, arrays, stated):
    """The Result of these arrays: numbers, words and answer."""
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    headline = registry.headline(experiment, arrays)
    numbers = {name: Number(**number) for name, number in headline.items()}
    says = experiment.says(arrays) if experiment.says else ""
    before = translated(sides.SENTENCES[stated.get("side", "")]), own_texts.says(stated["options"])
    says = " ".join(filter(None, [*before, says, of_few(arrays)]))
    answer = experiment.answer(arrays) if experiment.answer else None
    of_1_0 = former.Arrays(arrays, experiment.name)
    named = former.Numbers(numbers, of_1_0, Number)
    return Result(experiment.name, of_1_0, named, says, answer, stated, experiment)
