"""`minitx list`: experiments and models."""

from minitx import weights

from ..contract import registry
from ..machine.files import as_json
from ..machine.language import translated
from . import flags


def declare(commands):
    """Its flags."""
    command = flags.command(commands, "list", run, "list experiments and models")
    flags.in_json(command)


def run(arguments):
    """minitx list"""
    if arguments.json:
        print(as_json(listed()))
        return
    print(translated("experiments: minitx run EXPERIMENT MODEL"))
    for experiment in registry.EXPERIMENTS.values():
        print(f"  {experiment.name:18} {translated(experiment.question)}")
    print("\n" + translated("bundled models"))
    for name in [*weights.bundled(), *weights.of_pictures()]:
        print(f"  {name}")
    about = "tiny models that differ in how positions enter: weights/zoo/README.md"
    print("\n" + translated(about))
    for name in weights.zoo():
        print(f"  {name}")
    about = "models to download: minitx fetch MODEL (any other hub id works too)"
    print("\n" + translated(about))
    for name, (_, purpose) in weights.KNOWN.items():
        print(f"  {name}: {translated(purpose)}")


def listed():
    """What `minitx list` shows, and the options of each experiment with their defaults."""
    listing = {}
    for experiment in registry.EXPERIMENTS.values():
        options = {option.flag: option.default for option in experiment.options}
        listing[experiment.name] = {"question": translated(experiment.question), "options": options}
    known = {name: purpose for name, (_, purpose) in weights.KNOWN.items()}
    return {"experiments": listing, "bundled": weights.bundled()} | {
        "of_pictures": weights.of_pictures(),
        "zoo": weights.zoo(),
        "to_download": known,
    }
