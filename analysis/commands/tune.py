"""`minitx tune`: continue training a checkpoint on a text."""

import time

from ..machine.files import as_json
from ..machine.language import filled
from ..tuning import tune
from . import flags, inputs, output


def declare(commands):
    """Its flags: the options of learning."""
    command = flags.command(
        commands, "tune", run, "continue training a checkpoint on a text", "MODEL"
    )
    flags.of_options(command, tune.EXPERIMENT.options)
    flags.of_ids(command, tune.EXPERIMENT.option_names)
    flags.of_results(command, "out/MODEL-tune")
    flags.in_json(command)


SAYS = "held-out loss {before:.4f} nats before, {after:.4f} after {steps} steps; {n} arrays learned"


def run(arguments):
    """minitx tune MODEL"""
    start = time.monotonic()
    given = flags.own_options(tune.EXPERIMENT, arguments)
    out = inputs.folder(arguments, "tune")
    with output.progress_beside(arguments.json):
        record = tune.tune(arguments.model, out, arguments.resume, **given)
    if arguments.json:
        print(as_json(record))
        return
    first, last = record["held_out"][0], record["held_out"][-1]
    numbers = {"before": first["loss"], "after": last["loss"], "steps": last["step"]}
    print(filled(SAYS, n=len(record["learned"]), **numbers))
    print(filled("{written}: load it as any model", written=output.written(out, start)))
