"""`minitx forming`: how position information emerges during training, snapshot by snapshot."""

import time
from pathlib import Path
from typing import Annotated

import minitx
from minitx import weights

from .. import forming as measures
from ..contract import options
from ..contract.registry import Experiment
from ..drawing import draw
from ..forming import figure, seeds, words
from ..machine import files, progress
from ..machine.language import filled
from ..pages import forming as film
from . import flags, output

QUESTION = "What forms first when a model learns where words stand?"


def forming(
    history,
    out,
    *,
    text: options.Text = "sample",
    documents: Annotated[int, options.AtLeast(2)] = 32,
    tokens: options.Tokens = 0,
    shuffles: options.Shuffles = 100,
    every: options.Every = 8,
    seed: options.Seed = 0,
):
    """Every measure of positions against the step of a training.

    text: text to read, none of the training's
    documents: documents to read
    """
    what = measures.What(text, documents, tokens, shuffles, every, seed)
    folder = weights.find(history)
    training = minitx.History.from_folder(folder)
    out = files.writable(out)
    with progress.Line("snapshots", len(training.snapshots)) as line:
        results = measures.compute(training, what, line.update)
    compared = seeds.seeds_of(folder)
    said = [*words.of_history(results), *(words.of_seeds(compared) if compared else [])]
    write(folder.name, results, compared, said, out)
    return results, said


def write(name, results, compared, said, out):
    """The figure, the film and the numbers."""
    with draw.style():
        picture = draw.svg(figure.picture(results, compared))
    arrays = {key: x.tolist() for key, x in results.items()}
    record = files.as_json({"said": said, "results": arrays})
    contents = {"svg": picture, "html": film.page(name, results, said), "json": record}
    files.write_all({out / f"forming.{ending}": text for ending, text in contents.items()})


EXPERIMENT = Experiment(forming, question=QUESTION, draw=None)


def declare(commands):
    """Its flags: what is read, and how often it is shuffled."""
    about = "how position information emerges during training, snapshot by snapshot"
    command = flags.command(commands, "forming", run, about, "HISTORY")
    flags.of_options(command, EXPERIMENT.options)
    command.add_argument("--out", help="folder for the results (out/HISTORY-forming)")


def run(arguments):
    """minitx forming HISTORY"""
    begin = time.monotonic()
    given = EXPERIMENT.checked(flags.stated(EXPERIMENT, arguments), is_text=True)
    out = Path(arguments.out or f"out/{Path(arguments.history).name}-forming")
    _, said = forming(arguments.history, out, **given)
    print(*said, sep="\n")
    print(filled("{written}; open forming.html in a browser", written=output.written(out, begin)))
