"""What one run of an experiment gives: a Result, and its files NAME.svg, NAME.npz and NAME.json.

The same inputs give the same bytes: nothing in these files tells the time or the machine.
Order: the Result, how it is made from Python and by the commands, values as text, failures.
"""

import base64
import io
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

import minitx
from minitx import threads, weights

from . import cluster, draw, own_texts, registry, settings, sides, stream
from .files import as_json, write, write_all  # noqa: F401  (the pages write by `write`)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = "svg", "png"  # of figures; each is a property of a Result
SHOWN = 6  # numbers in a notebook's table; the others are folded
ENDINGS = ".svg", ".npz", ".json"  # of the files of a Result


class Number(NamedTuple):
    """One headline number of a Result, or a list of them."""

    value: Any
    means: str
    null: Any = None  # what chance gives, where that was measured
    null_means: str = ""
    labels: list | None = None  # what the entries of a list belong to


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """What one run of an experiment gives; in a notebook it shows itself.

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
        return f"{self._experiment.question}  ({self.settings['model']}{side})"

    @property
    def headline(self) -> dict[str, Any]:
        """The numbers as the JSON file holds them, see registry.headline."""
        return registry.headline(self._experiment, self.arrays)

    @cached_property
    def drawn(self) -> tuple[str, bytes]:
        """The figure as SVG text without its title, and as a small PNG."""
        with draw.style():
            picture = self._experiment.draw(self.arrays)
            return draw.svg(picture), draw.thumbnail(picture)

    @property
    def svg(self) -> str:
        """The figure with its title, as SVG text."""
        return draw.titled(self.drawn[0], self.title)

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
        beside settings that are not theirs.
        """
        check_format(format)
        out = writable(folder)
        arrays = io.BytesIO()
        np.savez_compressed(arrays, **self.arrays)  # type: ignore[arg-type]  # names are data
        record: dict[str, Any] = {"answer": self.answer and self.answer._asdict()}
        record |= {"headline": self.headline, "says": self.says, "settings": self.settings}
        contents = {f".{format}": getattr(self, format), ".npz": arrays.getvalue()}
        contents[".json"] = as_json(record) + "\n"
        by_path = {out / (self.experiment + ending): x for ending, x in contents.items()}
        write_all(by_path, before=partial(self._remove_old, out, format))
        return out

    def _remove_old(self, out, format):
        """Remove an earlier record, and then its figure of the other format."""
        (out / f"{self.experiment}.json").unlink(missing_ok=True)
        for other in {*FORMATS} - {format}:
            (out / f"{self.experiment}.{other}").unlink(missing_ok=True)

    def __repr__(self):
        answer = f"{self.answer.verdict}, {self.answer.value}; " if self.answer else ""
        counts = f"{len(self.numbers)} numbers, {len(self.arrays)} arrays"
        return f"<Result of {self.experiment} on {self.settings['model']}: {answer}{counts}>"

    def _repr_html_(self):
        """Figure, answer, what the numbers say, and the numbers, each beside its null."""
        source = base64.b64encode(self.svg.encode()).decode()
        alt = escape(self.title)
        image = f'<img alt="{alt}" src="data:image/svg+xml;base64,{source}" style="width: 100%">'
        answer = f"<p><b>{escape(sentence(self.answer))}</b></p>" if self.answer else ""
        says = f"<p>{escape(self.says)}</p>" if self.says else ""
        rows = [_row(number) for number in self.headline.values()]
        table = _table(rows[:SHOWN])
        if rows[SHOWN:]:
            more = f"<summary>{len(rows) - SHOWN} more</summary>{_table(rows[SHOWN:])}"
            table += f"<details>{more}</details>"
        return f"<div>{image}{answer}{says}{table}</div>"


def _row(number):
    """A table's row of one headline number: what it means, its value, its null."""
    means, null = escape(number["means"]), ""
    if "null" in number:
        means += f"<br><small>by chance: {escape(number['null_means'])}</small>"
        null = escape(words(number["null"]))
    value = escape(labelled(number))
    cells = (means, f"<b>{value}</b>", null)
    return "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells)


def _table(rows):
    """An HTML table of headline numbers."""
    titles = "<th>number</th><th>this model</th><th>by chance</th>"
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in (titles, *rows))}</table>"


def check_format(format):
    """Raise ValueError unless figures have this format."""
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; wanted {' or '.join(FORMATS)}")


class Outcome(NamedTuple):
    """The results of one run, as the pages take them."""

    headline: dict
    result: dict  # the arrays
    says: str
    settings: dict
    svg: str  # the figure without its title, for a page that has its own
    answer: registry.Answer | None
    thumbnail: bytes = b""  # PNG
    note: str = ""  # how the options differ from those given for all


def run(name, model, options, client=None):
    """One experiment, by name, on a Model or a model's name -> Result; it leaves no files.

    client: of a Dask cluster, whose workers then measure the documents.

    Raises ValueError for an unknown experiment or option, before a model is loaded,
    and NotApplicable if the model lacks what the experiment needs.
    """
    if not isinstance(name, str):
        wanted = "the name of an experiment comes first, then the model"
        raise ValueError(f"{type(name).__name__} is no name; {wanted}")
    experiment = registry.get(name.replace("_", "-"))
    side, options = sides.split(options)
    options = experiment.checked(options)
    given = model
    model, called = loaded(given)
    part, stated = _stated(experiment, model, called, options | {"side": side})
    changed = settings.changes(model) if model is given else []
    if changed:  # so that --resume does not take the results for those of the files
        stated["changed"] = changed
    with one_thread_of_blas(), cluster.of_client(client):
        return explained(experiment, experiment.run(part, **stated["options"]), stated)


def loaded(model):
    """A Model and its name; where a name is given, the model is loaded and checked for NaN."""
    if isinstance(model, minitx.Model):
        return model, _name_of(model)
    name = model
    model = minitx.load(weights.find(name), partial=True)
    minitx.check(model)
    return model, name


def _name_of(model):
    """The name of the folder that a model comes from, or the hub id of a download."""
    if model.tokenizer is None:
        raise ValueError("this model was read from no folder; wanted one of minitx.load")
    folder = Path(model.tokenizer.folder).resolve()
    if settings.revision(folder):
        folder = folder.parent.parent  # models--ORG--NAME/snapshots/COMMIT
    return folder.name.removeprefix("models--").replace("--", "/")


@contextmanager
def one_thread_of_blas():
    """One thread for each product, as for the commands, unless the user chose a number.

    Documents run side by side; threads inside one small product would only wait for each other:
    on two busy cores `rotation` took a minute instead of three seconds. SciPy's wheels have an
    OpenBLAS of their own.
    """
    if os.environ.get("OPENBLAS_NUM_THREADS", "1") != "1":  # Dask sets 1, too late for NumPy
        yield
        return
    from scipy.linalg import _fblas

    pairs = [threads.blas_functions(x) for x in (np.linalg._umath_linalg, _fblas)]
    before = [count() for count, _ in pairs]
    try:
        for _, limit in pairs:
            limit(1)
        yield
    finally:
        for (_, limit), n in zip(pairs, before):
            limit(n)


def _stated(experiment, model, name, options):
    """The Model that an experiment reads, and the settings of the run, its options checked.

    Raises NotApplicable before any work.
    """
    wanted, options = sides.split(options)
    side = sides.side_of(experiment, model, wanted)
    part = sides.part(experiment, model, side)
    experiment.check(part)
    options = own_texts.with_own(experiment, model, options)
    if sides.has_own(experiment):
        options |= {sides.OPTION.name: side or sides.AUTO}
    stated = settings.of_run(experiment, part, name, experiment.checked(options))
    return part, stated | ({"side": side} if side else {})


def produce(experiment, model, name, options, out, resume=False, format="svg"):
    """Run, draw and write one experiment into the folder `out` -> Outcome.

    resume: go on with an interrupted run. format: of the figure's file.
    """
    part, stated = _stated(experiment, model, name, options)
    with stream.resumable(out, experiment.name, settings.key(stated), resume) as run:
        arrays = finished(experiment, stated, out) if resume else None
        if not arrays:
            arrays = experiment.run(part, run, **stated["options"])
        result = explained(experiment, arrays, stated)
        result.save(out, format)
    svg, thumbnail = result.drawn
    return Outcome(
        result.headline, result.arrays, result.says, stated, svg, result.answer, thumbnail
    )


def finished(experiment, stated, out):
    """The arrays of a run that ended in this folder with the same settings, or None."""
    try:
        record = json.loads((out / f"{experiment.name}.json").read_text(encoding="utf-8"))
        with open(out / f"{experiment.name}.npz", "rb") as file, np.load(file) as arrays:
            is_same = record["settings"] == json.loads(as_json(stated))
            return dict(arrays) if is_same else None
    except stream.DAMAGED:
        return None


def explained(experiment, arrays, stated):
    """The Result of these arrays: numbers, words and answer."""
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    headline = registry.headline(experiment, arrays)
    numbers = {name: Number(**number) for name, number in headline.items()}
    says = experiment.says(arrays) if experiment.says else ""
    before = sides.SENTENCES[stated.get("side", "")], own_texts.says(stated["options"])
    says = " ".join(filter(None, [*before, says]))
    answer = experiment.answer(arrays) if experiment.answer else None
    return Result(experiment.name, arrays, numbers, says, answer, stated, experiment)


def writable(folder):
    """The folder, created if it is missing; raises OSError where files cannot be written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    trial = folder / f".{os.getpid()}.tmp"
    try:
        trial.write_bytes(b"")
    finally:
        trial.unlink(missing_ok=True)
    return folder


def words(value, digits=3):
    """A value as text: floats with this many digits, lists with commas, a dash for None.

    An empty list is 'none'.
    """
    if isinstance(value, list):
        return ", ".join(words(item, digits) for item in value) or "none"
    if isinstance(value, float) and 1e-4 <= abs(value) < 1e6:
        return np.format_float_positional(value, digits, fractional=False, trim="-")
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return "–" if value is None else str(value)


def labelled(number):
    """The value of a headline number as text, the entries of a list behind their names."""
    if "labels" not in number:
        return words(number["value"])
    entries = zip(number["labels"], number["value"])
    return ", ".join(f"{label} {words(value)}" for label, value in entries)


def sentence(answer):
    """An Answer as one sentence."""
    chance = f" (chance: {answer.chance})" if answer.chance else ""
    return f"{answer.verdict.capitalize()}: {answer.measure}: {answer.value}{chance}."


def no_tokenizer(model):
    """Whether the model's folder has no tokenizer."""
    try:
        model.tokenizer.encode("a")
    except FileNotFoundError:
        return True
    return False


class Failure(NamedTuple):
    """Why there is no outcome."""

    reason: str
    left_out: bool  # the model lacks what the experiment needs, and nothing is wrong


def failed(outcomes):
    """How many of {name: Outcome or Failure} went wrong."""
    return sum(isinstance(x, Failure) and not x.left_out for x in outcomes.values())
