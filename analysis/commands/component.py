"""`minitx attribute`, `heads`, `patch`, `paths`, `circuit`: which component did it.

Each is `minitx run` with its name, and `attribute` also takes its text as an argument.
"""

from ..contract import options, registry
from . import flags, run

NAMES = "attribute", "heads", "patch", "paths", "circuit"


def declare(commands):
    """A command for each of these experiments."""
    for name in NAMES:
        experiment = registry.EXPERIMENTS.get(name)
        if experiment is None:  # the registry holds others
            continue
        function = attribute if name == "attribute" else run.run
        command = flags.command(commands, name, function, experiment.question, "MODEL")
        if function is attribute:
            about = f"{options.ITSELF}; the same as --prompt (random words)"
            command.add_argument("text", nargs="?", metavar="TEXT", help=about)
        run.of_run(command, experiment)


def attribute(arguments):
    """minitx attribute MODEL TEXT"""
    if arguments.text is not None:
        if arguments.prompt is not None:
            raise ValueError("a TEXT and --prompt: wanted one of them")
        arguments.prompt = arguments.text
    return run.run(arguments)
