"""Checks of lesson 8: a deeper layer that follows, queries in place of keys, two bands."""

from . import NOT_YET, Wrong

BANDS = "over 16", "8 to 16", "4 to 8", "2 to 4"


def check_deep(answer):
    """Where L1H1 of deep-roberta looks with the keys of layer 1 moved by +3."""
    if answer is ...:
        return NOT_YET
    if answer == 1:
        raise Wrong("that is where it looks without the dial; this model's layer 1 does follow")
    if answer == 4:
        raise Wrong("the wrong way: keys moved to the right are found further to the left")
    if answer != -2:
        raise Wrong("dialled(deep, …, layer=1, shift=3)[1], then the offset with most attention")
    return "right: +1 less 3. A second layer can read positions, too."


def check_queries(answer):
    """Where L0H3 of tiny-roberta looks with the queries moved by +2."""
    if answer is ...:
        return NOT_YET
    if answer == -3:
        raise Wrong("that is with the keys moved: are you sure that it was the queries?")
    if answer == -1:
        raise Wrong("that is where it looks without the dial, or with both moved")
    if answer != 1:
        raise Wrong("the query has a position two further right: one before that is …")
    return "right: queries move it the other way."


def check_band(answer):
    """The two bands without which the heads of layer 0 keep least."""
    if answer is ...:
        return NOT_YET
    names = set(answer) if isinstance(answer, set | list | tuple) else set()
    if len(names) != 2 or not names <= {*BANDS}:
        raise Wrong(f"wanted a set of two of these: {', '.join(BANDS)}")
    if "2 to 4" not in names:
        raise Wrong("the band that hurts most by itself is not among them")
    if names != {"2 to 4", "8 to 16"}:
        raise Wrong("compute kept(P - band(…) - band(…)) for all pairs with this band")
    return "right: less than half is left without these two."
