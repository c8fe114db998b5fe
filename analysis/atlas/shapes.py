"""What the points of a head look like in its plane: by type, by position, on a spiral, on a line.

Each measure is a share from 0 to 1 of points [n 2] and their table, corrected for the number of
groups or coordinates, so that it is near 0 where points know nothing of what is asked. With too
few points, groups or positions it is 0.

Source of the shapes: Yeh et al. 2023, section 6 (spirals by position, clusters by type).
"""

import numpy as np

from .sentences import SPECIAL

LEAST = 30  # points, or tokens of different kinds
POSITIONS = 8  # that are needed
SENTENCES = 3  # in which a position is needed
SLOWEST = 1.0  # turns of a spiral, at least
FASTEST = np.pi / 2  # angle between two positions, at most: four of them in a turn
TINY = 1e-12


def explained(xy, group):
    """Share of the variance of points [n 2] between groups [n], corrected for their number.

    >>> xy = np.repeat([[0.0, 0.0], [1.0, 1.0]], 3, axis=0)
    >>> explained(xy, np.array([0, 0, 0, 1, 1, 1]))
    1.0
    """
    _, group, counts = np.unique(group, return_inverse=True, return_counts=True)
    n, g = len(xy), len(counts)
    total = ((xy - xy.mean(axis=0)) ** 2).sum()
    if total < TINY or not 1 < g < n:
        return 0.0
    within = ((xy - means(xy, group, counts)[group]) ** 2).sum()
    return float(max(0.0, 1 - within / total * (n - 1) / (n - g)))


def means(xy, group, counts):
    """Mean point of each group: [n 2], [n], [g] -> [g 2]."""
    sums = [np.bincount(group, x, len(counts)) for x in xy.T]
    return np.stack(sums, axis=1) / counts[:, None]


def by_type(xy, table):
    """Share of the variance of the tokens' mean points that their types explain.

    Each different token counts once, so that a frequent one, which lies where it lies, makes no
    type; special tokens are left out.
    """
    is_own = table.type != SPECIAL
    tokens, first, group, counts = np.unique(
        table.token[is_own], return_index=True, return_inverse=True, return_counts=True
    )
    if len(tokens) < LEAST:
        return 0.0
    return explained(means(xy[is_own], group, counts), table.type[is_own][first])


def by_position(xy, table):
    """Share of the variance of the points that their positions explain."""
    return explained(xy, table.position) if len(xy) >= LEAST else 0.0


def by_row(columns):
    """As by_position, of the rows of a grid with so many columns."""
    return lambda xy, table: explained(xy, table.position // columns) if len(xy) >= LEAST else 0.0


def by_column(columns):
    """As by_position, of the columns of a grid with so many of them."""
    return lambda xy, table: explained(xy, table.position % columns) if len(xy) >= LEAST else 0.0


def line(xy, table):
    """R^2 of the position as a linear function of the two coordinates."""
    n = len(xy)
    total = ((table.position - table.position.mean()) ** 2).sum()
    if n < LEAST or total < TINY or xy.std() < TINY:
        return 0.0
    X = np.column_stack([xy / xy.std(), np.ones(n)])
    fitted = X @ np.linalg.lstsq(X, table.position.astype(np.float64))[0]
    left = ((table.position - fitted) ** 2).sum()
    return float(max(0.0, 1 - left / total * (n - 1) / (n - 3)))


def spiral(xy, table):
    """How evenly the mean points of the positions turn, times what positions explain.

    0 for less than a whole turn, or more than a quarter of one between two positions.
    """
    counts = np.bincount(table.position)
    n = np.argmax(counts < SENTENCES) if (counts < SENTENCES).any() else len(counts)
    if n < POSITIONS:
        return 0.0
    is_there = table.position < n
    path = means(xy[is_there], table.position[is_there], counts[:n])
    z = (path - path.mean(axis=0)) @ [1, 1j]
    steps = z[1:] * z[:-1].conj()
    angle = abs(np.angle(steps.sum()))
    if not SLOWEST * 2 * np.pi / (n - 1) <= angle <= FASTEST:
        return 0.0
    evenness = abs(steps.sum()) / max(abs(steps).sum(), TINY)
    return float(evenness * by_position(xy, table))


KINDS = {"type": by_type, "position": by_position, "spiral": spiral, "line": line}


def of_grid(columns):
    """What is measured of patches in place of KINDS."""
    return {"position": by_position, "row": by_row(columns), "column": by_column(columns)}


def measured(xy, queries, keys, kinds=KINDS):
    """{kind: [2 L H]} of the points of all heads [L H n+m C]: of queries, then of keys."""
    n = len(queries.token)
    sides = [(xy[:, :, :n, :2], queries), (xy[:, :, n:, :2], keys)]
    L, H = xy.shape[:2]
    result = {}
    for kind, of in kinds.items():
        rows = [[[of(x[i, h], table) for h in range(H)] for i in range(L)] for x, table in sides]
        result[kind] = np.array(rows)
    return result
