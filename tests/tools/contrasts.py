"""Contrast of colours (WCAG 2), on paper and in a dark page."""

import numpy as np
from matplotlib.colors import to_hex, to_rgb


def luminance(colour):
    """Relative luminance of a colour: #rrggbb, a name, or red, green and blue from 0 to 1."""
    x = np.array(to_rgb(colour))
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(a, b):
    """The ratio of two colours, 1 to 21."""
    low, high = sorted(map(luminance, (a, b)))
    return (high + 0.05) / (low + 0.05)


def turned(colour):
    """What the filter of dark figures makes of a colour (Filter Effects 1: 6.1, sRGB), #rrggbb."""
    x = 0.9 - 0.8 * np.array(to_rgb(colour))  # invert(.9)
    luma = x @ [0.213, 0.715, 0.072]
    return to_hex(np.clip(2 * luma - x, 0, 1))


def from_grounds(color, alpha=None):
    """The contrasts of a colour with its ground, on paper and in a dark page."""
    shown = 1 + (1 if alpha is None else alpha) * (np.array(to_rgb(color)) - 1)
    return contrast(shown, "white"), contrast(turned(shown), turned("white"))


def colors_of_lines(figure):
    """Colours of all lines that a figure shows: {(colour, alpha)}."""
    lines = [line for axes in figure.axes if axes.get_visible() for line in axes.lines]
    return {(line.get_color(), line.get_alpha()) for line in lines if line.get_visible()}
