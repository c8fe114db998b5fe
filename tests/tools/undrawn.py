"""Experiments without their figures: half of a small run's time is its figure."""

from dataclasses import replace


def without_figures(patch):
    """Let every experiment draw empty axes, until this MonkeyPatch is undone."""
    from minitx.analysis import EXPERIMENTS

    for name, experiment in EXPERIMENTS.items():
        patch.setitem(EXPERIMENTS, name, replace(experiment, draw=empty))


def empty(arrays):
    from minitx.analysis.drawing import draw

    figure = draw.figure(3, 2)
    figure.subplots().set_axis_off()
    return figure
