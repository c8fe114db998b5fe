"""`minitx paper`: the nine figures of Yamamoto and Matsuzaki (2023) of one model, on one page."""

from ..pages import paper
from . import every_experiment


def declare(commands):
    """Its flags."""
    about = "a page with the nine figures of Yamamoto and Matsuzaki, and their values beside these"
    every_experiment.declare(commands, "paper", run, about)


def run(arguments):
    """minitx paper MODEL"""
    return every_experiment.write(arguments, "paper", paper.make)
