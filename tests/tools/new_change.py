"""A change that the live page does not have: all that a contributor would write for it."""

from minitx.analysis.live import validation
from minitx.analysis.live.record import Change, Control


def check(changes, place):
    if changes.sharper > place.stack.config.n_layers:
        raise ValueError(f"sharper is {changes.sharper}; wanted at most the number of layers")


def edits(changes, place, before):
    return {place.point("scores"): lambda s: s * changes.sharper}


def python(changes, where):
    yield f'edits["{where.place.point("scores")}"] = lambda s: s * {changes.sharper}'


RECORD = Change(
    "sharper",
    1,
    Control("slider", "Scores times", bounds=(1, 9)),
    lambda value: validation.whole("sharper", value, 1, 9),
    lambda changes: f"scores times {changes.sharper}",
    edits,
    python,
    check,
)
