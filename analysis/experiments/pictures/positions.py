"""Are the position embeddings of patches periodic in two directions?

|FFT2| of each column of the position table over the grid of patches, the root mean square over
the columns; chance: the patches' rows in random order.
"""

import numpy as np

from ...contract import Asks, Of, options, register_of_pictures
from ...drawing.panels import row
from ...maths import grid, nulls
from ...measures import pictures
from ...running.stream import UNSAVED

SLOWEST = 12  # products of cosines whose share of the variance is told


def positions(
    model, run=UNSAVED, *, shuffles: options.Shuffles = nulls.SHUFFLES, seed: options.Seed = 0
):
    """Two-dimensional amplitude spectrum of the position table over the grid of patches."""
    places = pictures.grid_of(model)
    sides = places.rows, places.columns
    table = pictures.table(model)
    spectrum = grid.rms_amplitude(table, *sides)
    orders = nulls.row_shuffles(table, shuffles, seed)
    by_chance = nulls.distribution(lambda x: grid.rms_amplitude(x, *sides), orders)
    smooth = _smooth(table, sides)
    orders = nulls.row_shuffles(table, shuffles, (seed, 1))
    smooth_by_chance = nulls.distribution(lambda x: _smooth(x, sides), orders)
    peak, down, across = grid.highest(spectrum)
    line = np.quantile(by_chance.max(axis=(1, 2)), nulls.CHANCE)
    down_axis, across_axis = grid.frequencies(*sides)
    result = {"rows": sides[0], "columns": sides[1], "down": down_axis, "across": across_axis}
    result |= {"spectrum": spectrum, "spectrum_shuffled": by_chance.mean(axis=0)}
    result |= {"peak": peak, "peak_null": line, "peak_down": abs(down), "peak_across": across}
    own = grid.distinct(*sides)
    result |= {"n_above": (spectrum > line)[own].sum(), "n_frequencies": own.sum() - 1}
    result["n_above_null"] = (by_chance > line)[:, own].sum(axis=1).max()
    result |= {"smooth": smooth, "smooth_null": np.quantile(smooth_by_chance, nulls.CHANCE)}
    return result


def _smooth(table, sides):
    """Share of a table's variance that the slowest products of cosines hold."""
    x = table - table.mean(axis=0)
    basis = grid.cosines(*sides, min(SLOWEST, len(table) - 1))
    return ((basis.T @ x) ** 2).sum() / max((x**2).sum(), np.finfo(float).tiny)


def _draw_spectrum(name, title):
    """A panel: amplitudes by cycles down and across, on the scale of the table's own."""

    def panel(axes, r):
        down, across = r["down"], r["across"]
        extent = across[0] - 0.5, across[-1] + 0.5, down[-1] + 0.5, down[0] - 0.5
        style = {"vmin": 0, "vmax": r["spectrum"].max(), "extent": extent, "aspect": "auto"}
        image = axes.imshow(r[name], cmap="Blues", **style)
        axes.set(title=title, xlabel="cycles across the grid", ylabel="cycles down the grid")
        axes.figure.colorbar(image, ax=axes, label="amplitude, root mean square over columns")
        axes.locator_params(integer=True)

    return panel


register_of_pictures(
    positions,
    look="A dark cell is a wave with that number of cycles down and across the grid of patches. "
    "Waves in one direction are on the axes; diagonal waves are off the axes, above or below the "
    "middle.",
    numbers="""
        peak: highest amplitude (root mean square over columns) of the patches' positions at any
            frequency of the grid but 0
            null: 99% quantile of the highest amplitude over shuffles of the patches
        [peak_down|peak_across]: cycles [down|across] the grid at which it lies
            no null: its height has one
        n_above: frequencies of the grid above the highest amplitude of 99% of the shuffles
            null: most frequencies above that line in any shuffle of the patches
        fact n_frequencies: frequencies of the grid, without 0
        smooth: share of the variance of the patches' positions in the {SLOWEST} slowest products of
            a cosine down and one across
            null: 99% quantile of that share over shuffles of the patches
    """,
    answer=Asks(
        "highest amplitude of the table over {rows} × {columns} patches",
        value="{peak:.3g} at {peak_down} cycles down, {peak_across} across",
        chance="{peak_null:.3g}",
        rule=Of("peak", most=np.inf),
    ),
    says=[
        "The highest amplitude over the grid of {rows} × {columns} patches is {peak:.3g}, at "
        "{peak_down} cycles down and {peak_across} across (shuffled patches: {peak_null:.3g} in "
        "99% of cases). {n_above} of {n_frequencies} frequencies are above that line (shuffled: "
        "at most {n_above_null}). The {SLOWEST} slowest waves have {smooth:.1%} of the variance "
        "(shuffled: {smooth_null:.1%}).",
    ],
    draw=row(
        _draw_spectrum("spectrum", "positions of the patches"),
        _draw_spectrum("spectrum_shuffled", "null: patches shuffled, mean"),
        height=5,
    ),
)
