"""`minitx list`: experiments and models."""

from minitx import weights

from ..contract import registry
from ..machine.files import as_json
from . import flags


def declare(commands):
    """Its flags."""
    command = flags.command(commands, "list", run, "experiments and models")
    flags.in_json(command)


def run(arguments):
    """minitx list"""
    if arguments.json:
        print(as_json(listed()))
        return
    print("experiments: minitx run EXPERIMENT MODEL")
    for experiment in registry.EXPERIMENTS.values():
        print(f"  {experiment.name:18} {experiment.question}")
    print("\nmodels that come with the project")
    for name in weights.bundled():
        print(f"  {name}")
    print("\ntiny models that differ in how a place enters: weights/zoo/README.md")
    for name in weights.zoo():
        print(f"  {name}")
    print("\nmodels to download: minitx fetch MODEL (any other hub id works too)")
    for name, (_, purpose) in weights.KNOWN.items():
        print(f"  {name}: {purpose}")


def listed():
    """What `minitx list` shows, and the options of each experiment with their defaults."""
    listing = {}
    for experiment in registry.EXPERIMENTS.values():
        options = {option.flag: option.default for option in experiment.options}
        listing[experiment.name] = {"question": experiment.question, "options": options}
    known = {name: purpose for name, (_, purpose) in weights.KNOWN.items()}
    return {"experiments": listing, "bundled": weights.bundled()} | {
        "zoo": weights.zoo(),
        "to_download": known,
    }
