"""A lesson's cells, run here: what its prose claims can then be asked of the names they leave."""

import ast
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
                _run(cell.source, names, f"<lesson {number}, cell {n}>")
                plt.close("all")
    return names, printed.getvalue()


def _run(source, names, title):
    linecache.cache[title] = len(source), None, source.splitlines(keepends=True), title
    exec(compile(ast.parse(source), title, "exec"), names)
