"""Experiments in two dimensions: what `minitx run NAME` computes of a model of pictures.

Each has the name of the experiment in whose place it runs, and asks its question of a grid of
patches. `registry.of_model` chooses. One that has no file here reads texts alone, and says so.
"""

from importlib import import_module

for name in (
    "positions",
    "profiles",
    "conditions",
    "cca",
    "dial",
    "remove_positions",
    "sources",
    "joint_space",
):
    import_module(f".{name}", __name__)
