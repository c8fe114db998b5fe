"""Changes applied to a model that reads a text: what it cannot take, and the edits of its pass."""

from .registry import CHANGES


def check(changes, place):
    """Raise ValueError for changes that this model, or this text, cannot take."""
    records = changes.records()
    if place.name == "cross" and any(change.reads_order for change in records):
        names = ", ".join(change.name for change in CHANGES.values() if change.reads_order)
        raise ValueError(
            "cross-attention reads no separate positions, and between two texts there is no "
            f"distance; {names} are those of the encoder or the decoder"
        )
    for change in records:
        if change.of_pictures and place.stack.config.picture is None:
            family = place.model.config.model_type
            raise ValueError(
                f"{change.name} is of pictures, which have rows; this {family} reads text"
            )
        change.check(changes, place)


def edits(changes, place, given):
    """{point: array or f(x)} of `minitx.run`, for changes that `check` lets pass.

    Where two changes edit one point, the later one of CHANGES counts; given: edits before them.
    """
    by_point = dict(given)
    for change in sorted(changes.records(), key=_order):
        by_point |= change.edits(changes, place, by_point)
    return by_point


def lines(changes, where):
    """The Python of all changes, in the same order."""
    for change in sorted(changes.records(), key=_order):
        yield from change.python(changes, where)


def _order(change):
    return change.comes_last
