"""Themes of the report's questions: those of one theme stand together, in the order of the list.

Statements about any transformer are apart: that one holds is no finding about a model.
"""

ANY = "Statements about any transformer, tested on this one"
OTHER = "Other questions"
THEMES = {
    "The position table": ("positions", "models", "norms"),
    "Where heads look": ("profiles", "attention", "alignment", "conditions", "kernel"),
    "How queries and keys carry positions": (
        "queries-keys", "extraction", "singular-values", "bases", "rotation", "lags", "sources",
    ),
    "How far positions are carried": ("components", "residual", "cca", "probe", "chain"),
    "Positions moved, changed, or taken away": (
        "dial", "notch", "scale-positions", "inject-positions", "remove-positions", "relearn",
        "shift", "mask-positions", "mechanisms", "reviews",
    ),
    "A joint space of queries and keys": ("joint-space", "joint-grid"),
    "What a prediction comes from": (
        "predict", "attribution", "attribute", "heads", "patch", "paths", "circuit",
    ),
    OTHER: (),
    ANY: ("parts", "shapes", "mixing", "slices", "projections"),
}  # fmt: skip


def of(name):
    """The theme of an experiment.

    >>> of("lags"), of("one of your own")
    ('How queries and keys carry positions', 'Other questions')
    """
    return next((theme for theme, names in THEMES.items() if name in names), OTHER)


def anchor(theme):
    """The id of a theme's answers.

    >>> anchor("The position table")
    'theme-0'
    """
    return f"theme-{[*THEMES].index(theme)}"


def grouped(runs):
    """{theme: its runs} of (experiment, outcome, seconds) of each; themes without one left out."""
    places = {name: n for names in THEMES.values() for n, name in enumerate(names)}
    in_order = sorted(runs, key=lambda run: places.get(run[0].name, 0))
    groups = {theme: [run for run in in_order if of(run[0].name) == theme] for theme in THEMES}
    return {theme: own for theme, own in groups.items() if own}


def sort(runs):
    """The runs, theme by theme."""
    return [run for own in grouped(runs).values() for run in own]
