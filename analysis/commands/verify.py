"""`minitx verify`: check a model against a reference or another checkpoint."""

from pathlib import Path

import minitx
from minitx import weights

from ..machine.files import as_json, writable_file, write
from ..parity import compare, junit, models, reference
from . import flags


def declare(commands):
    """Its flags."""
    about = (
        "check a model against a recorded reference or another checkpoint; status 1 if they differ"
    )
    command = flags.command(commands, "verify", run, about, "MODEL")
    about = "a file that `minitx record` wrote, or another model"
    command.add_argument("reference", metavar="REFERENCE", help=about)
    about = "largest difference allowed, relative to an activation's largest value (by dtype)"
    command.add_argument("--bound", type=float, metavar="X", help=about)
    choices = ("float64", "float32")
    about = "of both (float64)"
    command.add_argument("--dtype", choices=choices, default=choices[0], help=about)
    about = f"{flags.TEXT}; for two models (sample)"
    command.add_argument("--text", default="sample", help=about)
    about = "write the outcome for a CI service"
    command.add_argument("--junit", metavar="FILE.xml", help=about)
    flags.in_json(command)


def run(arguments):
    """minitx verify MODEL REFERENCE"""
    compare.bound_for(arguments.bound or 0.0, None)  # before long work
    if arguments.junit is not None:
        writable_file(arguments.junit)
    outcome, moved = compared(arguments)
    if arguments.junit is not None:
        write(Path(arguments.junit), junit.xml(outcome, arguments.model))
    return show_parity(outcome, moved, arguments.json)


def compared(arguments):
    """(the Parity of a model with a reference file, None) or with another model, and its weights.

    The second are the weights that moved.
    """
    if Path(arguments.reference).is_file():
        recorded = reference.read_file(arguments.reference)
        model = minitx.load(weights.find(arguments.model), arguments.dtype)
        return compare.verify(model, recorded, arguments.bound), None
    names = arguments.model, arguments.reference
    both = [minitx.load(weights.find(name), arguments.dtype) for name in names]
    return models.verify(*both, text=arguments.text, bound=arguments.bound)


def show_parity(outcome, moved, in_json):
    """Print a Parity, and of two models the weights that moved; 0 if all is equal."""
    if in_json:
        stated = [entry._asdict() for entry in moved or []]
        print(as_json(compare.as_dict(outcome) | {"moved": stated}))
    else:
        print(f"{compare.table(outcome)}\n\n{compare.says(outcome)}", *outcome.notes, sep="\n")
        if moved is not None:
            print(models.says(moved))
    return 0 if outcome.agrees else 1
