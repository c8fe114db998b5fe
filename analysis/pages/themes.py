"""Themes of the report's questions: those of one theme stand together, in the order of the list.

The first five are what the report's first sentences tell (story.py), under the same names.
Statements about any transformer are apart: that one holds is no finding about a model.
"""

from ..machine.language import translated

ENTER, READ, MOVED = "How positions enter", "Where positions are read", "When positions are moved"
CARRY, AWAY = "How far positions carry", "When positions are taken away"
ANY = "Statements about any transformer, tested on this one"
OTHER = "Other questions"
THEMES = {
    ENTER: ("positions", "models", "norms", "components"),
    READ: ("profiles", "attention", "alignment", "conditions", "kernel", "lags", "sources"),
    MOVED: ("dial", "notch", "scale-positions", "inject-positions", "shift"),
    CARRY: ("residual", "cca", "probe", "chain"),
    AWAY: ("remove-positions", "relearn", "mask-positions", "mechanisms", "reviews"),
    "How queries and keys carry positions": (
        "queries-keys", "extraction", "singular-values", "bases", "rotation",
    ),
    "A joint space of queries and keys": ("joint-space", "joint-grid"),
    "What a prediction comes from": (
        "predict", "attribution", "attribute", "heads", "patch", "paths", "circuit",
    ),
    OTHER: (),
    ANY: ("parts", "shapes", "mixing", "slices", "projections"),
}  # fmt: skip
SHORT = {  # up to four words, most of them of the question
    "positions": "spectral peaks",
    "models": "periodic, like others",
    "norms": "position in the norm",
    "profiles": "fixed relative positions",
    "attention": "one fixed offset",
    "alignment": "the source token",
    "conditions": "one word repeated",
    "kernel": "positions alone",
    "lags": "offset that matches best",
    "sources": "sharp peaks of scores",
    "dial": "keys shifted",
    "notch": "one band of waves",
    "scale-positions": "positions at another scale",
    "inject-positions": "positions added again",
    "shift": "where a text begins",
    "components": "principal components",
    "residual": "share of the stream",
    "cca": "positions stay readable",
    "probe": "a linear probe",
    "chain": "one head shifted",
    "remove-positions": "without position embeddings",
    "relearn": "only the table retrained",
    "mask-positions": "an attention mask instead",
    "mechanisms": "beyond the training length",
    "reviews": "a downstream task",
    "queries-keys": "queries and keys periodic",
    "extraction": "positions extracted",
    "singular-values": "only a few directions",
    "bases": "SVD: few columns",
    "rotation": "rotation of queries",
    "joint-space": "closer, in one sentence",
    "joint-grid": "closer, over many texts",
    "predict": "help of the context",
    "attribution": "integrated gradients",
    "attribute": "logit of the answer",
    "heads": "an earlier occurrence",
    "patch": "one head patched",
    "paths": "heads that write",
    "circuit": "a few edges",
    "parts": "nothing but attention",
    "shapes": "one vector",
    "mixing": "what mixes tokens",
    "slices": "slices of the embedding",
    "projections": "query, key and value",
}


def short(name):
    """A question in a few words; of an experiment of one's own its name.

    >>> short("chain"), short("first-token")
    ('one head shifted', 'first token')
    """
    return translated(SHORT[name]) if name in SHORT else name.replace("-", " ")


def of(name):
    """The theme of an experiment.

    >>> of("lags"), of("one of your own")
    ('Where positions are read', 'Other questions')
    """
    return next((theme for theme, names in THEMES.items() if name in names), OTHER)


def anchor(theme):
    """The id of a theme's answers.

    >>> anchor("How positions enter")
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
