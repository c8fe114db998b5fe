"""`minitx record`: record the reference library's activations in a small file."""

import shlex
from pathlib import Path

from minitx import weights

from ..machine.language import filled, translated
from ..parity import record
from . import flags


def declare(commands):
    """Its flags."""
    about = "record the activations of transformers (requires minitx[torch])"
    command = flags.command(commands, "record", run, about, "MODEL")
    command.add_argument("--out", required=True, metavar="FILE.safetensors", help="file to write")
    for name, default in record.How._field_defaults.items():
        if name != "points":
            about = f"{translated(record.HELPS[name])} ({default})"
            command.add_argument(f"--{name}", type=type(default), default=default, help=about)
    command.add_argument("--points", help=record.HELPS["points"])


def run(arguments):
    """minitx record MODEL"""
    given = {name: getattr(arguments, name) for name in record.How._fields}
    given["points"] = given["points"] and given["points"].split(",")
    path = Path(arguments.out)
    recorded, size = record.make(weights.find(arguments.model), path, record.How(**given))
    n, points = len(recorded.batches), sum(map(len, recorded.arrays))
    sizes = {"n": n, "points": points, "size": size / 1e6}
    print(filled("{path} written: {n} batches, {points} arrays, {size:.2f} MB", path=path, **sizes))
    command = shlex.join(["minitx", "verify", arguments.model, str(path)])
    print(filled("in CI, without torch: {command}", command=command))
