"""What does a model learn when its arrays follow the gradients of a loss?

`minitx tune MODEL` continues training a checkpoint on a text, in whole or in part, and writes it in
the layout it came in. Order: the options, checked before any work; positions; the picture.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Literal

import numpy as np

from minitx import weights
from minitx.learning.batches import check_size
from minitx.loading.files import read_json

from ..contract.options import AtLeast, Count, Seed, Size, Text, Within
from ..contract.registry import Experiment
from ..drawing import draw
from ..machine import progress
from ..machine.files import as_json, finite, writable, write
from ..running import settings
from ..texts import formats
from . import batches, state, tensors, training

RECORD, CURVE = "tune.json", "tune.svg"
FORMAT = 1  # of the record
TABLES = "W_pos", "W_rel"  # what says where a token stands


def tune(
    model,
    out,
    resume=False,
    *,
    text: Text = "sample",
    documents: Size = 0,
    tokens: Size = 0,
    column: str = "",
    label: str = "",
    task: Literal["auto", "words", "labels", "order"] = "auto",
    only: str = "",
    freeze: str = "",
    positions: Literal["kept", "zero", "learned"] = "kept",
    steps: Count = 1000,
    batch: Count = 16,
    rate: Annotated[float, Within(0, 1)] = 5e-4,
    warm_up: Annotated[float, Within(0, 1)] = 0.1,
    decay: Annotated[float, Within(0, 1)] = 0.01,
    clip: Annotated[float, AtLeast(0)] = 1.0,
    masked: Annotated[float, Within(0.01, 0.9)] = 0.15,
    held_out: Annotated[float, Within(0.01, 0.9)] = 0.1,
    every: Count = 100,
    seed: Seed = 0,
):
    """A checkpoint learns on: full documents or labelled texts, AdamW, a held-out curve.

    text: text to learn from
    documents: documents to read (0: all)
    tokens: length of each document, or the most of a labelled one (0: the model's longest)
    column: columns of a .csv file or keys of a .jsonl file that hold the text, joined by commas
    label: column or key of the labels; a folder with pos/ and neg/ needs none
    task: what is learned: hidden or next words, the labels of texts, or whether a text's words
    are in their own order (auto: labels with --label or where the model has such a head, else
    words)
    only: arrays that learn, joined by commas: W_pos,W_Q.L3 (all)
    freeze: arrays that do not
    positions: the position table: as the model has it, permanently zero, or learned again from
    small random numbers
    steps: steps of the optimizer
    batch: documents in each
    rate: peak learning rate
    warm_up: share of the steps in which it rises; then it falls as a cosine to 0
    decay: weight decay: share of a matrix that a step of rate 1 would remove
    clip: largest norm of the gradient of all arrays together (0: no limit)
    masked: share of the tokens that a masked model has to predict
    held_out: share of the documents that are held out for evaluation
    every: steps between two evaluations on these
    seed: seed of all that is drawn
    """
    given = dict(locals())
    where = given.pop("model"), Path(given.pop("out")), given.pop("resume")
    return learn(*where, SimpleNamespace(**given))


def learn(model, out, resume, given):
    """Checks everything, goes through the steps, writes the folder -> its record."""
    folder = Path(weights.find(model))
    if out.resolve() == folder.resolve():
        raise ValueError(f"--out {out} is the model's own folder; wanted another")
    if (out / "config.json").exists() and not any(
        (out / x).exists() for x in (RECORD, state.STATE)
    ):
        raise ValueError(
            f"--out {out} holds a checkpoint that is no tuning's; wanted another folder"
        )
    stated = {"model": str(model), **settings.model_files(folder), "options": vars(given)}
    stated |= {"text": formats.described(given.text), "versions": settings.versions()}
    if resume and finished(out, stated):
        return record_in(out)
    checkpoint, run = prepared(folder, given)
    place = state.Folder(writable(out), stated, checkpoint.tensors)
    if resume:
        place.take_up(run)
    run.begin()
    with progress.Line("steps", given.steps, run.done) as line:
        run.go_on(lambda run: (line.update(run.done), place.after(run)))
    return finish(checkpoint, run, place)


def prepared(folder, given):
    """The checkpoint, and the Training of it that the options describe.

    Raises ValueError for a batch that no step can hold.
    """
    checkpoint = tensors.opened(folder)
    data = data_of(checkpoint.model, given)
    check_size(given.batch, max(map(len, data.rows)))
    if data.classes:
        checkpoint = with_head(checkpoint, data, given)
    learned = with_positions(checkpoint, given.positions, given.seed)
    learned = training.choose(checkpoint.model, learned, given.only, given.freeze)
    numbers = {name: getattr(given, name) for name in training.How._fields}
    run = training.Training(checkpoint.model, learned, data, training.How(**numbers))
    return checkpoint, run


def data_of(model, given):
    """What is learned from. Raises ValueError where the model or the text does not do for it."""
    task = given.task
    if task == "auto":
        has_labels = given.label or model.config.task_head == "sequence"
        task = "labels" if has_labels else "words"
    if task != "labels" and given.label:
        raise ValueError(f"--label {given.label} goes with --task labels, not {task}")
    what = model, given.text, given.documents, given.tokens, given.column
    if task == "words":
        return batches.Words(*what, given.masked)
    if model.encoder is not None:
        raise ValueError(f"--task {task} wants one stack; this model is an encoder-decoder")
    if task == "labels":
        return batches.Labels(*what, given.label)
    return batches.Order(*what, given.seed)


def with_head(checkpoint, data, given):
    """The checkpoint with a head for the classes: its own if that has the same, else a new one."""
    names = checkpoint.settings.get("id2label") or {}
    own = [names[key] for key in sorted(names, key=int)]
    if checkpoint.model.config.task_head == "sequence" and sorted(own) == sorted(data.classes):
        data.targets = np.array([own.index(data.classes[i]) for i in data.targets])
        return checkpoint
    rng = np.random.default_rng((given.seed, len(data.classes)))
    return tensors.with_classes(checkpoint, data.classes, rng)


def with_positions(checkpoint, positions, seed):
    """The arrays that can learn, after the table was changed as the option says.

    At zero it is left out. Raises ValueError where the model has no table in its file.
    """
    learned = checkpoint.learned()
    if positions == "kept":
        return learned
    tables = [key for key in learned if key in TABLES]
    if not tables:
        raise ValueError(
            f"--positions {positions}: this model has no table of positions that is learned"
        )
    for key in tables:
        anew(learned[key], checkpoint.model.config, positions == "zero", seed)
        if positions == "zero":
            del learned[key]
    return learned


def anew(table, config, is_zero, seed):
    """A table of positions at zero, or from small random numbers; padding's rows stay zero."""
    drawn = tensors.NEW * np.random.default_rng((seed, 0)).standard_normal(table.shape)
    table[...] = 0 if is_zero else drawn
    table[: config.offset] = 0


def finished(out, stated):
    """Whether the folder holds the end of a run with the same settings."""
    if not (out / RECORD).is_file() or (out / state.STATE).is_file():
        return False
    return record_in(out)["settings"] == json.loads(as_json(stated))


def record_in(out):
    """The record of a run that has ended. Raises ValueError for a file that is none."""
    record = read_json(out / RECORD)
    if "settings" not in record or record.get("format") != FORMAT:
        raise ValueError(f"{out / RECORD} is not the record of a tuning of format {FORMAT}")
    return record


def finish(checkpoint, run, place):
    """Write the checkpoint, the record and the curve; the state is not needed any more."""
    tensors.save_checkpoint(checkpoint, place.path)
    record = {"format": FORMAT, "settings": place.settings, "targets": "nats", "losses": run.losses}
    record |= {"held_out": [dict(zip(("step", "loss"), point)) for point in run.curve]}
    record |= {"learned": [training.text_of(key) for key in run.optimizer.arrays]}
    with draw.style():
        curve = draw.svg(picture(run))
    write(place.path / CURVE, curve)
    write(place.path / RECORD, as_json(finite(record)) + "\n")
    (place.path / state.STATE).unlink(missing_ok=True)
    return json.loads(as_json(record))


def picture(run):
    """The loss of each step, and that of the held-out documents."""
    figure = draw.figure(8, 4.5)
    axes = figure.subplots()
    axes.plot(np.arange(1, run.done + 1), run.losses, color=draw.SKY, linewidth=0.8, label="batch")
    steps, losses = zip(*run.curve)
    axes.plot(steps, losses, "o-", color=draw.VERMILION, markersize=4, label="held out")
    axes.set(xlabel="step", ylabel="loss (nats)")
    axes.legend()
    return figure


EXPERIMENT = Experiment(tune, question=__doc__.partition("\n")[0], draw=picture)
