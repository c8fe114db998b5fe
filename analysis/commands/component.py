"""`minitx attribute`, `heads`, `patch`, `paths`, `circuit`: which component did it.

Each is `minitx run` with its name, and `attribute` also takes its text as an argument.
"""

from ..contract import options, registry
from . import flags, run

NAMES = {
    "attribute": "how much each head, MLP and bias adds to the logit of a prediction",
    "heads": "which heads find what followed an earlier occurrence of the same word",
    "patch": "which head, copied from one text into another, restores the answer",
    "paths": "which heads write the answer, and which earlier heads influence them",
    "circuit": "a few edges between components that are sufficient for the answer",
}


def declare(commands):
    """A command for each of these experiments."""
    for name, about in NAMES.items():
        experiment = registry.EXPERIMENTS.get(name)
        if experiment is None:  # the registry holds others
            continue
        function = attribute if name == "attribute" else run.run
        command = flags.command(commands, name, function, about, "MODEL")
        if function is attribute:
            text = f"{options.ITSELF}; the same as --prompt (random words)"
            command.add_argument("text", nargs="?", metavar="TEXT", help=text)
        run.of_run(command, experiment)


def attribute(arguments):
    """minitx attribute MODEL TEXT"""
    if arguments.text is not None:
        if arguments.prompt is not None:
            raise ValueError("a TEXT and --prompt: wanted one of them")
        arguments.prompt = arguments.text
    return run.run(arguments)
