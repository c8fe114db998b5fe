"""`minitx probe`: which layer knows labels of one's own? Linear probes, beside chance."""

import time

import numpy as np

from minitx.points import text_of
from minitx.research.labelled import of_table
from minitx.research.passes import reader
from minitx.research.probe import probes
from minitx.research.shards import points_of

from ..drawing import Line, draw, lines
from ..machine import files, progress
from ..machine.language import filled, label, translated
from ..texts import formats
from . import flags, inputs, output


def declare(commands):
    """Its flags."""
    about = "linear probes on labels of your own, by layer, beside shuffled labels"
    command = flags.command(commands, "probe", run, about, "MODEL")
    about = "a text and its label in each row: .csv, .tsv, .json, .jsonl, .parquet"
    command.add_argument("labels", metavar="LABELS.csv", help=about)
    flags.of_column(command)
    command.add_argument("--label", default="", metavar="NAME", help="column of labels (label)")
    about = "points, joined by commas: resid_post,z.L3 (embed,resid_post)"
    command.add_argument("--at", default="embed,resid_post", metavar="POINTS", help=about)
    about = "what is read of a text: its last token, the mean of all, or each (last)"
    command.add_argument("--token", choices=["last", "mean", "each"], default="last", help=about)
    about = "of the split, of shuffled labels and of random weights (0)"
    command.add_argument("--seed", type=int, default=0, metavar="N", help=about)
    about = "write the probe that is right most often"
    command.add_argument("--save", metavar="FILE.safetensors", help=about)
    command.add_argument("--out", help="folder for the figure and numbers (out/MODEL-probe)")


READ = "{n} texts, labels {classes}: accuracy on held-out texts"
ROW = (
    "{point}: {accuracy:.1%} [{low:.1%}, {high:.1%}]; shuffled labels up to {null:.1%}, random "
    "weights {untrained:.1%}; {verdict}"
)

OWN = "accuracy on held-out texts, 95%"
SHUFFLED = "null: shuffled labels, 95%"
UNTRAINED = "null: random weights"


def run(arguments):
    """minitx probe MODEL LABELS.csv"""
    begin = time.monotonic()
    if arguments.save is not None:
        files.writable_file(arguments.save)
    named = formats.of(arguments.labels, column=arguments.column, label=arguments.label)
    texts, labels = of_table(named)
    out = inputs.folder(arguments, "probe")
    model = reader(inputs.load(arguments.model))
    points = points_of(model, [flags.point_of(name) for name in arguments.at.split(",")])
    classes = ", ".join(sorted(set(labels))[:20])
    print(filled(READ, n=len(texts), classes=classes))
    fitted = []
    with progress.Line("probes", len(points)) as line:
        for probe in probes(model, texts, labels, points, arguments.token, arguments.seed):
            fitted.append(probe)
            line.update(len(fitted))
    for probe in fitted:
        low, high = probe.interval
        print(filled(ROW, **stated(probe), low=low, high=high))
    write(out, fitted)
    print(output.written(f"{out}/probe.svg .json", begin))
    if arguments.save is not None:
        max(fitted, key=lambda probe: probe.accuracy).save(arguments.save)
        print(output.written(arguments.save))


def stated(probe):
    """What is told of a probe."""
    names = "accuracy", "interval", "null", "untrained", "selectivity"
    numbers = {name: getattr(probe, name) for name in names}
    return numbers | {"point": text_of(probe.point), "verdict": label(probe.verdict)}


def write(out, fitted):
    """The figure and the numbers."""
    rows = [stated(probe) for probe in fitted]
    with draw.style():
        picture = draw.svg(figure({name: np.array([x[name] for x in rows]) for name in rows[0]}))
    contents = {out / "probe.svg": picture, out / "probe.json": files.as_json(rows)}
    files.write_all(contents)


def figure(r):
    """Accuracy by point, with its interval, beside its nulls."""
    picture = draw.figure(2.5 + 0.9 * max(len(r["point"]), 4), 4)
    own = Line("accuracy", translated(OWN), band="interval")
    shuffled = Line("null", translated(SHUFFLED), "s--", draw.GREY)
    untrained = Line("untrained", translated(UNTRAINED), "^:", draw.ORANGE)
    panel = lines(own, shuffled, untrained, xticks="point", ylabel=translated("accuracy"))
    panel(picture.subplots(), r)
    return picture
