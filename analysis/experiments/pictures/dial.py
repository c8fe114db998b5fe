"""Does attention follow when the keys' positions are moved over the picture?

In the first layer the keys are computed from positions moved by (dy, dx), the queries and values
stay. Where a head looks by position, its profile moves by as much, the other way. Chance: keys with
positions in random order. H heads of the first layer, m moves.
"""

import numpy as np

import minitx

from ...contract import Asks, Of, options, register_of_pictures
from ...drawing import Line, draw, lines, row
from ...maths import grid
from ...measures import heads, pictures
from ...running.stream import UNSAVED

REACH = 3
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # patches down and across


def dial(
    model,
    run=UNSAVED,
    *,
    text: pictures.Source = "sample",
    documents: pictures.Count = 0,
    seed: options.Seed = 0,
):
    """How the first layer's attention moves with the positions of its keys."""
    places = pictures.grid_of(model)
    sample = pictures.sample(model, text, documents, seed)
    tables = _tables(model, places, seed)

    def measure(i, tokens):
        return {name: _profile(model, tokens, places, table) for name, table in tables.items()}

    sums = run.gather(measure, sample, "pictures")
    mean = {name: x / len(sample) for name, x in sums.items()}
    followed, stayed, by_chance = (np.zeros((len(MOVES), model.config.n_heads)) for _ in range(3))
    for i, move in enumerate(MOVES):
        expected = _moved_back(mean["own"], move)
        followed[i] = _likeness(mean[f"moved {i}"], expected)
        stayed[i] = _likeness(mean[f"moved {i}"], mean["own"])
        by_chance[i] = _likeness(mean[f"random {i}"], expected)
    names = [heads.name(0, head) for head in range(model.config.n_heads)]
    result = {"documents": len(sample), "heads": np.array(names)}
    result |= {"by_head": followed.mean(axis=0), "by_head_null": by_chance.max(axis=0)}
    result["by_head_stayed"] = stayed.mean(axis=0)
    result |= {"followed": followed.mean(), "followed_null": by_chance.mean(axis=1).max()}
    result |= {"stayed": stayed.mean(), "n_heads": followed.shape[1]}
    result["n_following"] = (result["by_head"] > result["by_head_stayed"]).sum()
    return result


def _tables(model, places, seed):
    """{name: position table}: as it is, moved, and in random orders."""
    whole = np.array(model.weights.W_pos)
    patches = whole[places.patches]
    rng = np.random.default_rng(seed)
    changed = {"own": patches}
    for i, move in enumerate(MOVES):
        changed[f"moved {i}"] = grid.moved(patches, places.rows, places.columns, *move)
        changed[f"random {i}"] = rng.permutation(patches)
    tables = {}
    for name, rows in changed.items():
        tables[name] = whole.copy()
        tables[name][places.patches] = rows
    return tables


def _profile(model, tokens, places, table):
    """Attention by offset [H 2r+1 2r+1] of the first layer, whose keys have this table."""
    keys = minitx.run(model, tokens, [("k", 0)], {"pos_embed": lambda x: table[None]})["k", 0]
    trace = minitx.run(model, tokens, [("pattern", 0)], {("k", 0): keys})
    between = trace["pattern", 0][0][:, places.patches, places.patches].astype(np.float64)
    between /= between.sum(axis=-1, keepdims=True)
    by_offset = places.n * grid.profile(between, places.rows, places.columns)
    return grid.central(by_offset, min(REACH, places.rows - 1, places.columns - 1))


def _moved_back(profile, move):
    """What a profile becomes if keys are taken for others a patch away; NaN where it is unknown."""
    known = np.pad(profile, ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    first, end = 1 + np.array(move), 1 + np.array(move) + profile.shape[1:]
    return known[:, first[0] : end[0], first[1] : end[1]]


def _likeness(profile, expected):
    """Correlation [H] of profiles over the offsets that both have."""
    known = ~np.isnan(expected[0])
    pairs = zip(profile[:, known], expected[:, known])
    return np.array([_correlation(*pair) for pair in pairs])


def _correlation(a, b):
    """The correlation of two arrays; 0 where one is the same everywhere."""
    return np.corrcoef(a, b)[0, 1] if a.std() * b.std() > 0 else 0.0


register_of_pictures(
    dial,
    look="Where the blue line is clearly above the grey and the orange one, the head's attention "
    "moves with its keys' positions.",
    numbers="""
        followed: correlation of the first layer's profiles, its keys' positions moved by a patch,
            with the profiles moved by the same amount; mean over heads and four directions
            null: the largest such mean with the keys' positions in random orders
        stayed: the same correlation with the profiles that are not moved
            no null: it is what the other is set beside
        n_following: heads whose profile is closer to the moved profile than to the original
            no null: the correlations have one
        by_head by heads: the first correlation, by head
            null: the largest with the keys' positions in random orders
        fact n_heads: heads of the first layer
        fact documents: pictures read
    """,
    answer=Asks(
        "correlation of profiles with those moved as the keys' positions",
        value="{followed:.2f}",
        chance="{followed_null:.2f}; as the profile that is not moved: {stayed:.2f}",
        rule=Of("followed", null=("followed_null", "stayed"), enough=0.5),
    ),
    says=[
        "With the keys' positions moved by one patch the first layer's profiles correlate with "
        "those moved by one patch by {followed:.2f} (positions in random order: "
        "{followed_null:.2f}), with those that are not moved by {stayed:.2f}. {n_following} of "
        "{n_heads} heads follow.",
    ],
    draw=row(
        lines(
            Line("by_head", "keys moved: as the moved profile"),
            Line("by_head_stayed", "as the profile that is not moved", "-.", draw.ORANGE),
            Line("by_head_null", "null: keys in random order", "--", draw.GREY),
            xticks="heads",
            ylabel="correlation of profiles by offset",
        )
    ),
)
