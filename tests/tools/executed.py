"""A lesson's cells, run here: what its prose claims can then be asked of the names they leave."""

import io
import linecache
from contextlib import redirect_stdout
from functools import cache

from minitx.lessons import notebook

LONG = "analysis.run("  # cells that run an experiment of the kit, which has tests of its own


@cache
def executed(number):
    """(names, printed) after all cells of the English lesson but those of LONG."""
    import matplotlib.pyplot as plt

    names, printed = {"__name__": "lesson"}, io.StringIO()
    with plt.style.context("default"), redirect_stdout(printed):
        for n, cell in enumerate(notebook.get(number).cells):
            if cell.kind == "code" and LONG not in cell.source:
                title = f"<lesson {number}, cell {n}>"
                lines = cell.source.splitlines(keepends=True)
                linecache.cache[title] = len(cell.source), None, lines, title
                exec(compile(cell.source, title, "exec"), names)
                plt.close("all")
    return names, printed.getvalue()
