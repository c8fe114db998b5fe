"""`minitx train`: train a model from random weights, with snapshots on the way."""

import time
from pathlib import Path
from typing import Annotated, Literal

import minitx

from ..contract.options import AtLeast, Count, Seed, Size, Text, Within
from ..contract.registry import Experiment
from ..machine import files
from ..machine.language import count, filled
from ..texts import formats
from . import flags, output

QUESTION = "What does a model learn from scratch, and in which order?"


def train(
    config,
    out,
    resume=False,
    *,
    text: Text = "sample",
    column: str = "",
    steps: Count = 2000,
    snapshots: Size = 24,
    context: Size = 0,
    batch: Count = 32,
    rate: Annotated[float, Within(0, 1)] = 1e-3,
    warm_up: Annotated[float, Within(0, 1)] = 0.1,
    decay: Annotated[float, Within(0, 1)] = 0.1,
    clip: Annotated[float, AtLeast(0)] = 1.0,
    masked: Annotated[float, Within(0.01, 0.9)] = 0.15,
    span: Annotated[float, AtLeast(1)] = 1.0,
    dtype: Literal["float32", "float64"] = "float32",
    seed: Seed = 0,
):
    """A model from a random start: `minitx.train` on a text.

    text: text to learn from
    column: columns of a .csv file or keys of a .jsonl file that hold the text, joined by commas
    steps: steps of the optimizer
    snapshots: models kept on the way, after numbers of steps that grow geometrically
    context: tokens of an input (0: the most that the model reads)
    batch: inputs in each step
    rate: peak learning rate
    warm_up: share of the steps in which it rises; then it falls as a cosine to 0
    decay: weight decay: share of a matrix that a step of rate 1 would remove
    clip: largest norm of the gradient of all arrays together (0: no limit)
    masked: share of the words that a masked model has to predict
    span: mean number of these side by side
    dtype: precision; float64 to check a run
    seed: seed of all that is drawn
    """
    given = dict(locals())
    where = given.pop("config"), Path(given.pop("out")), given.pop("resume")
    return learn(*where, given)


def learn(config, out, resume, given):
    """The History of a training on a text in one of the layouts of formats.py."""
    text = formats.of(given.pop("text"), column=given.pop("column"))
    texts = [record.text for record in formats.records(text)]
    folder = files.writable(out)
    return minitx.train(config, texts, out=folder, resume=resume, **given)


EXPERIMENT = Experiment(train, question=QUESTION, draw=None)


def declare(commands):
    """Its flags: the numbers of a training."""
    command = flags.command(commands, "train", run, "train a model from random weights", "CONFIG")
    flags.of_options(command, EXPERIMENT.options)
    flags.of_results(command, "out/CONFIG-train")
    flags.in_json(command)


def run(arguments):
    """minitx train CONFIG"""
    begin = time.monotonic()
    given = EXPERIMENT.checked(flags.stated(EXPERIMENT, arguments), is_text=True)
    out = Path(arguments.out or f"out/{Path(arguments.config).stem}-train")
    with output.progress_beside(arguments.json):
        history = train(arguments.config, out, arguments.resume, **given)
    if arguments.json:
        losses = history.losses.tolist()
        print(files.as_json({"losses": losses, "snapshots": history.snapshots}))
        return
    first, last = history.losses[0], history.losses[-1]
    numbers = {"first": first, "last": last, "n": len(history.losses)}
    print(filled("loss {first:.4f} nats before, {last:.4f} in the last of {n} steps", **numbers))
    kept = count(len(history.snapshots), "snapshot")
    print(output.written(filled("{out}, with {snapshots},", out=out, snapshots=kept), begin))
