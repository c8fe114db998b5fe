"""`minitx fetch`: download a model."""

from minitx import weights

from . import flags


def declare(commands):
    """Its flags."""
    command = flags.command(commands, "fetch", run, "download a model", "MODEL")
    about = "branch, tag or commit (the one fetched first, else main)"
    command.add_argument("--revision", help=about)


def run(arguments):
    """minitx fetch MODEL"""
    print(weights.fetch(arguments.model, arguments.revision))
