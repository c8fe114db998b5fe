"""Run one experiment and write its results: NAME.svg, NAME.npz (arrays), NAME.json (headline).

The same inputs give the same bytes: nothing in these files tells the time or the machine.
"""

import io
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import draw, progress, registry, settings, stream
from .files import as_json, write


class Outcome(NamedTuple):
    """The results of one run."""

    headline: dict
    result: dict  # the arrays
    says: str
    settings: dict
    svg: str  # the figure without its title, for a page that has its own
    answer: registry.Answer | None
    thumbnail: bytes = b""  # PNG
    note: str = ""  # how the options differ from those given for all


def writable(folder):
    """The folder, created if it is missing; raises OSError where files cannot be written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    trial = folder / f".{os.getpid()}.tmp"
    trial.write_bytes(b"")
    trial.unlink()
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


def produce(experiment, model, name, options, out, resume=False):
    """Run, draw and write one experiment into the folder `out` -> Outcome.

    resume: go on with an interrupted run.
    """
    experiment.check(model)
    stated = settings.of_run(experiment, model, name, options)
    with stream.resumable(out, experiment.name, settings.key(stated), resume) as run:
        result = finished(experiment, stated, out) if resume else None
        if not result:
            result = experiment.run(model, run, **options)
        result = {array: np.asarray(value) for array, value in result.items()}
        outcome = _explained(experiment, result, stated)
        _save(outcome, experiment, name, out)
    return outcome


def finished(experiment, stated, out):
    """The arrays of a run that ended in this folder with the same settings, or None."""
    try:
        record = json.loads((out / f"{experiment.name}.json").read_text(encoding="utf-8"))
        with np.load(out / f"{experiment.name}.npz") as arrays:
            is_same = record["settings"] == json.loads(as_json(stated))
            return dict(arrays) if is_same else None
    except stream.DAMAGED:
        return None


def _explained(experiment, result, stated):
    """The Outcome of these arrays: headline, words and figure."""
    headline = registry.headline(experiment, result)
    says = experiment.says(result) if experiment.says else ""
    answer = experiment.answer(result) if experiment.answer else None
    with draw.style():
        picture = experiment.draw(result)
        svg, thumbnail = draw.svg(picture), draw.thumbnail(picture)
    return Outcome(headline, result, says, stated, svg, answer, thumbnail)


def _save(outcome, experiment, name, out):
    """Write the three files of an outcome.

    The JSON file, which `finished` takes as the sign that the others are of its settings, goes
    first and comes last: whatever fails in between, arrays never stand beside settings that are not
    theirs.
    """
    titled = draw.titled(outcome.svg, f"{experiment.question}  ({name})")
    arrays = io.BytesIO()
    np.savez_compressed(arrays, **outcome.result)
    record = {"answer": outcome.answer and outcome.answer._asdict()}
    record |= {"headline": outcome.headline, "says": outcome.says, "settings": outcome.settings}
    text = as_json(record) + "\n"
    (out / f"{experiment.name}.json").unlink(missing_ok=True)
    for ending, content in ((".svg", titled), (".npz", arrays.getvalue()), (".json", text)):
        write(out / (experiment.name + ending), content)


def no_tokenizer(model):
    """Whether the model's folder has none."""
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


def every(experiments, model, name, options, out, resume=False):
    """Produce each of these experiments, yield (experiment, Outcome or Failure, seconds).

    Prints a line on stdout for each. options: those that an experiment has are passed on to it, of
    documents at least as many as it needs.
    """
    for experiment in experiments:
        progress.show(f"{experiment.name} …")
        begin = time.monotonic()
        own, note = _options_of(experiment, options, model)
        state = f"  {note}" if note else ""
        try:
            outcome = produce(experiment, model, name, own, out, resume)._replace(note=note)
        except Exception as error:  # the other experiments must not be lost with it
            outcome = _failure(error, model, note)
            state = f"  {'left out' if outcome.left_out else 'failed'}: {outcome.reason}"
        seconds = time.monotonic() - begin
        progress.show("")
        print(f"{experiment.name:18} {seconds:6.1f} s{state}", flush=True)
        yield experiment, outcome, seconds


def _options_of(experiment, options, model):
    """Those of the options that an experiment has, and a note where it takes more documents."""
    names = {option.name for option in experiment.options}
    own = {name: value for name, value in options.items() if name in names}
    n, least = own.get("documents", 0), experiment.least_documents
    is_enough = not 0 < n < least  # 0: all that there are
    if is_enough or model.missing:  # weights alone are looked at
        return own, ""
    note = f"takes {least} documents, the fewest it can do with; {n} given for all"
    return own | {"documents": least}, note


def _failure(error, model, note=""):
    """What an experiment raised, as a Failure; note: how its options differ from those given."""
    lacks_tokenizer = isinstance(error, FileNotFoundError) and no_tokenizer(model)
    if lacks_tokenizer or isinstance(error, registry.NotApplicable):
        return Failure(str(error), left_out=True)
    reason = f"{type(error).__name__}: {error}"
    return Failure(f"{reason} ({note})" if note else reason, left_out=False)
