"""How results are shown: sentences as templates, the style of figures, panels, maps, fonts.

Panels and pieces of sentences stand here by their names; `draw` is the module of colours and style.
"""

from .panels import (
    WIDTH,
    Bar,
    Line,
    Part,
    bar_sample,
    bars,
    beside,
    column,
    curves,
    each,
    few,
    figures,
    head_map,
    layer_ticks,
    line_sample,
    lines,
    row,
    stream_layers,
    token_ticks,
    whiskers,
)
from .sentences import Names, Rows, When

__all__ = ["WIDTH", "Bar", "Line", "Names", "Part", "Rows", "When", "bar_sample", "bars", "beside"]
__all__ += [
    "column",
    "curves",
    "each",
    "few",
    "figures",
    "head_map",
    "layer_ticks",
    "line_sample",
    "lines",
]
__all__ += ["row", "stream_layers", "token_ticks", "whiskers"]
